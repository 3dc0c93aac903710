"use strict";
// Why this answer: what each layer would say, which parts and words put how much into the logit, which heads are needed.

const ReasonsView = (() => {
  const { make, number } = Draw;

  function lens(run, state) {
    if (!run.lens) return null;
    const stack = Data.all.model.stacks.at(-1), names = run.best.length > 1 ? Data.names(run, stack) : ["whole input"];
    const { ids, p } = run.lens;
    const row = (l) => make("tr", {}, make("th", { scope: "row" }, l === 0 ? "input" : `after layer ${l - 1}`), names.map((_, i) => {
      const said = run.answers[i], text = ids[l][i].map((id, k) => `${Data.nameOf(run, id)} ${Draw.share(p[l][i][k])}`).join("\n");
      const cell = Draw.cell("td", p[l][i][0], 1, Data.nameOf(run, ids[l][i][0]));
      if (ids[l][i][0] === said) cell.style.fontWeight = 700;
      return Draw.help(cell, text.replaceAll("\n", " · "));
    }));
    const body = Array.from({ length: ids.length }, (_, k) => row(ids.length - 1 - k));
    return make("section", {}, make("h3", {}, "What each layer would say"), make("p", { class: "soft" }, "If the model stopped after this layer, it would answer so (the last layer on top). The deeper the colour, the surer; bold is what followed."),
      make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Logit lens" }, make("table", { id: "lens" }, make("thead", {}, make("tr", {}, make("td"), names.map((n, i) => make("th", { scope: "col", style: i === state.position ? "font-weight: 700" : null }, n)))), make("tbody", {}, body))));
  }

  /** A part by its stack, its layer and what it does. */
  function pretty(path) {
    return path.replace(".blocks.", " ").replace(".self_attention", " self").replace(".cross_attention", " to source").replace(".feed_forward", " feed-forward").replace(".", " ");
  }

  function attribution(run, state) {
    if (!run.attribution) return make("section", {}, make("h3", {}, "What the answer is made of"), make("p", { class: "soft" }, "The head of this model bends its input, so that its answer is no plain sum of parts."));
    const found = run.attribution.find((a) => a.position === state.position) ?? run.attribution[0];
    if (!found) return null;
    const stack = Data.all.model.stacks.at(-1), names = Data.names(run, stack), number_ = run.kind === "number", said = Data.nameOf(run, run.answers[found.position]);
    const parts = Object.entries(found.parts).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])), total = parts.reduce((sum, [, v]) => sum + v, 0);
    const box = make("section", {}, make("h3", {}, number_ ? "What the answer is made of" : "What the logit is made of"),
      make("p", { class: "soft" }, number_ ? "The answer" : ["The logit of ", Draw.token(said)], run.best.length > 1 ? [Data.all.model.task === "fill" ? " at " : " after ", Draw.token(names[found.position])] : [], ` is ${number(total)}: the sum of what each part wrote into the stream by itself.`),
      make("div", { id: "parts" }, Draw.bars(parts.map(([p]) => pretty(p)), parts.map(([, v]) => v), parts.map(([, v]) => number(v)))));
    const heads = Object.entries(found.heads), most = Draw.most(heads.flatMap(([, v]) => v));
    box.append(make("h3", {}, "By head"), Draw.table(heads.map(([p]) => pretty(p)), Array.from({ length: stack.heads }, (_, h) => `head ${h}`), (i, h) => heads[i][1][h], { size: most, caption: "Attribution by head" }));
    for (const [kind, values] of Object.entries(found.tokens)) {
      const labels = kind === "cross" ? run.source : names, shown = [...values.keys()].filter((j) => Math.abs(values[j]) > 1e-6 || kind === "cross");
      const source = { sound: "By moment of the sound" }[run.sense?.kind] ?? "By word of the source";
      if (shown.length) box.append(make("h3", {}, kind === "cross" ? source : "By position that was looked at"), SenseView.onPicture(run) ? SenseView.laid(run, values) : Draw.bars(shown.map((j) => labels[j]), shown.map((j) => values[j]), shown.map((j) => number(values[j]))));
    }
    return box;
  }

  function ablation(run) {
    if (!run.ablation) return make("section", {}, make("h3", {}, "Which heads are needed"), make("p", { class: "soft" }, "Not tried for this page, since it takes a while; --ablate does it."));
    const entries = Object.entries(run.ablation), n = Math.max(...entries.map(([, v]) => v.length));
    return make("section", {}, make("h3", {}, "Which heads are needed"), make("p", { class: "soft" }, `Each head was switched off once, and the whole answer weighed again. Blue: ${run.kind === "number" ? "the answer" : run.kind === "choices" ? "the log-probability of the likeliest label" : "the mean log-probability of the answer"} falls by so much without this head; orange: it rises.`),
      Draw.table(entries.map(([p]) => pretty(p)), Array.from({ length: n }, (_, h) => `head ${h}`), (i, h) => entries[i][1][h] ?? NaN, { size: Math.max(0.01, Draw.most(entries.flatMap(([, v]) => v))), caption: "Head ablation" }));
  }

  function draw(run, state) {
    return make("div", {}, make("h2", {}, "Why this answer"), lens(run, state), make("div", { class: "side" }, attribution(run, state), ablation(run)));
  }

  return { draw, controls: ["position"] };
})();
