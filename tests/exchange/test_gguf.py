"""GGUF: the same logits and tokens as transformers loading the same file, and nothing believed of a broken one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from glassformer.errors import UserError
from glassformer.exchange.gguf_file import GgufFile
from glassformer.exchange.gguf_model import read_gguf
from glassformer.exchange.importing import import_model
from glassformer.tasks.model_dir import load_model
from tests.exchange.foreign_models import (
    SENTENCES,
    add_byte_level,
    add_pieces,
    byte_level_core,
    finish,
    gguf_tensors,
    llama,
    logits_equal,
    new_gguf,
    scored_pieces,
    write_gguf,
)

WIDE = {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1}  # K-quants come in blocks of 256


@pytest.mark.parametrize(
    ("quantisation", "changes"),
    [
        ("F32", {"tie_word_embeddings": True, "rope_theta": 500.0}),
        ("F16", {}),
        ("BF16", {"num_key_value_heads": 4, "rms_norm_eps": 1e-3}),
        ("Q8_0", {"num_key_value_heads": 1}),
        ("Q4_0", {}),
        ("Q4_1", {"tie_word_embeddings": True}),
        ("Q5_1", {}),
        *[(f"{kind}_K", WIDE) for kind in ("Q2", "Q3", "Q4", "Q5", "Q6")],
    ],
)
def test_logits_equal_those_of_transformers(quantisation: str, changes: dict[str, Any], tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", llama(**changes), quantisation)
    report = import_model(path, tmp_path / "ours")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file=path.name, dtype="float32")
    logits_equal(load_model(tmp_path / "ours").model, theirs)
    assert quantisation in report["weights"]


def test_weights_of_f32_are_those_of_the_model(tmp_path: Path) -> None:
    """Not only what the other reader makes of the file: what was put into it."""
    theirs = llama()
    import_model(write_gguf(tmp_path / "m.gguf", theirs), tmp_path / "ours")
    logits_equal(load_model(tmp_path / "ours").model, theirs)


def test_byte_level_tokens_and_marks(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", llama())
    import_model(path, tmp_path / "ours")
    ours, theirs = load_model(tmp_path / "ours").tokenizer, AutoTokenizer.from_pretrained(tmp_path, gguf_file=path.name)
    for text in SENTENCES:
        assert (
            ours.encode(text) == theirs(text, add_special_tokens=False).input_ids == byte_level_core().encode(text).ids
        )
        assert ours.decode(ours.encode(text)) == text
    assert (ours.marks.start, ours.marks.bos, ours.marks.ends) == (None, 0, (1,))
    assert ours.marks.chat_template == "{{ messages[0]['content'] }}"
    assert 1 not in ours.encode("<|end|>")
    assert ours.encode_marked("<|end|>") == [1]


@pytest.mark.parametrize(
    ("pre", "pieces"),
    [
        ("gpt-2", ["ab", " 1234", "'s", "  ", " x"]),
        ("smollm", ["ab", " ", "1", "2", "3", "4", "'s", "  ", " x"]),
        ("llama-bpe", ["ab", " ", "123", "4", "'s", "  ", " x"]),
    ],
)
def test_texts_are_cut_as_the_file_says(pre: str, pieces: list[str], tmp_path: Path) -> None:
    def change(writer: gguf.GGUFWriter) -> None:
        add_byte_level(writer, byte_level_core(), pre)

    path = write_other(tmp_path, change)
    import_model(path, tmp_path / "ours")
    tokenizer = load_model(tmp_path / "ours").tokenizer
    assert (tokenizer.marks.start is None) == (pre != "llama-bpe")
    found = tokenizer.core.pre_tokenizer.pre_tokenize_str("ab 1234's   x")
    assert [piece.replace("Ġ", " ") for piece, _ in found] == pieces


def write_other(
    tmp_path: Path, tokenizer: Callable[[gguf.GGUFWriter], None], model: Any = None, **changes: Any
) -> Path:
    path, model = tmp_path / "m.gguf", model or llama(**changes)
    writer = new_gguf(path, model)
    tokenizer(writer)
    for name, weight in gguf_tensors(model).items():
        writer.add_tensor(name, weight.numpy())
    finish(writer)
    return path


def test_sentencepiece_tokens(tmp_path: Path) -> None:
    pieces, scores = scored_pieces()
    path = write_other(tmp_path, lambda writer: add_pieces(writer, pieces, scores), vocab_size=len(pieces))
    import_model(path, tmp_path / "ours")
    ours, theirs = load_model(tmp_path / "ours").tokenizer, AutoTokenizer.from_pretrained(tmp_path, gguf_file=path.name)
    for text in [*SENTENCES, "a", "", "two  spaces and\ttab\n"]:
        assert ours.encode(text) == theirs(text, add_special_tokens=False).input_ids
        assert ours.decode(ours.encode(text)) == text
    assert ours.encode("a")[0] == pieces.index("▁a")
    assert ours.encode("日") == [pieces.index("▁"), *(3 + byte for byte in "日".encode())]
    assert (ours.marks.start, ours.marks.ends) == (1, (2,))
    assert ours.core.encode("a").ids == [1, *ours.encode("a")]  # with its mark in front for other readers


def test_no_space_in_front_where_the_file_says_so(tmp_path: Path) -> None:
    pieces, scores = scored_pieces()

    def tokenizer(writer: gguf.GGUFWriter) -> None:
        add_pieces(writer, pieces, scores)
        writer.add_add_space_prefix(False)
        writer.add_add_bos_token(False)

    import_model(write_other(tmp_path, tokenizer, vocab_size=len(pieces)), tmp_path / "ours")
    ours = load_model(tmp_path / "ours").tokenizer
    assert ours.decode(ours.encode(" a b")) == " a b"
    assert ours.encode("a") == [pieces.index("a")]
    assert ours.marks.start is None


@pytest.mark.parametrize(
    ("change", "factor"),
    [
        (lambda w: w.add_rope_scaling_factor(4.0), 4.0),
        (lambda w: w.add_float32("llama.rope.scale_linear", 2.0), 2.0),
        (lambda w: w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR), None),
        (lambda w: (w.add_rope_scaling_type(gguf.RopeScalingType.NONE), w.add_rope_scaling_factor(4.0)), None),
        (lambda w: w.add_float32("llama.rope.scale_linear", 0.0), None),
    ],
)
def test_turns_slowed_by_a_factor(
    change: Callable[[gguf.GGUFWriter], Any], factor: float | None, tmp_path: Path
) -> None:
    def add(writer: gguf.GGUFWriter) -> None:
        add_byte_level(writer, byte_level_core())
        change(writer)

    rope = {"rope_type": "default"} if factor is None else {"rope_type": "linear", "factor": factor}
    theirs = llama(rope_parameters={"rope_theta": 10_000.0, **rope})
    import_model(write_other(tmp_path, add, theirs), tmp_path / "ours")
    logits_equal(load_model(tmp_path / "ours").model, theirs)


@pytest.mark.parametrize("factor", [8.0, 32.0, 1.0])
def test_turns_slowed_by_the_table_of_llama_3(factor: float, tmp_path: Path) -> None:
    """The table as llama.cpp's converter writes it: one divisor for each wave."""
    table = []
    for i in range(4):
        wave = 2 * np.pi * 500_000.0 ** (i / 4)
        share = (8192 / wave - 1) / (4 - 1)
        table.append(1.0 if wave < 8192 / 4 else factor if wave > 8192 else 1 / ((1 - share) / factor + share))
    assert factor == 1 or len(set(table)) == 3  # all three cases are met

    def add(writer: gguf.GGUFWriter) -> None:
        add_byte_level(writer, byte_level_core())
        writer.add_tensor("rope_freqs.weight", np.array(table, np.float32))

    slowed = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
    rope = {"rope_type": "llama3", "rope_theta": 500_000.0, "factor": factor, **slowed}
    theirs = llama(rope_parameters=rope, max_position_embeddings=16_384)
    import_model(write_other(tmp_path, add, theirs), tmp_path / "ours")
    logits_equal(load_model(tmp_path / "ours").model, theirs)


