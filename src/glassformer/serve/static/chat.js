// A talk with a model that has a template.
import { givenUp, stream } from "./ask.js";
import { button, growing, h, statusLine } from "./build.js";
import { settings, settingsPanel } from "./settings.js";
import { t } from "./words.js";

export function mount(place, model, draft) {
  const talk = (draft[model.name] ??= { messages: [], system: "" });
  const status = statusLine();
  const list = h("ol", { id: "talk", class: "talk", role: "log", "aria-label": t("chat") });
  const message = growing({ id: "message", rows: 1, placeholder: t("messageHere"), "aria-label": t("message") });
  const send = button(t("send"), say, "main");
  const stop = button(t("stop"), () => going?.abort(), "main stop", { hidden: true });
  const fresh = button(t("newTalk"), () => { going?.abort(); talk.messages = []; show(); status.clear(); message.box.focus(); });
  const system = h("div", { class: "setting" }, h("label", {}, h("span", {}, t("systemText")),
    h("textarea", { rows: 2, value: talk.system, oninput: (event) => (talk.system = event.target.value) })));
  let going = null;

  function bubble({ role, content }) {
    const text = h("p", {}, content);
    list.append(h("li", { class: role }, h("span", { class: "who" }, role === "user" ? t("you") : model.name), text));
    return text;
  }

  function show() {
    list.replaceChildren();
    talk.messages.forEach(bubble);
    if (!talk.messages.length) list.append(h("li", { class: "empty" }, t("chatEmpty")));
    fresh.hidden = !talk.messages.length;
  }

  async function say() {
    const text = message.box.value.trim();
    if (!text || going) return;
    message.set("");
    talk.messages.push({ role: "user", content: text });
    show();
    const mine = (going = new AbortController());
    [send.hidden, stop.hidden] = [true, false];
    status.wait(t("working"));
    const answer = { role: "assistant", content: "" };
    const asked = [...(talk.system.trim() ? [{ role: "system", content: talk.system }] : []), ...talk.messages];
    const node = bubble(answer);
    list.setAttribute("aria-busy", "true");
    let ended = "";
    try {
      for await (const event of stream("/v1/chat/completions", { model: model.name, messages: asked, ...settings() }, mine.signal)) {
        const said = event.choices[0]?.delta?.content ?? "";
        ended = event.choices[0]?.finish_reason ?? ended;
        if (said) status.clear();
        answer.content += said;
        node.append(said);
        node.scrollIntoView({ block: "nearest" });
      }
      if (ended === "length") status.say(t("lengthReached"));
      else status.clear();
    } catch (error) {
      if (givenUp(error)) status.say(t("stopped"));
      else status.fail(error);
    } finally {
      if (answer.content && talk.messages.at(-1)?.content === text) talk.messages.push(answer);
      else if (!answer.content) node.parentElement.remove();
      going = null;
      [send.hidden, stop.hidden] = [false, true];
      list.removeAttribute("aria-busy");
      message.box.focus();
    }
  }

  message.box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); say(); }
  });
  const escape = (event) => { if (event.key === "Escape") going?.abort(); };
  document.addEventListener("keydown", escape);
  place.replaceChildren(h("div", { class: "bench" },
    h("section", { class: "card chat" }, list, status.node, h("div", { class: "composer" }, message.node, send, stop), h("div", { class: "foot" }, fresh)),
    settingsPanel([system])));
  show();
  message.box.focus({ preventScroll: true });
  return () => { going?.abort(); document.removeEventListener("keydown", escape); };
}
