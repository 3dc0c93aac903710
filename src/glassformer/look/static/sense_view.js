"use strict";
// Attention over what has no words: a recording's spectrogram or a series' lines above it, a picture's patches under it.

const SenseView = (() => {
  const { make } = Draw;

  const LINES = 8; // features that are still told apart as lines
  // Colours that people who see fewer of them can tell apart (Okabe and Ito), in light and dark.
  const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7f7f7f", "#b8a800"];

  /** Whether the positions that are looked at are moments or patches. */
  const applies = (run, kind) => run.sense && (kind.part === "cross_attention" || kind.stack.front === "source");

  /** The features over time, low ones at the bottom, above the attention that runs along the same time. */
  function overTime(run, kind, w) {
    const rows = Data.rows(run, kind), [n, m] = w.shape, input = Data.tensor(run, "source.input");
    const height = n > 40 ? 8 : 20, names = make("div", { class: "names", "aria-hidden": "true" }, n > 40 ? [] : rows.map((r) => make("span", {}, r)));
    names.style.cssText = `grid-auto-rows: ${height}px; line-height: ${height}px`;
    const map = Draw.paint(n, m, (i, j) => w.values[i * m + j], Draw.most(w.values));
    map.style.cssText = `width: 100%; height: ${n * height}px`;
    map.addEventListener("pointermove", (event) => {
      const box = map.getBoundingClientRect(), i = Math.min(n - 1, Math.floor(((event.clientY - box.top) / box.height) * n)), j = Math.min(m - 1, Math.floor(((event.clientX - box.left) / box.width) * m));
      Draw.tip(event, `${rows[i]} at ${run.source[j]}: ${Draw.number(w.values[i * m + j], 4)}`);
    });
    map.addEventListener("pointerleave", Draw.hide);
    const grid = make("div", { class: "heat", role: "img", "aria-label": "The sound's features over time, and below them where each position looks" });
    const named = run.sense.kind === "sound" ? "sound" : "series";
    if (input) grid.append(make("div", { class: "names soft" }, named), named === "series" && input.shape[1] <= LINES ? lines(input) : features(input));
    grid.append(names, map);
    const { seconds, silence = 0 } = run.sense, joined = run.joined?.[0] > 1 ? ` (each column ${Draw.number(seconds, 2)} seconds, the shares of ${run.joined[0]} positions added up)` : "";
    const nShown = run.joined ? run.joined.slice(0, m - silence).reduce((a, b) => a + b) / run.joined[0] : m; // the last may be shorter
    const length = `${Draw.number(seconds * nShown, 2)} seconds${joined}${silence ? `, and as the last column all ${run.joined.at(-1)} positions of silence behind them` : ""}`;
    const about = named === "sound" ? `From left to right ${length}. Above, the features that the model hears, low ones at the bottom` : `From left to right ${m} steps. Above, the numbers that the model reads${input && input.shape[1] > LINES ? ", the first at the bottom" : ""}`;
    return make("div", {}, grid, make("p", { class: "soft" }, `${about}; below, one row for each position that looks.`), input ? behindInput(input, named === "sound" ? "frame" : "step") : null);
  }

  /** A picture of all features over time. */
  function features(input) {
    const [t, f] = input.shape, [low, high] = range(input.values);
    const picture = Draw.paint(f, t, (i, j) => (input.values[j * f + (f - 1 - i)] - low) / (high - low || 1), 1);
    picture.style.cssText = "width: 100%; height: 130px; margin-bottom: 6px";
    return picture;
  }

  /** A few features as lines, each with a step as wide as its column in the map below. */
  function lines(input) {
    const [t, f] = input.shape, [low, high] = range(input.values), y = (v) => 4 + 92 * (1 - (v - low) / (high - low || 1));
    const svg = make("svg:svg", { viewBox: `0 0 ${t} 100`, preserveAspectRatio: "none", "aria-hidden": "true" });
    svg.style.cssText = "width: 100%; height: 130px; margin-bottom: 6px; display: block";
    for (let c = 0; c < f; c++) {
      const points = Array.from({ length: t }, (_, i) => `${i + 0.5},${y(input.values[i * f + c]).toFixed(2)}`).join(" ");
      svg.append(make("svg:polyline", { points, fill: "none", stroke: COLOURS[c], "stroke-width": 2, "vector-effect": "non-scaling-stroke" }));
    }
    return svg;
  }

  const behindInput = ({ shape: [t, f], values }, what) => Draw.behind(Array.from({ length: t }, (_, i) => `${what} ${i}`), Array.from({ length: f }, (_, c) => `number ${c}`), (i, j) => values[i * f + j], { size: Draw.most(values) }, "The input as a table");
  const range = (values) => values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);

  /** The picture, and over each patch how much one position looks at it; a click chooses the patch that looks. */
  function picture(run, kind, w, position, choose) {
    const input = Data.tensor(run, "source.input"), { extra } = run.sense, m = w.shape[1], own = w.values.slice(position * m, (position + 1) * m), most = Draw.most(own.slice(extra)), boxes = [];
    if (input) {
      boxes.push(make("figure", {}, make("figcaption", {}, "What the model is given"), large(pixels(input, true), input)));
      boxes.push(make("figure", {}, make("figcaption", {}, `Where ${Data.rows(run, kind)[position]} looks`), overlay(run, own, most, position, choose)));
    }
    return make("div", {}, make("div", { class: "pictures" }, boxes), ...legend(run, own, most));
  }

  /** The picture in grey, and over each patch the colour of its number; one position may be framed, or chosen by a click. */
  function overlay(run, values, most, framed = -1, choose = null) {
    const input = Data.tensor(run, "source.input"), { rows, columns, extra } = run.sense, at = (i, j) => values[i * columns + j + extra];
    const canvas = large(pixels(input, false), input), over = canvas.getContext("2d"), width = canvas.width / columns, height = canvas.height / rows;
    over.globalAlpha = 0.75;
    over.drawImage(Draw.paint(rows, columns, at, most), 0, 0, canvas.width, canvas.height);
    over.globalAlpha = 1;
    if (framed >= extra) {
      const p = framed - extra;
      over.strokeStyle = "#e69f00";
      over.lineWidth = 4;
      over.strokeRect((p % columns) * width + 2, Math.floor(p / columns) * height + 2, width - 4, height - 4);
    }
    const place = (event) => {
      const box = canvas.getBoundingClientRect(), part = (v, size, n) => Math.max(0, Math.min(n - 1, Math.floor((v / size) * n)));
      return part(event.clientY - box.top, box.height, rows) * columns + part(event.clientX - box.left, box.width, columns) + extra;
    };
    canvas.addEventListener("pointermove", (event) => Draw.tip(event, `${run.source[place(event)]}: ${Draw.number(values[place(event)], 4)}`));
    canvas.addEventListener("pointerleave", Draw.hide);
    if (choose) canvas.style.cursor = "pointer", canvas.addEventListener("click", (event) => choose({ position: place(event) }));
    return canvas;
  }

  /** What the colours mean, the class token's number, and the table behind. */
  function legend(run, values, most) {
    const { rows, columns, extra } = run.sense, names = (n, what) => Array.from({ length: n }, (_, i) => `${what} ${i}`);
    return [make("p", { class: "soft" }, `The deeper the blue, the more (orange: below zero); the deepest is ${Draw.number(most)}.${extra ? ` The class token: ${Draw.number(values[0])}.` : ""}`),
      Draw.behind(names(rows, "row"), names(columns, "column"), (i, j) => values[i * columns + j + extra], { size: most })];
  }

  /** Whether numbers of this run's source can be laid on its picture. */
  const onPicture = (run) => run.sense?.kind === "picture" && Boolean(Data.tensor(run, "source.input"));

  /** One number for each position, laid on the picture. */
  function laid(run, values) {
    const most = Draw.most(values);
    return make("div", {}, make("div", { class: "pictures" }, make("figure", {}, overlay(run, values, most))), ...legend(run, values, most));
  }

  /** The numbers that the model is given as a picture, in its colours or in grey. */
  function pixels(input, coloured) {
    const [channels, height, width] = input.shape, n = width * height, canvas = make("canvas", { width, height });
    const [low, high] = range(input.values), context = canvas.getContext("2d"), image = context.createImageData(width, height);
    for (let i = 0; i < n; i++) {
      const all = Array.from({ length: 3 }, (_, c) => (255 * (input.values[(channels > 2 ? c : 0) * n + i] - low)) / (high - low || 1));
      const grey = (all[0] + all[1] + all[2]) / 3;
      image.data.set([...(coloured ? all : [grey, grey, grey]), 255], 4 * i);
    }
    context.putImageData(image, 0, 0);
    return canvas;
  }

  /** Enlarged in whole pixels, so that patches can be framed. */
  function large(canvas, input) {
    const scale = Math.max(1, Math.round(384 / input.shape[2])), made = make("canvas", { width: canvas.width * scale, height: canvas.height * scale, "aria-hidden": "true", style: "width: 100%" });
    const context = made.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(canvas, 0, 0, made.width, made.height);
    return made;
  }

  function draw(run, kind, w, state, choose) {
    return run.sense.kind === "picture" ? picture(run, kind, w, state.position, choose) : overTime(run, kind, w);
  }

  /** What the picture is about, in words. */
  function about(run, kind) {
    if (run.sense.kind === "picture") return "Each patch of the picture looks at all patches. Click one, or choose a position, to see where it looks.";
    const moments = run.sense.kind === "sound" ? "moments of the sound" : "steps of the series";
    return kind.part === "cross_attention" ? `Each position of the answer, one row each, looks at ${moments}.` : `Each position, one row each, looks at all ${moments}.`;
  }

  return { applies, draw, about, onPicture, overlay, laid };
})();
