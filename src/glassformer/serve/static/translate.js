// Translate as you type. Each sentence is asked for once; what is known already stays and costs nothing.
import { linksOf, sentencesOf, wordsOf } from "./align.js";
import { ask, givenUp, newest } from "./ask.js";
import { button, copyButton, examples, growing, h, statusLine } from "./build.js";
import { lookLink } from "./look.js";
import { nameOfLanguage, t } from "./words.js";

const EXAMPLES = {
  en: ["Where is the nearest train station?", "I would like a cup of tea, please.", "She has been learning German for two years."],
  de: ["Wo ist der nächste Bahnhof?", "Ich hätte gern eine Tasse Tee."],
};
const N_BEST = 4;
const AT_ONCE = 16; // sentences of one request
const MOST_KNOWN = 20_000;
const known = new Map(); // "model\nsentence" -> translations

export function mount(place, model, draft) {
  const [from, to] = model.languages ?? [];
  const status = statusLine();
  const source = growing({ id: "source", placeholder: t("typeHere"), value: draft.text ?? "", lang: from, rows: 5, "aria-label": t("source"), "aria-describedby": "count" });
  const output = h("div", { id: "target", class: "output", tabindex: 0, role: "textbox", "aria-readonly": "true", "aria-multiline": "true", lang: to, "aria-label": t("target"), "aria-description": t("wordHint") });
  const others = h("section", { class: "others", "aria-live": "polite" });
  const count = h("span", { id: "count", class: "soft" });
  const said = h("span", { class: "soft", role: "status" });
  const chosen = (draft.chosen ??= {});
  let sentences = [];
  let words = []; // of the translation: { node, text, mates, sentence }
  let active = -1;
  let spoken = ""; // the sentence whose other translations are shown

  const recall = (text) => known.get(`${model.name}\n${text}`);
  const best = (text) => recall(text)?.[chosen[text] ?? 0];
  const shown = () => sentences.map((s) => s.before + (best(s.text)?.text ?? "") + s.after).join("");

  // A long text comes in parts, the first ones soon.
  async function learn(texts, signal) {
    const options = { nbest: N_BEST, beam: N_BEST };
    const answer = await ask("/api/translate", { model: model.name, texts, options, details: true }, signal);
    texts.forEach((text, i) => known.set(`${model.name}\n${text}`, distinct(answer.translations[i])));
    for (const old of known.keys()) {
      if (known.size <= MOST_KNOWN) break;
      known.delete(old);
    }
    show();
  }

  async function translate(signal) {
    const missing = [...new Set(sentences.map((s) => s.text))].filter((text) => text && !recall(text));
    if (!missing.length) return;
    status.wait(t("translating"));
    output.setAttribute("aria-busy", "true");
    try {
      for (let first = 0; first < missing.length; first += AT_ONCE) await learn(missing.slice(first, first + AT_ONCE), signal);
      status.clear();
    } catch (error) {
      if (!givenUp(error)) status.fail(error);
    } finally {
      if (!signal.aborted) output.removeAttribute("aria-busy");
    }
  }
  const work = newest(translate);

  function changed() {
    draft.text = source.box.value;
    sentences = sentencesOf(draft.text, from ?? "en");
    count.textContent = draft.text ? t("characters", draft.text.length) : "";
    hints.hidden = draft.text !== "";
    footer.hidden = clear.hidden = draft.text === "";
    show();
    work.run();
  }

  function show() {
    words = [];
    mark(-1);
    // While a new answer is on its way the old one stays, only paler.
    const waiting = sentences.some((s) => s.text && !recall(s.text));
    output.classList.toggle("old", waiting);
    if (waiting && output.childNodes.length && sentences.filter((s) => s.text).length === 1) return;
    const nodes = [];
    let places = 0;
    const mirrored = [];
    sentences.forEach((sentence, index) => {
      mirrored.push(sentence.before, ...pieces(sentence.text, (text) => h("span", {}, text)), sentence.after);
      const answer = best(sentence.text);
      const first = places;
      places += wordsOf(sentence.text).length;
      if (!answer) {
        nodes.push(sentence.before, h("span", { class: "coming" }, sentence.text ? "…" : ""), sentence.after);
        return;
      }
      const links = linksOf(sentence.text, answer).map((mates) => mates.map((i) => i + first));
      nodes.push(sentence.before, ...pieces(answer.text, (text, i) => {
        const node = h("span", { class: "word" }, text);
        words.push({ node, text, mates: links[i], sentence: index });
        node.dataset.word = words.length - 1;
        return node;
      }), sentence.after);
    });
    source.mirror.replaceChildren(...mirrored, "\u200b");
    output.replaceChildren(...nodes);
    showOthers(Math.max(0, sentences.findLastIndex((s) => s.text)));
  }

  function showOthers(index) {
    const text = (spoken = sentences[index]?.text ?? "");
    const found = text ? (recall(text) ?? []) : [];
    others.hidden = found.length < 2;
    const title = sentences.filter((s) => s.text).length > 1 ? t("alternativesOf", text) : t("alternatives");
    others.replaceChildren(h("h2", {}, title), h("ul", {}, found.map((one, i) => {
      const picked = i === (chosen[text] ?? 0);
      return picked ? null : h("li", {}, button(one.text, () => { chosen[text] = i; show(); showOthers(index); }, "row", { lang: to }));
    })));
  }

  // Mark a word of the translation and the words that it comes from, or all that come from a word of the source.
  function mark(index, from = -1) {
    active = index;
    const hit = from >= 0 ? words.filter((word) => word.mates.includes(from)) : words.slice(index, index + 1).filter(() => index >= 0);
    const mates = from >= 0 ? [from] : (hit[0]?.mates ?? []);
    for (const { node } of words) node.classList.toggle("marked", hit.some((word) => word.node === node));
    const behind = [...source.mirror.querySelectorAll("span")];
    behind.forEach((node, i) => node.classList.toggle("marked", mates.includes(i)));
    return mates.map((i) => behind[i]?.textContent).join(" ");
  }

  const underPointer = (event) => {
    const at = [...source.mirror.querySelectorAll("span")].findIndex((node) => [...node.getClientRects()].some((r) =>
      event.clientX >= r.left && event.clientX <= r.right && event.clientY >= r.top && event.clientY <= r.bottom));
    mark(-1, at);
  };
  source.box.addEventListener("pointermove", underPointer);
  source.box.addEventListener("pointerleave", () => mark(-1));
  output.addEventListener("pointerover", (event) => mark(Number(event.target.dataset?.word ?? -1)));
  output.addEventListener("pointerleave", () => mark(-1));
  output.addEventListener("blur", () => { mark(-1); said.textContent = ""; });
  output.addEventListener("click", (event) => {
    const word = words[event.target.dataset?.word];
    if (word) showOthers(word.sentence);
  });
  output.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !words.length || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(words.length - 1, active + step));
    const comesFrom = mark(next);
    said.textContent = comesFrom ? t("comesFrom", words[next].text, comesFrom) : words[next].text;
    if (words[next].sentence !== words[next - step]?.sentence) showOthers(words[next].sentence);
  });
  source.box.addEventListener("input", changed);

  const hints = examples(EXAMPLES[from] ?? [], (text) => { source.set(text); source.box.focus(); });
  if (!EXAMPLES[from]) hints.replaceChildren();
  const clear = button(t("clear"), () => { source.set(""); source.box.focus(); }, "quiet");
  const footer = h("div", { class: "foot" }, said, copyButton(shown), lookLink(model, () => ({ text: spoken, answer: best(spoken)?.text ?? "" })));
  place.replaceChildren(
    h("div", { class: "pair" },
      h("section", { class: "card" }, h("h2", {}, from ? nameOfLanguage(from) : t("source")), source.node, hints, h("div", { class: "foot" }, count, clear)),
      h("section", { class: "card" }, h("h2", {}, to ? nameOfLanguage(to) : t("target")), output, footer)),
    status.node, others);
  changed();
  source.box.focus({ preventScroll: true });
  return work.stop;
}

// The text with each of its words made a node.
function pieces(text, make) {
  const nodes = [];
  let at = 0;
  wordsOf(text).forEach(([start, end], i) => {
    nodes.push(text.slice(at, start), make(text.slice(start, end), i));
    at = end;
  });
  return [...nodes, text.slice(at)];
}

const distinct = (found) => found.filter((one, i) => found.findIndex((other) => other.text === one.text) === i);
