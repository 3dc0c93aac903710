"use strict";
// Pieces that all views are made of: elements, numbers, strips, bars, heat maps with a table behind them, hover help.

const Draw = (() => {
  const SVG = "http://www.w3.org/2000/svg";

  function make(tag, attributes = {}, ...children) {
    const node = tag.startsWith("svg:") ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === undefined) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value);
    }
    node.append(...children.flat().filter((c) => c !== null && c !== undefined));
    return node;
  }

  /** Four digits that count, with a true minus sign. */
  function number(value, digits = 3) {
    if (value === -Infinity) return "−∞";
    if (!Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    const text = size === 0 ? "0" : size >= 10000 || size < 0.0005 ? value.toExponential(1) : value.toFixed(size >= 100 ? 1 : digits);
    return text.replaceAll("-", "−");
  }
  const share = (p) => (p >= 0.0995 ? `${(100 * p).toFixed(0)}\u00a0%` : `${(100 * p).toFixed(p >= 0.001 ? 1 : 3)}\u00a0%`);
  const most = (values) => values.reduce((a, v) => (Number.isFinite(v) ? Math.max(a, Math.abs(v)) : a), 0) || 1;
  const kindOf = (value) => (!Number.isFinite(value) || value === 0 ? "none" : value > 0 ? "more" : "less");
  const token = (text) => make("span", { class: "token" }, text);

  function cell(tag, value, size, text = number(value)) {
    const node = make(tag, { class: tag === "td" ? kindOf(value) : `cell ${kindOf(value)}` }, text);
    node.style.setProperty("--heat", Number.isFinite(value) ? Math.min(1, Math.abs(value) / size) : 0);
    return node;
  }

  /** A vector: its first numbers, the rest on request. */
  function strip(values, shown = 12) {
    if (!values) return missing();
    const size = most(values), box = make("div", { class: "strip" });
    const fill = (n) => {
      box.replaceChildren(...Array.from(values.slice(0, n), (v) => cell("span", v, size)));
      if (n < values.length)
        box.append(make("button", { type: "button", onclick: () => fill(values.length) }, `… all ${values.length}`));
    };
    fill(values.length <= shown + 4 ? values.length : shown);
    return box;
  }

  const missing = () => make("p", { class: "soft" }, "Left out to keep the page small; a shorter input has room for it, and --out trace.npz holds all.");

  /** Bars; values may be below zero. `said` marks one. */
  function bars(labels, values, texts, said = -1) {
    const low = Math.min(0, ...values), span = Math.max(...values, 0) - low || 1;
    return make("ul", { class: "bars" }, labels.map((label, i) => {
      const bar = make("span", { class: `bar${values[i] < 0 ? " less" : ""}`, "aria-hidden": "true" });
      bar.style.setProperty("--from", (Math.min(values[i], 0) - low) / span);
      bar.style.setProperty("--share", Math.abs(values[i]) / span);
      return make("li", { class: i === said ? "said" : "" }, make("span", {}, label), make("span", { class: "track" }, bar), make("span", {}, texts[i]));
    }));
  }

  /** A table of numbers with names; `here` marks a row. */
  function table(rows, columns, at, { corner = "", here = -1, size = null, text = number, caption = "" } = {}) {
    const all = rows.flatMap((_, i) => columns.map((__, j) => at(i, j)));
    const scale = size ?? most(all);
    const head = make("tr", {}, make("td", { class: "left none" }, corner), columns.map((c) => make("th", { scope: "col" }, c)));
    const body = rows.map((label, i) => make("tr", { class: i === here ? "here" : null }, make("th", { scope: "row" }, label),
      columns.map((_, j) => cell("td", at(i, j), scale, text(at(i, j))))));
    const inner = make("table", {}, make("thead", {}, head), make("tbody", {}, body));
    return make("div", { class: "scroll tall", tabindex: "0", role: "group", "aria-label": caption || "table" }, inner);
  }

  /** The table behind a picture, made when it is opened. */
  function behind(rows, columns, at, options = {}, title = "As a table") {
    const details = make("details", {}, make("summary", {}, title));
    details.addEventListener("toggle", () => {
      if (!details.open || details.childElementCount > 1) return;
      const cut = Math.max(8, Math.floor(20000 / Math.max(1, rows.length)));
      details.append(table(rows, columns.slice(0, cut), at, options));
      if (columns.length > cut) details.append(make("p", { class: "soft" }, `The first ${cut} of ${columns.length} columns; --out trace.npz holds all.`));
    });
    return details;
  }

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  function rgb(text) {
    const hex = text.replace("#", "");
    return [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16));
  }
  /** The colour of a value between the card's (0) and blue (+1) or orange (−1). */
  function shade(value) {
    const [from, to] = [rgb(colour("--card")), rgb(colour(value < 0 ? "--less" : "--more"))];
    const heat = Number.isFinite(value) ? Math.min(1, Math.abs(value)) : 0;
    return from.map((c, i) => Math.round(c + (to[i] - c) * heat));
  }

  /** Numbers (n, m) as coloured points. */
  function paint(n, m, at, size) {
    const canvas = make("canvas", { width: m, height: n, "aria-hidden": "true" });
    const context = canvas.getContext("2d"), image = context.createImageData(m, n);
    const cache = new Map(); // few shades, asked for often
    for (let i = 0; i < n; i++) for (let j = 0; j < m; j++) {
      const key = Math.round((at(i, j) / size) * 128);
      if (!cache.has(key)) cache.set(key, shade(key / 128));
      image.data.set([...cache.get(key), 255], 4 * (i * m + j));
    }
    context.putImageData(image, 0, 0);
    return canvas;
  }

  /** A large matrix as a picture with names at its rows, help under the pointer and a table behind it. */
  function heat(rows, m, at, columnName, caption) {
    const n = rows.length, size = most(rows.flatMap((_, i) => Array.from({ length: m }, (__, j) => at(i, j))));
    const canvas = paint(n, m, at, size), height = n > 60 ? 8 : 20;
    canvas.style.cssText = `width: 100%; min-width: ${Math.min(m, 256)}px; height: ${n * height}px`;
    const where = (event) => {
      const box = canvas.getBoundingClientRect();
      const i = Math.min(n - 1, Math.floor(((event.clientY - box.top) / box.height) * n)), j = Math.min(m - 1, Math.floor(((event.clientX - box.left) / box.width) * m));
      tip(event, `${rows[i]}, ${columnName(j)}: ${number(at(i, j), 4)}`);
    };
    canvas.addEventListener("pointermove", where);
    canvas.addEventListener("pointerleave", hide);
    const side = make("div", { class: "names", "aria-hidden": "true" }, n > 60 ? [] : rows.map((r) => make("span", {}, r)));
    side.style.gridAutoRows = `${height}px`;
    side.style.lineHeight = `${height}px`;
    const picture = make("div", { class: "heat", role: "img", "aria-label": caption }, side, make("div", { class: "scroll" }, canvas));
    const names = Array.from({ length: m }, (_, j) => columnName(j));
    return make("div", {}, picture, make("p", { class: "soft" }, `Blue is above zero, orange below; the deepest colour is ${number(size)}.`), behind(rows, names, at, { size, caption }));
  }

  // ---- hover help
  const bubble = make("div", { class: "tip", role: "status", hidden: "" });
  document.body.append(bubble);
  function tip(event, text) {
    bubble.textContent = text;
    bubble.hidden = false;
    const x = event.clientX ?? 0, y = event.clientY ?? 0;
    bubble.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - bubble.offsetWidth - 8))}px`;
    bubble.style.top = `${Math.max(4, y + 18 + bubble.offsetHeight > innerHeight ? y - bubble.offsetHeight - 10 : y + 18)}px`;
  }
  function hide() {
    bubble.hidden = true;
  }
  /** Help in plain words for an element, by pointer and by keyboard focus. */
  function help(node, text) {
    node.setAttribute("aria-description", text);
    node.addEventListener("pointermove", (event) => event.pointerType === "mouse" && tip(event, text));
    node.addEventListener("pointerleave", hide);
    node.addEventListener("focus", () => {
      const box = node.getBoundingClientRect();
      if (node.matches(":focus-visible")) tip({ clientX: box.left, clientY: box.bottom - 12 }, text);
    });
    node.addEventListener("blur", hide);
    return node;
  }

  return { make, number, share, most, token, cell, strip, missing, bars, table, behind, paint, heat, help, tip, hide };
})();
