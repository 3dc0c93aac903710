"""Scores are sacrebleu's, baselines are honest, and slices leave nothing out."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from glassformer.data.pairs import Pair, PairFiles, open_pairs
from glassformer.decode.options import DecodeOptions
from glassformer.errors import UserError
from glassformer.tasks import memory
from glassformer.tasks.evaluate_translate import (
    LENGTHS,
    TranslateReport,
    evaluate_translate,
    find_worst,
    slice_up,
)
from glassformer.tasks.memory import Recalled, recall
from glassformer.tasks.scores import Scorer, usual_tokenize
from glassformer.tasks.translator import Translation, Translator

TRAINING = [
    ("the old house stands by the sea", "das alte Haus steht am Meer"),
    ("the dog sees a cat", "der Hund sieht eine Katze"),
    ("good morning", "guten Tag"),
    ("good morning", "guten Morgen"),
    ("good morning", "guten Morgen"),
    ("where is the station ?", "wo ist der Bahnhof ?"),
]
TEST = [
    ("the old house stands by the lake", "das alte Haus steht am See"),
    ("the dog sees a bird", "der Hund sieht einen Vogel"),
    ("good morning", "guten Morgen"),
    ("where is the old station ?", "wo ist der alte Bahnhof ?"),
    ("Zoe", "Zoe"),
    ("the old dog sees the sea and the house and the cat and the station", "der alte Hund sieht alles zusammen ."),
]
ANSWERS = [target for _, target in TEST[:3]] + ["wo ist Bahnhof ?", "Zo", "der Hund sieht ."]


class Answering:
    """Stands for a translator, and says what it was told to."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def translate_all(self, texts: Sequence[str], options: DecodeOptions) -> list[list[Translation]]:
        self.asked += texts
        return [[Translation(self.answers[text], 0.0)] for text in texts]

    def engine_name(self, options: DecodeOptions) -> str:
        return "told"


def save(folder: Path, rows: Sequence[tuple[str, str]], name: str = "test.tsv") -> PairFiles:
    path = folder / name
    path.write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8")
    return open_pairs([path])


def told(rows: Sequence[tuple[str, str]] = TEST, answers: Sequence[str] = ANSWERS) -> Translator:
    return cast(Translator, Answering({source: answer for (source, _), answer in zip(rows, answers, strict=True)}))


def evaluated(folder: Path, **options: Any) -> TranslateReport:
    return evaluate_translate(told(), save(folder, TEST), save(folder, TRAINING, "train.tsv"), **options)


def pairs_of(rows: Sequence[tuple[str, str]]) -> list[Pair]:
    return [Pair(line, *row) for line, row in enumerate(rows, start=1)]


@pytest.mark.parametrize("tokenize", ["13a", "none", "char"])
def test_numbers_are_those_of_sacrebleu(tmp_path: Path, tokenize: str) -> None:
    report = evaluated(tmp_path, tokenize=tokenize)
    references = [[target for _, target in TEST]]
    recalled = recall(save(tmp_path, TRAINING, "train.tsv"), pairs_of(TEST))
    for system, answers in zip(
        report.systems, [ANSWERS, [source for source, _ in TEST], recalled.answers], strict=True
    ):
        bleu, chrf = BLEU(tokenize=tokenize), CHRF()
        for found, metric in ((system.bleu, bleu), (system.chrf, chrf)):
            expected = metric.corpus_score(answers, references, n_bootstrap=1000)
            assert found.score == expected.score
            # sacrebleu takes this mean in single precision.
            assert (found.mean, found.interval) == pytest.approx((expected._mean, expected._ci), rel=1e-6)
        assert report.signatures == {"bleu": str(bleu.get_signature()), "chrf": str(chrf.get_signature())}
    assert f"tok:{tokenize}|" in report.signatures["bleu"]
    assert "bs:1000|" in report.signatures["chrf"]


def test_systems_and_exact_answers(tmp_path: Path) -> None:
    report = evaluated(tmp_path)
    assert [system.name for system in report.systems] == ["model", "copy the source", "translation memory"]
    assert [system.exact for system in report.systems] == [3 / 6, 1 / 6, 1 / 6]
    without = evaluate_translate(told(), save(tmp_path, TEST))
    assert without.systems == report.systems[:2]
    assert without.memory is None


def test_the_memory_answers_with_the_nearest_source(tmp_path: Path) -> None:
    recalled = recall(save(tmp_path, TRAINING), pairs_of(TEST))
    assert recalled.answers == [
        "das alte Haus steht am Meer",
        "der Hund sieht eine Katze",
        "guten Morgen",  # the most common of its targets, not the first
        "wo ist der Bahnhof ?",
        "",
        recalled.answers[5],
    ]
    assert recalled.known == [False, False, True, False, False, False]
    assert (recalled.n_pairs, recalled.n_bad, recalled.n_same_pairs) == (6, 0, 1)
    assert recalled.words["morning"] == 3
    assert recalled.words["the"] == 4
    assert recalled.words["bird"] == 0


