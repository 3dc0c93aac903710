// Fill blanks as you type: the best words with their probabilities; a click puts one in.
import { ask, givenUp, newest } from "./ask.js";
import { bars, button, copyButton, examples, growing, h, statusLine } from "./build.js";
import { lookLink } from "./look.js";
import { t } from "./words.js";

const BLANK = /_{2,}|\[MASK\]|<mask>/g;
const EXAMPLES = ["The sky is ___ today.", "She drinks a cup of ___ every morning."];

export function mount(place, model, draft) {
  const status = statusLine();
  const source = growing({ id: "source", placeholder: t("fillHere"), value: draft.text ?? "", rows: 3, "aria-label": t("source") });
  const found = h("section", { class: "blanks", "aria-live": "polite" });

  async function fill(signal) {
    const text = source.box.value;
    if (!text.match(BLANK)) {
      found.replaceChildren();
      return text.trim() ? status.say(t("noBlank")) : status.clear();
    }
    status.wait(t("working"));
    try {
      const { answers } = await ask("/api/fill", { model: model.name, texts: [text], top: 8 }, signal);
      status.say(t("putIn"));
      show(text, answers[0].blanks);
    } catch (error) {
      if (!givenUp(error)) { status.fail(error); found.replaceChildren(); }
    }
  }
  const work = newest(fill);

  function show(text, blanks) {
    const places = placesOf(text, blanks.length);
    found.replaceChildren(...blanks.map((words, i) => {
      const put = (word) => { source.set(text.slice(0, places[i][0]) + word + text.slice(places[i][1])); source.box.focus(); };
      const rows = words.map(({ word, p }) => [word.trim() || word, p, places[i] ? () => put(word.trim() || word) : null]);
      return h("section", { class: "card" }, h("h2", {}, blanks.length > 1 ? t("blankOf", i + 1) : model.name), bars(rows));
    }));
  }

  const changed = () => { draft.text = source.box.value; hints.hidden = draft.text !== ""; work.run(); };
  const addBlank = () => {
    const { box } = source;
    const before = box.value.slice(0, box.selectionStart);
    const gap = before && !/\s$/.test(before) && box.selectionStart === box.selectionEnd ? " " : "";
    box.setRangeText(`${gap}___`, box.selectionStart, box.selectionEnd, "end");
    box.dispatchEvent(new Event("input"));
    box.focus();
  };
  const hints = examples(EXAMPLES, (text) => { source.set(text); source.box.focus(); });
  source.box.addEventListener("input", changed);
  place.replaceChildren(
    h("section", { class: "card" }, source.node, hints, h("div", { class: "foot" }, button(t("blank"), addBlank), copyButton(() => source.box.value), lookLink(model, () => ({ text: source.box.value })))),
    status.node, found);
  changed();
  source.box.focus({ preventScroll: true });
  return work.stop;
}

// Where the blanks stand. A model of characters has one for each underscore.
function placesOf(text, n) {
  const whole = [...text.matchAll(BLANK)].map((found) => [found.index, found.index + found[0].length]);
  if (whole.length === n) return whole;
  const single = whole.flatMap(([start, end]) => Array.from({ length: end - start }, (_, i) => [start + i, start + i + 1]));
  return single.length === n ? single : [];
}
