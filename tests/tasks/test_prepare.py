"""Vocabularies of pairs, and the pairs in their tokens."""

import itertools
from collections.abc import Iterable
from pathlib import Path

import pytest
from tokenizers import Tokenizer as Core
from tokenizers import models, normalizers, pre_tokenizers

from glassformer import config
from glassformer.data.pairs import Pair
from glassformer.data.tokenizer import SMALLEST, SPECIALS, Tokenizer, TokenizerKind, automatic_size, train_tokenizer
from glassformer.errors import UserError
from glassformer.tasks import prepare
from glassformer.tasks.prepare import Pairs, Tokenizers, encode_pairs, make_tokenizers
from glassformer.tasks.translate import TokenizerSettings
from tests.tasks.corpus import pairs as corpus_pairs

PAIRS = [Pair(i, source, target) for i, (source, target) in enumerate(corpus_pairs(), start=1)]
TEXTS = [text for pair in PAIRS for text in (pair.source, pair.target)]


def of(pairs: Iterable[Pair]) -> Pairs:
    kept = list(pairs)
    return lambda: iter(kept)


def save(path: Path, tokenizer: Tokenizer | Core) -> TokenizerSettings:
    path.write_text(tokenizer.to_json() if isinstance(tokenizer, Tokenizer) else tokenizer.to_str(), encoding="utf-8")
    return TokenizerSettings(kind=str(path))


