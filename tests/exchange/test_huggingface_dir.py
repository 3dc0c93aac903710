"""Hugging Face directories: what transformers saved gives the same logits and the same tokens."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer as Core
from tokenizers import models, pre_tokenizers, processors
from transformers import AutoTokenizer, LlamaForCausalLM

from glassformer.errors import UserError
from glassformer.exchange.foreign import convert
from glassformer.exchange.importing import import_model, read_foreign
from glassformer.exchange.proof import prove
from glassformer.tasks.model_dir import LoadedModel, load_model
from tests.exchange.foreign_models import (
    SENTENCES,
    byte_level_core,
    gpt2,
    llama,
    logits_equal,
    mistral,
    qwen2,
    save_huggingface,
)

SLOWED = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
MODELS = {
    "gpt2": gpt2,
    "gpt2-untied": lambda: gpt2(tie_word_embeddings=False, activation_function="relu", n_inner=20),
    "llama": llama,
    "llama-slowed": lambda: llama(rope_parameters={"rope_theta": 1e4, **SLOWED}),
    "llama-tied": lambda: llama(tie_word_embeddings=True, num_key_value_heads=4, rope_theta=500.0),
    "llama-odd": lambda: llama(head_dim=10, num_key_value_heads=1, attention_bias=True, mlp_bias=True),
    "mistral": lambda: mistral(sliding_window=None, head_dim=8),
    "qwen2": qwen2,
    "qwen2-slowed": lambda: qwen2(rope_parameters={"rope_theta": 1e4, "rope_type": "linear", "factor": 2.0}),
    "qwen2-tied": lambda: qwen2(tie_word_embeddings=True, rope_theta=1e6),
}


def bring(folder: Path, **options: Any) -> LoadedModel:
    import_model(folder, folder.parent / "ours", **options)
    return load_model(folder.parent / "ours")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("shards", ["1GB", "20KB"])
def test_logits_equal_those_of_transformers(name: str, shards: str, tmp_path: Path) -> None:
    theirs = MODELS[name]()
    folder = save_huggingface(theirs, tmp_path / "theirs", shards)
    assert (folder / "model.safetensors.index.json").exists() == (shards == "20KB")
    logits_equal(bring(folder).model, theirs)


def test_half_precision_is_kept_without_loss(tmp_path: Path) -> None:
    folder = save_huggingface(llama().half(), tmp_path / "theirs")
    loaded = bring(folder)
    report = json.loads((loaded.path / "import.json").read_text())
    assert report["storage"] == "fp16"
    assert set(report["weights"]) == {"F16"}
    logits_equal(loaded.model, LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32))


def test_tokens_and_marks_come_along(tmp_path: Path) -> None:
    folder = save_huggingface(llama(eos_token_id=[1, 5]), tmp_path / "theirs", chat_template="{{ messages }}")
    loaded, theirs = bring(folder), AutoTokenizer.from_pretrained(folder)
    for text in SENTENCES:
        assert loaded.tokenizer.encode(text) == theirs(text).input_ids
        assert loaded.tokenizer.decode(loaded.tokenizer.encode(text)) == text
    assert loaded.tokenizer.marks.start is None  # their tokenizer puts nothing in front
    assert loaded.tokenizer.marks.ends == (1, 5)
    assert loaded.tokenizer.marks.chat_template == "{{ messages }}"
    assert loaded.about["context"] == 64
    assert loaded.task == "complete"


def test_a_mark_that_the_tokenizer_puts_in_front_is_found(tmp_path: Path) -> None:
    folder = save_huggingface(llama(), tmp_path / "theirs")
    data = json.loads((folder / "tokenizer.json").read_text())
    data["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<|start|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<|start|>": {"id": "<|start|>", "ids": [0], "tokens": ["<|start|>"]}},
    }
    (folder / "tokenizer.json").write_text(json.dumps(data))
    assert bring(folder).tokenizer.marks.start == 0


def as_pair(folder: Path, vocab: str = "vocab.json", merges: str = "merges.txt") -> Path:
    """The tokenizer as GPT-2 came, in two files."""
    data = json.loads((folder / "tokenizer.json").read_text())["model"]
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    (folder / vocab).write_text(json.dumps(data["vocab"]))
    lines = "\n".join(" ".join(pair) for pair in data["merges"])
    (folder / merges).write_text(f"#version: 0.2\n{lines}\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("names", [("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe")])
def test_gpt2_s_own_files(names: tuple[str, str], tmp_path: Path) -> None:
    tokenizer = bring(as_pair(save_huggingface(gpt2(), tmp_path / "theirs"), *names)).tokenizer
    for text in SENTENCES:
        assert tokenizer.encode(text) == byte_level_core().encode(text).ids
        assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("whole", [True, False])
def test_add_bos_token_counts_only_without_a_tokenizer_json(whole: bool, tmp_path: Path) -> None:
    folder = save_huggingface(gpt2(), tmp_path / "theirs")
    folder = folder if whole else as_pair(folder)
    about = {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "bos_token": "<|start|>"}
    about |= {"eos_token": "<|end|>", "unk_token": "<|end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    marks, theirs = bring(folder).tokenizer.marks, AutoTokenizer.from_pretrained(folder)
    assert (marks.start is not None) == (theirs("hi").input_ids[0] == 0) == (not whole)
    assert marks.bos == theirs.bos_token_id == 0


@pytest.mark.parametrize("marks", ["none", "start", "end"])
def test_a_tokenizer_that_knows_few_letters(marks: str, tmp_path: Path) -> None:
    """No token stands for what is unknown: "a" is nothing at all."""
    core = Core(models.BPE({"<|start|>": 0, "<|end|>": 1, "A": 2, "C": 3, "G": 4, "T": 5}, []))
    core.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    form = {"none": "$A", "start": "<|start|> $A", "end": "$A <|end|>"}[marks]
    core.post_processor = processors.TemplateProcessing(
        single=form, pair="$A $B", special_tokens=[("<|start|>", 0), ("<|end|>", 1)]
    )
    folder = save_huggingface(llama(), tmp_path / "theirs")
    core.save(str(folder / "tokenizer.json"))
    tokenizer, theirs = bring(folder).tokenizer, AutoTokenizer.from_pretrained(folder)
    assert tokenizer.marks.start == (0 if marks == "start" else None)
    assert tokenizer.encode("GATTACA") == theirs("GATTACA", add_special_tokens=False).input_ids == [4, 2, 5, 5, 2, 3, 2]


TALK = "<|user|>hi <think>so</think> there"


@pytest.mark.parametrize("old", [True, False])
def test_tokens_beside_gpt2_s_files(old: bool, tmp_path: Path) -> None:
    folder = as_pair(save_huggingface(gpt2(), tmp_path / "theirs"))
    added = {"<|user|>": 300, "<think>": 301, "</think>": 302}
    how = {"lstrip": False, "rstrip": False, "normalized": False, "single_word": False}
    table = {str(i): {"content": text, "special": text == "<|user|>", **how} for text, i in added.items()}
    about = {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True} | dict.fromkeys(
        ("bos_token", "eos_token", "unk_token"), "<|end|>"
    )
    if old:
        (folder / "added_tokens.json").write_text(json.dumps(added))
        about["additional_special_tokens"] = ["<|user|>"]
    (folder / "tokenizer_config.json").write_text(json.dumps(about if old else about | {"added_tokens_decoder": table}))
    tokenizer, theirs = bring(folder).tokenizer, AutoTokenizer.from_pretrained(folder)
    assert tokenizer.encode_marked(TALK) == theirs(TALK).input_ids
    assert {*added.values()} <= {*tokenizer.encode_marked(TALK)}
    assert 300 not in tokenizer.encode(TALK)  # a text cannot speak in marks
    assert tokenizer.encode("hi") == theirs("hi").input_ids


def test_tokens_beside_that_have_no_place(tmp_path: Path) -> None:
    folder = as_pair(save_huggingface(gpt2(), tmp_path / "theirs"))
    for added in ({"<more>": 305}, {"<more>": 3}, {"<more>": "x"}, {"<more>": [1]}, {"": 300}):
        (folder / "added_tokens.json").write_text(json.dumps(added))
        refused(folder, "adds the token")


@pytest.mark.parametrize("model", [qwen2, llama])
def test_the_pair_of_files_is_gpt2_s_alone(model: Any, tmp_path: Path) -> None:
    refused(as_pair(save_huggingface(model(), tmp_path / "theirs")), "is no whole tokenizer")


def test_the_tokenizer_s_own_end_goes_first(tmp_path: Path) -> None:
    folder = save_huggingface(llama(eos_token_id=[5, 1]), tmp_path / "theirs")
    assert bring(folder).tokenizer.marks.ends == (1, 5)  # <|end|> is number 1


def test_padding_and_cutting_of_a_tokenizer_are_left_behind(tmp_path: Path) -> None:
    folder = save_huggingface(llama(), tmp_path / "theirs")
    core = byte_level_core()
    core.enable_truncation(3)
    core.enable_padding(length=8)
    core.save(str(folder / "tokenizer.json"))
    tokenizer = bring(folder).tokenizer
    assert tokenizer.decode(tokenizer.encode(SENTENCES[0])) == SENTENCES[0]


def test_another_tokenizer_may_be_given(tmp_path: Path) -> None:
    folder = save_huggingface(llama(), tmp_path / "theirs")
    (folder / "tokenizer.json").rename(tmp_path / "other.json")
    assert bring(folder, tokenizer=tmp_path / "other.json").tokenizer.vocab_size == 300


def test_the_report_says_what_was_done(tmp_path: Path) -> None:
    folder = save_huggingface(llama(), tmp_path / "theirs")
    report = import_model(folder, tmp_path / "ours")
    assert report == json.loads((tmp_path / "ours" / "import.json").read_text())
    assert report["source"] == "theirs"
    assert report["parameters"] == sum(p.numel() for p in llama().parameters())
    assert all(check["passed"] for check in report["checks"])
    assert report["greedy"]["text"].startswith("Once upon a time")
    card = (tmp_path / "ours" / "README.md").read_text()
    assert f"{report['parameters']:,}" in card
    assert "logits against" in card


def test_older_configs_without_architectures(tmp_path: Path) -> None:
    folder = save_huggingface(llama(), tmp_path / "theirs")
    change_json(folder / "config.json", architectures=None)
    bring(folder)


def change_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def refused(folder: Path, message: str, **options: Any) -> None:
    with pytest.raises(UserError, match=message) as caught:
        import_model(folder, folder.parent / "ours", **options)
    assert caught.value.hint
    assert not (folder.parent / "ours").exists()
    assert not list(folder.parent.glob(".ours*"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_huggingface(llama(), tmp_path / "theirs", "20KB")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 8.0}}, "slows turns only"),
        (
            {"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0}},
            "needs low_freq_factor, high_freq_factor",
        ),
        ({"model_type": "mamba"}, "model_type = mamba"),
        ({"model_type": "bert", "architectures": ["BertModel"]}, "no place for the weights|no field"),
        ({"num_hidden_layers": 1}, "has no place in it"),
        ({"num_hidden_layers": 3}, "decoder.n_layers = 3, but the weights are not so many"),
        ({"num_hidden_layers": 10**9}, "decoder.n_layers = 1000000000"),
        ({"vocab_size": 10**15}, "source.vocab_size = 1000000000000000"),
        ({"hidden_size": 2**40}, "the weights are not so many"),
        ({"hidden_size": -4}, "d_model|must be"),
        ({"vocab_size": 319}, "has shape"),
        ({"eos_token_id": None}, "which token ends a text"),
    ],
)
def test_a_config_that_does_not_fit(changes: dict[str, Any], message: str, folder: Path) -> None:
    change_json(folder / "config.json", **changes)
    if "eos_token_id" in changes:
        change_json(folder / "generation_config.json", eos_token_id=None)
        change_json(folder / "tokenizer_config.json", eos_token=None)
    refused(folder, message)


@pytest.mark.parametrize("name", ["../evil.safetensors", "/etc/passwd", "..", "", "a/b.safetensors", "pytorch.bin"])
def test_an_index_stays_in_its_folder(name: str, folder: Path) -> None:
    index = folder / "model.safetensors.index.json"
    places = json.loads(index.read_text())["weight_map"]
    change_json(index, weight_map=places | {"model.norm.weight": name})
    refused(folder, "no .safetensors file of this folder")


def test_shards(folder: Path) -> None:
    index, first = folder / "model.safetensors.index.json", next(folder.glob("*-00001-*.safetensors"))
    good, whole = index.read_text(), first.read_bytes()
    for places in (None, [], {}, {"a": 3}, "x"):
        change_json(index, weight_map=places)
        refused(folder, "does not say where the weights are")
    index.write_text(good)
    change_json(index, weight_map=json.loads(good)["weight_map"] | {"model.more.weight": first.name})
    refused(folder, "lacks model.more.weight")
    index.write_text(good)
    first.write_bytes(whole[:100])
    refused(folder, "is damaged")
    first.unlink()
    refused(folder, f"lacks {first.name}")


def save_as_torch(folder: Path) -> None:
    """The same weights as files of torch.save, as models were published before safetensors."""
    for path in sorted(folder.glob("*.safetensors")):
        torch.save(load_file(path), path.with_suffix(".bin"))
        path.unlink()
    if (whole := folder / "model.bin").exists():
        whole.rename(folder / "pytorch_model.bin")
    if (index := folder / "model.safetensors.index.json").exists():
        index.rename(folder / "pytorch_model.bin.index.json")
        said = (folder / "pytorch_model.bin.index.json").read_text()
        (folder / "pytorch_model.bin.index.json").write_text(said.replace(".safetensors", ".bin"))


@pytest.mark.parametrize("name", ["gpt2", "llama"])
@pytest.mark.parametrize("shards", ["1GB", "20KB"])
def test_files_of_torch_are_read(name: str, shards: str, tmp_path: Path) -> None:
    theirs = MODELS[name]()
    folder = save_huggingface(theirs, tmp_path / "theirs", shards)
    save_as_torch(folder)
    assert not list(folder.glob("*.safetensors*"))
    logits_equal(bring(folder).model, theirs)


class Evil:
    """What a pickle may hold: a call."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("evil"),))


