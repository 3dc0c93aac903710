// "Look inside" opens the trace of an answer in a tab of its own, where the server offers it.
import { h } from "./build.js";
import { t } from "./words.js";

let offered = false;

export function offerLook(paths) {
  offered = "/api/look" in paths;
}

// `asked` gives { text, answer? } when the link is followed, so that it always shows the newest. The text stands behind
// the #, which no server and no log sees; the new tab is an heir of this one, so that it knows the key.
export function lookLink(model, asked) {
  if (!offered) return null;
  const point = () => (link.href = `/look#${new URLSearchParams({ model: model.name, ...asked() })}`);
  const link = h("a", { class: "button quiet", target: "_blank", rel: "opener", href: "/look", onpointerenter: point, onfocus: point, onclick: point }, t("look"));
  return link;
}

// The curves of a training run, in a tab of its own too.
export const trainingPlace = (run) => `/look#${new URLSearchParams({ training: run })}`;
