"use strict";
// Who looks at whom: two columns of words with lines between them, and the same as a matrix with values.

const AttentionView = (() => {
  const { make, help } = Draw;
  const ROW = 24;

  function titleOf(state) {
    const layer = state.layer === -2 ? "all layers rolled out" : state.layer < 0 ? "mean of all layers" : `layer ${state.layer}`;
    const head = state.layer === -2 ? "" : state.head < 0 ? ", mean of all heads" : `, head ${state.head}`;
    return layer + head;
  }

  /** All layers and heads as small pictures, to choose from. */
  function thumbs(run, kind, state, choose) {
    const n = Data.rows(run, kind).length, m = Data.columns(run, kind).length;
    const grid = make("div", { class: "thumbs", role: "group", "aria-label": "All layers and heads" });
    grid.style.gridTemplateColumns = `auto repeat(${kind.stack.heads}, auto)`;
    grid.append("", make("span", {}, ""), ...Array.from({ length: kind.stack.heads }, (_, h) => make("span", {}, `head ${h}`)));
    for (let l = 0; l < kind.stack.layers; l++) {
      grid.append(make("span", {}, `layer ${l}`));
      for (let h = 0; h < kind.stack.heads; h++) {
        const w = Data.weights(run, kind, l, h);
        if (!w) {
          grid.append(make("span", {}, "–"));
          continue;
        }
        const most = Draw.most(w.values), canvas = Draw.paint(n, m, (i, j) => w.values[i * m + j], most); // each has its own scale, or flat ones were white
        const width = Math.max(28, Math.min(64, m * 5));
        canvas.style.cssText = `width: ${width}px; height: ${Math.max(20, Math.min(64, (width * n) / m))}px`;
        grid.append(help(make("button", { type: "button", "aria-label": `layer ${l}, head ${h}`, "aria-pressed": String(state.layer === l && state.head === h),
          onclick: () => choose({ layer: l, head: h }) }, canvas), `layer ${l}, head ${h}: the deepest colour is ${Draw.number(most)}`));
      }
    }
    return make("details", { open: "" }, make("summary", {}, "All layers and heads at a glance"), grid);
  }

  function lines(run, kind, state, choose) {
    const rows = Data.rows(run, kind), columns = Data.columns(run, kind), w = Data.weights(run, kind, state.layer, state.head);
    if (!w) return Draw.missing();
    const m = columns.length, height = ROW * Math.max(rows.length, m) + 8;
    const narrow = innerWidth < 640, [left_, right, width, longest] = narrow ? [90, 190, 340, 10] : [150, 350, 520, 16];
    const cut = (text) => ([...text].length > longest ? `${[...text].slice(0, longest - 1).join("")}…` : text);
    const y = (i) => ROW * i + ROW / 2 + 4;
    const svg = make("svg:svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", style: "max-width: 46rem", role: "group", "aria-label": "Words on the left look at words on the right" });
    const strokes = make("svg:g"), values = make("svg:g");
    svg.append(strokes, values);
    const focus = (chosen) => {
      strokes.replaceChildren();
      values.replaceChildren();
      for (let i = 0; i < rows.length; i++) for (let j = 0; j < m; j++) {
        const value = w.values[i * m + j], on = chosen === null || chosen === i;
        if (value < (chosen === null ? 0.03 : 0.005) || !on) continue;
        strokes.append(make("svg:line", { x1: left_ + 2, y1: y(i), x2: right - 2, y2: y(j), stroke: "var(--more)", "stroke-width": (0.6 + 5 * value).toFixed(2), "stroke-opacity": Math.min(1, 0.08 + value).toFixed(3), "stroke-linecap": "round" }));
      }
      if (chosen !== null) for (let j = 0; j < m; j++) {
        const value = w.values[chosen * m + j];
        values.append(make("svg:rect", { x: right, y: y(j) - 10, width: narrow ? 90 : 120, height: 20, rx: 3, fill: "var(--more)", "fill-opacity": (0.75 * value).toFixed(3) }),
          make("svg:text", { x: width - 4, y: y(j) + 5, "text-anchor": "end", class: "soft" }, Draw.number(value)));
      }
      left.forEach((node, i) => node.setAttribute("font-weight", chosen === i ? 700 : 400));
    };
    const left = rows.map((word, i) => {
      const node = make("svg:text", { x: left_ - 4, y: y(i) + 5, "text-anchor": "end", tabindex: "0", role: "button", "data-row": i, style: "cursor: pointer",
        "aria-label": `${word} looks at ${top(w, i, columns)}` }, cut(word));
      node.addEventListener("pointerenter", () => focus(i));
      node.addEventListener("focus", () => focus(i));
      node.addEventListener("click", () => choose({ position: i }));
      node.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") choose({ position: i }), event.preventDefault();
      });
      return node;
    });
    svg.append(...left, ...columns.map((word, j) => make("svg:text", { x: right + 4, y: y(j) + 5 }, cut(word))));
    svg.addEventListener("pointerleave", () => focus(state.pinned ? state.position : null));
    focus(state.pinned ? state.position : null);
    return svg;
  }

  function top(w, i, columns) {
    const m = columns.length, order = [...columns.keys()].sort((a, b) => w.values[i * m + b] - w.values[i * m + a]).slice(0, 3);
    return order.map((j) => `${columns[j]} ${Draw.number(w.values[i * m + j], 2)}`).join(", ");
  }

  function draw(run, state, redraw, choose) {
    const kind = state.kind;
    const said = run.answers.length === Data.rows(run, kind).length && kind.stack === Data.all.model.stacks.at(-1) && state.pinned && run.answers[state.position] >= 0;
    const rows = Data.rows(run, kind), columns = Data.columns(run, kind), w = Data.weights(run, kind, state.layer, state.head), m = columns.length;
    const sense = SenseView.applies(run, kind);
    const about = kind.part === "cross_attention" ? "Each position of the answer (left) looks at the source (right)." : kind.stack.causal ? "Each position (left) looks at itself and what came before (right)." : "Each position (left) looks at all positions (right).";
    const clear = make("button", { type: "button", onclick: () => choose({ pinned: false }) }, "Show all words");
    return make("div", {}, make("h2", {}, `${kind.label}: ${titleOf(state)}`),
      make("p", { class: "soft" }, sense ? SenseView.about(run, kind) : `${about} The thicker a line, the larger the share of attention. Point at a word to see its own shares; click to keep it.`),
      state.pinned && !sense ? make("p", {}, Draw.token(rows[state.position]), said ? [Data.all.model.task === "fill" ? " was filled by " : " was followed by ", Draw.token(Data.nameOf(run, run.answers[state.position]))] : [], " ", clear) : null,
      make("div", { class: "side" }, make("figure", {}, sense && w ? SenseView.draw(run, kind, w, state, choose) : lines(run, kind, state, choose),
        w && run.sense?.kind !== "picture" ? Draw.behind(rows, columns, (i, j) => w.values[i * m + j], { size: 1, corner: "looks at →" }) : null), thumbs(run, kind, state, choose)));
  }

  function drawMatrix(run, state) {
    const kind = state.kind, rows = Data.rows(run, kind), columns = Data.columns(run, kind), m = columns.length;
    const w = Data.weights(run, kind, state.layer, state.head);
    const box = make("div", {}, make("h2", {}, `${kind.label}: ${titleOf(state)}`));
    if (!w) return box.append(Draw.missing()), box;
    box.append(make("p", { class: "soft" }, "One row for each position that looks, one column for each that is looked at; each row of weights adds up to 1."));
    const at = (i, j) => w.values[i * m + j];
    const size = rows.length * m > 2500 ? Draw.heat(rows, m, at, (j) => columns[j], "attention weights") : Draw.table(rows, columns, at, { size: 1, corner: "looks at →", here: state.pinned ? state.position : -1, caption: "attention weights" });
    box.append(make("h3", {}, "Weights"), size);
    const scores = state.layer >= 0 && state.head >= 0 ? Data.tensor(run, `${Data.path(kind, state.layer)}.scores`) : null;
    if (scores) {
      const s = Data.part(scores, state.head).values, get = (i, j) => s[i * m + j];
      const title = make("h3", {}, "Scores before the softmax");
      box.append(help(title, "A query times a key, divided by the root of their length: how well they fit. Minus infinity stands where looking is forbidden."));
      box.append(rows.length * m > 2500 ? Draw.heat(rows, m, get, (j) => columns[j], "scores") : Draw.table(rows, columns, get, { corner: "looks at →", caption: "scores" }));
    } else box.append(make("p", { class: "soft" }, "Choose one layer and one head to see the scores before the softmax."));
    return box;
  }

  return { draw, drawMatrix, controls: ["kind", "layer+", "head+", ...(Data.all.runs[0].sense?.kind === "picture" ? ["position"] : [])] };
})();
