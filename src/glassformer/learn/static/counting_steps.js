"use strict";
// Steps from one-hot rows to completion: from sentences to figures and a question, as the Python functions make_… do.

(() => {
  const M = Maths, { matrix, bars, pieces, ask } = Lesson;
  const { range, sum, SHOWN, Unfit } = M;
  const numbered = (words) => words.map((word, i) => `${i + 1} ${word}`);

  const oneHot = (words, vocabulary) =>
    words.map((word) => vocabulary.map((other) => (other === word ? 1 : 0)));

  function wordsOfFirst(s) {
    const words = s.first.filter((word) => s.shown.includes(word));
    if (!words.length) throw new Unfit("This step needs a first sentence of common words.");
    return words;
  }

  const longest = (s) => Math.max(...s.words.map((words) => words.length));

  /** Only the columns that get something, the fullest if they are too many. */
  function table(rows, vocabulary, scores, caption) {
    const totals = vocabulary.map((_, j) => sum(scores.map((row) => row[j])));
    const used = M.top(totals, totals.length).filter((j) => scores.some((row) => row[j])).slice(0, SHOWN);
    const columns = used.sort((a, b) => a - b);
    return matrix(rows, columns.map((j) => vocabulary[j]), scores.map((row) => columns.map((j) => row[j])), caption);
  }

  function votesFigure(told, prefix, s, caption) {
    const rows = [...told.reasons.map((r) => r.name), "all votes"];
    const figure = table(rows, s.vocabulary, [...told.reasons.map((r) => r.scores), told.scores], caption);
    const mask = told.reasons.map((r) => r.weight);
    return matrix(
      rows,
      ["mask", ...figure.columns],
      [...mask, sum(mask)].map((m, i) => [m, ...figure.values[i]]),
      `“${prefix.join(" ")} …” ${caption}`,
      { highlight: figure.columns.map((_, i) => [mask.length, i + 1]) },
    );
  }

  /** Masks as lookups: which earlier words a last word attends to. */
  function hotAttention(s) {
    if (s.vocabulary.length > 100) throw new Unfit("This step has room for 100 different words at most.");
    const prefixes = M.placesOfChoice(s), rung = M.skips(s, true);
    const at = (word) => s.vocabulary.indexOf(word);
    const maskOf = (earlier, last) => rung.kept.has(`${at(last)} ${at(earlier)}`);
    const masked = (last) => s.vocabulary.filter((word) => maskOf(word, last));
    const attended = (p) => masked(p.at(-1)).filter((word) => p.slice(0, -1).includes(word));
    return { prefixes, prefix: prefixes[0], rung, maskOf, masked, attended };
  }

  Object.assign(Lesson.makers, {
    "one-hot"(s) {
      const words = wordsOfFirst(s), numbers = words.map((word) => s.shown.indexOf(word) + 1);
      const caption = `“${words.join(" ")}” is [${numbers.join(", ")}]: one row a word, one column for each of ${s.which}.`;
      const highlight = numbers.map((n, i) => [i, n - 1]);
      return {
        figures: [matrix(words, s.shown, oneHot(words, s.shown), caption, { highlight })],
        question: ask(
          `In which column does the row of “${words.at(-1)}” have its one?`,
          [numbers.at(-1)],
          "Count the columns from the left, beginning with 1.",
        ),
      };
    },

    "dot-product"(s) {
      const rows = oneHot(s.shown, s.shown), times = s.shown.map((word) => s.counts.get(word));
      const mix = times.map((n) => n / sum(times)), asked = M.argmax(mix);
      return {
        figures: [
          matrix(s.shown, s.shown, M.times(rows, M.turn(rows)), `Each of ${s.which} times each other: 1 for the same word, 0 for another.`),
          matrix(["mix"], s.shown, [mix], "A mix of all words, each weighted by how often it comes."),
          bars(s.shown.map((word) => `mix · ${word}`), M.times(rows, M.turn([mix])).flat(), "The mix times each word's row: that word's weight comes out."),
        ],
        question: ask(
          `What is the dot product of the mix and “${s.shown[asked]}”?`,
          [mix[asked]],
          "Everything but that word's column is multiplied by 0.",
        ),
      };
    },

    lookup(s) {
      const words = wordsOfFirst(s), numbers = words.map((word) => s.shown.indexOf(word) + 1);
      const facts = s.shown.map((word) => [M.letters(word).length, s.counts.get(word)]);
      const stack = oneHot(words, s.shown), listed = numbers.join(", "), names = ["letters", "times"];
      return {
        figures: [
          matrix(words, numbered(s.shown), stack, `Ones in the columns ${listed} …`),
          matrix(numbered(s.shown), names, facts, "… times a table with one row for each word (its letters, and how often it comes) …"),
          matrix(numbers.map((n) => `row ${n}`), names, M.times(stack, facts), `… is the rows ${listed} of the table, in this order.`),
        ],
        question: ask(
          `“${words.at(-1)} ${words[0]}” is a stack of two rows. Which rows of the table does it pull out?`,
          [`${numbers.at(-1)} ${numbers[0]}`],
          "Give the two numbers in front of these words, in the order of the words.",
        ),
      };
    },

    "first-order"(s) {
      if (longest(s) < 2) throw new Unfit("This step needs a sentence of at least 2 words.");
      const one = M.markov(1, s), ids = M.encode(s.shown, s.vocabulary);
      const asked = M.wordsWithChoice(s)[0] ?? s.words.find((words) => words.length > 1)[0];
      const row = one.shares(`${s.vocabulary.indexOf(asked)}`);
      const following = M.top(row, SHOWN).filter((i) => row[i] > 0);
      const last = following.at(-1);
      return {
        figures: [
          matrix(s.shown, s.shown, ids.map((i) => ids.map((j) => one.shares(`${i}`)[j])),
            `Rows: the word that was read, of ${s.which}. Columns: what comes next, as a share of all that followed.`, { corner: "next →" }),
          bars(following.map((i) => s.vocabulary[i]), following.map((i) => row[i]), `The row of “${asked}”: what comes next, and how often.`),
        ],
        question: ask(
          `After “${asked}”, how probable is “${s.vocabulary[last]}”?`,
          [row[last]],
          `Count how often “${s.vocabulary[last]}” follows “${asked}”, out of all that follows it.`,
        ),
      };
    },

    "second-order"(s) {
      if (longest(s) < 3) throw new Unfit("This step needs a sentence of at least 3 words.");
      const one = M.markov(1, s), two = M.markov(2, s), firsts = M.wordsWithChoice(s).slice(0, SHOWN);
      const place = (key) => [two.kinds(key) < 2, !firsts.includes(s.vocabulary[key.split(" ")[1]])];
      const keys = two.keys()
        .map((key, i) => [...place(key), i, key])
        .sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2])
        .slice(0, SHOWN)
        .map((row) => row[3]);
      const n = s.vocabulary.length, figures = [];
      if (firsts.length)
        figures.push(table(firsts, s.vocabulary, firsts.map((word) => one.shares(`${s.vocabulary.indexOf(word)}`)),
          "First order: one word before. These rows hesitate."));
      figures.push(table(keys.map((key) => key.split(" ").map((i) => s.vocabulary[i]).join(" ")), s.vocabulary,
        keys.map((key) => two.shares(key)), "Second order: two words before."));
      return {
        figures,
        question: ask(
          `There are ${n} words. How many rows would a full table of pairs have?`,
          [n * n],
          `Each of ${n} words may stand before each of ${n} words.`,
        ),
      };
    },

    skips(s) {
      const prefixes = M.placesOfChoice(s), rung = M.skips(s, false);
      const told = prefixes.map((prefix) => M.explain(rung, prefix));
      const best = M.top(told[0].scores, 1)[0];
      return {
        figures: told.map((t, i) => votesFigure(t, prefixes[i], s, "Each earlier word votes together with the last, and all count.")),
        question: ask(
          `How many votes does “${s.vocabulary[best]}” get in the first figure, all together?`,
          [told[0].scores[best]],
          `Add up the column of “${s.vocabulary[best]}”.`,
        ),
      };
    },

    masking(s) {
      const prefixes = M.placesOfChoice(s), rung = M.skips(s, true);
      const figures = prefixes.map((prefix) => {
        const told = M.explain(rung, prefix), [best, next] = M.top(told.scores, 2);
        const margin = `${M.writeNumber(told.scores[best])} to ${M.writeNumber(next === undefined ? 0 : told.scores[next])}`;
        return votesFigure(told, prefix, s, `Only rows with mask 1 count: “${s.vocabulary[best]}” leads by ${margin}.`);
      });
      const { scores } = M.explain(rung, prefixes.at(-1)), most = Math.max(...scores);
      return {
        figures,
        question: ask(
          `Which word comes after “${prefixes.at(-1).join(" ")}”?`,
          s.vocabulary.filter((_, i) => scores[i] === most),
          "See who has most votes in the last row.",
        ),
      };
    },

    attention(s) {
      const { prefix, maskOf, attended, masked } = hotAttention(s);
      const last = prefix.at(-1);
      const order = M.unique([last, ...masked(last), ...prefix, ...s.shown, ...s.vocabulary]).slice(0, SHOWN);
      const words = order.sort(M.compare);
      const earlier = prefix.slice(0, -1), pick = (test) => words.map((word) => (test(word) ? 1 : 0));
      const here = attended(prefix);
      return {
        figures: [
          matrix(words, words, words.map((row) => pick((word) => maskOf(word, row))),
            "All masks, one row for each last word: 1 where an earlier word may vote with it.",
            { corner: "earlier →", highlight: words.map((_, i) => [words.indexOf(last), i]) }),
          matrix(["query Q", "mask QKᵀ", "words so far", "attended"], words,
            [pick((w) => w === last), pick((w) => maskOf(w, last)), pick((w) => earlier.includes(w)), pick((w) => here.includes(w))],
            `“${prefix.join(" ")}”: the last word asks, its mask comes out, and is laid over the words so far.`),
        ],
        question: ask(
          `How many of the earlier words does “${last}” attend to here?`,
          [here.length],
          "Count the ones in the row “attended”.",
        ),
      };
    },

    pairs(s) {
      const { prefixes, prefix, rung, attended, masked } = hotAttention(s);
      const last = prefix.at(-1), at = (word) => s.vocabulary.indexOf(word);
      const seen = (word) => rung.pairs.rows.has(`${at(last)} ${at(word)}`);
      const kept = masked(last);
      const partners = (kept.length ? kept : M.unique(prefix.slice(0, -1)).filter(seen)).slice(0, 5);
      const named = [...partners.map((word) => M.pairName(word, last)), last];
      const inputs = [...partners.map((word) => `${word} …`), `… ${last}`, "bias"];
      const weights = inputs.map((_, i) =>
        named.map((_, f) => {
          const alone = f === partners.length, bias = i === partners.length + 1;
          if (i === partners.length) return alone ? 1 : 2;
          return bias ? (alone ? 0 : -3) : alone ? -1 : i === f ? 2 : 0;
        }),
      );
      const given = prefixes.map((p) => [...partners.map((w) => (attended(p).includes(w) ? 1 : 0)), 1, 1]);
      const sums = prefixes.map((p) => {
        const here = attended(p);
        return [...partners.map((w) => (here.includes(w) ? 1 : -1)), 1 - here.length];
      });
      const fired = sums.map((row) => row.map((v) => Math.max(0, v)));
      const shares = [...partners.map((w) => rung.pairs.shares(`${at(last)} ${at(w)}`)), rung.alone.shares(`${at(last)}`)];
      const columns = range(s.vocabulary.length).filter((j) => shares.some((row) => row[j])).slice(0, SHOWN);
      const said = prefixes.map((p) => {
        const here = attended(p).map((w) => rung.pairs.shares(`${at(last)} ${at(w)}`));
        const rows = here.length ? here : [shares.at(-1)];
        return columns.map((j) => sum(rows.map((row) => row[j])));
      });
      const words = columns.map((j) => s.vocabulary[j]), sentence = prefixes.map((_, i) => `sentence ${i + 1}`);
      const read = prefixes.map((p, i) => `${sentence[i]}: “${p.join(" ")}”`).join("; ");
      return {
        figures: [
          matrix(sentence, inputs, given, `What attention lets through. ${read}.`),
          matrix(inputs, named, weights, "Weights made by hand: 2 for each word of a pair, −3 as a bias."),
          matrix(sentence, named, sums, "Their product: 1 only if both words are there."),
          matrix(sentence, named, fired, "ReLU turns what is below 0 into 0."),
          matrix(named, words, shares.map((row) => columns.map((j) => row[j])), "The votes of each feature …"),
          matrix(sentence, words, said, "… and the product: what comes next."),
        ],
        question: ask(
          `In sentence 1, what is the sum of “${named[0]}” before the ReLU?`,
          [sums[0][0]],
          "Add the weights of those inputs that are 1 in sentence 1, the bias among them.",
        ),
      };
    },

    completion(s) {
      if (s.first.length < 3) throw new Unfit("This step needs a first sentence of at least 3 words.");
      const two = M.markov(2, s), prompt = s.first.slice(0, 2), whole = [...prompt];
      const next = (words) => two.shares(M.encode(words.slice(-2), s.vocabulary).join(" "));
      for (let i = 0; i < 10 && next(whole).some((p) => p > 0); i++) whole.push(s.vocabulary[M.argmax(next(whole))]);
      const steps = range(whole.length - 1, 2).map((end) => whole.slice(0, end));
      const rows = steps.map(next), kinds = rows.map((row) => row.filter((p) => p > 0).length);
      const unsure = M.argmax(kinds), asked = steps[unsure];
      const totals = s.vocabulary.map((_, j) => sum(rows.map((row) => row[j])));
      const columns = M.top(totals, SHOWN).filter((j) => rows.some((row) => row[j])).sort((a, b) => a - b);
      const open = range(s.vocabulary.length).filter((j) => rows[unsure][j] > 0).slice(0, SHOWN);
      const heat = (temperature) => {
        const powers = rows[unsure].map((p) => p ** (1 / temperature)), total = Math.max(sum(powers), 1e-300);
        return open.map((j) => powers[j] / total);
      };
      const names = (list) => list.map((j) => s.vocabulary[j]);
      return {
        figures: [
          pieces(steps.map((_, i) => `step ${i}`), steps, `“${prompt.join(" ")}” is the prompt; each step adds the most probable word.`),
          matrix(steps.map((words) => words.slice(-2).join(" ")), names(columns), rows.map((row) => columns.map((j) => row[j])),
            "What each step chose from (second order). An empty last row ends it."),
          matrix(["temperature 0.5", "temperature 1", "temperature 2"], names(open), [0.5, 1, 2].map(heat),
            `Drawing after “${asked.slice(-2).join(" ")}”: low temperatures prefer the best.`),
        ],
        question: ask(
          `Which word does the greedy choice add after “${asked.join(" ")}”?`,
          [asked.length < whole.length ? whole[asked.length] : s.vocabulary[M.argmax(rows[unsure])]],
          "Greedy means: the word with the highest probability.",
        ),
      };
    },
  });
})();
