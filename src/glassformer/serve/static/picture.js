// Classify a picture that is dropped, chosen or pasted.
import { ask, givenUp, Refused } from "./ask.js";
import { dropZone, h, labels, statusLine } from "./build.js";
import { inBase64, lookAtFileLink } from "./look.js";
import { t } from "./words.js";

export function mount(place, model) {
  const status = statusLine();
  const picture = h("img", { class: "picture", alt: t("picture"), hidden: true });
  const result = h("section", { class: "card", "aria-live": "polite", hidden: true });
  let going = new AbortController();

  async function see(file) {
    going.abort();
    const { signal } = (going = new AbortController());
    result.hidden = true;
    status.wait(t("working"));
    URL.revokeObjectURL(picture.src);
    picture.src = URL.createObjectURL(file);
    picture.hidden = false;
    try {
      await picture.decode().catch(() => { picture.hidden = true; throw new Refused(t("badPicture")); });
      const { answers } = await ask("/api/classify", { model: model.name, pictures: [await inBase64(file)] }, signal);
      const look = await lookAtFileLink(model, file);
      result.replaceChildren(...labels(answers[0]), look ? h("div", { class: "foot" }, look) : "");
      result.hidden = false;
      status.clear();
    } catch (error) {
      if (!givenUp(error)) status.fail(error);
    }
  }

  const paste = (event) => event.clipboardData.files[0] && see(event.clipboardData.files[0]);
  document.addEventListener("paste", paste);
  place.replaceChildren(h("div", { class: "pair" }, dropZone("image/*", t("dropPicture"), see, null, picture), h("div", { class: "stack" }, status.node, result)));
  return () => { going.abort(); document.removeEventListener("paste", paste); };
}
