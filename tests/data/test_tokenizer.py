"""Any text comes back exactly, from every kind of tokenizer, saved or extended."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Core
from tokenizers import models, pre_tokenizers

from glassformer.data.tokenizer import (
    END,
    PAD,
    SMALLEST,
    SPECIALS,
    START,
    Marks,
    Tokenizer,
    TokenizerKind,
    automatic_size,
    extend_tokenizer,
    load_tokenizer,
    train_tokenizer,
)
from glassformer.errors import UserError

ENGLISH = [
    f"The {a} {b} sees the {c}." for a in ("old", "new") for b in ("house", "sea") for c in ("dog", "cat", "sky")
]
RUSSIAN = [f"Старый {a} видит {b}." for a in ("дом", "пёс", "кот") for b in ("море", "небо", "собаку")]
KINDS: list[TokenizerKind] = ["bpe", "word", "char"]
TRAINED = {kind: train_tokenizer(ENGLISH, kind, 400) for kind in KINDS}
EXTENDED = {kind: extend_tokenizer(tokenizer, RUSSIAN, 60) for kind, tokenizer in TRAINED.items()}
TOKENIZERS = [*TRAINED.values(), *EXTENDED.values()]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(" \n\t\u2028Ġ▁<>/s")) | st.lists(
    st.sampled_from([*SPECIALS, " ", "The", "house", "дом", "\r\n", "Ġ", "\u0301", "👩‍👩‍👧", "\0"])
).map("".join)


@given(TEXTS)
def test_any_text_round_trips(text: str) -> None:
    for tokenizer in TOKENIZERS:
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert all(END < i < tokenizer.vocab_size for i in ids)


@given(st.lists(TEXTS, max_size=5))
def test_saved_tokenizer_is_the_same(texts: list[str]) -> None:
    for tokenizer, again in zip(TOKENIZERS, RELOADED, strict=True):
        assert again.encode_batch(texts) == tokenizer.encode_batch(texts)
        assert [again.decode(ids) for ids in again.encode_batch(texts)] == texts


def reload(tokenizer: Tokenizer, folder: Path) -> Tokenizer:
    path = folder / "tokenizer.json"
    path.write_text(tokenizer.to_json(), encoding="utf-8")
    return load_tokenizer(path)


@pytest.fixture(autouse=True, scope="module")
def _reloaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    RELOADED[:] = [reload(tokenizer, tmp_path_factory.mktemp("saved")) for tokenizer in TOKENIZERS]


RELOADED: list[Tokenizer] = []


@pytest.mark.parametrize("kind", KINDS)
def test_specials_in_a_text_are_text(kind: TokenizerKind) -> None:
    tokenizer = TRAINED[kind]
    for text in ("</s>", "<pad><s></s>", "a </s> b"):
        assert not {PAD, START, END} & set(tokenizer.encode(text))
        assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("kind", KINDS)
def test_specials_do_not_come_out(kind: TokenizerKind) -> None:
    tokenizer = TRAINED[kind]
    ids = tokenizer.encode("The dog.")
    assert tokenizer.decode([START, *ids, END, PAD, PAD]) == "The dog."
    assert tokenizer.tokens([START, *ids, END])[0] == "<s>"
    assert "".join(tokenizer.tokens(ids)).replace(" ", "") == "Thedog."


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [SMALLEST, 270, 300])
def test_size_is_respected(kind: TokenizerKind, size: int) -> None:
    tokenizer = train_tokenizer(ENGLISH + RUSSIAN, kind, size)
    assert SMALLEST <= tokenizer.vocab_size <= size
    assert tokenizer.decode(tokenizer.encode(RUSSIAN[0])) == RUSSIAN[0]


def test_training_is_deterministic() -> None:
    for kind in KINDS:
        assert train_tokenizer(ENGLISH, kind, 350).to_json() == train_tokenizer(ENGLISH, kind, 350).to_json()


def test_kinds_cut_as_they_say() -> None:
    assert len(TRAINED["word"].encode("The old dog")) == 3
    assert TRAINED["char"].tokens(TRAINED["char"].encode("The dog")) == list("The dog")
    assert len(TRAINED["bpe"].encode("The old dog")) < len("The old dog")
    assert len(train_tokenizer(["größe größe"], "char", 300).encode("ößg")) == 3


def test_first_word_is_the_same_token_anywhere() -> None:
    tokenizer = TRAINED["bpe"]
    assert tokenizer.encode("house")[0] in tokenizer.encode("The house")


@pytest.mark.parametrize("kind", KINDS)
def test_extended_tokenizer_keeps_old_ids(kind: TokenizerKind) -> None:
    old, new = TRAINED[kind], EXTENDED[kind]
    assert old.vocab_size < new.vocab_size <= old.vocab_size + 60
    old_vocab, new_vocab = old.core.get_vocab(), new.core.get_vocab()
    assert all(new_vocab[token] == i for token, i in old_vocab.items())
    for text in ENGLISH:
        ids = old.encode(text)
        assert new.decode(ids) == text
        assert new.tokens(ids) == old.tokens(ids)
    assert new.to_json() != old.to_json()


@pytest.mark.parametrize("kind", KINDS)
def test_extended_tokenizer_makes_a_new_script_shorter(kind: TokenizerKind) -> None:
    def n_tokens(tokenizer: Tokenizer) -> int:
        return sum(map(len, tokenizer.encode_batch(RUSSIAN)))

    assert n_tokens(EXTENDED[kind]) < 0.6 * n_tokens(TRAINED[kind])


def test_extending_by_nothing_changes_no_vocabulary() -> None:
    assert extend_tokenizer(TRAINED["bpe"], RUSSIAN, 0).core.get_vocab() == TRAINED["bpe"].core.get_vocab()


def test_automatic_size_grows_with_the_text_within_bounds() -> None:
    sizes = [automatic_size(n) for n in (0, 10**4, 10**6, 4 * 10**6, 10**9)]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[3], sizes[4]) == (512, 8000, 32_000)


def test_of_characters_all_are_kept() -> None:
    signs = [chr(0x4E00 + i) for i in range(3000)]
    tokenizer = train_tokenizer(signs, "char", automatic_size(len(signs), "char"))
    assert {len(ids) for ids in tokenizer.encode_batch(signs)} == {1}


def test_too_small_a_vocabulary() -> None:
    with pytest.raises(UserError, match="the single bytes alone need 259"):
        train_tokenizer(ENGLISH, "bpe", 100)


def test_unknown_kind() -> None:
    with pytest.raises(UserError, match="no tokenizer 'syllable'"):
        train_tokenizer(ENGLISH, "syllable", 300)  # type: ignore[arg-type]


def test_load_errors(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no tokenizer"):
        load_tokenizer(tmp_path / "none.json")
    path = tmp_path / "tokenizer.json"
    for content in (b"", b"{}", b"\xff\xfe\x00", b'{"model": 1}', TRAINED["bpe"].to_json().encode()[:-100]):
        path.write_bytes(content)
        with pytest.raises(UserError, match="is not a tokenizer"):
            load_tokenizer(path)
    data = json.loads(TRAINED["bpe"].to_json())
    foreign = {token: i for i, token in enumerate(["a", "b", "c"])}
    data["model"] |= {"vocab": foreign, "merges": []}
    data["added_tokens"] = []
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(UserError, match="begins with the tokens"):
        load_tokenizer(path)


def test_byte_pairs_are_joined_commonest_first_and_single_characters_stay() -> None:
    tokenizer = train_tokenizer(
        ["low low low low lower lower newest newest newest newest newest newest widest widest"], "bpe", 270
    )
    merges = json.loads(tokenizer.to_json())["model"]["merges"]
    joined = ["".join(pair) if isinstance(pair, list) else pair.replace(" ", "") for pair in merges]
    # "es" and "st" stand 8 times each, then "est" 8 times: no other pair is as common.
    assert set(joined[:2]) <= {"es", "est", "st"}
    assert "est" in joined[:2]
    assert tokenizer.decode(tokenizer.encode("zyx")) == "zyx"


@pytest.mark.parametrize(
    "model",
    [
        {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": [["a", "b"]]},
        {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": [["a", "b"]], "continuing_subword_prefix": "##"},
        {"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []},
        {"type": "WordPiece", "vocab": {"a": 0}},
    ],
    ids=str,
)
def test_files_that_would_end_the_process_are_refused(tmp_path: Path, model: dict[str, object]) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps({"version": "1.0", "added_tokens": [], "model": model}))
    with pytest.raises(UserError, match=r"tokenizer\.json"):
        load_tokenizer(tmp_path / "tokenizer.json")


def test_tokens_without_a_decoder() -> None:
    core = Core(models.WordLevel({"<unk>": 0, "one": 1, "two": 2}, unk_token="<unk>"))
    assert Tokenizer(core, Marks(None, (0,))).tokens([2, 1]) == ["two", "one"]


@pytest.mark.parametrize("encode", ["encode", "encode_marked"])
def test_bytes_that_are_no_text_are_refused(encode: str) -> None:
    given = b"caf\xe9".decode("utf-8", "surrogateescape")  # as the command line hands them over
    with pytest.raises(UserError, match=r"'caf\?' is not text: it holds bytes that are not UTF-8"):
        getattr(TRAINED["bpe"], encode)(given)
    with pytest.raises(UserError, match="is not text"):
        TRAINED["bpe"].encode_batch(["The house.", given])


def test_known_words_keep_their_spelling_beside_a_new_alphabet() -> None:
    """Those of the text that a tokenizer was trained on too, of which most take several tokens."""
    old = train_tokenizer([*ENGLISH, *(text.title() for text in ENGLISH)], "bpe", 290)
    assert sum(map(len, old.encode_batch(ENGLISH))) > 1.3 * sum(map(len, map(str.split, ENGLISH)))
    assert extend_tokenizer(old, ENGLISH * 2, 60).vocab_size == old.vocab_size
    assert extend_tokenizer(old, [text.lower() for text in ENGLISH * 2], 60).vocab_size == old.vocab_size
    assert extend_tokenizer(old, [text.upper() for text in ENGLISH * 2], 60).vocab_size == old.vocab_size
    both = extend_tokenizer(old, ENGLISH * 2 + RUSSIAN, 60)
    assert both.encode_batch(ENGLISH) == old.encode_batch(ENGLISH)
    added = {both.tokens([i])[0].strip() for i in range(old.vocab_size, both.vocab_size)}
    assert added == {word for text in RUSSIAN for word in text.strip(".").split()}


def test_tokens_beside_the_vocabulary_keep_their_numbers() -> None:
    core = Core.from_str(TRAINED["bpe"].to_json())
    core.add_special_tokens(["<new>"])
    core.add_tokens(["another"])
    old = Tokenizer(core, Marks())
    new = extend_tokenizer(old, RUSSIAN, 60)
    assert new.vocab_size > old.vocab_size
    assert new.marks is old.marks
    before, after = core.get_vocab(), new.core.get_vocab()
    assert all(after[token] == i for token, i in before.items())
    assert sorted(after.values()) == list(range(new.vocab_size))
    assert new.special == old.special


def saved_core(folder: Path, core: Core) -> Tokenizer:
    path = folder / "tokenizer.json"
    path.write_text(core.to_str(), encoding="utf-8")
    return load_tokenizer(path)


LETTERS = dict.fromkeys("".join(ENGLISH) + "\u2581")
UNIGRAM = [(piece, -1.0) for piece in [*SPECIALS, "<unk>", *LETTERS]]
VOCAB = {piece: i for i, (piece, _) in enumerate(UNIGRAM)}
BYTES = {f"<0x{i:02X}>": len(VOCAB) + i for i in range(256)}
WORDS = {word: i for i, word in enumerate([*SPECIALS, "<unk>", *dict.fromkeys(" ".join(ENGLISH).split())])}
FOREIGN = {
    "Unigram": (models.Unigram(UNIGRAM, 3), pre_tokenizers.Metaspace()),
    "BPE with bytes": (models.BPE(vocab=VOCAB | BYTES, merges=[], byte_fallback=True), None),
    "BPE without bytes": (models.BPE(vocab=VOCAB, merges=[]), pre_tokenizers.Whitespace()),
    "BPE with a mark": (models.BPE(vocab=VOCAB, merges=[], unk_token="<unk>"), pre_tokenizers.Whitespace()),
    "WordLevel": (models.WordLevel(WORDS, unk_token="<unk>"), pre_tokenizers.WhitespaceSplit()),
    "WordPiece": (models.WordPiece(WORDS, unk_token="<unk>"), pre_tokenizers.WhitespaceSplit()),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_other_kinds_stay_as_they_are_or_are_refused(tmp_path: Path, name: str) -> None:
    core = Core(FOREIGN[name][0])
    if FOREIGN[name][1] is not None:
        core.pre_tokenizer = FOREIGN[name][1]
    tokenizer = saved_core(tmp_path, core)
    assert tokenizer.encode(ENGLISH[0])
    assert extend_tokenizer(tokenizer, [*ENGLISH, "Слово"], 60) is tokenizer  # seen once only
    with pytest.raises(
        UserError, match=r"cannot spell 'Старый', and its kind \(\w+\) takes up no new words"
    ) as refused:
        extend_tokenizer(tokenizer, ENGLISH + RUSSIAN, 60)
    assert "without --from" in str(refused.value.hint)


def test_numbers_that_are_left_out(tmp_path: Path) -> None:
    core = Core(models.WordLevel({**WORDS, "far": 5000}, unk_token="<unk>"))
    with pytest.raises(UserError, match=r"tokens, but numbers up to 5,000: some stand for nothing"):
        saved_core(tmp_path, core)
    assert Tokenizer(core, Marks()).vocab_size == 5001  # of a model from elsewhere, which has a row for it


@pytest.mark.parametrize("kind", ["bpe", "word"])
@pytest.mark.parametrize(
    "text", ["मैं किताब पसंद", "தமிழ் மொழி ஒன்று", "العَرَبِيَّة لُغَة جَمِيلَة", "क्\u200dष ज्ञ त्र", "xe\u0301 ye\u0301 ❤️"]
)
def test_vowel_signs_and_joiners_stay_in_their_words(kind: TokenizerKind, text: str) -> None:
    tokenizer = train_tokenizer([text] * 3, kind, 600)
    assert len(tokenizer.encode(text)) == len(text.split())
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(st.text(st.sampled_from("ab Zé字9.,'’sdmt\n \t!-") | st.characters(exclude_categories=("M", "Cf", "Cs"))))
def test_without_vowel_signs_words_are_cut_as_gpt_2_cuts_them(text: str) -> None:
    def cut(core: Core) -> list[str]:
        return [piece for piece, _ in core.pre_tokenizer.pre_tokenize_str(text)]

    as_gpt_2 = Core(models.BPE())
    as_gpt_2.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    assert cut(train_tokenizer(["a"], "bpe", 300).core) == cut(as_gpt_2)
