"use strict";
// The answer as it came: the probabilities at each step, and the tree of the search.

const AnswerView = (() => {
  const { make } = Draw;

  const blanks = () => Data.all.model.task === "fill";

  /** The best answers at one position, with logits. */
  function list(run, position) {
    const best = run.best[Math.min(position, run.best.length - 1)];
    if (!best) return make("p", { class: "soft" }, "This model gives numbers, not a choice of answers.");
    const ids = [...best.ids], shares = [...best.p], logits = [...best.logits];
    if (best.said && !ids.includes(best.said.id)) ids.push(best.said.id), shares.push(best.said.p), logits.push(best.said.logit);
    const texts = ids.map((_, i) => `${Draw.share(shares[i])}  (${Draw.number(logits[i], 2)})`);
    const box = make("div", { class: "best" }, Draw.bars(ids.map((id) => Data.nameOf(run, id)), shares, texts, best.said ? ids.indexOf(best.said.id) : -1));
    const several = run.kind === "choices", bold = !several ? "What was chosen is in bold." : best.p[0] >= 0.5 ? "Every label of a half or more is said; the likeliest is in bold." : "No label reaches a half, so none is said; the likeliest is in bold.";
    if (best.said && best.said.rank > 1) box.append(make("p", { class: "soft" }, `What was chosen is the model's number ${best.said.rank}.`));
    box.append(make("p", { class: "soft" }, `The share of each answer, and in brackets its logit: the score before the ${several ? "sigmoid (several may fit)" : "softmax"}. ${bold}${run.ruled ? " Whisper's rules choose, too: times stand in pairs around sentences and never go back, and some signs are never said." : ""}`));
    return box;
  }

  function steps(run, state, choose) {
    const names = run.target.length ? run.target : run.source;
    if (run.best.length <= 1) return list(run, 0);
    const rows = run.best.map((best, i) => {
      const said = best.said, tr = make("tr", { class: i === state.position ? "here" : null },
        make("th", { scope: "row" }, make("button", { type: "button", class: "token", onclick: () => choose({ position: i, pinned: true }) }, names[i])),
        make("td", { class: "left" }, said ? Data.nameOf(run, said.id) : ""), said ? Draw.cell("td", said.p, 1, Draw.share(said.p)) : make("td"),
        make("td", { class: "left none wrap" }, best.ids.filter((id) => id !== said?.id).slice(0, 4).map((id) => `${Data.nameOf(run, id)} ${Draw.share(best.p[best.ids.indexOf(id)])}`).join(" · ")));
      return tr;
    });
    const head = (blanks() ? ["at", "chosen", "share", "might have stood here"] : ["after", "followed", "share", "might have followed"]).map((c, i) => make("th", { scope: "col", class: i === 2 ? null : "left" }, c));
    return make("div", { class: "side" },
      make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Steps" }, make("table", {}, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows))),
      make("div", {}, make("h3", { style: "margin-top: 0" }, blanks() ? "At " : "After ", Draw.token(names[state.position])), list(run, state.position)));
  }

  /** The search's tree from left to right; each step's hypotheses one under the other. */
  function tree(run) {
    if (!run.beam.length) return null;
    const nodes = run.beam, best = new Set(run.path), byStep = new Map();
    nodes.forEach((node, i) => byStep.set(node.step, [...(byStep.get(node.step) ?? []), i]));
    const place = new Map();
    for (const [step, group] of byStep) {
      // On the best path first, then by score, so that the lines cross little.
      group.sort((a, b) => best.has(b) - best.has(a) || nodes[b].total - nodes[a].total);
      group.forEach((i, k) => place.set(i, [step, k]));
    }
    const deepest = Math.max(...[...byStep.values()].map((g) => g.length)), n = Math.max(...byStep.keys());
    // Where CTC has its say, a score is a mean of two log-probabilities and no share of anything.
    const worth = (node) => (run.ctc ? Draw.number(node.log_p, 2) : Draw.share(Math.exp(node.log_p)));
    const W = 134, H = 40, width = W * n + 100, height = H * deepest + 20;
    const svg = make("svg:svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "The tree of the search; its table stands below" });
    const at = (i) => (i < 0 ? [40, 26] : [40 + W * place.get(i)[0], 26 + H * place.get(i)[1]]);
    svg.append(make("svg:text", { x: 4, y: 31, class: "soft" }, "start"));
    nodes.forEach((node, i) => {
      const [x1, y1] = at(node.parent), [x2, y2] = at(i), on = best.has(i);
      svg.append(make("svg:path", { d: `M${x1 + (node.parent < 0 ? 4 : 52)},${y1} C${x2 - 66},${y1} ${x2 - 80},${y2} ${x2 - 52},${y2}`, fill: "none", stroke: on ? "var(--accent)" : "var(--line)", "stroke-width": on ? 2.5 : 1.5 }));
    });
    nodes.forEach((node, i) => {
      const [x, y] = at(i), on = best.has(i), text = Data.nameOf(run, node.token), cut = [...text].length > 12 ? `${[...text].slice(0, 11).join("")}…` : text;
      const box = make("svg:g", {}, make("svg:rect", { x: x - 52, y: y - 15, width: 104, height: 30, rx: 5, fill: on ? "var(--piece)" : "var(--page)", stroke: on ? "var(--accent)" : "var(--line)", "stroke-dasharray": node.ended ? "4 2" : "none" }),
        make("svg:text", { x, y: y - 1, "text-anchor": "middle", style: "font-size: 12px" }, cut), make("svg:text", { x, y: y + 11, "text-anchor": "middle", class: "soft", style: "font-size: 9.5px" }, `${worth(node)} · Σ ${Draw.number(node.total, 2)}`));
      box.addEventListener("pointermove", (event) => Draw.tip(event, `${text}: ${run.ctc ? "score" : "probability"} ${worth(node)} here; ${run.ctc ? "score" : "log-probability"} of all up to here ${Draw.number(node.total)}`));
      box.addEventListener("pointerleave", Draw.hide);
      svg.append(box);
    });
    const rows = nodes.map((node, i) => [`${node.step}`, node.parent < 0 ? "start" : Data.nameOf(run, nodes[node.parent].token), Data.nameOf(run, node.token), worth(node), Draw.number(node.total), best.has(i) ? "yes" : ""]);
    const details = make("details", {}, make("summary", {}, "As a table"), make("div", { class: "scroll tall", tabindex: "0" }, make("table", {},
      make("thead", {}, make("tr", {}, ["step", "after", "token", run.ctc ? "score" : "share", run.ctc ? "sum of scores" : "sum of log-probabilities", "in the answer"].map((c) => make("th", { scope: "col" }, c)))),
      make("tbody", {}, rows.map((row) => make("tr", {}, row.map((c) => make("td", {}, c))))))));
    const how = run.ctc ? `its score (${Draw.number(1 - run.ctc, 2)} × the decoder's log-probability + ${Draw.number(run.ctc, 2)} × that of CTC, which hears the sound frame by frame), and the sum of scores up to it` : `its share${run.ruled ? " of what the rules allow" : ""}, and the sum of log-probabilities up to it`;
    return make("figure", {}, make("h3", {}, "The search"), make("figcaption", {}, `At each step the search keeps the ${deepest > 1 ? "best beginnings" : "best beginning"} of an answer, here from left to right: the token, ${how}. Dashed boxes end an answer; the chosen one is framed in blue.`),
      make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Search tree" }, svg), details);
  }

  function draw(run, state, redraw, choose) {
    const about = run.kind === "number" ? "" : run.best.length < 2 ? "The model gives a share to every answer." : blanks() ? "At each position the model gives a share to every token that may stand there; what counts is the blanks." : "After each position the model gives a share to every token that may follow.";
    return make("div", {}, make("h2", {}, run.kind === "number" ? `The answer is ${run.answer}` : "How the answer came about"), make("p", { class: "soft" }, about), steps(run, state, choose), tree(run));
  }

  return { draw, list, controls: ["position"] };
})();
