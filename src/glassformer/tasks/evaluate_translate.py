"""How good a translator is: BLEU, chrF and exact answers beside honest baselines, and where it fails.

Deliberately not here: the scores themselves (`scores`), and how a person sees them.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from glassformer.data.pairs import BadLine, Pair, PairFiles, read_pairs
from glassformer.data.scripts import spaceless_script
from glassformer.decode.options import DecodeOptions
from glassformer.errors import require
from glassformer.tasks.memory import Recalled, recall, words_of
from glassformer.tasks.scores import Scorer, Slice, System, usual_tokenize
from glassformer.tasks.translator import Translator

CHUNK = 256  # sentences translated between two reports of progress
LENGTHS = (5, 10, 20, 40)  # words; the upper ends of the slices
RARE = 5  # a word seen fewer times in training is rare
RARE_SHARE = 0.2
SPACELESS = 15  # characters of a word on average: above that there are no spaces, whatever the script


@dataclass(frozen=True)
class Failure:
    line: int
    chrf: float
    source: str
    answer: str
    reference: str


@dataclass(frozen=True)
class MemoryReport:
    paths: tuple[str, ...]
    n_pairs: int
    n_bad: int
    n_known_sources: int
    n_known_pairs: int


@dataclass(frozen=True)
class TranslateReport:
    """All that was measured: plain data, ready for JSON."""

    paths: tuple[str, ...]
    n_pairs: int
    n_bad: int
    bad_example: str | None
    n_left_out: int  # by the limit
    engine: str
    beam: int
    length_penalty: float
    tokenize: str
    spaceless: bool  # the references
    signatures: dict[str, str]
    systems: tuple[System, ...]
    memory: MemoryReport | None
    slices: tuple[Slice, ...]
    worst: tuple[Failure, ...]


def evaluate_translate(
    translator: Translator,
    files: PairFiles,
    memory: PairFiles | None = None,
    options: DecodeOptions | None = None,
    tokenize: str | None = None,
    limit: int | None = None,
    n_worst: int = 5,
    progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
) -> TranslateReport:
    """Translate all sources (or `limit` of them, evenly spread) and compare with the references.

    With no `tokenize` the references' script decides how BLEU finds words.
    """
    options = options or DecodeOptions()
    require(n_worst >= 0, f"The number of worst answers is {n_worst}.", "It must be 0 or more.")
    usable, bad = _read(files)
    pairs = _spread(usable, limit)
    references = [pair.target for pair in pairs]
    tokenize = tokenize or usual_tokenize(references)
    scorer = Scorer(tokenize)
    recalled = recall(memory, pairs) if memory is not None else None
    answers = _translate(translator, [pair.source for pair in pairs], options, progress)
    systems = [
        scorer.system("model", answers, references),
        scorer.system("copy the source", [pair.source for pair in pairs], references),
    ]
    if recalled is not None:
        systems.append(scorer.system("translation memory", recalled.answers, references))
    return TranslateReport(
        paths=tuple(map(str, files.paths)),
        n_pairs=len(pairs),
        n_bad=len(bad),
        bad_example=f"line {bad[0].line} {bad[0].reason}" if bad else None,
        n_left_out=len(usable) - len(pairs),
        engine=translator.engine_name(options),
        beam=options.beam,
        length_penalty=options.length_penalty,
        tokenize=tokenize,
        spaceless=is_spaceless(references),
        signatures=scorer.signatures(),
        systems=tuple(systems),
        memory=_report(memory, recalled) if memory and recalled else None,
        slices=tuple(slice_up(scorer, pairs, answers, recalled)),
        worst=find_worst(scorer, pairs, answers, n_worst),
    )


def _report(files: PairFiles, recalled: Recalled) -> MemoryReport:
    paths, n_known = tuple(map(str, files.paths)), sum(recalled.known)
    return MemoryReport(paths, recalled.n_pairs, recalled.n_bad, n_known, recalled.n_same_pairs)


def slice_up(scorer: Scorer, pairs: list[Pair], answers: list[str], recalled: Recalled | None) -> list[Slice]:
    """The model's scores by source length and, with a memory, by rare words and by whether the source is known."""
    found = []
    for by, names, places in _slicings([pair.source for pair in pairs], recalled):
        for place, name in enumerate(names):
            rows = [i for i, of_row in enumerate(places) if of_row == place]
            if rows:
                found.append(scorer.slice(by, name, [answers[i] for i in rows], [pairs[i].target for i in rows]))
    return found


