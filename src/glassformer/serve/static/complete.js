// Write on: the answer comes as it is made, and can be stopped; each token can show how sure the model was.
import { locate } from "./align.js";
import { givenUp, stream } from "./ask.js";
import { button, copyButton, growing, h, percent, statusLine } from "./build.js";
import { lookLink } from "./look.js";
import { settings, settingsPanel } from "./settings.js";
import { t } from "./words.js";

export function mount(place, model, draft) {
  const status = statusLine();
  const prompt = growing({ id: "prompt", placeholder: t("promptHere"), value: draft.text ?? "", rows: 6, "aria-label": t("prompt"), oninput: () => (draft.text = prompt.box.value) });
  const answer = h("div", { id: "answer", class: "output answer", tabindex: 0, role: "textbox", "aria-readonly": "true", "aria-multiline": "true", "aria-label": t("answer") });
  const write = button(t("write"), start, "main", { "aria-keyshortcuts": "Control+Enter" });
  const stop = button(t("stop"), () => going?.abort(), "main stop", { hidden: true, "aria-keyshortcuts": "Escape" });
  const keep = button(t("keep"), () => { prompt.set(prompt.box.value + text); show("", []); status.clear(); prompt.box.focus(); });
  const sure = h("input", { type: "checkbox", id: "sure", onchange: paint });
  const footer = h("div", { class: "foot" }, h("label", { class: "check" }, sure, t("certainty")), keep, copyButton(() => prompt.box.value + text), lookLink(model, () => ({ text: prompt.box.value, answer: text })));
  const result = h("section", { class: "card" }, h("h2", {}, t("answer")), answer, footer);
  let going = null;
  let text = "";
  let tokens = []; // [token, log-probability, others]

  function show(newText, newTokens) {
    [text, tokens] = [newText, newTokens];
    result.hidden = text === "" && !going;
    paint();
  }

  function running(controller) {
    going = controller;
    write.hidden = Boolean(going);
    stop.hidden = !going;
    footer.hidden = Boolean(going);
    answer.classList.toggle("running", Boolean(going));
  }

  async function start() {
    going?.abort();
    const mine = new AbortController();
    running(mine);
    show("", []);
    status.wait(t("working"));
    let ended = "";
    try {
      const asked = { model: model.name, prompt: prompt.box.value, logprobs: 3, ...settings() };
      if (model.context) asked.truncate_prompt_tokens = Math.max(1, model.context - asked.max_tokens); // what is long before is forgotten
      for await (const event of stream("/v1/completions", asked, mine.signal)) {
        const [choice] = event.choices;
        if (!choice) continue;
        const made = choice.logprobs;
        made?.tokens.forEach((token, i) => tokens.push([token, made.token_logprobs[i], made.top_logprobs?.[i] ?? {}]));
        text += choice.text;
        answer.append(choice.text);
        ended = choice.finish_reason ?? ended;
        status.clear();
      }
      if (ended !== "length") status.say(t("done"));
      else status.say(tokens.length < asked.max_tokens ? t("contextFull") : t("lengthReached"));
    } catch (error) {
      if (!givenUp(error)) status.fail(error);
      else if (going === mine) status.say(t("stopped"));
    } finally {
      if (going === mine) {
        running(null);
        show(text, tokens);
        if (document.activeElement === document.body) write.focus();
      }
    }
  }

  // Deeper colour: less sure. What else it thought of stands in the tip.
  function paint() {
    answer.classList.toggle("sure", sure.checked);
    if (!sure.checked) return answer.replaceChildren(text);
    const nodes = [];
    let at = 0;
    locate(text, tokens.map(([token]) => token)).forEach((span, i) => {
      if (!span) return;
      const [, logP, others] = tokens[i];
      const node = h("span", { class: "token", title: tip(logP, others) }, text.slice(...span));
      node.style.setProperty("--doubt", (1 - Math.exp(logP)).toFixed(3));
      nodes.push(text.slice(at, span[0]), node);
      at = span[1];
    });
    return answer.replaceChildren(...nodes, text.slice(at));
  }

  const keys = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); start(); }
    if (event.key === "Escape" && going) going.abort();
  };
  document.addEventListener("keydown", keys); // a button that hides itself takes the focus with it
  place.replaceChildren(h("div", { class: "bench" },
    h("div", { class: "stack" },
      h("section", { class: "card" }, h("h2", {}, t("prompt")), prompt.node, h("div", { class: "foot" }, h("span", { class: "soft hardware" }, "Ctrl + Enter"), write, stop)),
      status.node, result),
    settingsPanel()));
  show("", []);
  prompt.box.focus({ preventScroll: true });
  return () => { going?.abort(); document.removeEventListener("keydown", keys); };
}

function tip(logP, others) {
  const also = Object.entries(others).map(([token, p]) => `${JSON.stringify(token)}  ${percent(Math.exp(p))}`);
  return [t("sure", percent(Math.exp(logP))), ...also].join("\n");
}
