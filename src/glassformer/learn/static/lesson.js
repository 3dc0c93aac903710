"use strict";
// What all steps share: figures and questions as data, choosing the example where a text does not fit, judging answers.

const Lesson = (() => {
  const makers = {}; // step name -> from sentences to figures and a question; filled by the files that follow
  const matrix = (rows, columns, values, caption, more = {}) => ({
    rows, columns, values, caption, corner: "", highlight: null, kind: "matrix", ...more,
  });
  const bars = (labels, values, caption) => ({ labels, values, caption, kind: "bars" });
  const lines = (labels, values, across, caption) => ({ labels, values, caption, across, kind: "lines" });
  const pieces = (rows, tokens, caption) => ({ rows, tokens, caption, kind: "pieces" });
  const ask = (text, answers, hint, choices = null) => ({ text, answers, hint, choices });

  /** A step on these lines; on the example's lines, with a note, if they do not fit. */
  function show(name, text, example) {
    try {
      return { ...makers[name](Maths.parse(text)), note: "" };
    } catch (reason) {
      if (!(reason instanceof Maths.Unfit)) throw reason;
      return { ...makers[name](Maths.parse(example)), note: `${reason.message} So here is the example.` };
    }
  }

  // ---- questions
  function readNumber(text) {
    let plain = text.replace(/[\s_]/gu, "").replaceAll("−", "-");
    if (/^-?[1-9]\d{0,2}(,\d{3})+(\.\d+)?$/.test(plain)) plain = plain.replaceAll(",", "");
    plain = plain.replaceAll(",", ".");
    const number = "-?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)";
    let found = new RegExp(`^(${number})(%?)$`).exec(plain);
    if (found) return Number(found[1]) / (found[2] ? 100 : 1);
    found = new RegExp(`^(${number})/(${number})$`).exec(plain);
    return found && Number(found[2]) ? Number(found[1]) / Number(found[2]) : null;
  }

  const plainText = (text) => text.replace(/[\s,;()[\]"“”]+/gu, " ").toLowerCase().trim() || text.trim();

  function accepts(question, given) {
    const choice = question.choices?.[Number(given.trim()) - 1];
    if (choice !== undefined && /^[0-9]+$/.test(given.trim())) given = choice;
    return question.answers.some((answer) => {
      if (typeof answer === "string") return plainText(given) === plainText(answer);
      const number = readNumber(given);
      return number !== null && Math.abs(number - answer) <= Math.max(0.0051, Math.abs(answer) / 1000);
    });
  }

  const answerOf = (question) =>
    typeof question.answers[0] === "string" ? question.answers[0] : Maths.writeNumber(question.answers[0]);

  return { makers, matrix, bars, lines, pieces, ask, show, accepts, answerOf };
})();
