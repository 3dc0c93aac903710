// Classify as you type, with a bar for each label; models of pairs read a second text.
import { ask, givenUp, newest } from "./ask.js";
import { button, growing, h, labels, statusLine } from "./build.js";
import { lookLink } from "./look.js";
import { t } from "./words.js";

export function mount(place, model, draft) {
  const status = statusLine();
  const first = growing({ id: "source", placeholder: t("classifyHere"), value: draft.text ?? "", rows: 4, "aria-label": t("source") });
  const second = growing({ id: "second", placeholder: t("secondText"), value: draft.second ?? "", rows: 3, "aria-label": t("secondText") });
  const result = h("section", { class: "card", "aria-live": "polite", hidden: true });
  draft.paired ||= model.n_texts === 2;
  const add = button(t("second"), () => { draft.paired = true; changed(); second.box.focus(); });

  async function classify(signal) {
    const text = first.box.value.trim();
    const input = draft.paired && second.box.value.trim() ? [text, second.box.value.trim()] : text;
    result.hidden = !text;
    if (!text) return status.clear();
    status.wait(t("working"));
    try {
      const { answers } = await ask("/api/classify", { model: model.name, texts: [input] }, signal);
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
    second.node.hidden = !draft.paired;
    add.hidden = Boolean(draft.paired);
    work.run();
  }
  for (const { box } of [first, second]) box.addEventListener("input", changed);
  place.replaceChildren(
    h("div", { class: "pair" },
      h("section", { class: "card" }, h("h2", {}, t("source")), first.node, second.node, h("div", { class: "foot" }, add, lookLink(model, () => ({ text: first.box.value })))),
      h("div", { class: "stack" }, status.node, result)));
  changed();
  first.box.focus({ preventScroll: true });
  return work.stop;
}
