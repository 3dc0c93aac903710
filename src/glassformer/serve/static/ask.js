// Everything that goes to the server: with the key, given up when nobody waits, errors in kind words.
import { t } from "./words.js";

const PATIENCE = 3; // times that a busy server is asked again
let key = sessionStorage.getItem("key") ?? "";

export function useKey(given) {
  key = given;
  sessionStorage.setItem("key", given);
}

export class Refused extends Error {
  constructor(message, hint = "", status = 0) {
    super(message);
    this.hint = hint;
    this.status = status;
  }
}

export const givenUp = (error) => error.name === "AbortError";

async function send(path, body, signal, tries = 0) {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const asForm = body instanceof FormData;
  if (body !== undefined && !asForm) headers["Content-Type"] = "application/json";
  let answer;
  try {
    const method = body === undefined ? "GET" : "POST";
    answer = await fetch(path, { method, headers, signal, body: asForm || body === undefined ? body : JSON.stringify(body) });
  } catch (error) {
    if (givenUp(error)) throw error;
    throw new Refused(t("noServer"), t("noServerHint"));
  }
  if (answer.ok) return answer;
  if (answer.status === 429 && tries < PATIENCE) {
    await pause(1000 * Math.min(10, Number(answer.headers.get("Retry-After")) || 1), signal);
    return send(path, body, signal, tries + 1);
  }
  throw await refusal(answer);
}

function pause(ms, signal) {
  return new Promise((done, give) => {
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", () => { clearTimeout(timer); give(signal.reason); }, { once: true });
  });
}

async function refusal(answer) {
  if (answer.status === 401) {
    document.dispatchEvent(new Event("key-needed"));
    return new Refused(key ? t("keyWrong") : t("keyNeeded"), "", 401);
  }
  if (answer.status === 429) return new Refused(t("busy"), t("busyHint"), 429);
  const said = await answer.json().catch(() => ({}));
  return inWords(said, answer.status);
}

function inWords(said, status) {
  const message = said.error?.message ?? said.error ?? t("broken");
  return new Refused(String(message), said.hint ?? "", status);
}

export const ask = async (path, body, signal) => (await send(path, body, signal)).json();
export const askText = async (path, body, signal) => (await send(path, body, signal)).text();

// The events of a streamed answer, one by one.
export async function* stream(path, body, signal) {
  const answer = await send(path, { ...body, stream: true }, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        if (event === "data: [DONE]") return;
        if (!event.startsWith("data: ")) continue;
        const data = JSON.parse(event.slice(6));
        if (data.error) throw inWords(data);
        yield data;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// Work that is begun again whenever its input changes: after a short rest, and only the newest may answer.
export function newest(work, rest = 250) {
  let timer = 0;
  let going = new AbortController();
  const stop = () => { clearTimeout(timer); going.abort(); };
  const run = (wait = rest) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      going.abort();
      going = new AbortController();
      work(going.signal);
    }, wait);
  };
  return { run, stop };
}
