"use strict";
// The page of a training: curves, what the model said, and attention at each saved step.

const Training = (() => {
  const { make, number } = Draw;
  const data = JSON.parse(document.getElementById("data").textContent);
  const LABELS = { loss: "training loss", valid_loss: "validation loss", lr: "learning rate", tokens_per_second: "tokens a second", bleu: "BLEU", chrf: "chrF", exact: "exactly right, %", gradient_norm: "length of the gradient" };
  const labelOf = (name) => LABELS[name] ?? name.replaceAll("_", " ");
  const state = { path: null, head: 0 };

  /** One curve over the steps, with its points under the pointer and a table behind it. */
  function curve(name, points) {
    const xs = points.map(([x]) => x), ys = points.map(([, y]) => y), low = Math.min(...ys), high = Math.max(...ys), last = Math.max(...xs), first = Math.min(...xs);
    const x = (v) => 46 + (304 * (v - first)) / (last - first || 1), y = (v) => 128 - (112 * (v - low)) / (high - low || 1);
    const svg = make("svg:svg", { viewBox: "0 0 360 150", role: "img", "aria-label": `${labelOf(name)}, from ${number(ys[0])} to ${number(ys.at(-1))}` });
    svg.append(make("svg:line", { x1: 46, x2: 350, y1: 128, y2: 128, stroke: "var(--line)" }), make("svg:text", { x: 42, y: 20, "text-anchor": "end", class: "soft", style: "font-size: 10px" }, number(high)),
      make("svg:text", { x: 42, y: 131, "text-anchor": "end", class: "soft", style: "font-size: 10px" }, number(low)), make("svg:text", { x: 46, y: 145, class: "soft", style: "font-size: 10px" }, `step ${first}`), make("svg:text", { x: 350, y: 145, "text-anchor": "end", class: "soft", style: "font-size: 10px" }, String(last)),
      make("svg:polyline", { points: points.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(" "), fill: "none", stroke: "var(--more)", "stroke-width": 2, "stroke-linejoin": "round" }));
    const dot = make("svg:circle", { r: 4, fill: "var(--less)", visibility: "hidden" });
    svg.append(dot);
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect(), at = ((event.clientX - box.left) / box.width) * 360;
      const [a, b] = points.reduce((best, p) => (Math.abs(x(p[0]) - at) < Math.abs(x(best[0]) - at) ? p : best));
      dot.setAttribute("cx", x(a)), dot.setAttribute("cy", y(b)), dot.setAttribute("visibility", "visible");
      Draw.tip(event, `step ${a}: ${number(b, 4)}`);
    });
    svg.addEventListener("pointerleave", () => (Draw.hide(), dot.setAttribute("visibility", "hidden")));
    return make("figure", { "data-curve": name }, make("figcaption", {}, labelOf(name)), svg, Draw.behind(points.map(([a]) => String(a)), [labelOf(name)], (i) => ys[i], { corner: "step" }));
  }

  function samples() {
    if (!data.samples.some((entry) => entry.samples.length)) return null;
    const rows = data.samples.filter((entry) => entry.samples.length).map(({ step, samples }) => make("tr", {}, make("th", { scope: "row" }, String(step)), make("td", { class: "left wrap" }, samples.join("\n"))));
    return make("section", {}, make("h2", {}, "What the model said on the way"), make("div", { class: "scroll tall", tabindex: "0", role: "group", "aria-label": "Samples" }, make("table", {}, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "step"), make("th", { scope: "col", class: "left" }, "samples"))), make("tbody", {}, rows))));
  }

  function formed() {
    const found = data.states;
    if (!found) return make("p", { class: "soft" }, "Give an input too (look RUN INPUT --training), and see how attention formed over the saved steps.");
    const paths = Object.keys(found.steps[0].weights), chosen = state.path ?? paths.find((p) => p.includes("cross")) ?? paths[0], n = found.steps[0].weights[chosen].length;
    const numeric = found.kind === "number", what = found.kind === "choices" ? "The likeliest label" : "The answer";
    const about = numeric ? "Below each map, the answer of the saved state." : `${what} of the finished model was given to each saved state; below each map, the share that the state gives to it${found.target.length ? " (the geometric mean over its tokens)" : ""}.`;
    const box = make("section", {}, make("h2", {}, "How attention formed"), make("p", { class: "soft" }, `${found.text} → ${found.answer}. ${about} All maps of a head have one scale.`));
    const select = (name, options, value, act) => {
      const node = make("select", { name, onchange: (event) => { act(event.target.value); draw(); document.querySelector(`[name="${name}"]`).focus(); } }, options.map(([v, text]) => make("option", { value: v }, text)));
      node.value = String(value);
      return make("label", { class: "soft" }, `${name} `, node, " ");
    };
    box.append(make("p", {}, select("attention", paths.map((p) => [p, p.replace(".blocks.", " ").replaceAll("_", "-").replace(".", " ")]), chosen, (v) => (state.path = v)), select("head", Array.from({ length: n }, (_, h) => [h, String(h)]), state.head, (v) => (state.head = Number(v)))));
    const rows = found.target.length && chosen.startsWith("decoder") ? found.target : found.source, columns = chosen.includes("cross") || !rows.length ? found.source : rows;
    const most = Draw.most(found.steps.flatMap(({ weights }) => weights[chosen][Math.min(state.head, n - 1)].flat()));
    box.append(make("div", { class: "pictures" }, found.steps.map(({ step, score, weights }) => {
      const map = weights[chosen][Math.min(state.head, n - 1)], canvas = Draw.paint(rows.length, columns.length, (i, j) => map[i][j], most);
      canvas.style.cssText = "width: 100%; aspect-ratio: " + `${columns.length} / ${rows.length}`;
      canvas.addEventListener("pointermove", (event) => {
        const b = canvas.getBoundingClientRect(), i = Math.min(rows.length - 1, Math.floor(((event.clientY - b.top) / b.height) * rows.length)), j = Math.min(columns.length - 1, Math.floor(((event.clientX - b.left) / b.width) * columns.length));
        Draw.tip(event, `${rows[i]} → ${columns[j]}: ${number(map[i][j])}`);
      });
      canvas.addEventListener("pointerleave", Draw.hide);
      return make("figure", { "data-step": step }, make("figcaption", {}, step === "end" ? "the finished model" : `step ${step}`), canvas, make("p", { class: "soft" }, numeric ? number(score) : Draw.share(Math.exp(Math.min(0, score)))), Draw.behind(rows, columns, (i, j) => map[i][j], { size: most }));
    })));
    return box;
  }

  function draw() {
    document.getElementById("view").replaceChildren(make("h2", {}, "Curves"), make("div", { class: "curves" }, Object.entries(data.curves).map(([name, points]) => curve(name, points))), samples() ?? "", formed());
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
  return { data };
})();