def test_the_memory_knows_sources_letter_for_letter(tmp_path: Path) -> None:
    recalled = recall(save(tmp_path, TRAINING), pairs_of([("Good morning", "guten Morgen"), ("good morning", "x y")]))
    assert recalled.known == [False, True]
    assert recalled.n_same_pairs == 0
    assert recalled.answers == ["guten Tag", "guten Morgen"]  # alike but for case: the first of equals


def test_the_memory_reads_any_script_and_single_characters(tmp_path: Path) -> None:
    training = [("我", "I"), ("我喜欢你的房子", "I like your house"), ("😀", "smile"), ("x", "ex")]
    asked = [("我喜欢房子", "?"), ("我们", "?"), ("😀😀", "?"), ("X", "?"), ("ж", "?")]
    recalled = recall(save(tmp_path, training), pairs_of(asked))
    assert recalled.answers == ["I like your house", "I", "smile", "ex", ""]


def test_the_memory_in_parts_equals_the_memory_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training = [(f"{word} {i % 7} {i % 5} there", f"{word} {i}") for i in range(60) for word in ("house", "dog", "sea")]
    files = save(tmp_path, training)
    asked = pairs_of([(f"{word} {i} there now", "?") for i in range(9) for word in ("house", "dog", "sky")])
    whole = recall(files, asked)
    monkeypatch.setattr(memory, "CHUNK", 100)
    assert recall(files, asked) == whole


