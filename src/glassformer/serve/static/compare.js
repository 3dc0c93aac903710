// Compare texts: one vector each, and the cosine of each pair.
import { ask, givenUp, newest } from "./ask.js";
import { growing, h, number, statusLine } from "./build.js";
import { t } from "./words.js";

const MOST = 12;

export function mount(place, model, draft) {
  const status = statusLine();
  const source = growing({ id: "source", placeholder: t("compareHere"), value: draft.text ?? "", rows: 5, "aria-label": t("compareHere") });
  const found = h("section", { class: "card", "aria-live": "polite", hidden: true });

  async function compare(signal) {
    const all = source.box.value.split("\n").map((line) => line.trim()).filter(Boolean);
    const texts = all.slice(0, MOST);
    found.hidden = texts.length < 2;
    if (texts.length < 2) return texts.length ? status.say(t("atLeastTwo")) : status.clear();
    status.wait(t("working"));
    try {
      const { vectors } = await ask("/api/embed", { model: model.name, texts }, signal);
      if (all.length > MOST) status.say(t("most", MOST));
      else status.clear();
      show(texts, vectors.map((a) => vectors.map((b) => cosine(a, b))));
    } catch (error) {
      if (!givenUp(error)) { found.hidden = true; status.fail(error); }
    }
  }
  const work = newest(compare);

  function show(texts, likeness) {
    const pairs = texts.flatMap((_, i) => texts.slice(0, i).map((_, j) => [j, i]));
    const [a, b] = pairs.reduce((best, pair) => (likeness[pair[0]][pair[1]] > likeness[best[0]][best[1]] ? pair : best));
    const cell = (value, same) => {
      const node = h("td", { class: same ? "same" : "heat" }, number(value, 2));
      node.style.setProperty("--heat", Math.max(0, value).toFixed(3));
      return node;
    };
    found.replaceChildren(
      h("h2", {}, t("similarity")),
      h("p", {}, t("closest", texts[a], texts[b])),
      h("div", { class: "scroll", tabindex: 0 }, h("table", {},
        h("thead", {}, h("tr", {}, h("td"), texts.map((text, i) => h("th", { scope: "col", title: text }, String(i + 1))))),
        h("tbody", {}, likeness.map((row, i) => h("tr", {}, h("th", { scope: "row", title: texts[i] }, `${i + 1} · ${texts[i]}`), row.map((value, j) => cell(value, i === j))))))));
  }

  const changed = () => { draft.text = source.box.value; work.run(); };
  source.box.addEventListener("input", changed);
  place.replaceChildren(
    h("section", { class: "card" }, source.node, h("div", { class: "foot" }, h("span", { class: "soft" }, t("compareHint")))),
    status.node, found);
  changed();
  source.box.focus({ preventScroll: true });
  return work.stop;
}

function cosine(a, b) {
  const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  return dot(a, b) / (Math.sqrt(dot(a, a) * dot(b, b)) || 1);
}