def is_refused(call: Callable[[], Any]) -> bool:
    try:
        call()
    except UserError:
        return True
    return False


def refused(path: Path, message: str, **options: Any) -> None:
    with pytest.raises(UserError, match=message) as caught:
        import_model(path, path.parent / "ours", **options)
    assert caught.value.hint.endswith(".")
    assert not (path.parent / "ours").exists()


def write_strange(tmp_path: Path, change: Callable[[gguf.GGUFWriter], None]) -> Path:
    path, model = tmp_path / "m.gguf", llama()
    writer = new_gguf(path, model)
    add_byte_level(writer, byte_level_core())
    change(writer)
    for name, weight in gguf_tensors(model).items():
        if name != "output_norm.weight":
            writer.add_tensor(name, weight.numpy())
    finish(writer)
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.add_rope_scaling_type(gguf.RopeScalingType.YARN), "scaled by 'yarn'"),
        (lambda w: w.add_rope_scaling_factor(0.5), "slows rotary positions by 0.5"),
        (lambda w: w.add_rope_scaling_factor(float("nan")), "slows rotary positions by nan"),
        (
            lambda w: w.add_tensor("rope_freqs.weight", np.arange(1, 5, dtype=np.float32)),
            "a table other than Llama 3's",
        ),
        (lambda w: w.add_tensor("rope_freqs.weight", np.full(4, np.nan, np.float32)), "a table other than Llama 3's"),
        (lambda w: w.add_tensor("rope_freqs.weight", np.ones(5, np.float32)), r"has the shape \(5,\)"),
        (lambda w: w.add_expert_count(4), "experts"),
        (lambda w: w.add_key_length(6), "turns 8 of 6 numbers"),
        (lambda w: w.add_uint16("split.count", 3), "one of 3 parts"),
        (lambda w: w.add_tensor("blk.0.ssm.weight", np.ones(4, np.float32)), "no place for the tensor 'blk.0.ssm"),
        (lambda w: w.add_tensor("blk.9.attn_norm.weight", np.ones(32, np.float32)), "has no place in it"),
        (lambda w: w.add_tensor("output_norm.weight", np.ones(31, np.float32)), r"has shape \(31,\)"),
        (lambda _: None, "the model that .*m.gguf describes: nothing is given for decoder.norm.weight"),
        (lambda w: w.add_eot_token_id(9999), "its eot mark 9999 is no token"),
    ],
)
def test_what_we_lack_is_named(change: Callable[[gguf.GGUFWriter], None], message: str, tmp_path: Path) -> None:
    refused(write_strange(tmp_path, change), message)