def words_only(path: Path, texts: Iterable[str], lower: bool = False) -> TokenizerSettings:
    """A tokenizer from elsewhere that has no bytes to fall back on."""
    words = dict.fromkeys(word for text in texts for word in (text.lower() if lower else text).split())
    core = Core(models.WordLevel({word: i for i, word in enumerate([*SPECIALS, "<unk>", *words])}, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if lower:
        core.normalizer = normalizers.Lowercase()
    core.add_special_tokens([*SPECIALS, "<unk>"])
    return save(path, core)


def test_characters_of_a_large_alphabet_stay_whole() -> None:
    pairs = [Pair(i, f"sign {i}", chr(0x4E00 + i)) for i in range(900)]
    for joint in (True, False):
        found = make_tokenizers(lambda: iter(pairs), TokenizerSettings(kind="char", joint=joint))
        assert {len(found.target.encode(pair.target)) for pair in pairs} == {1}


@pytest.mark.parametrize("kind", ["bpe", "word", "char"])
def test_vocabulary_is_learned_from_all_where_that_is_not_much(kind: TokenizerKind) -> None:
    found = make_tokenizers(of(PAIRS), TokenizerSettings(kind=kind))
    wanted = train_tokenizer(TEXTS, kind, automatic_size(sum(map(len, TEXTS)), kind))
    assert found.joint
    assert found.target.to_json() == wanted.to_json()


def learned_from(monkeypatch: pytest.MonkeyPatch, pairs: list[Pair], settings: TokenizerSettings) -> list[list[str]]:
    """The texts of each vocabulary."""
    seen: list[list[str]] = []

    def watch(texts: Iterable[str], kind: TokenizerKind, size: int) -> Tokenizer:
        assert size == settings.size or size == automatic_size(sum(map(len, TEXTS)), kind)
        seen.append(list(texts))
        return train_tokenizer(seen[-1], kind, size)

    with monkeypatch.context() as patch:
        patch.setattr(prepare, "train_tokenizer", watch)
        make_tokenizers(of(pairs), settings)
    return seen


def test_vocabulary_is_learned_from_a_sample_of_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "LEARNED_FROM", sum(map(len, TEXTS)) // 4)
    [some] = learned_from(monkeypatch, PAIRS, TokenizerSettings())
    assert len(TEXTS) / 6 < len(some) < len(TEXTS) / 3
    assert len(set(some) & set(TEXTS[: len(TEXTS) // 4])) < len(some) / 2  # not only the beginning
    assert {pair.source in some for pair in PAIRS} == {True, False}
    assert all((pair.source in some) == (pair.target in some) for pair in PAIRS)
    assert learned_from(monkeypatch, PAIRS, TokenizerSettings()) == [some]
    sources, targets = learned_from(monkeypatch, PAIRS, TokenizerSettings(size=300, joint=False))
    assert 0 < len(sources) < len(PAIRS)
    assert 0 < len(targets) < len(PAIRS)
    [everything] = learned_from(monkeypatch, PAIRS, TokenizerSettings(kind="char"))
    assert everything == TEXTS


def test_text_without_spaces_counts_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its words are whole clauses, each of which is held in memory."""
    parted = [Pair(i, f"a house with number {i:03}", f"ein Haus mit Nummer {i:03}") for i in range(200)]
    whole = [Pair(p.line, p.source.replace(" ", ""), p.target.replace(" ", "")) for p in parted]
    monkeypatch.setattr(prepare, "LEARNED_FROM", 2 * sum(len(p.source) + len(p.target) for p in parted))
    settings = TokenizerSettings(size=300)
    assert len(learned_from(monkeypatch, parted, settings)[0]) == 400
    assert 40 < len(learned_from(monkeypatch, whole, settings)[0]) < 160


@pytest.mark.parametrize(("at_once", "characters"), [(10_000, 100), (7, 2_000_000)])
def test_pairs_are_encoded_in_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int, characters: int
) -> None:
    tokenizer, chunks = train_tokenizer(TEXTS, "bpe", 300), []
    both = Tokenizers(tokenizer, tokenizer)
    wanted, _ = encode_pairs(of(PAIRS), both, tmp_path / "whole", 250)
    encode_batch = tokenizer.encode_batch

    def watch(texts: list[str]) -> list[list[int]]:
        chunks.append(texts)
        return encode_batch(texts)

    monkeypatch.setattr(tokenizer, "encode_batch", watch)
    monkeypatch.setattr(prepare, "CHUNK", at_once)
    monkeypatch.setattr(prepare, "CHUNK_CHARACTERS", characters)
    found, _ = encode_pairs(of(PAIRS), both, tmp_path / "parts", 250)
    # Of one pair more than fits at most; its sides come one after the other.
    longest = max(map(len, TEXTS))
    assert all(len(texts) <= at_once and sum(map(len, texts)) < characters + 2 * longest for texts in chunks)
    assert len(chunks) > 2 * 300 // 10
    for ours, theirs in ((found.source, wanted.source), (found.target, wanted.target)):
        assert [ids.tolist() for ids in ours.tokens] == [ids.tolist() for ids in theirs.tokens]


def test_tokenizer_that_spells_next_to_nothing_is_refused(tmp_path: Path) -> None:
    settings = words_only(tmp_path / "t.json", ["dix maisons"])
    with pytest.raises(UserError, match=r"cannot spell 100\.0% of the pairs, such as line 1\."):
        make_tokenizers(of(PAIRS), settings)


def test_share_that_a_tokenizer_cannot_spell_is_said(tmp_path: Path) -> None:
    settings, said = words_only(tmp_path / "t.json", TEXTS), []
    make_tokenizers(of(PAIRS), settings, said.append)
    assert said == []
    strange = [Pair(301, "two red cats here", "hier zwei Kühe rot"), Pair(302, "what?", "hier zwei Katzen rot")]
    make_tokenizers(of([*PAIRS[:98], *strange]), settings, said.append)
    assert said == [
        f"Warning: the tokenizer {tmp_path / 't.json'} cannot spell 2.0% of the pairs, such as line 301; "
        "what it does not know is lost."
    ]


def test_tokenizers_that_fall_back_on_bytes_or_leave_case_out_are_no_loss(tmp_path: Path) -> None:
    foreign = [Pair(i, f"дом {i} 🏠", f"家 {i}") for i in range(50)]
    said: list[str] = []
    for kind in ("bpe", "word", "char"):
        make_tokenizers(of(foreign), save(tmp_path / f"{kind}.json", train_tokenizer(TEXTS, kind, 300)), said.append)
    make_tokenizers(of(PAIRS), words_only(tmp_path / "lower.json", TEXTS, lower=True), said.append)
    assert said == []


def test_a_sample_is_spread_over_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    for n in (0, 1, 9, 10, 11, 19, 20, 21, 300):
        lines = [pair.line for pair in prepare._spread_sample(iter(PAIRS[:n]), 10)]
        assert min(n, 5) <= len(lines) <= 10
        gaps = {b - a for a, b in itertools.pairwise(lines)}
        assert len(gaps) <= 1
        assert not lines or lines[-1] > n - (2 * n // len(lines) + 1)
    assert lines[:2] == [1, 33]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"size": 0}, f"tokenizer.size is 0, but the single bytes alone need {SMALLEST} tokens"),
        ({"size": 258}, f"Ask for {SMALLEST} or more"),
        ({"kind": "char", "size": 5}, "tokenizer.size is 5"),
        ({"kind": "own.json", "size": 5000}, "tokenizer.size = 5000 would have no effect"),
        ({"kind": "own.json", "joint": False}, "tokenizer.joint = false would have no effect"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(UserError) as error:
        config.parse(TokenizerSettings, settings, "The tokenizer")
    assert said in str(error.value)


def test_settings_that_mean_something() -> None:
    assert TokenizerSettings(kind="own.json").file == Path("own.json")
    assert {TokenizerSettings(kind=kind, size=SMALLEST, joint=False).file for kind in ("bpe", "word", "char")} == {None}
    assert TokenizerSettings().file is None
