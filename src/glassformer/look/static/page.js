"use strict";
// The frame: views by the address (#walk), controls, keys. What is chosen stays chosen from view to view.

const Page = (() => {
  const { make, help } = Draw;
  const { runs, model } = Data.all, kinds = Data.kinds();
  const VIEWS = [
    { id: "model", title: "Model", view: ModelView, help: "All parts, their shapes and numbers" },
    { id: "attention", title: "Attention", view: AttentionView, help: "Which word looks at which" },
    { id: "matrix", title: "Matrix", view: { draw: AttentionView.drawMatrix, controls: AttentionView.controls }, help: "The same as a table of values" },
    { id: "walk", title: "Step by step", view: WalkView, help: "Every operation of one layer with its numbers" },
    { id: "answer", title: "Answer", view: AnswerView, help: "What might have followed at each step" },
    { id: "why", title: "Why", view: ReasonsView, help: "Which parts and words made the answer" },
    ...(runs.length > 1 ? [{ id: "compare", title: "Compare", view: CompareView, help: "The two inputs side by side" }] : []),
  ];
  // Where the first layer had no room, what all layers do together is still there.
  const layer = kinds[0].part === "self_attention" && !Data.weights(runs[0], kinds[0], 0, 0) ? -2 : 0;
  const state = { run: 0, kind: kinds[0], layer, head: 0, position: runs[0].first, key: 0, pinned: false };
  const current = () => VIEWS.find((v) => v.id === location.hash.slice(1)) ?? VIEWS[1];

  /** Only what exists may be chosen. */
  function settle() {
    const run = runs[state.run], fixed = current().view.controls;
    const optional = (name) => fixed.includes(`${name}+`);
    const least = { layer: optional("layer") ? (state.kind.part === "self_attention" ? -2 : -1) : 0, head: optional("head") ? -1 : 0 };
    state.layer = Math.min(Math.max(state.layer, least.layer), state.kind.stack.layers - 1);
    state.head = Math.min(Math.max(state.head, least.head), state.kind.stack.heads - 1);
    const positions = fixed.includes("kind") ? Data.rows(run, state.kind) : Data.names(run, model.stacks.at(-1));
    state.position = Math.min(Math.max(0, state.position), positions.length - 1);
    state.key = Math.min(Math.max(0, state.key), Data.columns(run, state.kind).length - 1);
    return positions;
  }

  function select(label, options, value, act, text) {
    const node = make("select", { name: label, onchange: (event) => act(event.target.value) }, options.map(([v, name]) => make("option", { value: v }, name)));
    node.value = String(value);
    return help(make("label", {}, label, node), text);
  }

  function controls(positions) {
    const wanted = current().view.controls, items = [], count = (n, name) => Array.from({ length: n }, (_, i) => [i, `${name} ${i}`]);
    if (runs.length > 1 && current().id !== "compare") items.push(select("input", runs.map((r, i) => [i, `${"AB"[i]}: ${r.text.slice(0, 40)}`]), state.run, (v) => choose({ run: Number(v) }), "Which of the two inputs is shown (key i)."));
    if (wanted.includes("kind") && kinds.length > 1) items.push(select("attention", kinds.map((k) => [k.id, k.label]), state.kind.id, (v) => choose({ kind: kinds.find((k) => k.id === v) }), "Whose attention, and to what (key a)."));
    const layers = count(state.kind.stack.layers, "layer"), heads = count(state.kind.stack.heads, "head");
    if (wanted.includes("layer+")) layers.unshift(...(state.kind.part === "self_attention" ? [[-2, "rolled out"]] : []), [-1, "mean of all"]);
    if (wanted.includes("head+")) heads.unshift([-1, "mean of all"]);
    if (wanted.includes("layer") || wanted.includes("layer+")) items.push(select("layer", layers, state.layer, (v) => choose({ layer: Number(v) }), "How deep in the stack (keys [ and ])."));
    if (wanted.includes("head") || wanted.includes("head+")) items.push(select("head", heads, state.head, (v) => choose({ head: Number(v) }), "Each head looks for something of its own (keys , and .)."));
    if (wanted.includes("position") && !(["answer", "why"].includes(current().id) && runs[state.run].best.length < 2)) items.push(select("position", positions.map((p, i) => [i, `${i}: ${p}`]), state.position, (v) => choose({ position: Number(v), pinned: true }), "Which word is followed (keys ← and →)."));
    document.getElementById("controls").replaceChildren(...items);
  }

  function choose(changes) {
    if ("position" in changes && !("pinned" in changes)) changes.pinned = true;
    Object.assign(state, changes);
    draw();
  }

  function header() {
    const size = model.parameters >= 1e6 ? `${(model.parameters / 1e6).toFixed(1)} million` : model.parameters.toLocaleString("en");
    document.getElementById("top").replaceChildren(
      ...runs.map((run, i) => make("h1", {}, runs.length > 1 ? make("span", { class: "badge" }, "AB"[i]) : "", run.text, make("span", { class: "arrow" }, "→"), run.answer)),
      make("p", {}, `${model.name}, a model to ${model.task} with ${size} parameters. `, make("span", { class: "keys" }, "Keys: ", make("kbd", {}, "1"), "–", make("kbd", {}, String(VIEWS.length)), " views, ", make("kbd", {}, "←"), " ", make("kbd", {}, "→"), " words, ", make("kbd", {}, "["), " ", make("kbd", {}, "]"), " layers, ", make("kbd", {}, ","), " ", make("kbd", {}, "."), " heads.")));
    const left = runs.flatMap((r) => r.tensors.left_out);
    if (left.length) document.getElementById("top").append(make("p", {}, `To keep this page small, ${left.length} of its tensors were left out; --out trace.npz holds all.`));
  }

  function draw() {
    const view = current(), positions = settle();
    const focused = document.activeElement, mark = focused?.name || focused?.dataset?.path || focused?.dataset?.point;
    document.getElementById("views").replaceChildren(...VIEWS.map((v) => help(make("a", { href: `#${v.id}`, "aria-current": v === view ? "page" : null }, v.title), v.help)));
    Draw.hide();
    controls(positions);
    document.getElementById("view").replaceChildren(view.view.draw(runs[state.run], state, draw, choose));
    document.title = `${view.title} · ${runs[0].text.slice(0, 60)} · Glassformer`;
    // The control that was used keeps the focus, though it was drawn anew.
    if (mark) (document.querySelector(`[name="${mark}"]`) ?? document.querySelector(`[data-path="${mark}"], [data-point="${mark}"]`))?.focus({ preventScroll: true });
  }

  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(SELECT|INPUT|TEXTAREA)$/.test(event.target.tagName)) return;
    const number = Number(event.key);
    if (number >= 1 && number <= VIEWS.length) location.hash = VIEWS[number - 1].id;
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      if (event.target.closest?.(".scroll")) return; // there they move the table
      choose({ position: state.position + (event.key === "ArrowRight" ? 1 : -1) });
    } else if (event.key === "[" || event.key === "]") choose({ layer: state.layer + (event.key === "]" ? 1 : -1) });
    else if (event.key === "," || event.key === ".") choose({ head: state.head + (event.key === "." ? 1 : -1) });
    else if (event.key === "a") choose({ kind: kinds[(kinds.indexOf(state.kind) + 1) % kinds.length] });
    else if (event.key === "i" && runs.length > 1) choose({ run: 1 - state.run });
  }

  header();
  addEventListener("hashchange", () => { draw(); document.getElementById("view").focus({ preventScroll: true }); });
  addEventListener("keydown", key);
  document.getElementById("controls").addEventListener("submit", (event) => event.preventDefault());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw); // canvases hold their colours
  draw();
  return { state, choose, VIEWS };
})();
