"use strict";
// The page: one step at a time by the address (#skips), figures drawn from data, boxes whose sentences may be changed.

const Page = (() => {
  const lesson = JSON.parse(document.getElementById("lesson").textContent);
  const texts = [...lesson.texts]; // as the reader has changed them; steps with the same example share one
  const drawn = new Map(); // step name -> the text that its figures were drawn for
  const SVG = "http://www.w3.org/2000/svg";

  function make(tag, attributes = {}, ...children) {
    const node = tag.startsWith("svg:") ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  // ---- figures
  const drawers = {
    matrix(figure) {
      const numbers = figure.values.flat().filter((v) => v !== null);
      const most = Math.max(...numbers.map(Math.abs)) || 1;
      const marked = new Set((figure.highlight ?? []).map(String));
      const head = make("tr", {}, make("td", { class: "corner" }, figure.corner));
      for (const column of figure.columns) head.append(make("th", { scope: "col" }, column));
      const body = figure.rows.map((label, i) => {
        const row = make("tr", {}, make("th", { scope: "row" }, label));
        figure.values[i].forEach((value, j) => {
          const cell = make("td", { class: kindOf(value) + (marked.has(`${i},${j}`) ? " marked" : "") });
          cell.textContent = Maths.writeNumber(value);
          cell.style.setProperty("--heat", value === null ? 0 : Math.abs(value) / most);
          row.append(cell);
        });
        return row;
      });
      const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
      const scroll = make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": figure.caption }, table);
      return make("div", {}, scroll, make("p", { class: "small beyond", hidden: "" }, "There is more to the right: slide the table. →"));
    },

    bars(figure) {
      const most = Math.max(...figure.values) || 1;
      const rows = figure.labels.map((label, i) => {
        const bar = make("span", { class: "bar", "aria-hidden": "true" });
        bar.style.setProperty("--share", figure.values[i] / most);
        return make("li", {}, make("span", {}, label), make("span", { class: "track" }, bar), make("span", { class: "number" }, Maths.writeNumber(figure.values[i])));
      });
      return make("ul", { class: "bars" }, ...rows);
    },

    lines(figure) {
      const all = figure.values.flat(), low = Math.min(...all), high = Math.max(...all);
      const x = (i, n) => 8 + (344 * i) / Math.max(1, n - 1), y = (v) => 150 - (140 * (v - low)) / (high - low || 1);
      const svg = make("svg:svg", { viewBox: "0 0 360 160", role: "img", "aria-label": `${figure.caption} ${figure.across}` });
      svg.append(make("svg:line", { x1: 8, x2: 352, y1: 150, y2: 150, class: "axis" }));
      figure.values.forEach((series, k) =>
        svg.append(make("svg:polyline", { class: `series s${k}`, points: series.map((v, i) => `${x(i, series.length)},${y(v)}`).join(" ") })));
      const legend = make("ul", { class: "legend" });
      figure.labels.forEach((label, k) => {
        const key = make("svg:svg", { viewBox: "0 0 24 6", "aria-hidden": "true" }, make("svg:polyline", { class: `series s${k}`, points: "0,3 24,3" }));
        legend.append(make("li", {}, key, label));
      });
      const range = `${figure.across}; lowest ${Maths.writeNumber(low)}, highest ${Maths.writeNumber(high)}`;
      return make("div", { class: "lines" }, svg, legend, make("p", { class: "small" }, range));
    },

    pieces(figure) {
      const rows = figure.rows.map((label, i) =>
        make("div", {}, make("dt", {}, label), make("dd", {}, ...figure.tokens[i].map((token) => make("span", { class: "piece" }, token)))));
      return make("dl", { class: "pieces" }, ...rows);
    },

    points(figure) {
      const scale = (values, size, from) => {
        const low = Math.min(...values), high = Math.max(...values);
        return values.map((v) => from + (size * (v - low)) / (high - low || 1));
      };
      const x = scale(figure.x, 320, 20), y = scale(figure.y, -200, 222);
      const svg = make("svg:svg", { viewBox: "0 0 360 240", role: "img", "aria-label": `${figure.caption} ${figure.labels.join("; ")}` });
      const taken = x.map((_, i) => ({ left: x[i] - 4, right: x[i] + 4, top: y[i] - 4, bottom: y[i] + 4 }));
      figure.labels.forEach((label, i) => {
        // Right of its point, else left, else a little higher or lower: wherever it covers nothing.
        const length = 6.8 * [...label].length;
        const tries = [0, -10, 10, -20, 20, -30, 30].flatMap((dy) => [x[i] + 7, x[i] - 7 - length].map((at) => ({
          left: at, right: at + length, top: y[i] + dy - 7, bottom: y[i] + dy + 7,
        })));
        const inside = tries.filter((b) => b.left >= 2 && b.right <= 358 && b.top >= 2 && b.bottom <= 238);
        const apart = (a, b) => a.right < b.left || b.right < a.left || a.bottom < b.top || b.bottom < a.top;
        const box = inside.find((b) => taken.every((other) => apart(b, other))) ?? inside[0] ?? tries[0];
        taken.push(box);
        svg.append(make("svg:circle", { cx: x[i], cy: y[i], r: 3 }), make("svg:text", { x: box.left, y: box.bottom - 3 }, label));
      });
      return svg;
    },
  };
  const kindOf = (value) => (value === null || Math.abs(value) < 1e-9 ? "zero" : value > 0 ? "more" : "less");

  function drawFigure(figure) {
    return make("figure", { "data-kind": figure.kind }, make("figcaption", {}, figure.caption), drawers[figure.kind](figure));
  }

  // ---- questions
  function drawQuestion(step, question) {
    const told = make("p", { class: "told", role: "status" });
    const form = make("form", { class: "question", autocomplete: "off" });
    const id = `answer-${step.name}`;
    let read;
    if (question.choices) {
      const set = make("fieldset", {}, make("legend", {}, question.text));
      question.choices.forEach((choice, i) =>
        set.append(make("label", {}, make("input", { type: "radio", name: id, value: i + 1 }), ` ${choice}`)));
      form.append(set);
      read = () => form.querySelector("input:checked")?.value ?? "";
    } else {
      const input = make("input", { id, type: "text", spellcheck: "false", autocapitalize: "off" });
      form.append(make("label", { for: id }, question.text), input);
      read = () => input.value;
    }
    const reveal = make("button", { type: "button", class: "plain" }, "Show the answer");
    form.append(make("div", { class: "buttons" }, make("button", { type: "submit" }, "Check"), reveal), told);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const given = read(), right = given.trim() !== "" && Lesson.accepts(question, given);
      told.textContent = right ? "Right!" : given.trim() === "" ? "Give an answer first." : `Not quite. ${question.hint}`;
      told.className = `told ${right ? "right" : "wrong"}`;
    });
    reveal.addEventListener("click", () => {
      told.textContent = `It is ${Lesson.answerOf(question)}.`;
      told.className = "told";
    });
    return form;
  }

  // ---- steps
  function draw(step) {
    const text = step.live ? texts[step.text] : "";
    if (drawn.get(step.name) === text) return;
    drawn.set(step.name, text);
    const section = document.getElementById(`step-${step.name}`);
    const shown = step.live ? Lesson.show(step.name, text.split("\n"), step.example.split("\n")) : step.shown;
    const note = section.querySelector(".note");
    note.textContent = shown.note;
    note.hidden = !shown.note;
    section.querySelector(".figures").replaceChildren(...shown.figures.map(drawFigure));
    const place = section.querySelector(".ask");
    const before = place.dataset.text; // a question that stays the same keeps what the reader has typed
    const now = JSON.stringify(shown.question);
    if (before !== now) place.replaceChildren(drawQuestion(step, shown.question));
    place.dataset.text = now;
    const box = section.querySelector("textarea");
    if (box && box.value !== text) box.value = text;
    if (box) box.rows = Math.min(8, Math.max(2, text.split("\n").length));
  }

  function current() {
    const name = decodeURIComponent(location.hash.slice(1));
    return lesson.steps.find((step) => step.name === name) ?? lesson.steps[0];
  }

  function open(focus) {
    const step = current();
    for (const other of lesson.steps) {
      document.getElementById(`step-${other.name}`).hidden = other !== step;
      const link = document.querySelector(`nav a[href="#${other.name}"]`);
      other === step ? link.setAttribute("aria-current", "step") : link.removeAttribute("aria-current");
    }
    draw(step);
    hint();
    document.title = `${lesson.steps.indexOf(step) + 1}. ${step.title} · Glassformer`;
    if (focus) {
      fold();
      scrollTo(0, 0);
      document.querySelector(`#step-${step.name} h2`).focus({ preventScroll: true });
    }
  }

  /** Say where a table is wider than the page. */
  function hint() {
    for (const scroll of document.querySelectorAll("section:not([hidden]) .scroll"))
      scroll.nextElementSibling.hidden = scroll.scrollWidth <= scroll.clientWidth;
  }

  const wide = matchMedia("(min-width: 60rem)");

  /** The list of steps is folded away where there is no room beside the step. */
  function fold() {
    document.querySelector("nav details").open = wide.matches;
  }

  function start() {
    wide.addEventListener("change", fold);
    fold();
    for (const step of lesson.steps) {
      const section = document.getElementById(`step-${step.name}`), box = section.querySelector("textarea");
      box?.addEventListener("input", () => {
        texts[step.text] = box.value;
        draw(step);
        hint();
      });
      section.querySelector(".reset")?.addEventListener("click", () => {
        texts[step.text] = lesson.texts[step.text];
        draw(step);
        hint();
      });
    }
    addEventListener("resize", hint);
    addEventListener("hashchange", () => open(true));
    open(false);
  }

  start();
  return { lesson, open };
})();
