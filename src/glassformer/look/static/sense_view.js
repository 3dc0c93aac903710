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
    const about = named === "sound" ? `From left to right ${Draw.number(run.sense.seconds * m, 2)} seconds. Above, the features that the model hears, low ones at the bottom` : `From left to right ${m} steps. Above, the numbers that the model reads${input && input.shape[1] > LINES ? ", the first at the bottom" : ""}`;
    return make("div", {}, grid, make("p", { class: "soft" }, `${about}; below, one row for each position that looks.`), input && named === "series" ? behindSeries(run, input) : null);
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

  const behindSeries = (run, input) => Draw.behind(run.source, Array.from({ length: input.shape[1] }, (_, c) => `number ${c}`), (i, j) => input.values[i * input.shape[1] + j], { size: Draw.most(input.values) }, "The numbers as a table");
  const range = (values) => values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);

  /** The picture, and over each patch how much one position looks at it. */
  function picture(run, kind, w, position) {
    const input = Data.tensor(run, "source.input"), { rows, columns, extra } = run.sense, m = w.shape[1], own = w.values.slice(position * m, (position + 1) * m), most = Draw.most(own.slice(extra));
    const boxes = [];
    if (input) {
      const [channels, height, width] = input.shape, canvas = make("canvas", { width, height, "aria-hidden": "true" });
      const [low, high] = range(input.values), scale = (v) => (255 * (v - low)) / (high - low || 1);
      const context = canvas.getContext("2d"), image = context.createImageData(width, height);
      for (let i = 0; i < width * height; i++) {
        const at = (c) => scale(input.values[Math.min(c, channels - 1) * width * height + i]);
        image.data.set([at(0), at(channels > 2 ? 1 : 0), at(channels > 2 ? 2 : 0), 255], 4 * i);
      }
      context.putImageData(image, 0, 0);
      canvas.style.cssText = "width: 100%";
      boxes.push(make("figure", {}, make("figcaption", {}, "What the model is given"), canvas));
      const dark = make("canvas", { width, height, "aria-hidden": "true" }), over = dark.getContext("2d");
      over.drawImage(canvas, 0, 0);
      for (let p = 0; p < rows * columns; p++) {
        over.fillStyle = `rgba(0, 0, 0, ${(0.88 * (1 - own[p + extra] / most)).toFixed(3)})`;
        over.fillRect(((p % columns) * width) / columns, (Math.floor(p / columns) * height) / rows, width / columns, height / rows);
      }
      dark.style.cssText = "width: 100%";
      dark.addEventListener("pointermove", (event) => {
        const box = dark.getBoundingClientRect(), i = Math.min(rows - 1, Math.floor(((event.clientY - box.top) / box.height) * rows)), j = Math.min(columns - 1, Math.floor(((event.clientX - box.left) / box.width) * columns));
        Draw.tip(event, `${run.source[i * columns + j + extra]}: ${Draw.number(own[i * columns + j + extra], 4)}`);
      });
      dark.addEventListener("pointerleave", Draw.hide);
      boxes.push(make("figure", {}, make("figcaption", {}, `Where ${Data.rows(run, kind)[position]} looks: bright is much`), dark));
    }
    const table = Draw.behind(Array.from({ length: rows }, (_, i) => `row ${i}`), Array.from({ length: columns }, (_, j) => `column ${j}`), (i, j) => own[i * columns + j + extra], { size: most });
    return make("div", {}, make("div", { class: "pictures" }, boxes), extra ? make("p", { class: "soft" }, `To the class token: ${Draw.number(own[0], 4)}.`) : null, table);
  }

  function draw(run, kind, w, state) {
    return run.sense.kind === "picture" ? picture(run, kind, w, state.position) : overTime(run, kind, w);
  }

  return { applies, draw };
})();
