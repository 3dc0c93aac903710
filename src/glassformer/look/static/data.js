"use strict";
// The numbers in the page: runs, tensors by name, and what is chosen to be shown.

const Data = (() => {
  const all = JSON.parse(document.getElementById("data").textContent);
  function floats(base64) {
    const raw = atob(base64), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return new Float32Array(bytes.buffer); // little-endian, as all browsers' machines are
  }
  for (const run of all.runs) {
    run.numbers = floats(run.tensors.blob);
    run.tensors.blob = "";
    for (const stack in run.rollout) run.rollout[stack] = floats(run.rollout[stack]);
  }

  /** A tensor of a run: its shape and numbers; null where the page has none of that name. */
  function tensor(run, name) {
    const found = run.tensors.at[name];
    if (!found) return null;
    const [offset, shape] = found;
    const size = shape.reduce((a, b) => a * b, 1);
    return { name, shape, values: run.numbers.subarray(offset, offset + size) };
  }

  /** Part of a tensor: by its first index, or first two. */
  function part(t, ...index) {
    let { shape, values } = t;
    for (const i of index) {
      shape = shape.slice(1);
      const size = shape.reduce((a, b) => a * b, 1);
      values = values.subarray(i * size, (i + 1) * size);
    }
    return { name: t.name, shape, values };
  }

  const vector = (run, name, ...index) => {
    const t = tensor(run, name);
    return t && part(t, ...index).values;
  };

  /** The kinds of attention that the model has, the most telling first. */
  function kinds() {
    const found = [];
    for (const stack of all.model.stacks) {
      if (stack.layers === 0) continue;
      const own = { id: stack.name, stack, part: "self_attention", label: all.model.stacks.length > 1 ? `${stack.name} → itself` : "self-attention" };
      found.push(own);
      if (stack.cross) found.unshift({ id: "cross", stack, part: "cross_attention", label: "decoder → source" });
    }
    return found;
  }

  const names = (run, stack) => (stack.front === "target" ? run.target : run.source);
  const rows = (run, kind) => names(run, kind.stack);
  const columns = (run, kind) => (kind.part === "cross_attention" ? run.source : names(run, kind.stack));
  const path = (kind, layer) => `${kind.stack.name}.blocks.${layer}.${kind.part}`;

  /** Weights (n, m) of a layer and head; −1 is the mean over all of them, layer −2 the roll-out. */
  function weights(run, kind, layer, head) {
    const n = rows(run, kind).length, m = columns(run, kind).length;
    if (layer === -2) return { shape: [n, m], values: Float64Array.from(run.rollout[kind.stack.name]) };
    const layers = layer >= 0 ? [layer] : [...Array(kind.stack.layers).keys()];
    const heads = head >= 0 ? [head] : [...Array(kind.stack.heads).keys()];
    const sum = new Float64Array(n * m);
    for (const l of layers) {
      const t = tensor(run, `${path(kind, l)}.weights`);
      if (!t) return null;
      for (const h of heads) {
        const values = part(t, h).values;
        for (let i = 0; i < sum.length; i++) sum[i] += values[i];
      }
    }
    const count = layers.length * heads.length;
    return { shape: [n, m], values: sum.map((v) => v / count) };
  }

  /** How many positions of the model the key j of an attention stands for. */
  const nJoined = (run, path, j) => (run.joined && (path.startsWith("encoder") || path.endsWith("cross_attention")) ? run.joined[j] : 1);

  const dot = (a, b) => a.reduce((sum, v, i) => sum + v * b[i], 0);
  /** The name of an answer in a run. */
  const nameOf = (run, id) => run.names[id] ?? `#${id}`;

  return { all, tensor, part, vector, kinds, names, rows, columns, path, weights, nJoined, dot, nameOf };
})();
