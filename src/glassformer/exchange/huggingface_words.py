"""The tokenizer of a BERT: WordPiece from tokenizer.json or vocab.txt, lower case and accents as its files say.

Other kinds of tokenizer.json serve as well, if they put one mark before a text and one behind it.
"""

from collections.abc import Mapping
from typing import Any

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Core

from glassformer.data.tokenizer import Marks
from glassformer.data.tokenizer_json import check_vocabulary
from glassformer.errors import require

NAMES = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
SWITCHES = {
    "lowercase": "do_lower_case",
    "strip_accents": "strip_accents",
    "handle_chinese_chars": "tokenize_chinese_chars",
}


def core_from_vocabulary(text: str, where: str, names: Mapping[str, Any]) -> Core:
    """A vocab.txt: a token a line, numbered from 0 on."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    lines = lines[:-1] if lines and not lines[-1] else lines
    vocab = {token: i for i, token in enumerate(lines)}
    require(len(vocab) == len(lines), f"{where} holds a token twice.", "Copy it again from where it came.")
    check_vocabulary(vocab, where)
    marks = {name: named(names, name) for name in NAMES}
    for name in ("unk_token", "cls_token", "sep_token"):
        require(
            marks[name] in vocab,
            f"{where} has no token {marks[name]}.",
            f"Say which it is in tokenizer_config.json, as {name}.",
        )
    core = Core(models.WordPiece(vocab=vocab, unk_token=marks["unk_token"], max_input_chars_per_word=100))
    core.normalizer = normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.decoder = decoders.WordPiece(prefix="##")
    special = [AddedToken(mark, normalized=False, special=True) for mark in marks.values() if mark in vocab]
    core.add_special_tokens(special)
    return core


def adapt(core: Core, about: Mapping[str, Any], lower_case: bool = False) -> None:
    """What tokenizer_config.json says of lower case and accents goes before tokenizer.json, as in transformers."""
    normal = core.normalizer
    if isinstance(normal, normalizers.BertNormalizer):
        for ours, theirs in SWITCHES.items():
            if isinstance(about.get(theirs), bool):
                setattr(normal, ours, about[theirs])
        core.normalizer = normal
    if lower_case:  # sentence-transformers has a switch of its own
        before = [normalizers.Lowercase()]
        core.normalizer = normalizers.Sequence(before if normal is None else [*before, normal])


def read_encoder_marks(core: Core, names: Mapping[str, Any]) -> Marks:
    """The marks before and behind a text, which the tokenizer puts there by itself, and the one for blanks."""
    if core.post_processor is None:
        frame(core, *(core.token_to_id(named(names, name)) for name in ("cls_token", "sep_token")))
    plain, marked = (core.encode("a", add_special_tokens=marks).ids for marks in (False, True))
    require(
        len(marked) == len(plain) + 2 and marked[1:-1] == plain,
        "The tokenizer does not put one mark before a text and one behind it.",
        "Take a BERT with its own tokenizer.",
    )
    return Marks(int(marked[0]), (int(marked[-1]),), mask=core.token_to_id(named(names, "mask_token")))


def frame(core: Core, start: int | None, end: int | None) -> None:
    """Let the tokenizer put marks around texts and pairs of texts: start a end b end."""
    require(
        start is not None and end is not None,
        "The tokenizer has no marks to put before and behind a text.",
        "Say which they are in tokenizer_config.json, as cls_token and sep_token.",
    )
    assert start is not None
    assert end is not None
    first, last = core.id_to_token(start), core.id_to_token(end)
    core.post_processor = processors.TemplateProcessing(
        single=[first, "$A", last],
        pair=[first, "$A", last, "$B:1", f"{last}:1"],
        special_tokens=[(first, start), (last, end)],
    )


def named(names: Mapping[str, Any], name: str) -> str:
    """A mark by its name, as the files spell it or as BERT does."""
    given = names.get(name)
    given = given.get("content") if isinstance(given, dict) else given
    return given if isinstance(given, str) else NAMES[name]