@given(st.lists(st.text("ab cé", min_size=1).filter(str.strip), min_size=1, max_size=6))
def test_every_source_is_its_own_nearest(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    sources = list({" ".join(text.split()).casefold(): None for text in texts})
    folder = tmp_path_factory.mktemp("memory")
    rows = [(source, f"target {i}") for i, source in enumerate(sources)]
    # A dot is added so that no source is known letter for letter, and likeness must find it.
    files = save(folder, [(f"{source} .", target) for source, target in rows])
    known = recall(files, pairs_of([(f"{source}  .", target) for source, target in rows]))
    assert known.answers == [target for _, target in rows]
    assert not any(known.known)


def test_slices_part_the_data(tmp_path: Path) -> None:
    report = evaluated(tmp_path)
    totals: Counter[str] = Counter()
    for part in report.slices:
        totals[part.by] += part.n
    assert dict(totals) == {"words of the source": 6, "rare words (seen under 5 times)": 6, "source in the memory": 6}
    named = {(part.by, part.name): part for part in report.slices}
    short = named["words of the source", "1–5"]
    answers, references = (
        [ANSWERS[i] for i in (1, 2, 4)],
        [TEST[i][1] for i in (1, 2, 4)],
    )
    assert short.n == 3
    assert short.bleu == BLEU().corpus_score(answers, [references]).score
    assert short.chrf == CHRF().corpus_score(answers, [references]).score
    assert short.exact == 2 / 3
    assert named["source in the memory", "yes"].n == 1


def lengths(n_words: Sequence[int], word: str = "wort") -> dict[str, int]:
    pairs = pairs_of([(" ".join([word] * n), "x") for n in n_words])
    return {part.name: part.n for part in slice_up(Scorer(), pairs, ["x"] * len(pairs), None)}


def test_lengths_fall_on_the_right_side_of_each_bound() -> None:
    assert lengths([1, 5, 6, 10, 11, 20, 21, 40, 41, 400]) == {
        "1–5": 2,
        "6–10": 2,
        "11–20": 2,
        "21–40": 2,
        f"over {LENGTHS[-1]}": 2,
    }
    assert lengths([7]) == {"6–10": 1}


def test_scripts_without_spaces_are_measured_in_characters() -> None:
    pairs = pairs_of([("我" * n, "x") for n in (4, 10, 11, 90)])
    recalled = Recalled(1, 0, [""] * 4, [False] * 4, 0, Counter())
    found = [(part.by, part.name, part.n) for part in slice_up(Scorer(), pairs, ["x"] * 4, recalled)]
    assert found == [
        ("characters of the source", "1–10", 2),
        ("characters of the source", "11–20", 1),
        ("characters of the source", "over 80", 1),
        ("source in the memory", "no", 4),
    ]


CHINESE = [("hello", "你好吗？"), ("the weather is good", "今天天气很好。"), ("I like you", "我很喜欢你。")]


def test_the_references_script_decides_how_words_are_found(tmp_path: Path) -> None:
    answers = ["你好。", "今天天气不好。", "我喜欢你。"]
    report = evaluate_translate(told(CHINESE, answers), save(tmp_path, CHINESE))
    assert (report.tokenize, report.spaceless) == ("zh", True)
    assert "tok:zh|" in report.signatures["bleu"]
    assert report.systems[0].bleu.score > 10
    asked = evaluate_translate(told(CHINESE, answers), save(tmp_path, CHINESE), tokenize="13a")
    assert (asked.tokenize, asked.spaceless, asked.systems[0].bleu.score) == ("13a", True, 0.0)


@pytest.mark.parametrize(
    ("text", "tokenize"),
    [("我很喜欢你。", "zh"), ("東京へ行きます", "char"), ("สวัสดีครับ", "char"), ("Привет, мир", "13a"), ("안녕", "13a")],
)
def test_usual_tokenize(text: str, tokenize: str) -> None:
    assert usual_tokenize([text]) == tokenize


def test_short_texts_without_spaces_are_measured_in_characters() -> None:
    pairs = pairs_of([(target, source) for source, target in CHINESE])
    assert {part.by for part in slice_up(Scorer(), pairs, ["x"] * 3, None)} == {"characters of the source"}


def test_rare_words_are_a_share_of_the_source() -> None:
    recalled = Recalled(1, 0, [""] * 4, [False] * 4, 0, Counter({"the": 5, "cat": 4}))
    pairs = pairs_of([("The the, THE!", "x"), ("the the the the cat", "x"), ("the the the cat", "x"), ("...", "x")])
    found = slice_up(Scorer(), pairs, ["x"] * 4, recalled)
    assert [(p.name, p.n) for p in found if "rare" in p.by] == [("none", 2), ("up to 20%", 1), ("over 20%", 1)]


def test_the_worst_come_first_and_exact_answers_never() -> None:
    worst = find_worst(Scorer(), pairs_of(TEST), ANSWERS, 10)
    assert len(worst) == 3
    assert [failure.chrf for failure in worst] == sorted(failure.chrf for failure in worst)
    for failure in worst:
        assert failure.chrf == CHRF().sentence_score(failure.answer, [failure.reference]).score
        assert (failure.source, failure.reference) == TEST[failure.line - 1]
    assert find_worst(Scorer(), pairs_of(TEST), ANSWERS, 1) == worst[:1]


def test_bad_lines_are_counted_and_the_first_is_named(tmp_path: Path) -> None:
    rows = [*TEST, ("only a source", ""), ("", "")]
    report = evaluate_translate(told(), save(tmp_path, rows), save(tmp_path, [*TRAINING, ("", "x")], "train.tsv"))
    assert (report.n_pairs, report.n_bad) == (6, 2)
    assert report.bad_example == "line 7 has an empty target side"
    assert report.memory is not None
    assert (report.memory.n_pairs, report.memory.n_bad) == (6, 1)
    assert (report.memory.n_known_sources, report.memory.n_known_pairs) == (1, 1)


def test_a_limit_spreads_over_the_file_and_progress_is_told(tmp_path: Path) -> None:
    translator, steps = told(), []
    report = evaluate_translate(
        translator, save(tmp_path, TEST), limit=3, progress=lambda done, total: steps.append((done, total))
    )
    assert cast(Answering, translator).asked == [TEST[i][0] for i in (0, 2, 4)]
    assert (report.n_pairs, report.n_left_out) == (3, 3)
    assert steps == [(3, 3)]
    assert evaluate_translate(told(), save(tmp_path, TEST), limit=99).n_left_out == 0


def test_empty_answers_and_a_single_pair_have_scores(tmp_path: Path) -> None:
    report = evaluate_translate(told(TEST[:1], [""]), save(tmp_path, TEST[:1]))
    assert (report.systems[0].bleu.score, report.systems[0].chrf.score, report.systems[0].exact) == (0.0, 0.0, 0.0)
    json.dumps(asdict(report))


def test_resamples_that_score_nothing_have_an_interval() -> None:
    # sacrebleu alone ends in a TypeError here: its zero is of another type than its other scores.
    system = Scorer().system("model", ["das Haus", "x", "y"], ["das Haus", "Hund", "Katze"])
    assert 0 < system.chrf.mean < 100
    assert system.chrf.interval > 0


def test_large_data_is_resampled_less_often_and_the_signature_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = Scorer()
    for most, n in ((3000, 1000), (600, 200), (3, 50)):
        monkeypatch.setattr("glassformer.tasks.scores.MOST_RESAMPLED", most)
        scorer.system("model", ["a", "b", "c"], ["a", "b", "d"])
        assert f"|bs:{n}|" in scorer.signatures()["bleu"]


def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = save(tmp_path, TEST)
    with pytest.raises(UserError, match=r"no way to tokenize called '14a'\. Choose one of 13a, none"):
        evaluate_translate(told(), files, tokenize="14a")
    with pytest.raises(UserError, match=r"The limit is 0\. It must be 1 or more\."):
        evaluate_translate(told(), files, limit=0)
    useless = save(tmp_path, [("a", ""), ("", "b")], "useless.tsv")
    with pytest.raises(UserError, match=r"holds no usable pair \(line 1 has an empty target side\)"):
        evaluate_translate(told(), useless)
    with pytest.raises(UserError, match=r"useless.tsv holds no usable pair\. The translation memory needs"):
        evaluate_translate(told(), files, useless)

    def missing(**_: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr("glassformer.tasks.scores.BLEU", missing)
    with pytest.raises(UserError, match=r"not installed\. Install them: pip install 'sacrebleu\[ja\]'\."):
        Scorer("ja-mecab")
