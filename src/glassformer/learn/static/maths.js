"use strict";
// What the steps compute with: sentences, counts, votes, attention, waves, pieces. The numbers are those of the Python
// modules of the same names; tests/learn compares them.

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

  // ---- dense vectors
  /** PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of the same. */
  const waves = (positions, d) =>
    positions.map((pos) =>
      range(d).map((j) => (j % 2 ? Math.cos : Math.sin)(pos / 10000 ** ((j - (j % 2)) / d))),
    );
  const wordWaves = (words, s, d) => waves(encode(words, s.vocabulary).map((i) => i + 1), d);

  function softmax(row) {
    const most = Math.max(...row.filter((v) => v !== null));
    const powers = row.map((v) => (v === null ? 0 : Math.exp(v - most)));
    const total = sum(powers);
    return powers.map((p) => p / total);
  }

  /** softmax(QKᵀ/√d_k) V; null stands for −∞, where a mask forbids to look. */
  function attention(q, k, v, causal = false) {
    const scores = times(q, turn(k)).map((row, i) =>
      row.map((score, j) => (causal && j > i ? null : score / Math.sqrt(q[0].length))),
    );
    const weights = scores.map(softmax);
    return { z: times(weights, v), weights, scores };
  }

  function layerNorm(x, eps = 1e-5) {
    const mean = sum(x) / x.length;
    const variance = sum(x.map((v) => (v - mean) ** 2)) / x.length;
    return { mean, variance, out: x.map((v) => (v - mean) / Math.sqrt(variance + eps)) };
  }

  // ---- byte-pair encoding on letters
  function joinAll(ids, merges) {
    for (;;) {
      let best = null;
      for (let i = 0; i + 1 < ids.length; i++) {
        const found = merges.get(`${ids[i]} ${ids[i + 1]}`);
        if (found && (!best || found.rank < best.rank)) best = { ...found, at: i };
      }
      if (!best) return ids;
      ids = [...ids.slice(0, best.at), best.id, ...ids.slice(best.at + 2)];
    }
  }

  /** Learn merges: join the commonest pair, of equals the one with the smallest ids. */
  function trainBpe(s, most) {
    const words = new Map();
    for (const { words: sentence, weight } of s.all)
      sentence.forEach((word, i) => {
        const spelled = (i ? " " : "") + word;
        words.set(spelled, (words.get(spelled) ?? 0) + weight);
      });
    const alphabet = unique([...words.keys()].flatMap(letters)).sort(compare);
    const pieces = [...Array(256).fill(null), ...alphabet], size = pieces.length + most;
    const spell = (text) => letters(text).map((letter) => 256 + alphabet.indexOf(letter));
    const merges = new Map(), listed = [];
    while (pieces.length < size) {
      const counts = new Map();
      for (const [word, n] of words) {
        const ids = joinAll(spell(word), merges);
        for (let i = 0; i + 1 < ids.length; i++) {
          const pair = `${ids[i]} ${ids[i + 1]}`;
          counts.set(pair, (counts.get(pair) ?? 0) + n);
        }
      }
      const order = (pair) => pair.split(" ").map(Number);
      const best = [...counts.keys()].sort((a, b) => {
        const x = order(a), y = order(b);
        return counts.get(b) - counts.get(a) || x[0] - y[0] || x[1] - y[1];
      })[0];
      if (best === undefined || counts.get(best) < 2) break;
      const [left, right] = order(best).map((id) => pieces[id]);
      const known = pieces.indexOf(left + right);
      const id = known < 0 ? pieces.push(left + right) - 1 : known;
      merges.set(best, { rank: listed.length, id });
      listed.push({ key: best, left, right, count: counts.get(best) });
    }
    /** A text cut with the first k merges; nothing is joined across words. */
    const cut = (text, k) => {
      const some = new Map(listed.slice(0, k).map(({ key }) => [key, merges.get(key)]));
      const found = text.match(/ ?[^ ]+| /gu) ?? [];
      return found.flatMap((word) => joinAll(spell(word), some).map((i) => pieces[i]));
    };
    return { listed, cut };
  }

  return {
    SHOWN, Unfit, range, sum, times, turn, unique, letters, argmax, compare, writeNumber, parse, encode, markov,
    wordsWithChoice, placesOfChoice, skips, pairName, explain, top, waves, wordWaves, attention, layerNorm, trainBpe,
  };
})();
