// Classify as you type, with a bar for each label; models of pairs read a second text, imported ones may.
import { ask, givenUp, newest } from "./ask.js";
import { growing, h, labels, statusLine } from "./build.js";
import { lookLink } from "./look.js";
import { t } from "./words.js";

export function mount(place, model, draft) {
  const status = statusLine();
  const first = growing({ id: "source", placeholder: t("classifyHere"), value: draft.text ?? "", rows: 4, "aria-label": t("source") });
  const second = growing({ id: "second", placeholder: t("secondText"), value: draft.second ?? "", rows: 3, "aria-label": t("secondText") });
  const result = h("section", { class: "card", "aria-live": "polite", hidden: true });
  second.node.hidden = model.n_texts === 1;

  const isPair = () => model.n_texts === 2 || (model.n_texts === null && second.box.value.trim() !== "");
  const given = () => (isPair() ? [first, second] : [first]).map(({ box }) => box.value.trim());

  async function classify(signal) {
    const [paired, texts] = [isPair(), given()];
    const whole = texts.every(Boolean);
    result.hidden = !whole;
    if (!whole) return status.clear();
    status.wait(t("working"));
    try {
      const { answers } = await ask("/api/classify", { model: model.name, texts: [paired ? texts : texts[0]] }, signal);
      status.clear();
      result.replaceChildren(...labels(answers[0]));
    } catch (error) {
      if (givenUp(error)) return;
      result.hidden = true;
      status.fail(error);
    }
  }
  const work = newest(classify);

  function changed() {
    [draft.text, draft.second] = [first.box.value, second.box.value];
    work.run();
  }
  for (const { box } of [first, second]) box.addEventListener("input", changed);
  place.replaceChildren(
    h("div", { class: "pair" },
      h("section", { class: "card" }, h("h2", {}, t("source")), first.node, second.node, h("div", { class: "foot" }, lookLink(model, () => ({ text: given().map((text) => text.replaceAll("\t", " ")).join("\t") })))),
      h("div", { class: "stack" }, status.node, result)));
  changed();
  first.box.focus({ preventScroll: true });
  return work.stop;
}
