// The tab of "look inside": asks for the trace, then becomes the page that comes back.
import { askText } from "./ask.js";
import { h, statusLine } from "./build.js";
import { currentLanguage, t } from "./words.js";

// The page that comes has its own use for what stands behind the #; a reload shows the same trace again.
if (location.hash.includes("model=")) sessionStorage.setItem("look", location.hash.slice(1));
const asked = new URLSearchParams(sessionStorage.getItem("look") ?? "");
const status = statusLine();
document.documentElement.lang = currentLanguage();
document.documentElement.dataset.theme = localStorage.getItem("theme") ?? "system";
document.querySelector("main").replaceChildren(h("h1", {}, t("look")), status.node);
status.wait(t("looking"));
try {
  const answer = asked.get("answer");
  const body = { model: asked.get("model"), texts: [asked.get("text") ?? ""], ...(answer ? { answer } : {}) };
  const page = await askText("/api/look", body);
  document.open();
  document.write(page);
  document.close();
} catch (error) {
  status.fail(error);
}
