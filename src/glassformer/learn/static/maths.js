"use strict";
// What the steps compute with, first part: sentences, counts, votes. The numbers are those of Python's ladder;
// tests/learn compares them.

const Maths = (() => {
  const MOST_SENTENCES = 12, MOST_WORDS = 16, MOST_LETTERS = 24, SHOWN = 13;

  class Unfit extends Error {}

  // ---- plain helpers
  const range = (n, from = 0) => Array.from({ length: Math.max(0, n) }, (_, i) => from + i);
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  const times = (a, b) => a.map((row) => b[0].map((_, j) => sum(row.map((v, k) => v * b[k][j]))));
  const turn = (a) => (a.length ? a[0].map((_, j) => a.map((row) => row[j])) : []);
  const unique = (list) => [...new Set(list)];
  const letters = (word) => [...word];
  const argmax = (numbers) => numbers.indexOf(Math.max(...numbers));

  /** By code points, as Python sorts. */
  function compare(a, b) {
    const x = letters(a), y = letters(b);
    for (let i = 0; i < Math.min(x.length, y.length); i++)
      if (x[i] !== y[i]) return x[i].codePointAt(0) - y[i].codePointAt(0);
    return x.length - y.length;
  }

  /** Whole numbers whole, others with two digits, ties to the even digit, and a true minus sign. */
  function writeNumber(value) {
    if (value === null) return "−∞";
    const v = Math.round(value * 1e9) / 1e9 || 0;
    if (Number.isInteger(v)) return group(Math.abs(v).toFixed(0), v < 0);
    let text = Math.abs(v).toFixed(2);
    if (Number.isInteger(v * 8) && Math.abs(v * 200) % 2 === 1) {
      const low = Math.floor(Math.abs(v) * 100);
      text = ((low % 2 ? low + 1 : low) / 100).toFixed(2);
    }
    return Number(text) === 0 ? text : group(text, v < 0);
  }
  const group = (text, negative) => (negative ? "−" : "") + text.replace(/\B(?=(\d{3})+(?!\d))/g, ",");

  // ---- sentences
  const split = (line) => line.split(/[\s\x1c-\x1f\x85\ufeff]+/u).filter((word) => word);

  /** Lines into sentences; `*3` at the end of a line lets it count three times. */
  function parse(lines) {
    const all = [];
    for (const line of lines) {
      const found = /^(.*\S) \*([0-9]{1,4})$/su.exec(split(line).join(" "));
      const words = split(found ? found[1] : line).slice(0, MOST_WORDS);
      if (words.length)
        all.push({
          words: words.map((word) => letters(word).slice(0, MOST_LETTERS).join("").replace(/[\x00-\x1f\x7f-\x9f]/gu, "\ufffd")),
          weight: found ? Math.max(1, Number(found[2])) : 1,
        });
      if (all.length === MOST_SENTENCES) break;
    }
    if (!all.length) throw new Unfit("There is no word in the text.");
    const words = all.map((s) => s.words);
    const vocabulary = unique(words.flat()).sort(compare);
    const counts = new Map(vocabulary.map((word) => [word, 0]));
    for (const s of all) for (const word of s.words) counts.set(word, counts.get(word) + s.weight);
    const byCount = [...vocabulary].sort((a, b) => counts.get(b) - counts.get(a) || compare(a, b));
    const shown = byCount.slice(0, SHOWN).sort(compare);
    const n = vocabulary.length, which = n <= SHOWN ? "the vocabulary" : `the ${SHOWN} commonest of ${n} words`;
    return { all, words, first: words[0], vocabulary, counts, shown, which };
  }

  // ---- counting
  /** A table of counts: for each key (ids joined by a space) how often each word followed. */
  class Counts {
    constructor(n) {
      this.n = n;
      this.rows = new Map();
    }
    add(key, word, weight) {
      if (!this.rows.has(key)) this.rows.set(key, Array(this.n).fill(0));
      this.rows.get(key)[word] += weight;
    }
    row(key) {
      return this.rows.get(key) ?? Array(this.n).fill(0);
    }
    total(key) {
      return sum(this.row(key));
    }
    shares(key) {
      const total = this.total(key);
      return total ? this.row(key).map((count) => count / total) : this.row(key);
    }
    kinds(key) {
      return this.row(key).filter((count) => count > 0).length;
    }
    entropy(key) {
      return sum(this.shares(key).filter((p) => p > 0).map((p) => -p * Math.log(p)));
    }
    /** Keys in the order of their ids. */
    keys() {
      const ids = (key) => key.split(" ").map(Number);
      return [...this.rows.keys()].sort((a, b) => {
        const x = ids(a), y = ids(b);
        return x[0] - y[0] || (x[1] ?? 0) - (y[1] ?? 0);
      });
    }
  }

  const encode = (words, vocabulary) => words.map((word) => vocabulary.indexOf(word));

  /** What followed each run of `order` words. */
  function markov(order, s) {
    const counts = new Counts(s.vocabulary.length);
    for (const { words, weight } of s.all) {
      const ids = encode(words, s.vocabulary);
      for (let t = order; t < ids.length; t++) counts.add(ids.slice(t - order, t).join(" "), ids[t], weight);
    }
    return counts;
  }

  /** Words after which more than one word may come, the one with most such words first. */
  function wordsWithChoice(s) {
    const one = markov(1, s);
    return range(s.vocabulary.length)
      .filter((i) => one.kinds(`${i}`) > 1)
      .sort((a, b) => one.kinds(`${b}`) - one.kinds(`${a}`) || a - b)
      .map((i) => s.vocabulary[i]);
  }

  /** Up to two beginnings of sentences that end with the same word, after which more than one word may come. */
  function placesOfChoice(s) {
    const open = wordsWithChoice(s);
    for (const words of s.words)
      for (let end = words.length - 1; end > 1; end--)
        if (open.includes(words[end - 1])) return alike(words.slice(0, end), s);
    const longest = s.words.reduce((a, b) => (b.length > a.length ? b : a));
    if (longest.length < 3) throw new Unfit("This step needs a sentence of at least 3 words.");
    return [longest.slice(0, -1)];
  }

  function alike(prefix, s) {
    const same = prefix.join(" ");
    for (const words of s.words)
      for (let end = words.length - 1; end > 1; end--)
        if (words[end - 1] === prefix.at(-1) && words.slice(0, end).join(" ") !== same)
          return [prefix, words.slice(0, end)];
    return [prefix];
  }

  // ---- skips: pairs of an earlier word and the last one vote
  function skips(s, masked) {
    const n = s.vocabulary.length, pairs = new Counts(n), alone = markov(1, s); // a pair's key: last, earlier
    for (const { words, weight } of s.all) {
      const ids = encode(words, s.vocabulary);
      for (let t = 1; t < ids.length - 1; t++)
        for (const earlier of unique(ids.slice(0, t))) pairs.add(`${ids[t]} ${earlier}`, ids[t + 1], weight);
    }
    const kept = new Set([...pairs.rows.keys()].filter((key) => !masked || helps(key, pairs, alone)));
    return { s, pairs, alone, kept };
  }

  /** Whether a pair tells more than its last word alone: surer where little was seen, proved by leaving out else. */
  function helps(key, pairs, alone, enough = 10, price = 1) {
    const [last] = key.split(" "), total = alone.total(last);
    if (total < enough) return pairs.entropy(key) < alone.entropy(last) - 1e-9;
    const kinds = pairs.kinds(key);
    let gain = 0;
    pairs.row(key).forEach((count, word) => {
      if (!count) return;
      const one = Math.min(1, count), others = count - one;
      const share = (alone.row(last)[word] - one) / Math.max(total - one, 1e-300);
      const expected = others > 0 ? others / share : 0;
      gain += count * Math.log((expected + kinds) / (pairs.total(key) - one + kinds));
    });
    const rivals = [...pairs.rows.keys()].filter((other) => other.split(" ")[0] === last).length;
    return gain > Math.log(rivals) + price;
  }

  const pairName = (earlier, last) => `${earlier} … ${last}`;

  /** The votes of each pair, its mask as a weight; of the last word alone if no pair has a say. */
  function explain(rung, prefix) {
    const { s, pairs, alone, kept } = rung;
    const ids = encode(prefix, s.vocabulary), last = ids.at(-1);
    const reasons = [];
    for (const earlier of unique(ids.slice(0, -1))) {
      const key = `${last} ${earlier}`;
      if (pairs.rows.has(key))
        reasons.push({
          name: pairName(s.vocabulary[earlier], s.vocabulary[last]),
          weight: kept.has(key) ? 1 : 0,
          scores: pairs.shares(key),
        });
    }
    if (!reasons.some((r) => r.weight) && alone.rows.has(`${last}`))
      reasons.push({ name: s.vocabulary[last], weight: 1, scores: alone.shares(`${last}`) });
    const scores = s.vocabulary.map((_, i) => reasons.reduce((total, r) => total + r.weight * r.scores[i], 0));
    return { reasons, scores };
  }

  /** Places of the k best scores, of equals the first. */
  const top = (scores, k) => range(scores.length).sort((a, b) => scores[b] - scores[a] || a - b).slice(0, k);

  return {
    SHOWN, Unfit, range, sum, times, turn, unique, letters, argmax, compare, writeNumber, parse, encode, markov,
    wordsWithChoice, placesOfChoice, skips, pairName, explain, top,
  };
})();
