"use strict";
// Step by step through one layer for one position and head, with the numbers of each operation and its formula.

const WalkView = (() => {
  const { make, strip, number, token } = Draw;

  function formula(...parts) {
    return make("div", { class: "formula" }, parts.map((p) => (Array.isArray(p) ? make(p[0], {}, p[1]) : p)));
  }
  const section = (title, ...children) => make("section", {}, make("h3", {}, title), ...children);
  const sub = (text) => ["sub", text];
  const sup = (text) => ["sup", text];
  const NAMES = { relu: "ReLU", gelu: "GELU", gelu_tanh: "GELU", silu: "SiLU", tanh: "tanh" };
  /** What a part reads of the stream: its norm comes before it or only behind. */
  const taken = (stack) => (stack.pre ? "norm(x)" : "x");
  /** input W + b, as the model has it; `mark` is sub or sup. */
  const linear = (input, mark, name, bias) => [`${input} W`, mark(name), ...(bias ? [" + b", mark(name)] : [])];

  /** Says how far the numbers in the page, put through the formula here, are from what the model computed. */
  function check(computed, recorded) {
    const size = Math.max(1, ...Array.from(recorded, (v) => (Number.isFinite(v) ? Math.abs(v) : 0)));
    let apart = 0;
    for (let i = 0; i < recorded.length; i++) if (Number.isFinite(recorded[i])) apart = Math.max(apart, Math.abs(computed[i] - recorded[i]));
    const good = apart <= 1e-4 * size;
    return make("p", { class: "check", "data-apart": apart }, good ? `✓ computed again in this page: ${apart === 0 ? "exactly the same" : `the same to ${apart.toExponential(0).replace("-", "−")}`}` : `✗ computed again in this page: ${apart.toExponential(1)} apart`);
  }

  function inputStep(run, stack, i, names) {
    const front = stack.front, x = Data.vector(run, `${front}.x`, i), embedding = Data.vector(run, `${front}.embedding`, i);
    const positions = Data.vector(run, `${front}.positions`, i);
    if (!embedding) return section("From the input to a vector", make("p", {}, "The input at this position as a vector, as wide as the model:"), strip(x));
    const types = Data.vector(run, `${front}.types`, i), normed = Data.vector(run, `${front}.norm`, i), added = [positions, types].filter(Boolean);
    const also = [positions && "the vector that says where it stands", types && "the one of its sentence"].filter(Boolean).map((text) => `, and ${text}`).join("");
    const sum = ["E[token]", positions && `PE(${i})`, types && "T[sentence]"].filter(Boolean).join(" + ");
    const children = [make("p", {}, "The row for ", token(names[i]), ` in the table of embeddings${also}:`), formula("x = ", normed ? `norm(${sum})` : sum), strip(embedding), ...added.map((v) => strip(v))];
    if (normed) children.push(make("p", {}, "Their sum, brought to even size, enters the first layer:"), strip(x));
    else if (added.length) children.push(make("p", {}, "Their sum enters the first layer:"), strip(x), check(embedding.map((v, d) => added.reduce((total, one) => total + one[d], v)), x));
    return section("From a word to a vector", ...children);
  }

  function normStep(run, stack, at, i, title) {
    const normed = Data.vector(run, `${at}.norm`, i), scale = Data.vector(run, `${at}.scale`, i);
    if (!normed) return null;
    const text = stack.norm === "layer" ? "Its mean is taken off, it is divided by its deviation" : "It is divided by the root of its mean square";
    return section(title, make("p", {}, `The vector is brought to even size. ${text}${scale ? ` (${number(scale[0])})` : ""}; then learned factors stretch it.`),
      stack.norm === "layer" ? formula("norm(x) = γ · (x − mean) / √(variance + ε) + β") : formula("norm(x) = γ · x / √(mean of x² + ε)"), strip(normed));
  }

  function projections(run, path, kind, i, head, key, columns) {
    const q = Data.tensor(run, `${path}.q`), k = Data.tensor(run, `${path}.k`), v = Data.tensor(run, `${path}.v`);
    if (!q || !k || !v) return [null, section("Query, key and value", Draw.missing())];
    const shared = Math.floor((head * k.shape[0]) / q.shape[0]);
    const parts = { q: Data.part(q, head, i).values, k: Data.part(k, shared), v: Data.part(v, shared) };
    const stack = kind.stack, cross = kind.part === "cross_attention", turned = stack.rotary && !cross;
    const made = (letter, input) => [`${letter} = ${turned && letter !== "v" ? "turn(" : ""}`, ...linear(input, sup, letter.toUpperCase(), stack.bias.includes(letter)), turned && letter !== "v" ? ")" : ""];
    const given = cross ? "s" : taken(stack);
    return [parts, section("Query, key and value",
      make("p", {}, `Three learned matrices make a query (what is looked for), keys (what can be found) and values (what is handed over)${cross ? "; keys and values come from s, what the encoder made of the source" : ""}. ${turned ? "Query and key are then turned by an angle that grows with their position, so that their product tells how far apart they stand; both are shown turned. " : ""}The query of this position:`),
      formula(...made("q", taken(stack)), ", ", ...made("k", given), ", ", ...made("v", given)), strip(parts.q),
      make("p", {}, "The key of ", token(columns[key]), ":"), strip(Data.part(parts.k, key).values))];
  }

  function scoreStep(run, path, i, head, parts, columns, state, choose) {
    const scores = Data.vector(run, `${path}.scores`, head, i), weights = Data.vector(run, `${path}.weights`, head, i);
    if (!scores || !weights) return section("Scores and weights", Draw.missing());
    // A key that stands for several has a score of all of them, which no one key gives.
    const d = parts.q.length, single = columns.map((_, j) => Data.nJoined(run, path, j) === 1), alone = (values) => Array.from(values).filter((_, j) => single[j]);
    const products = columns.map((_, j) => (single[j] ? Data.dot(Array.from(parts.q), Data.part(parts.k, j).values) : NaN));
    const open = Array.from(scores, Number.isFinite), highest = Math.max(...scores), raised = Array.from(scores, (s) => Math.exp(s - highest)), total = raised.reduce((a, b) => a + b, 0);
    const rows = columns.map((name, j) => make("tr", { class: j === state.key ? "here" : null },
      make("th", { scope: "row" }, make("button", { type: "button", class: "token", onclick: () => choose({ key: j }) }, name)),
      make("td", {}, number(products[j])), Draw.cell("td", scores[j], Draw.most(scores)), make("td", {}, number(raised[j])), Draw.cell("td", weights[j], 1)));
    const head_ = ["key of", "q · k", "÷ √d", "exp(score − highest)", "weight"].map((c, j) => make("th", { scope: "col", class: j ? null : "left" }, c));
    const [a, b] = [parts.q, Data.part(parts.k, state.key).values];
    const terms = Array.from(a.slice(0, 4), (v, t) => `${number(v)} · ${number(b[t])}`).join(" + ");
    return section("Scores and weights",
      make("p", {}, "How well does the query fit each key? Multiply them number by number, add up, and divide by ", make("b", {}, `√${d} = ${number(Math.sqrt(d))}`), ". The softmax turns the scores into shares that add up to 1."),
      formula("score", sub("j"), " = q · k", sub("j"), " / √d", sub("k"), ",   weight", sub("j"), " = exp(score", sub("j"), ") / Σ exp(score)"),
      make("div", { class: "scroll tall", tabindex: "0", role: "group", "aria-label": "Scores and weights" }, make("table", { id: "scores" }, make("thead", {}, make("tr", {}, head_)), make("tbody", {}, rows))),
      make("p", { class: "soft" }, single[state.key] ? `For ${columns[state.key]}: ${terms}${d > 4 ? ` + … (${d} terms)` : ""} = ${number(products[state.key])}` : `${columns[state.key]} stands for ${Data.nJoined(run, path, state.key)} positions: its weight is the sum of theirs, its score the logarithm of the sum of exp(score) over them; the key above is that of the middle one.`),
      open.includes(false) ? make("p", { class: "soft" }, "Where looking is forbidden the score is minus infinity, and the weight 0.") : null,
      single.includes(true) ? check(alone(products).map((p) => p / Math.sqrt(d)), alone(scores)) : null, check(raised.map((r) => r / total), weights));
  }

  function resultSteps(run, path, residual, stack, i, head, parts) {
    const weights = Data.vector(run, `${path}.weights`, head, i), z = Data.vector(run, `${path}.z`, head, i);
    const out = Data.vector(run, `${path}.out`, i), before = Data.vector(run, `${residual}.before`, i), after = Data.vector(run, `${residual}.after`, i);
    const heads = Array.from({ length: stack.heads }, (_, h) => Data.vector(run, `${path}.z`, h, i)), found = [];
    if (weights && z && parts) {
      const mixed = new Float64Array(z.length);
      weights.forEach((w, j) => Data.part(parts.v, j).values.forEach((v, d) => (mixed[d] += w * v)));
      const whole = Array.from(weights.keys()).every((j) => Data.nJoined(run, path, j) === 1);
      found.push(section("What the head found", make("p", {}, "The values of all positions, each counted by its weight, are added up."), formula("z = Σ weight", sub("j"), " v", sub("j")), strip(z),
        whole ? check(mixed, z) : make("p", { class: "soft" }, "The sum is over all positions of the model, of which this page joins some.")));
    }
    found.push(section("All heads together", make("p", {}, `The results of the ${stack.heads} heads are laid side by side (${stack.heads} × ${z?.length ?? "?"} numbers), and one more matrix brings them back to the model's width.`),
      formula("out = Concat(z", sub("1"), ` … z`, sub(String(stack.heads)), ...linear(")", sup, "O", stack.bias.includes("o"))), heads[0] ? make("details", {}, make("summary", {}, "The results of all heads"), heads.map((h, k) => make("div", {}, make("span", { class: "soft" }, `head ${k}`), strip(h)))) : null, strip(out)));
    found.push(addStep(stack, before, out, after, "attention"));
    return found;
  }

  function addStep(stack, before, out, after, what) {
    if (!before || !out || !after) return section("Added to the stream", Draw.missing());
    const sum = before.map((v, d) => v + out[d]);
    return section("Added to the stream", make("p", {}, `What ${what} found is added to what the position held before: the skip connection.`, stack.pre ? "" : " Then the sum is normed."),
      stack.pre ? formula("x ← x + out") : formula("x ← norm(x + out)"), strip(after), stack.pre ? check(sum, after) : null);
  }

  function feedSteps(run, stack, at, i) {
    const hidden = Data.vector(run, `${at}.feed_forward.hidden`, i), w1 = Data.vector(run, `${at}.feed_forward.w_1`, i);
    const residual = `${at}.feed_forward_residual`, found = [stack.pre ? normStep(run, stack, residual, i, "A norm again") : null];
    const name = NAMES[stack.activation], up = linear(taken(stack), sub, "1", stack.feed_bias);
    if (hidden) {
      const order = [...hidden.keys()].sort((a, b) => Math.abs(hidden[b]) - Math.abs(hidden[a])).slice(0, 10), on = hidden.filter((v) => v > 0).length;
      found.push(section("Hidden units", make("p", {}, `${hidden.length} hidden units look at the vector, each for a pattern of its own. ${on} of them are above zero here; the ten strongest:`),
        stack.gated ? formula(`hidden = ${name}(`, ...linear(taken(stack), sub, "gate", stack.feed_bias), ") · (", ...up, ")") : formula(`hidden = ${name}(`, ...up, ")"),
        Draw.bars(order.map((u) => `unit ${u}`), order.map((u) => hidden[u]), order.map((u) => number(hidden[u]))),
        stack.activation === "relu" && w1 && !stack.gated ? check(w1.map((v) => Math.max(0, v)), hidden) : null));
    } else found.push(section("Hidden units", Draw.missing()));
    const out = Data.vector(run, `${at}.feed_forward.out`, i);
    found.push(section("Back to the model's width", make("p", {}, "Each unit that is on writes its own vector into the stream."), formula("out = ", ...linear("hidden", sub, "2", stack.feed_bias)), strip(out)));
    found.push(addStep(stack, Data.vector(run, `${residual}.before`, i), out, Data.vector(run, `${residual}.after`, i), "the feed-forward part"));
    return found;
  }

  function answerStep(run, i) {
    const { pooling, head_bias: bias, transform } = Data.all.model, numeric = run.kind === "number";
    const last = { mean: "The mean of all positions' last vectors", first: "The first position's last vector", last: "The last position's last vector" }[pooling] ?? "The last vector";
    const bent = transform ? ` goes through one more layer with ${NAMES[transform]} and` : "";
    const then = numeric ? "is multiplied with one more vector: that is the answer." : run.kind === "choices" ? "is compared with the vector of every answer; the sigmoid turns each of these logits into a share of its own, since several may fit." : "is compared with the vector of every answer; the softmax turns these logits into shares.";
    const score = [numeric ? "answer = x w" : "logits = x W", bias ? " + b" : "", numeric ? "" : `,   share = ${run.kind === "choices" ? "sigmoid" : "softmax"}(logits)`];
    return section("The answer", make("p", {}, `${last}${bent} ${then}`), formula(...score), AnswerView.list(run, run.best.length > 1 ? i : 0));
  }

  function draw(run, state, redraw, choose) {
    const kind = state.kind, stack = kind.stack, names = Data.rows(run, kind), columns = Data.columns(run, kind);
    const layer = Math.max(0, state.layer), head = Math.max(0, state.head), i = state.position, at = `${stack.name}.blocks.${layer}`;
    const path = Data.path(kind, layer), residual = path.replace("_attention", "_residual");
    const [parts, projected] = projections(run, path, kind, i, head, state.key, columns);
    const steps = [layer === 0 && kind.part === "self_attention" ? inputStep(run, stack, i, names) : section("What comes in", make("p", {}, "The stream at this position, as the part before left it:"), strip(Data.vector(run, `${residual}.before`, i))),
      stack.pre ? normStep(run, stack, residual, i, "A norm") : null, projected, parts ? scoreStep(run, path, i, head, parts, columns, state, choose) : null,
      ...resultSteps(run, path, residual, stack, i, head, parts)];
    if (kind.part === "cross_attention" || !stack.cross) steps.push(...feedSteps(run, stack, at, i));
    const last = layer === stack.layers - 1 && stack === Data.all.model.stacks.at(-1) && (kind.part === "cross_attention" || !stack.cross);
    if (last) {
      steps.push(stack.final ? normStep(run, stack, stack.name, i, "The last norm") : null);
      steps.push(answerStep(run, i));
    } else {
      const next = !last && (kind.part === "self_attention" && stack.cross) ? { kind: Data.kinds().find((k) => k.id === "cross"), layer } : layer + 1 < stack.layers ? { kind: stack.cross ? Data.kinds().find((k) => k.id === stack.name) : kind, layer: layer + 1 } : null;
      if (next) steps.push(make("p", {}, make("button", { type: "button", onclick: () => { choose(next); scrollTo(0, 0); } }, `On to ${next.kind.label}, layer ${next.layer} →`)));
    }
    return make("div", {}, make("h2", {}, `${kind.label}, layer ${layer}, head ${head}, at `, token(names[i])),
      make("p", { class: "soft" }, "Every operation with its real numbers. Blue is above zero, orange below. Choose another position, head or layer above."), make("div", { class: "steps" }, steps.filter(Boolean)));
  }

  return { draw, controls: ["kind", "layer", "head", "position"] };
})();
