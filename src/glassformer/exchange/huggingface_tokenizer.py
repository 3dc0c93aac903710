"""The tokenizer of a Hugging Face directory, and its marks.

A tokenizer.json, GPT-2's vocab.json and merges.txt, or BERT's vocab.txt (`huggingface_words.py`).
"""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, decoders, pre_tokenizers
from tokenizers import Tokenizer as Core

from glassformer.data.tokenizer import Marks, Tokenizer
from glassformer.data.tokenizer_json import byte_pair_model, core_from_json
from glassformer.errors import UserError, require
from glassformer.exchange.foreign import LARGEST_JSON, read_json
from glassformer.exchange.huggingface_words import adapt, core_from_vocabulary, read_encoder_marks

# GPT-2's files, under their names today and under their first ones.
PAIRS = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))
N_TRIED = 1000
GPT2_MARK = "<|endoftext|>"
COPY = "Copy it again from where it came."


def read_tokenizer(
    folder: Path, config: Mapping[str, Any], given: Path | None = None, lower_case: bool = False
) -> Tokenizer:
    """The folder's tokenizer, or the given one with the folder's marks."""
    about = _read_maybe(folder / "tokenizer_config.json")
    if config.get("model_type") != "bert":
        core = _find(folder, config) if given is None else load_core(given)
        is_whole = given is not None or (folder / "tokenizer.json").exists()
        return Tokenizer(core, _read_marks(folder, config, core, about, is_whole))
    names = {**_read_maybe(folder / "special_tokens_map.json"), **about}
    words, whole = folder / "vocab.txt", folder / "tokenizer.json"
    if given is None and words.exists() and not whole.exists():
        core = core_from_vocabulary(_read_text(words), str(words), names)
    else:
        core = _find(folder, config) if given is None else load_core(given)
    adapt(core, about, lower_case)
    return Tokenizer(core, read_encoder_marks(core, names))


def load_core(path: Path) -> Core:
    """A tokenizer.json from anywhere."""
    return core_from_json(_read_text(path), str(path))


def _find(folder: Path, config: Mapping[str, Any]) -> Core:
    if (folder / "tokenizer.json").exists():
        return load_core(folder / "tokenizer.json")
    pair = next(((folder / a, folder / b) for a, b in PAIRS if (folder / a).exists()), None)
    if pair is not None:
        require(
            config.get("model_type") == "gpt2",
            f"{pair[0]} is no whole tokenizer: each family but GPT-2 cuts a text in its own way, which is not in it.",
            "Save a tokenizer.json with transformers, and put it there.",
        )
        return _read_pair(folder, *pair)
    sentencepiece = (folder / "tokenizer.model").exists()
    raise UserError(
        f"{folder} holds no tokenizer.json, nor GPT-2's vocab.json and merges.txt, nor BERT's vocab.txt.",
        "Save tokenizer.model as a tokenizer.json with transformers, and put it there."
        if sentencepiece
        else "Put it there, or name it with --tokenizer FILE.",
    )


def _read_pair(folder: Path, vocab_path: Path, merges_path: Path) -> Core:
    vocab = read_json(vocab_path)
    ids = sorted(i for i in vocab.values() if type(i) is int)
    require(
        ids == list(range(len(vocab))),
        f"{vocab_path} does not give each of its {len(vocab):,} tokens a number of its own from 0 on.",
        COPY,
    )
    lines = _read_text(merges_path).split("\n")
    merges = [line.rstrip("\r").split(" ") for line in lines if line and not line.startswith("#version")]
    core = Core(byte_pair_model(vocab, merges, f"{vocab_path} with {merges_path.name}"))
    about = _read_maybe(folder / "tokenizer_config.json")
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=about.get("add_prefix_space") is True)
    core.decoder = decoders.ByteLevel()
    if GPT2_MARK in vocab:
        core.add_special_tokens([AddedToken(GPT2_MARK, normalized=False, special=True)])
    for i, text, how in _added_tokens(folder, about):
        core.add_tokens([AddedToken(text, **how)])
        require(
            core.token_to_id(text) == i,
            f"{folder} adds the token {text[:40]!r} as number {i}, but the next is {core.get_vocab_size()}.",
            COPY,
        )
    return core


