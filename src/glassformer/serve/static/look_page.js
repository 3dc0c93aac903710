// The tab of "look inside" and of training runs: asks for a page, then becomes it; or lists the runs.
import { ask, askText } from "./ask.js";
import { h, statusLine } from "./build.js";
import { trainingPlace } from "./look.js";
import { currentLanguage, t } from "./words.js";

// The page that comes has its own use for what stands behind the #; a reload shows the same again.
if (/^#(model|training|runs)=/.test(location.hash)) sessionStorage.setItem("look", location.hash.slice(1));
const asked = new URLSearchParams(sessionStorage.getItem("look") ?? "");
const title = t(asked.has("runs") ? "runs" : asked.has("training") ? "trained" : "look");
const main = document.querySelector("main");
const status = statusLine();
document.documentElement.lang = currentLanguage();
document.documentElement.dataset.theme = localStorage.getItem("theme") ?? "system";
document.title = `${title} · Glassformer`;
main.replaceChildren(h("h1", {}, title), status.node);
addEventListener("hashchange", () => location.reload());

function findPage() {
  if (asked.has("training")) return askText(`/api/training?${new URLSearchParams({ run: asked.get("training") })}`);
  status.wait(t("looking"));
  const answer = asked.get("answer");
  const given = asked.has("file") ? { file: sessionStorage.getItem("look-file") } : { texts: [asked.get("text") ?? ""] };
  return askText("/api/look", { model: asked.get("model"), ...given, ...(answer ? { answer } : {}) });
}

async function listRuns() {
  const when = new Intl.DateTimeFormat(currentLanguage(), { dateStyle: "medium", timeStyle: "short" });
  const rows = (await ask("/api/runs")).map(({ name, changed }) =>
    h("li", {}, h("a", { href: trainingPlace(name) }, name), " ", h("span", { class: "soft" }, when.format(1000 * changed))));
  main.before(h("header", {}, h("a", { class: "brand", href: "/" }, h("img", { src: "/page/icon.svg", alt: "", width: 26, height: 26 }), " Glassformer")));
  status.node.replaceWith(h("ul", { class: "card runs" }, rows));
}

try {
  if (asked.has("runs")) await listRuns();
  else {
    const page = await findPage();
    document.open();
    document.write(page);
    document.close();
  }
} catch (error) {
  status.fail(error);
}
