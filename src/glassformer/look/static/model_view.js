"use strict";
// The model as a picture: boxes from the input at the bottom to the answer at the top, each with its points.

const ModelView = (() => {
  const { make, help } = Draw;
  let open = null; // the paths of the chosen box
  let point = null; // the name of the chosen point

  const PLAIN = {
    source: "Turns the input into vectors and adds where each stands.",
    target: "Turns the answer so far into vectors and adds where each stands.",
    self_attention: "Each position looks at the others of its own row and takes over what it finds.",
    cross_attention: "Each position of the answer looks at the source and takes over what it finds.",
    feed_forward: "Each position is worked on by itself: hidden units switch on and write into the stream.",
    norm: "Brings each position's vector to even size.",
    head: "Compares the last vector with every possible answer and gives each a score.",
  };

  function shapeOf(run, paths) {
    for (const name of ["out", "x", "norm"]) {
      const t = Data.tensor(run, `${paths[0]}.${name}`);
      if (t) return t.shape.join(" × ");
    }
    return "";
  }

  function box(run, label, paths, kind, redraw) {
    const node = make("button", { type: "button", class: `box ${kind}`, "data-path": paths[0], "aria-pressed": String(open?.[0] === paths[0]) },
      make("span", {}, label), make("span", { class: "shape" }, shapeOf(run, paths)));
    node.addEventListener("click", () => {
      open = paths;
      point = null;
      redraw();
    });
    const part = paths[0].split(".").pop();
    return help(node, PLAIN[part] ?? "");
  }

  function column(run, stack, redraw) {
    const items = [box(run, stack.front === "source" ? "input" : "answer so far", [stack.front], "front", redraw)];
    for (let l = 0; l < stack.layers; l++) {
      const at = `${stack.name}.blocks.${l}`;
      const layer = make("div", { class: "layer", role: "group", "aria-label": `${stack.name}, layer ${l}` }, make("p", {}, `layer ${l}`),
        box(run, "self-attention", [`${at}.self_attention`, `${at}.self_residual`], "attention", redraw),
        stack.cross ? box(run, "attention to the source", [`${at}.cross_attention`, `${at}.cross_residual`], "cross", redraw) : null,
        box(run, "feed-forward", [`${at}.feed_forward`, `${at}.feed_forward_residual`], "feed", redraw));
      items.push(layer);
    }
    const feeds = Data.all.model.stacks.some((s) => s.cross) && !stack.cross;
    if (stack.final) items.push(box(run, `${stack.name}'s last norm`, [stack.name], "norm", redraw));
    if (feeds) items.push(make("p", { class: "memory" }, "the memory, which every “attention to the source” looks at →"));
    return items;
  }

  function picture(run, redraw) {
    const stacks = Data.all.model.stacks;
    const columns = stacks.map((stack, i) => {
      const items = column(run, stack, redraw);
      if (i === stacks.length - 1) {
        const head = box(run, "head: scores of the answers", ["head"], "head", redraw);
        head.querySelector(".shape").textContent = `${run.best.length > 1 ? `${run.best.length} × ` : ""}${Data.all.model.answers}`;
        items.push(head);
      }
      return make("div", { class: "column", role: "group", "aria-label": stack.name }, items);
    });
    return make("div", { class: "columns" }, columns);
  }

  // The order in which a part computes.
  const ORDER = ["input", "embedding", "positions", "types", "projection", "x", "before", "norm", "scale", "q", "k", "v", "mask", "scores", "weights", "z", "w_1", "gate", "hidden", "out", "after", "pooled", "transformed", "vector"];
  const rank = (name) => ORDER.indexOf(name.split(".").pop());

  function pointsOf(run, paths) {
    const below = (name) => paths.includes(name.slice(0, name.lastIndexOf(".")));
    return Object.keys(Data.all.points).filter((name) => below(name) && (run.tensors.at[name] || run.tensors.left_out.includes(name)))
      .sort((a, b) => rank(a) - rank(b));
  }

  function stackOf(name) {
    const first = name.split(".")[0];
    return Data.all.model.stacks.find((s) => s.name === first || s.front === first);
  }

  /** Names for the rows and columns of a point's matrix. */
  function sidesOf(run, name, n, m) {
    const [letters] = Data.all.points[name], stack = stackOf(name) ?? Data.all.model.stacks.at(-1);
    const own = name.includes("cross_attention") && /\.[kv]$/.test(name) ? run.source : Data.names(run, stack);
    const rows = own.length === n ? own : Array.from({ length: n }, (_, i) => `${i}`);
    const keys = name.includes("cross_attention") ? run.source : Data.names(run, stack);
    const overKeys = letters.endsWith("n m") && keys.length === m;
    return [rows, (j) => (overKeys ? keys[j] : `number ${j}`)];
  }

  // Of a picture the first dimension is no head: what it is, and the names of all.
  const PLANES = { input: ["channel", "channels, height, width"], projection: ["number", "d, rows, columns"] };

  function show(run, name, state) {
    const t = Data.tensor(run, name), [letters, caption] = Data.all.points[name];
    const box = make("div", {}, make("p", {}, caption[0].toUpperCase() + caption.slice(1), "."));
    if (!t) return box.append(Draw.missing()), box;
    let flat = t, note = "";
    const plane = t.shape.length === 3 ? PLANES[name.split(".").pop()] : null;
    if (t.shape.length === 3) {
      const chosen = plane ? 0 : Math.min(Math.max(0, state.head), t.shape[0] - 1);
      flat = Data.part(t, chosen);
      note = t.shape[0] > 1 ? `, ${plane?.[0] ?? "head"} ${chosen} of ${t.shape[0]}` : "";
    } else if (t.shape.length === 1) flat = { shape: [1, t.shape[0]], values: t.values };
    const [n, m] = flat.shape, [rows, column] = plane ? [Array.from({ length: n }, (_, i) => `row ${i}`), (j) => `column ${j}`] : sidesOf(run, name, n, m);
    const sides = plane?.[1] ?? letters.replace("b ", "").split(" ").join(", ");
    box.append(make("p", { class: "soft" }, make("code", {}, name), ` · shape (${sides}) = (${t.shape.join(", ")})${note}`));
    box.append(Draw.heat(rows, m, (i, j) => flat.values[i * m + j], column, `${name}${note}`));
    return box;
  }

  function inspector(run, state, redraw) {
    const box = make("div", { class: "inspector" });
    if (!open) return box.append(make("p", { class: "soft" }, "Choose a part of the model to see its numbers.")), box;
    box.append(make("h3", {}, open[0].replaceAll("_", "-")), make("p", { class: "soft" }, PLAIN[open[0].split(".").pop()] ?? ""));
    if (open[0] === "head") return box.append(AnswerView.list(run, state.position)), box;
    const points = pointsOf(run, open);
    if (!points.includes(point)) point = ["weights", "hidden", "x", "norm"].map((end) => points.find((p) => p.endsWith(`.${end}`))).find(Boolean) ?? points[0];
    box.append(make("div", { class: "point" }, points.map((p) => help(make("button", { type: "button", "aria-pressed": String(p === point), "data-point": p,
      onclick: () => { point = p; redraw(); } }, p.split(".").pop()), Data.all.points[p][1]))));
    if (point) box.append(show(run, point, state));
    return box;
  }

  function draw(run, state, redraw) {
    open ??= [Data.path(Data.kinds()[0], 0), Data.path(Data.kinds()[0], 0).replace("attention", "residual")];
    const place = make("div", { class: "model" }, picture(run, redraw), inspector(run, state, redraw));
    return make("div", {}, make("h2", {}, "The model, with the shapes of this input"),
      make("p", { class: "soft" }, "Vectors flow from the bottom to the top: one row for each position. Every part adds something to them.", run.joined ? ` The source has ${run.joined.reduce((a, b) => a + b)} positions in the model, which are shown as ${run.joined.length}.` : ""), place);
  }

  return { draw, controls: ["head", "position"] };
})();
