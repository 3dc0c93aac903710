// How to draw: the same settings for writing on and for a chat, kept while the page is open.
import { h } from "./build.js";
import { t } from "./words.js";

const kept = { temperature: 0.8, top_p: 0.95, max_tokens: 120, seed: "", stop: "" };

export function settingsPanel(extra = []) {
  const wide = matchMedia("(min-width: 60rem)").matches;
  const panel = h("details", { class: "card settings", open: wide },
    h("summary", {}, t("settings")), extra,
    slider("temperature", t("temperature"), t("temperatureHelp"), 0, 2, 0.05),
    slider("top_p", t("topP"), t("topPHelp"), 0.05, 1, 0.05),
    field("max_tokens", t("maxTokens"), "", { type: "number", min: 1, max: 8192, required: true }),
    field("seed", t("seed"), t("seedHelp"), { type: "number", min: 0, placeholder: t("random") }),
    labelled("stop", t("stopAt"), t("stopHelp"), h("textarea", { rows: 2, value: kept.stop, oninput: (e) => (kept.stop = e.target.value) })));
  return panel;
}

// As the server wants them; what is left empty is left out.
export function settings() {
  const stop = kept.stop.split("\n").filter(Boolean).map((line) => line.replaceAll("\\n", "\n"));
  const asked = { temperature: Number(kept.temperature), top_p: Number(kept.top_p), max_tokens: Math.max(1, Math.round(Number(kept.max_tokens)) || 1) };
  if (kept.seed !== "") asked.seed = Math.max(0, Math.round(Number(kept.seed)));
  if (stop.length) asked.stop = stop;
  return asked;
}

function labelled(name, label, help, input) {
  input.name = name;
  if (help) input.setAttribute("aria-describedby", `help-${name}`);
  return h("div", { class: "setting" }, h("label", {}, h("span", {}, label), input), help ? h("p", { id: `help-${name}` }, help) : null);
}

function slider(name, label, help, min, max, step) {
  const number = h("span", { class: "number" }, String(kept[name]));
  const input = h("input", { type: "range", min, max, step, oninput: () => { kept[name] = input.value; number.textContent = input.value; } });
  input.value = kept[name];
  const row = labelled(name, label, help, input);
  row.querySelector("label > span").append(number);
  return row;
}

function field(name, label, help, given) {
  const input = h("input", { ...given, value: kept[name], oninput: () => (kept[name] = input.value) });
  return labelled(name, label, help, input);
}
