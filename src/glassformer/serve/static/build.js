// Small parts that all views are built from. Text goes in as text only, never as HTML.
import { currentLanguage, t } from "./words.js";

export function h(tag, given = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

export function button(label, onclick, kind = "", more = {}) {
  return h("button", { type: "button", class: kind, onclick, ...more }, label);
}

// Says by itself that it has copied.
export function copyButton(text) {
  const node = button(t("copy"), async () => {
    try {
      await navigator.clipboard.writeText(text());
      node.textContent = t("copied");
    } catch {
      node.textContent = t("notCopied");
    }
    setTimeout(() => (node.textContent = t("copy")), 1500);
  }, "quiet");
  return node;
}

export const number = (value, digits) => value.toLocaleString(currentLanguage(), { minimumFractionDigits: digits, maximumFractionDigits: digits });
export const percent = (p) => (p > 0 && p < 0.001 ? `< ${number(0.1, 1)} %` : `${number(100 * p, p < 0.0995 || p > 0.995 ? 1 : 0)} %`);

// Each [label, share, press]: a row that shows how much of the whole it has.
export function bars(rows) {
  return h("ul", { class: "bars" }, rows.map(([label, share, press]) => {
    const bar = h("span", { class: "bar" });
    bar.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
    const parts = [h("span", { class: "label" }, label), h("span", { class: "track" }, bar), h("span", { class: "number" }, percent(share))];
    return h("li", {}, press ? button(parts, press, "row") : h("div", { class: "row" }, parts));
  }));
}

// One line for what is going on; a reader of the screen hears it.
export function statusLine() {
  const node = h("p", { class: "notice", role: "status" });
  let timer = 0;
  const say = (kind, ...parts) => {
    clearTimeout(timer);
    node.className = `notice ${kind}`;
    node.replaceChildren(...parts);
  };
  return {
    node,
    clear: () => say(""),
    say: (text) => say("soft", text),
    // A quick answer should not flicker.
    wait: (text) => { clearTimeout(timer); timer = setTimeout(() => say("soft", h("span", { class: "spinner" }), text), 300); },
    fail: (error) => say("bad", h("strong", {}, error.message), error.hint ? ` ${error.hint}` : ""),
  };
}

// A text field that grows with its text; the mirror behind it can mark words.
export function growing(given) {
  const mirror = h("div", { class: "mirror", "aria-hidden": "true" });
  const box = h("textarea", { spellcheck: "false", ...given });
  const show = () => mirror.replaceChildren(`${box.value}\u200b`);
  box.addEventListener("input", show);
  show();
  return { node: h("div", { class: "growing" }, mirror, box), box, mirror, show, set(text) { box.value = text; box.dispatchEvent(new Event("input")); } };
}

export function examples(texts, take) {
  return h("p", { class: "examples" }, h("span", {}, t("try")), texts.map((text) => button(text, () => take(text), "chip")));
}

// Takes one file: dropped on it, or chosen.
export function dropZone(accept, words, take, before = null, after = null) {
  const file = h("input", { type: "file", accept, hidden: true, "aria-label": t("chooseFile"), onchange: () => file.files[0] && take(file.files[0]) });
  const zone = h("section", { class: "card drop" }, before, h("p", {}, words, " ", button(t("chooseFile"), () => file.click()), file), after);
  zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  });
  return zone;
}

// The answer of a classifier: its label, and how likely each is.
export function labels({ label, probabilities }) {
  const rows = Object.entries(probabilities).sort(([, a], [, b]) => b - a).slice(0, 12);
  const name = typeof label === "number" ? String(Math.round(label * 1000) / 1000) : String(label);
  return [h("h2", {}, t("result")), h("p", { class: "label-found" }, name), rows.length ? bars(rows) : ""];
}