def find_worst(scorer: Scorer, pairs: list[Pair], answers: list[str], n: int) -> tuple[Failure, ...]:
    """The sentences with the lowest chrF, the first of equals first; an exact answer is no failure."""
    failures = [
        Failure(pair.line, scorer.sentence(answer, pair.target), pair.source, answer, pair.target)
        for pair, answer in zip(pairs, answers, strict=True)
        if answer != pair.target
    ]
    return tuple(sorted(failures, key=lambda failure: failure.chrf)[:n])


def _read(files: PairFiles) -> tuple[list[Pair], list[BadLine]]:
    items = list(read_pairs(files))
    pairs = [item for item in items if isinstance(item, Pair)]
    bad = [item for item in items if isinstance(item, BadLine)]
    example = f" (line {bad[0].line} {bad[0].reason})" if bad else ""
    name = " and ".join(map(str, files.paths))
    require(bool(pairs), f"{name} holds no usable pair{example}.", "Write a source, a tab and a target on each line.")
    return pairs, bad


def _spread(pairs: list[Pair], limit: int | None) -> list[Pair]:
    """Evenly over the file, since many are sorted by length or by topic."""
    require(limit is None or limit > 0, f"The limit is {limit}.", "It must be 1 or more.")
    if limit is None or limit >= len(pairs):
        return pairs
    return [pairs[i * len(pairs) // limit] for i in range(limit)]


def _translate(
    translator: Translator, sources: list[str], options: DecodeOptions, progress: Callable[[int, int], None]
) -> list[str]:
    answers: list[str] = []
    for start in range(0, len(sources), CHUNK):
        found = translator.translate_all(sources[start : start + CHUNK], options)
        answers += [best[0].text.strip() for best in found]
        progress(len(answers), len(sources))
    return answers


def is_spaceless(texts: list[str]) -> bool:
    """Whether nothing stands between the words."""
    return bool(spaceless_script(texts)) or sum(map(len, texts)) > SPACELESS * sum(len(text.split()) for text in texts)


def _slicings(sources: list[str], recalled: Recalled | None) -> Iterator[tuple[str, list[str], list[int]]]:
    """Ways to part the sources: what by, the names of the parts, and the part of each source."""
    n_words, spaceless = [len(source.split()) for source in sources], is_spaceless(sources)
    bounds = [2 * bound if spaceless else bound for bound in LENGTHS]
    names = [f"{start + 1}–{end}" for start, end in zip([0, *bounds], bounds, strict=False)]
    lengths = [len(source) for source in sources] if spaceless else n_words
    unit = "characters" if spaceless else "words"
    yield f"{unit} of the source", [*names, f"over {bounds[-1]}"], [bisect_left(bounds, n) for n in lengths]
    if recalled is not None and not spaceless:
        names = ["none", f"up to {RARE_SHARE:.0%}", f"over {RARE_SHARE:.0%}"]
        yield f"rare words (seen under {RARE} times)", names, [_rarity(source, recalled) for source in sources]
    if recalled is not None:
        yield "source in the memory", ["no", "yes"], list(map(int, recalled.known))


def _rarity(source: str, recalled: Recalled) -> int:
    words = words_of(source)
    n_rare = sum(recalled.words[word] < RARE for word in words)
    return 0 if n_rare == 0 else 1 if n_rare <= RARE_SHARE * len(words) else 2
