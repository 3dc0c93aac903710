"use strict";
// Byte-pair encoding on letters, as in Python's ladder/bpe.py.

const Pieces = (() => {
  const { letters, unique, compare } = Maths;

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

  return { trainBpe };
})();
