"use strict";
// Two inputs: their answers, where their attention differs, and which part of the stream carries the difference.

const CompareView = (() => {
  const { make } = Draw;

  function answers(runs) {
    const rows = runs.map((run, k) => make("tr", {}, make("th", { scope: "row" }, "AB"[k]), make("td", { class: "left" }, run.text), make("td", { class: "left" }, run.answer)));
    return make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ["", "input", "answer"].map((c) => make("th", { scope: "col", class: "left" }, c)))), make("tbody", {}, rows)));
  }

  function carried(comparison, run) {
    const box = make("section", {}, make("h3", {}, "Where the difference is at work"));
    const answer = run.kind === "choices" ? "B's likeliest label" : "B's answer";
    if (comparison.own === null) return box.append(make("p", { class: "soft" }, comparison.why)), box;
    if (run.kind === "number") box.append(make("p", { class: "soft" }, `Given A the answer is ${Draw.number(comparison.foreign)}, given B ${Draw.number(comparison.own)}.`));
    else box.append(make("p", { class: "soft" }, `Given B, the model gives ${answer} a share of ${Draw.share(Math.exp(comparison.own))}${run.answers.length > 1 ? " (for each of its tokens, on geometric mean)" : ""}; given A, ${Draw.share(Math.exp(comparison.foreign))}.`));
    if (!comparison.map) return box.append(make("p", { class: "soft" }, comparison.why)), box;
    const names = comparison.stack === "encoder" ? run.source : Data.names(run, Data.all.model.stacks.at(-1)), n = comparison.map.length;
    box.append(make("p", { class: "soft" }, `A was run again with B's stream put in at one layer and position. 1 means that ${run.kind === "number" ? "the answer became B's" : `${answer} became as likely as for B itself`}, 0 that nothing changed.`));
    if (SenseView.onPicture(run)) {
      const most = Draw.most(comparison.map.flat());
      return box.append(make("div", { class: "pictures" }, comparison.map.map((values, l) => make("figure", {}, make("figcaption", {}, `into layer ${l}`), SenseView.overlay(run, values, most)))), make("p", { class: "soft" }, `Laid on B's picture; the deepest colour is ${Draw.number(most)}.`), Draw.behind(comparison.map.map((_, l) => `into layer ${l}`), names, (l, i) => comparison.map[l][i], { size: most })), box;
    }
    const columns = names.slice(0, comparison.map[0].length);
    box.append(Draw.table(Array.from({ length: n }, (_, l) => `into layer ${n - 1 - l}`), columns, (l, i) => comparison.map[n - 1 - l][i], { size: 1, caption: "Activation patching" }));
    return box;
  }

  function difference(runs, state) {
    const kind = state.kind, [a, b] = runs.map((run) => Data.weights(run, kind, state.layer, state.head));
    const box = make("section", {}, make("h3", {}, `Attention, ${kind.label}: B less A`));
    if (!a || !b || a.shape.join() !== b.shape.join()) return box.append(make("p", { class: "soft" }, "The two have different lengths here; look at them one by one (A and B above, in the other views).")), box;
    const pair = (x, y) => x.map((v, i) => (v === y[i] ? v : `${v} / ${y[i]}`));
    const rows = pair(...runs.map((run) => Data.rows(run, kind))), columns = pair(...runs.map((run) => Data.columns(run, kind))), m = columns.length;
    const at = (i, j) => b.values[i * m + j] - a.values[i * m + j], caption = "Difference of attention";
    return box.append(rows.length * m > 900 ? Draw.heat(rows, m, at, (j) => columns[j], caption) : Draw.table(rows, columns, at, { size: Math.max(0.05, Draw.most(a.values.map((v, i) => b.values[i] - v))), caption })), box;
  }

  function draw(_, state) {
    const { runs, comparison } = Data.all;
    return make("div", {}, make("h2", {}, "The two inputs side by side"), answers(runs), carried(comparison, runs[1]), difference(runs, state));
  }

  return { draw, controls: ["kind", "layer+", "head+"] };
})();
