// Where tokens and words stand in a text, and which words of a translation come from which words of its source.
const WORD = /[\p{L}\p{N}\p{M}]+(?:['’-][\p{L}\p{N}\p{M}]+)*|\S/gu;
const FAR = 20; // characters: a token that is found further on is another one
const SHORT_FORM = /(?:^|\s)(?:Mr|Mrs|Ms|Dr|Prof|St|vs|etc|No|Nr|ca|bzw|z\.\s?B|d\.\s?h|e\.g|i\.e|\p{Lu}|\d+)\.\s*$/u;

// [start, end] of each token; null for one that is not seen in the text.
export function locate(text, tokens) {
  let at = 0;
  return tokens.map((token) => {
    const seen = token.trim();
    const start = seen ? text.indexOf(seen, at) : -1;
    if (start < 0 || start - at > FAR) return null;
    at = start + seen.length;
    return [start, at];
  });
}

export const wordsOf = (text) => [...text.matchAll(WORD)].map((found) => [found.index, found.index + found[0].length]);

const touch = (a, b) => a && b && a[0] < b[1] && b[0] < a[1];

// For each word of the translation, the words of the source that it comes from, as places in `wordsOf`.
export function linksOf(source, translation) {
  const [from, to] = [wordsOf(source), wordsOf(translation.text)];
  const sourceSpans = locate(source, translation.source_tokens);
  const spans = locate(translation.text, translation.tokens);
  return to.map((word) => {
    const looked = spans.flatMap((span, i) => (touch(span, word) ? [sourceSpans[translation.alignment[i]]] : []));
    return from.flatMap((mine, i) => (looked.some((span) => touch(span, mine)) ? [i] : []));
  });
}

// The sentences of a text with what stands between them; together they are the text again.
export function sentencesOf(text, language) {
  const parts = [];
  let begun = "";
  const put = (part) => {
    const bare = part.trim();
    const start = bare ? part.indexOf(bare) : part.length;
    parts.push({ before: part.slice(0, start), text: bare, after: part.slice(start + bare.length) });
  };
  for (const line of text.split(/(?<=\n)/)) {
    for (const { segment } of new Intl.Segmenter(language, { granularity: "sentence" }).segment(line)) {
      begun += segment;
      if (SHORT_FORM.test(begun)) continue;
      put(begun);
      begun = "";
    }
    if (begun) put(begun);
    begun = "";
  }
  return parts;
}
