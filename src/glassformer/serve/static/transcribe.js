// Speak, or drop a recording; the page makes WAV of it, the model writes it down.
import { ask, givenUp, Refused } from "./ask.js";
import { button, copyButton, dropZone, h, statusLine } from "./build.js";
import { lookAtFileLink } from "./look.js";
import { record, toWave } from "./sound.js";
import { t } from "./words.js";

export function mount(place, model) {
  const status = statusLine();
  const player = h("audio", { controls: true, hidden: true });
  const transcript = h("p", { id: "transcript", class: "output" });
  const foot = h("div", { class: "foot" });
  const result = h("section", { class: "card", hidden: true, "aria-live": "polite" }, h("h2", {}, t("transcript")), transcript, foot);
  const speak = button(t("record"), start, "main round", { hidden: !navigator.mediaDevices });
  const zone = dropZone("audio/*,video/webm", t("dropSound"), hear, speak, player);
  let taken = null;
  let clock = 0;
  let going = new AbortController();

  async function start() {
    if (taken) return finish();
    try {
      taken = await record();
    } catch {
      return status.fail(new Refused(t("noMicrophone")));
    }
    const began = Date.now();
    speak.classList.add("recording");
    speak.textContent = t("finish");
    const tick = () => status.say(t("recording", `${Math.floor((Date.now() - began) / 1000)} s`));
    tick();
    clock = setInterval(tick, 1000);
  }

  async function finish() {
    clearInterval(clock);
    const recording = taken;
    taken = null;
    speak.classList.remove("recording");
    speak.textContent = t("record");
    hear(await recording.stop());
  }

  async function hear(blob) {
    going.abort();
    const { signal } = (going = new AbortController());
    result.hidden = true;
    status.wait(t("listening"));
    try {
      const wave = await toWave(blob).catch(() => { throw new Refused(t("badSound"), t("badSoundHint")); });
      URL.revokeObjectURL(player.src);
      player.src = URL.createObjectURL(wave);
      player.hidden = false;
      // What the server reads itself goes as it is, if that is less.
      const sent = /^audio\/(x-)?(wav|flac|ogg|mpeg)$/.test(blob.type) && blob.size < wave.size ? blob : wave;
      const form = new FormData();
      form.append("file", sent, "speech");
      form.append("model", model.name);
      const { text } = await ask("/v1/audio/transcriptions", form, signal);
      transcript.textContent = text.trim() || t("nothingHeard");
      foot.replaceChildren(copyButton(() => transcript.textContent), (await lookAtFileLink(model, sent)) ?? "");
      result.hidden = false;
      status.clear();
    } catch (error) {
      if (!givenUp(error)) status.fail(error);
    }
  }

  place.replaceChildren(zone, status.node, result);
  return () => { going.abort(); clearInterval(clock); taken?.stop(); };
}