def edit(**changes: Any) -> Callable[[gguf.GGUFWriter], None]:
    """A byte-level tokenizer with other values under some of its keys."""

    def tokenizer(writer: gguf.GGUFWriter) -> None:
        add_byte_level(writer, byte_level_core())
        for name, value in changes.items():
            old = writer.kv_data[0].pop(f"tokenizer.ggml.{name}")
            if value is not None:
                writer.kv_data[0][f"tokenizer.ggml.{name}"] = type(old)(value, *_kinds(value))

    return tokenizer


def _kinds(value: Any) -> tuple[Any, Any]:
    kind = gguf.GGUFValueType.get_type(value)
    return kind, gguf.GGUFValueType.get_type(value[0]) if isinstance(value, list) else None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "t5"}, "a tokenizer of the kind 't5'"),
        ({"model": None}, "a tokenizer of the kind ''"),
        ({"pre": "tekken"}, "in the way 'tekken'"),
        ({"tokens": ["a", "b", "a"], "token_type": None, "merges": None}, "holds 'a' twice"),
        ({"merges": ["a b c"]}, "does not join two tokens"),
        ({"merges": ["q q"]}, "which make no token of it"),
        ({"token_type": [1, 2, 3]}, "token_type is not a number for each"),
        ({"tokens": "text"}, "tokens is 'text'"),
        ({"eos_token_id": None}, "Nothing says which token ends a text"),
        ({"eos_token_id": "x"}, "eos_token_id is 'x'"),
    ],
)
def test_a_tokenizer_that_cannot_be_used(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    refused(write_other(tmp_path, edit(**changes)), message)


def test_a_tokenizer_that_does_not_fit_the_weights(tmp_path: Path) -> None:
    path = write_other(tmp_path, lambda writer: add_byte_level(writer, byte_level_core(400)))
    refused(path, "does not fit the weights")
    byte_level_core().save(str(tmp_path / "other.json"))
    import_model(path, tmp_path / "ours", tokenizer=tmp_path / "other.json")
    assert load_model(tmp_path / "ours").tokenizer.encode("Lily") == byte_level_core().encode("Lily").ids


@pytest.mark.parametrize(("where", "value"), [(8, 2**60), (16, 2**60), (16, 10_000), (4, 1), (4, 2**24), (0, 1)])
def test_absurd_heads(where: int, value: int, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", llama())
    data = bytearray(path.read_bytes())
    width = 8 if where >= 8 else 4
    data[where : where + width] = value.to_bytes(width, "little")
    path.write_bytes(data)
    refused(path, "not a sound GGUF file|GGUF file of version")


def test_absurd_tables(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", llama())
    good = path.read_bytes()
    name = b"blk.0.attn_q.weight"
    place = good.index(name) + len(name)  # n_dims, dims, type, offset
    changes = {
        "5 dimensions": (place, (5).to_bytes(4, "little")),
        "would end after the file": (place + 4, (2**40).to_bytes(8, "little")),
        "unknown type 99": (place + 20, (99).to_bytes(4, "little")),
        "has the shape": (place + 20, (12).to_bytes(4, "little")),  # Q4_K, in rows that are too short for it
        "lies over another": (place + 24, (0).to_bytes(8, "little")),
    }
    for message, (at, value) in changes.items():
        path.write_bytes(good[:at] + value + good[at + len(value) :])
        refused(path, message)


def test_any_file_is_read_or_refused(tmp_path: Path) -> None:
    """Cut at every kind of place, flipped anywhere in its frame: a whole model, or one sentence."""
    path = write_gguf(tmp_path / "m.gguf", llama(num_hidden_layers=1), "Q8_0")
    good = path.read_bytes()
    frame = min(stored.start for stored in GgufFile(path).tensors.values())
    rng = np.random.default_rng(0)
    for cut in [0, 3, 4, 23, 24, 30, frame - 1, frame, len(good) - 1, *rng.integers(0, len(good), 40).tolist()]:
        path.write_bytes(good[:cut])
        with pytest.raises(UserError):
            GgufFile(path)
    n_refused = 0
    for _ in range(250):
        data = bytearray(good)
        for place in rng.integers(0, frame, rng.integers(1, 4)):
            data[place] = rng.integers(0, 256) if rng.random() < 0.5 else data[place] ^ (1 << int(rng.integers(8)))
        path.write_bytes(data)
        n_refused += is_refused(lambda: read_gguf(path))
    assert 50 < n_refused < 250
