// The frame: which models there are, which one is chosen, what can be done with it; language, colours, key.
import { ask, useKey } from "./ask.js";
import { button, h } from "./build.js";
import * as chat from "./chat.js";
import * as classify from "./classify.js";
import * as compare from "./compare.js";
import * as complete from "./complete.js";
import * as fill from "./fill.js";
import { trainingPlace } from "./look.js";
import * as picture from "./picture.js";
import * as transcribe from "./transcribe.js";
import * as translate from "./translate.js";
import { currentLanguage, setLanguage, t } from "./words.js";

const VIEWS = { translate, complete, chat, fill, classify, picture, transcribe, compare };
const THEMES = { system: "◐", light: "☀", dark: "☾" };
const byId = (id) => document.getElementById(id);
const drafts = {}; // what was typed, by view: it stays when model or language change
let models = [];
let paths = {};
let runs = []; // names of trainings
let close = () => {};

// What can be done with a model, the main thing first.
function viewsOf(model) {
  const views = [];
  if (model.chat) views.push("chat");
  if (model.task === "transcribe" && !paths["/v1/audio/transcriptions"]) return views;
  if (model.task === "classify" && (model.input ?? "text") !== "text") return model.input === "pictures" ? ["picture"] : [];
  if (model.task in VIEWS) views.push(model.task);
  if (model.task !== "transcribe") views.push("compare");
  return views;
}

function place() {
  const given = new URLSearchParams(location.hash.slice(1));
  const model = models.find((one) => one.name === given.get("model")) ?? models[0];
  const views = model ? viewsOf(model) : [];
  return { model, views, view: views.includes(given.get("view")) ? given.get("view") : views[0] };
}

function go(model, view) {
  const hash = `#${new URLSearchParams(view ? { model, view } : { model })}`;
  if (hash === location.hash) show();
  else location.hash = hash;
}

function show() {
  close();
  close = () => {};
  const { model, views, view } = place();
  byId("model").value = model?.name ?? "";
  byId("about").textContent = model?.title ?? "";
  byId("trained").hidden = !runs.some((run) => run.name === model?.name);
  byId("trained").href = trainingPlace(model?.name ?? "");
  document.title = model ? `${model.name} · Glassformer` : "Glassformer";
  showTabs(model, views, view);
  const panel = byId("view");
  panel.setAttribute("aria-label", view ? t(view) : "");
  if (!view) panel.replaceChildren(h("p", { class: "notice" }, t(model ? "noView" : "noModels")));
  else close = VIEWS[view].mount(panel, model, (drafts[view] ??= {}));
}

function showTabs(model, views, view) {
  const tabs = byId("views");
  tabs.hidden = views.length < 2;
  tabs.replaceChildren(...views.map((name) => button(t(name), () => go(model.name, name), "tab", {
    role: "tab", "aria-selected": String(name === view), "aria-controls": "view", tabindex: name === view ? 0 : -1,
  })));
}

byId("views").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const tabs = [...byId("views").children];
  tabs.at((tabs.indexOf(document.activeElement) + step) % tabs.length).focus();
});

function showFrame() {
  document.documentElement.lang = currentLanguage();
  for (const node of document.querySelectorAll("[data-text]")) node.textContent = t(node.dataset.text);
  const other = currentLanguage() === "en" ? "de" : "en";
  Object.assign(byId("language"), { textContent: other.toUpperCase(), title: t("otherLanguage"), ariaLabel: t("otherLanguage"), lang: other });
  const colours = `${t("theme")}: ${t(theme())}`;
  Object.assign(byId("theme"), { textContent: THEMES[theme()], title: colours, ariaLabel: colours });
  const groups = Object.groupBy(models, (model) => model.task);
  byId("model").replaceChildren(...Object.entries(groups).map(([task, some]) =>
    h("optgroup", { label: task in VIEWS ? t(task) : task }, some.map(({ name }) => h("option", { value: name }, name)))));
  byId("model").disabled = models.length < 2;
  byId("model").value = place().model?.name ?? "";
}

const theme = () => (localStorage.getItem("theme") in THEMES ? localStorage.getItem("theme") : "system");

function setTheme(name) {
  localStorage.setItem("theme", name);
  document.documentElement.dataset.theme = name;
}

byId("model").addEventListener("change", (event) => go(event.target.value));
byId("language").addEventListener("click", () => {
  setLanguage(currentLanguage() === "en" ? "de" : "en");
  showFrame();
  show();
  byId("language").focus();
});
byId("theme").addEventListener("click", () => {
  const names = Object.keys(THEMES);
  setTheme(names[(names.indexOf(theme()) + 1) % names.length]);
  showFrame();
});
byId("key").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey(new FormData(event.target).get("key"));
  start();
});
document.addEventListener("key-needed", () => {
  byId("key").hidden = false;
  byId("key").elements.key.focus();
});
addEventListener("hashchange", show);

async function start() {
  showFrame();
  try {
    [models, { paths }, runs] = await Promise.all([ask("/api/models"), ask("/openapi.json"), ask("/api/runs")]);
  } catch (error) {
    const again = error.status === 401 ? null : button(t("again"), start);
    byId("view").replaceChildren(h("p", { class: "notice bad", role: "alert" }, h("strong", {}, error.message), ` ${error.hint} `, again ?? ""));
    return;
  }
  byId("key").hidden = true;
  byId("runs").hidden = !runs.length;
  showFrame();
  show();
}

setTheme(theme());
start();