def test_no_pickle_is_ever_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = save_huggingface(llama(), tmp_path / "theirs")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    refused(folder, "not a file of weights")
    torch.save({"model.norm.weight": Evil()}, folder / "pytorch_model.bin")
    refused(folder, "nothing in it is run here")
    assert not (tmp_path / "evil").exists()
    torch.save([1, 2], folder / "pytorch_model.bin")
    refused(folder, "holds no weights by name")
    torch.save({"more": torch.zeros(2)}, folder / "pytorch_model.bin")
    refused(folder, "has no place for the weights more")
    torch.save({}, folder / "model.bin")
    refused(folder / "model.bin", "is a pickle")
    (folder / "pytorch_model.bin").unlink()
    refused(folder, "holds model.bin, but its weights are looked for in")
    (folder / "model.bin").rename(folder / "x.pth")
    refused(folder / "x.pth", "is a pickle")


def test_weights_that_are_no_numbers(tmp_path: Path) -> None:
    folder = save_huggingface(llama(), tmp_path / "theirs")
    weights = load_file(folder / "model.safetensors")
    bad = weights | {"model.norm.weight": torch.full((32,), torch.nan)}
    save_file(bad, folder / "model.safetensors", metadata={"format": "pt"})
    refused(folder, "no numbers")
    bad = weights | {"model.norm.weight": torch.ones(32, dtype=torch.int8)}
    save_file(bad, folder / "model.safetensors", metadata={"format": "pt"})
    refused(folder, "model.norm.weight is stored as int8")