def _added_tokens(folder: Path, about: Mapping[str, Any]) -> list[tuple[int, str, dict[str, bool]]]:
    """Tokens beside the vocabulary: today's way in tokenizer_config.json, the old one in added_tokens.json."""
    names = {**_read_maybe(folder / "special_tokens_map.json"), **about}
    more = names.get("additional_special_tokens")
    marks = [token for name, token in names.items() if name.endswith("_token")] + (
        more if isinstance(more, list) else []
    )
    special = {_content(token) for token in marks}
    found: list[tuple[Any, Any, dict[str, bool]]] = []
    table = about.get("added_tokens_decoder")
    for number, token in table.items() if isinstance(table, dict) else ():
        given = token if isinstance(token, dict) else {}
        how = {name: given.get(name) is True for name in ("special", "normalized", "lstrip", "rstrip", "single_word")}
        found.append((int(number) if number.isdecimal() else number, _content(token), how))
    for text, number in _read_maybe(folder / "added_tokens.json").items():
        found.append((number, text, {"special": text in special, "normalized": False}))
    for number, text, _ in found:
        require(
            type(number) is int and bool(text),
            f"{folder} adds the token {str(text)[:40]!r} as number {str(number)[:40]}, which makes no sense.",
            COPY,
        )
    return sorted(found, key=lambda one: one[0])


def _read_marks(folder: Path, config: Mapping[str, Any], core: Core, about: Mapping[str, Any], is_whole: bool) -> Marks:
    """What the tokenizer puts in front by itself, every mark that may end a text, and the chat template."""
    named, generation = (_read_maybe(folder / name) for name in ("special_tokens_map.json", "generation_config.json"))
    n_tokens = core.get_vocab_size()
    # The tokenizer's own goes first: it is what a chat template means by eos_token.
    own = [_token_id(table.get("eos_token"), core) for table in (about, named)]
    ends = dict.fromkeys(i for i in own if i is not None)
    for given in (generation.get("eos_token_id"), config.get("eos_token_id")):
        ends |= dict.fromkeys(i for i in (given if isinstance(given, list) else [given]) if type(i) is int)
    if not ends and (i := core.token_to_id(GPT2_MARK)) is not None:
        ends[i] = None
    start, bos = put_in_front(core), _token_id({**named, **about}.get("bos_token"), core)
    # A tokenizer.json says itself what it puts in front; then transformers does not read this field.
    if start is None and about.get("add_bos_token") is True and not is_whole:
        start = bos
    ends_known = tuple(i for i in ends if 0 <= i < n_tokens)
    return Marks(start, ends_known, _chat_template(folder, about), named_start=bos if bos != start else None)


def put_in_front(core: Core) -> int | None:
    """The mark that the tokenizer itself puts before a text; some know no "a", but their own pieces they know."""
    for text in ("a", *itertools.islice(core.get_vocab(with_added_tokens=False), N_TRIED)):
        plain, marked = (core.encode(text, add_special_tokens=marks).ids for marks in (False, True))
        if plain:
            break
    return int(marked[0]) if len(marked) > len(plain) and marked[1 : 1 + len(plain)] == plain else None


def _token_id(token: Any, core: Core) -> int | None:
    content = _content(token)
    return None if content is None else core.token_to_id(content)


def _content(token: Any) -> str | None:
    if isinstance(token, dict):  # {"content": "</s>", "lstrip": false, …}
        token = token.get("content")
    return token if isinstance(token, str) else None


def _read_maybe(path: Path) -> dict[str, Any]:
    return read_json(path) if path.exists() else {}


def _chat_template(folder: Path, about: Mapping[str, Any]) -> str | None:
    if (folder / "chat_template.jinja").exists():
        return _read_text(folder / "chat_template.jinja")
    given = about.get("chat_template")
    if isinstance(given, list):  # several, by name
        named = {str(t.get("name")): t.get("template") for t in given if isinstance(t, dict)}
        given = named.get("default")
    return given if isinstance(given, str) else None


def _read_text(path: Path) -> str:
    try:
        require(path.stat().st_size <= LARGEST_JSON, f"{path} is too large for what it is to hold.", "Check the file.")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"There is no file {path}.", "Check the name.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}.", COPY) from None
