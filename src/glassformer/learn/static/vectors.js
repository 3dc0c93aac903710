"use strict";
// What the steps compute with, second part: dense vectors (waves, attention, norm) and sound.

const Vectors = (() => {
  const { range, sum, times, turn, encode, letters } = Maths;

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

  // ---- the sound of a word: eight bands of a short hum, the longer the word, the higher
  const RATE = 8000, N = 200, BANDS = 8;
  const mel = (hertz) => 2595 * Math.log10(1 + hertz / 700);
  const low = mel(100), high = mel(RATE / 2);
  const edges = range(BANDS + 2).map((i) => 700 * (10 ** ((low + ((high - low) * i) / (BANDS + 1)) / 2595) - 1));
  const triangle = (i, hertz) =>
    Math.max(0, Math.min((hertz - edges[i]) / (edges[i + 1] - edges[i]), (edges[i + 2] - hertz) / (edges[i + 2] - edges[i + 1])));
  const turnBy = range(N).map((i) => (2 * Math.PI * i) / N);

  function logMel(word) {
    const pitch = 300 + 150 * letters(word).length;
    const wave = range(N).map((t) => Math.sin((2 * Math.PI * pitch * t) / RATE) * (0.5 - 0.5 * Math.cos(turnBy[t])));
    const power = range(N / 2 + 1).map((k) => {
      const re = sum(wave.map((v, t) => v * Math.cos(turnBy[(k * t) % N])));
      const im = sum(wave.map((v, t) => v * Math.sin(turnBy[(k * t) % N])));
      return (re * re + im * im) / N;
    });
    return range(BANDS).map((i) => Math.log(1 + 100 * sum(power.map((p, k) => p * triangle(i, (k * RATE) / N)))));
  }
  const cepstra = (loud) =>
    range(5).map((k) => sum(loud.map((v, i) => v * Math.cos((Math.PI * k * (2 * i + 1)) / (2 * BANDS)))) * Math.sqrt(2 / BANDS));

  return { waves, wordWaves, attention, layerNorm, logMel, cepstra };
})();