def test_a_tokenizer_that_does_not_fit(tmp_path: Path) -> None:
    folder = save_huggingface(gpt2(), tmp_path / "theirs")
    byte_level_core(380).save(str(folder / "tokenizer.json"))
    refused(folder, "does not fit the weights: its last token is number 3")
    (folder / "tokenizer.json").unlink()
    refused(folder, "holds no tokenizer.json")
    (folder / "vocab.json").write_text('{"a": 0, "b": 2}')
    (folder / "merges.txt").write_text("a b\n")
    refused(folder, "a number of its own from 0 on")
    (folder / "vocab.json").write_text('{"a": 0, "b": 1}')
    refused(folder, "which make no token of it")
    (folder / "merges.txt").write_text("a b c\n")
    refused(folder, "does not join two tokens")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "generation_config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("text", ["", "{", "[1]", "[" * 100_000, '{"a": "\ud800"}', "null", '{"x": 1e999}'])
def test_json_that_is_none(name: str, text: str, folder: Path) -> None:
    (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
    if text == '{"x": 1e999}' and name in ("generation_config.json", "tokenizer_config.json"):
        return
    refused(folder, "cannot be read|holds no JSON|is not a tokenizer|cannot be read|model_type")


@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "tokenizer_config.json"])
def test_any_value_is_read_or_refused(name: str, tmp_path: Path) -> None:
    folder = save_huggingface(llama(num_hidden_layers=1), tmp_path / "theirs", chat_template="{{ messages }}")
    good = json.loads((folder / name).read_text()) | {"add_bos_token": True}
    for field in good:
        for junk in (None, -1, 2**70, "x", {"x": []}):
            (folder / name).write_text(json.dumps(good | {field: junk}))
            with suppress(UserError):
                foreign = read_foreign(folder)
                prove(foreign, convert(foreign))
    (folder / name).write_text(json.dumps(good))
    foreign = read_foreign(folder)  # the good one is still good
    prove(foreign, convert(foreign))


@pytest.mark.parametrize("make", [gpt2, llama, mistral, qwen2])
def test_what_a_config_leaves_out_is_what_transformers_takes(make: Any, tmp_path: Path) -> None:
    theirs = make()
    folder = save_huggingface(theirs, tmp_path / "theirs")
    said = json.loads((folder / "config.json").read_text())
    left_out = {"activation_function", "rms_norm_eps", "hidden_act", "initializer_range", "layer_norm_epsilon"}
    left_out |= {"embd_pdrop", "attn_pdrop", "resid_pdrop", "attention_dropout"}
    (folder / "config.json").write_text(json.dumps({k: v for k, v in said.items() if k not in left_out}))
    loaded = bring(folder)
    logits_equal(loaded.model, type(theirs).from_pretrained(folder).eval())
    usual = type(theirs.config)()
    settings = loaded.model.settings
    assert settings.init_std == usual.initializer_range
    assert settings.source.dropout == getattr(usual, "embd_pdrop", 0.0)
    assert settings.decoder.dropout == getattr(usual, "resid_pdrop", 0.0)
    assert settings.decoder.attention.dropout == getattr(usual, "attn_pdrop", 0.0)


@pytest.mark.parametrize(
    ("scaling", "fits"),
    [
        ({"type": "linear", "factor": 2.0}, True),
        ({"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}, True),
        ({}, True),
        (None, True),
        ({"type": "linear", "factor": 4.0}, False),
        ({"rope_type": "default"}, False),
    ],
)
def test_turns_that_are_told_twice(scaling: Any, fits: bool, tmp_path: Path) -> None:
    theirs = llama(rope_parameters={"rope_theta": 1e4, "rope_type": "linear", "factor": 2.0})
    folder = save_huggingface(theirs, tmp_path / "theirs")
    change_json(folder / "config.json", rope_scaling=scaling)
    if fits:
        logits_equal(bring(folder).model, theirs)
    else:
        refused(folder, "finds something else in rope_parameters")


def test_a_mistral_of_another_kind(tmp_path: Path) -> None:
    folder = save_huggingface(mistral(), tmp_path / "theirs")
    change_json(folder / "config.json", architectures=["MistralForTokenClassification"])
    refused(folder, "architectures = .*MistralForTokenClassification")


def test_the_place_and_the_source_are_checked_first(folder: Path, tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "There is no file or folder")
    refused(folder / "config.json", "is a part of a Hugging Face directory")
    refused(folder, "is a folder, but gguf is to be read", form="gguf")
    refused(folder / "config.json", "is a file, but huggingface", form="huggingface")
    refused(folder, "There is no format 'onnx'", form="onnx")
    refused(folder, "There is no tokenizer file", tokenizer=tmp_path / "none.json")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "config.json is missing")
    (tmp_path / "empty" / "settings.json").write_text("{}")
    refused(tmp_path / "empty", "a model of Glassformer already")
    (tmp_path / "model.h5").write_bytes(b"12345")
    refused(tmp_path / "model.h5", "in no format that is known")
    with pytest.raises(UserError, match="exists already"):
        import_model(folder, folder)
    with pytest.raises(UserError, match="There is no folder"):
        import_model(folder, tmp_path / "a" / "b")


def test_where_a_model_looks_back_only_so_far_its_context_ends(tmp_path: Path) -> None:
    theirs = mistral(sliding_window=24, head_dim=8)
    loaded = bring(save_huggingface(theirs, tmp_path / "theirs"))
    assert loaded.about["context"] == 24
    ids = torch.randint(0, 320, (1, 24), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(loaded.model(ids), theirs(ids).logits, atol=1e-4, rtol=1e-4)
