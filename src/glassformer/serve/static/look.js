// "Look inside" opens the trace of an answer in a tab of its own, where the server offers it.
import { h } from "./build.js";
import { t } from "./words.js";

// `asked` gives { text, answer? } or { file } when the link is followed, so that it always shows the newest. The text stands behind
// the #, which no server and no log sees; the new tab is an heir of this one, so that it knows the key.
export function lookLink(model, asked) {
  if (!model.look) return null;
  const point = () => (link.href = `/look#${new URLSearchParams({ model: model.name, ...asked() })}`);
  // The middle button, or a key with the click, would open a tab that is nobody's heir.
  const open = (event) => { event.preventDefault(); point(); window.open(link.href, "_blank"); };
  const link = h("a", { class: "button quiet", target: "_blank", rel: "opener", href: "/look", onpointerenter: point, onfocus: point, onclick: open, onauxclick: (event) => event.button === 1 && open(event) }, t("look"));
  return link;
}

const MOST = 4_000_000; // characters that a tab hands on

// A picture or a recording does not fit behind the #: it goes to the new tab as part of what that inherits.
export async function lookAtFileLink(model, file) {
  const data = await inBase64(file);
  if (data.length > MOST) return null;
  return lookLink(model, () => {
    sessionStorage.setItem("look-file", data);
    return { file: "kept" };
  });
}

export function inBase64(file) {
  return new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => fail(reader.error);
    reader.readAsDataURL(file);
  });
}

// The curves of a training run, in a tab of its own too.
export const trainingPlace = (run) => `/look#${new URLSearchParams({ training: run })}`;
