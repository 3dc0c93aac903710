"use strict";
// Steps from positions to pictures: from sentences to figures and a question, as the Python functions make_… do.

(() => {
  const M = Maths, V = Vectors, { matrix, bars, lines, pieces, ask } = Lesson;
  const { range, sum, Unfit } = M;
  const numbered = (words) => words.map((word, i) => `${i + 1} ${word}`);
  const features = (d) => range(d, 1).map(String);
  const showSpaces = (text) => text.replaceAll(" ", "␣");
  const D = 4, SHORT = 8, SHARP = 6;

  function shortSentence(s, least = 2) {
    const words = s.first.slice(0, SHORT);
    if (words.length < least) throw new Unfit(`This step needs a first sentence of at least ${least} words.`);
    return words;
  }

  Object.assign(Lesson.makers, {
    positions(s) {
      const words = s.first, last = words.length - 1, waves = V.waves(range(words.length), 5);
      const names = ["sin 1", "cos 1", "sin 2", "cos 2", "sin 3"];
      const eight = waves.slice(0, 8), shown = numbered(words.slice(0, 8));
      return {
        figures: [
          matrix(words.map((word, i) => `${i} ${word}`), names, waves, "What is added to each word's vector. The first word stands at position 0."),
          lines(names, M.turn(V.waves(range(40), 5)), "position 0 to 39",
            "The same columns over forty positions: quick waves first, slow ones last."),
          matrix(shown, shown, M.times(eight, M.turn(eight)), "Dot products of positions: nearly the same number wherever the distance is the same."),
        ],
        question: ask(
          `What is added to the second number of the vector of the word at position ${last}?`,
          [waves[last][1]],
          "Find the row of that position, and read the column cos 1.",
        ),
      };
    },

    "many-heads"(s) {
      const words = shortSentence(s), names = numbered(words);
      const parts = [V.wordWaves(words, s, D), V.waves(range(words.length), D)];
      const about = ["Head 1 sees what the words are: equal words look at each other.", "Head 2 sees where they stand (its waves come round after six words)."];
      return {
        figures: parts.map((x, i) =>
          matrix(names, names, V.attention(x.map((row) => row.map((v) => v * SHARP)), x, x).weights, `${about[i]} Rows ask, columns answer.`)),
        question: ask(
          `The model is ${2 * D} numbers wide and has 2 heads. How wide is one head?`,
          [D],
          "The heads share the width equally: d_k = d_model / h.",
        ),
      };
    },

    "one-head"(s) {
      const words = shortSentence(s).slice(0, 6), names = numbered(words), x = V.wordWaves(words, s, D);
      const { z, weights, scores } = V.attention(x.map((row) => row.map((v) => v * SHARP)), x, x, true);
      return {
        figures: [
          matrix(names, features(D), x, "x: keys and values. Queries are 6 times as long."),
          matrix(names, names, scores, "QKᵀ/√d_k, with −∞ where a word would look ahead."),
          matrix(names, names, weights, "The softmax of each row: weights that add up to 1."),
          matrix(names, features(D), z, "Weights times V: each row is a mix of the rows of x."),
        ],
        question: ask(
          `How much weight does “${words.at(-1)}” give to the words before it, all together?`,
          [sum(weights.at(-1).slice(0, -1))],
          "All weights of a row add up to 1: take away what the word gives to itself.",
        ),
      };
    },

    "skip-connections"(s) {
      const words = shortSentence(s), names = numbered(words), x = V.wordWaves(words, s, D);
      const silent = x.map((row) => row.map(() => 0)); // whatever is multiplied by weights of 0
      const through = x.map((row, i) => row.map((v, j) => v + silent[i][j]));
      return {
        figures: [
          matrix(names, features(D), x, "What goes in."),
          matrix(names, features(D), silent, "What attention says with all weights at 0."),
          matrix(names, features(D), through, "What leaves the block: x + attention(x)."),
        ],
        question: ask(
          "All weights of a block are 0. What comes out of the block?",
          ["the input"],
          "Something is added to x. How much is it here?",
          ["zeros", "the input", "random numbers"],
        ),
      };
    },

    "layer-norm"(s) {
      const words = s.first, x = words.map((word) => M.letters(word).length), { mean, variance, out } = V.layerNorm(x);
      if (words.length < 2 || variance === 0)
        throw new Unfit("This step needs a first sentence with words of different lengths.");
      const large = x.map((v) => v * 10);
      return {
        figures: [
          matrix(["letters", "normed"], words, [x, out],
            `Mean ${M.writeNumber(mean)} and variance ${M.writeNumber(variance)} before the norm; 0 and 1 after it.`),
          matrix(["letters × 10", "normed"], words, [large, V.layerNorm(large).out],
            "Ten times as large, and the same after the norm: only the shape counts."),
        ],
        question: ask(
          "What is the mean of the numbers before the norm?",
          [mean],
          "Add the letters up and divide by how many words there are.",
        ),
      };
    },

    "decoder-stack"(s) {
      const words = shortSentence(s, 3), names = numbered(words), n = words.length, x = V.wordWaves(words, s, D);
      const { weights, scores } = V.attention(x.map((row) => row.map((v) => v * SHARP)), x, x, true);
      return {
        figures: [
          pieces(["reads", "must say"], [words.slice(0, -1), words.slice(1)],
            "In training the decoder gets the true words, one place to the right, whatever it would have said."),
          matrix(names, names, scores, "Scores: −∞ above the diagonal."),
          matrix(names, names, weights, "After the softmax the future weighs 0."),
        ],
        question: ask(
          `How many of the ${n * n} fields does the look-ahead mask forbid?`,
          [scores.flat().filter((v) => v === null).length],
          "Count the −∞: none in the last row, one in the row above, and so on.",
        ),
      };
    },

    tokenizing(s) {
      const shown = M.letters(s.first.join(" ")).slice(0, 24), bytes = [...new TextEncoder().encode(shown.join(""))];
      const known = new Set(s.words.flatMap((words) => M.letters(words.join(" "))));
      const names = ["words", "letters", "bytes"];
      return {
        figures: [
          pieces(names,
            [shown.join("").split(" ").filter((w) => w), shown.map(showSpaces), bytes.map((b) => b.toString(16).padStart(2, "0"))],
            "The same text, cut in three ways."),
          bars(names, [s.vocabulary.length, known.size, 256],
            "How many tokens a vocabulary needs: the words and letters seen so far, or all bytes there are."),
        ],
        question: ask(
          "How many bytes are shown?",
          [bytes.length],
          "Most letters are one byte; letters with marks, and those of other scripts, are two or more.",
        ),
      };
    },

    bpe(s) {
      const { listed, cut } = Pieces.trainBpe(s, 10), n = listed.length;
      if (!n) throw new Unfit("This step needs letters that come together more than once.");
      const text = M.letters(s.first.join(" ")).slice(0, 24).join("");
      const stages = M.unique([0, Math.floor(n / 2), n]);
      const tokens = stages.map((k) => cut(text, k).map(showSpaces));
      return {
        figures: [
          bars(listed.map(({ left, right }) => showSpaces(left) + " + " + showSpaces(right) + " → " + showSpaces(left + right)),
            listed.map(({ count }) => count), "The pairs that are joined, one after the other, and how often each came just then."),
          pieces(stages.map((k) => `merges: ${k}`), tokens, "The same text after no, some and all merges (␣ is a space)."),
        ],
        question: ask(
          `How many pieces is the text cut into after ${n} merges?`,
          [tokens.at(-1).length],
          "Count the pieces in the last row.",
        ),
      };
    },

    audio(s) {
      const words = s.first.slice(0, 8), names = numbered(words), loud = words.map(V.logMel);
      const most = Math.max(...words.map((word) => M.letters(word).length));
      return {
        figures: [
          matrix(range(8).map((i) => `band ${8 - i}`), names, M.turn(loud).reverse(),
            "Each word hummed, the longer the higher: how loud each band is (logarithm), high sounds on top."),
          matrix(names, range(5).map((i) => `c${i}`), loud.map(V.cepstra),
            "The cepstra: one dense row for each moment. They enter the encoder where embeddings would."),
        ],
        question: ask(
          "Which word sounds highest?",
          M.unique(words.filter((word) => M.letters(word).length === most)),
          "Look for the column whose dark field is nearest to the top.",
        ),
      };
    },

    pictures(s) {
      const text = s.first.join(" "), bytes = [...new TextEncoder().encode(text)];
      const picture = range(8).map((i) => range(8).map((bit) => ((bytes[i] ?? 0) >> (7 - bit)) & 1));
      const patch = (top, left) => range(16).map((i) => picture[top + Math.floor(i / 4)][left + (i % 4)]);
      const patches = [patch(0, 0), patch(0, 4), patch(4, 0), patch(4, 4)];
      const places = ["top left", "top right", "bottom left", "bottom right"];
      return {
        figures: [
          matrix(range(8, 1).map((i) => `line ${i}`), features(8), picture, `A picture of 8 × 8 dots: the first 8 bytes of “${text}”, one a line.`),
          matrix(places, features(16), patches, "Cut into patches of 4 × 4, each laid out as a row of 16 numbers."),
          matrix(places, places, V.attention(patches, patches, patches).weights, "Self-attention: where each patch looks."),
        ],
        question: ask(
          "How many dots are on (1) in the patch at the bottom right?",
          [sum(patches[3])],
          "Add up the last row of the patches.",
        ),
      };
    },
  });
})();
