"""Tiny models as other houses write them: by transformers itself, and as GGUF and llama2.c from the same weights."""

import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from tokenizers import AddedToken, decoders, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as Core
from torch import Tensor
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from glassformer.model import DecoderOnly

SENTENCES = [
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park.",
    "One day, she saw a big, red ball. She wanted to play with it, but it was too high.",
    "It's 7 o'clock -- don't be late! 12345 times 2 is 24690.",
    "Grüße aus Köln, ¿qué tal?, ελληνικά, 日本語, 🙂",
]
LLAMA: dict[str, Any] = {
    "vocab_size": 320,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
GPT2: dict[str, Any] = {
    "vocab_size": 320,
    "n_positions": 64,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
QUANTISATION = gguf.GGMLQuantizationType


@torch.no_grad()
def rough(model: PreTrainedModel) -> Any:
    """Nothing keeps its first value, so that whatever is not copied is seen."""
    for name, weight in model.named_parameters():
        around = 1.0 if weight.dim() == 1 and name.endswith("weight") else 0.0
        weight.copy_(around + torch.randn_like(weight) * (0.2 if weight.dim() == 1 else weight.shape[-1] ** -0.5))
    return model.eval()


def llama(**changes: Any) -> LlamaForCausalLM:
    return rough(LlamaForCausalLM(LlamaConfig(**LLAMA | changes)))


def mistral(**changes: Any) -> MistralForCausalLM:
    return rough(MistralForCausalLM(MistralConfig(**LLAMA | changes)))


def qwen2(**changes: Any) -> Qwen2ForCausalLM:
    return rough(Qwen2ForCausalLM(Qwen2Config(**LLAMA | changes)))


def gpt2(**changes: Any) -> GPT2LMHeadModel:
    return rough(GPT2LMHeadModel(GPT2Config(**GPT2 | changes)))


def byte_level_core(size: int = 300) -> Core:
    """Byte-level BPE with two marks at the start of the vocabulary."""
    core = Core(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<|start|>", "<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(SENTENCES, trainer)
    return core


def save_huggingface(model: PreTrainedModel, folder: Path, max_shard_size: str = "1GB", **marks: Any) -> Path:
    """A directory as transformers writes it, tokenizer and all."""
    model.save_pretrained(folder, max_shard_size=max_shard_size)
    marks = {"bos_token": "<|start|>", "eos_token": "<|end|>"} | marks
    PreTrainedTokenizerFast(tokenizer_object=byte_level_core(), **marks).save_pretrained(folder)
    return folder


def logits_equal(ours: DecoderOnly, theirs: PreTrainedModel, tolerance: float = 1e-4) -> None:
    ids = torch.randint(theirs.config.vocab_size, (2, 30), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        mine, wanted = ours(ids), theirs(ids).logits
    assert 0.1 < wanted.abs().mean() < 100  # so that the tolerance means something
    torch.testing.assert_close(mine, wanted, atol=tolerance, rtol=0)


def to_pairs(weight: Tensor, n_heads: int) -> Tensor:
    """Hugging Face's rows of queries or keys in the order of GGUF and llama2.c: row i beside row i + d/2."""
    first, second = weight.view(n_heads, 2, -1, weight.shape[-1]).unbind(1)
    return torch.stack([first, second], dim=2).reshape(weight.shape)


GGUF_PARTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def gguf_tensors(model: LlamaForCausalLM) -> dict[str, Tensor]:
    state, config = model.state_dict(), model.config
    names = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
    names |= {} if config.tie_word_embeddings else {"output": "lm_head"}
    for i in range(config.num_hidden_layers):
        names |= {f"blk.{i}.{theirs}": f"model.layers.{i}.{part}" for theirs, part in GGUF_PARTS.items()}
    found = {f"{theirs}.weight": state[f"{name}.weight"] for theirs, name in names.items()}
    for name, weight in found.items():
        if "attn_q" in name or "attn_k" in name:
            heads = config.num_attention_heads if "attn_q" in name else config.num_key_value_heads
            found[name] = to_pairs(weight, heads)
    return found


def new_gguf(path: Path, model: LlamaForCausalLM) -> gguf.GGUFWriter:
    """A writer that knows the model's sizes."""
    writer, config = gguf.GGUFWriter(path, "llama"), model.config
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_vocab_size(config.vocab_size)
    return writer


def add_byte_level(writer: gguf.GGUFWriter, core: Core, pre: str = "gpt-2") -> None:
    import json

    data = json.loads(core.to_str())
    tokens = [core.id_to_token(i) for i in range(core.get_vocab_size())]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([3 if i < 2 else 1 for i in range(len(tokens))])
    writer.add_token_merges([" ".join(pair) for pair in data["model"]["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_chat_template("{{ messages[0]['content'] }}")


def add_pieces(writer: gguf.GGUFWriter, pieces: list[str], scores: list[float]) -> None:
    writer.add_tokenizer_model("llama")
    writer.add_token_list(pieces)
    writer.add_token_scores(scores)
    kinds = [2 if i == 0 else 3 if i < 3 else 6 if i < 259 else 1 for i in range(len(pieces))]
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)


def finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_gguf(path: Path, model: LlamaForCausalLM, quantisation: str = "F32") -> Path:
    """A whole file; norms stay in F32, as llama.cpp keeps them."""
    writer = new_gguf(path, model)
    add_byte_level(writer, byte_level_core())
    kind = QUANTISATION[quantisation]
    for name, weight in gguf_tensors(model).items():
        this = kind if weight.dim() == 2 else QUANTISATION.F32
        writer.add_tensor(name, quantise(weight.numpy(), this), raw_dtype=this)
    finish(writer)
    return path


def quantise(weight: np.ndarray, kind: QUANTISATION) -> np.ndarray:
    """Blocks of that kind: the package's own where it can, else random ones of sensible size."""
    try:
        return gguf.quantize(weight, kind)
    except NotImplementedError:
        n, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = np.random.default_rng(weight.size).integers(0, 256, (weight.size // n, size), dtype=np.uint8)
        places = {"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}[kind.name]
        scale = np.float16(1e-3 if kind.name in ("Q2_K", "Q3_K") else 1e-4)
        for place in places:  # the 16-bit scales
            blocks[:, place : place + 2] = np.frombuffer(scale.tobytes(), np.uint8)
        return blocks.reshape(weight.shape[0], -1)


def scored_pieces() -> tuple[list[str], list[float]]:
    """A vocabulary as SentencePiece makes it: marks, bytes, then pieces, the later the worse."""
    core = Core(models.BPE())
    core.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", split=True)
    trainer = trainers.BpeTrainer(vocab_size=150, show_progress=False)
    core.train_from_iterator([text for text in SENTENCES if text.isascii()], trainer)
    learned = sorted(core.get_vocab().items(), key=lambda item: (len(item[0]) == 1, item[1]))  # letters come last
    pieces = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)] + [piece for piece, _ in learned]
    return pieces, [0.0] * 259 + [-float(i) for i in range(len(learned))]


def write_llama2c(path: Path, model: LlamaForCausalLM, version: int = 0) -> Path:
    """The .bin file and a tokenizer.bin beside it."""
    config, tensors = model.config, gguf_tensors(model)
    tied = config.tie_word_embeddings
    vocab_size = config.vocab_size if tied or version else -config.vocab_size
    sizes = [config.hidden_size, config.intermediate_size, config.num_hidden_layers, config.num_attention_heads]
    header = struct.pack("<7i", *sizes, config.num_key_value_heads, vocab_size, config.max_position_embeddings)
    if version:
        header = (struct.pack("<Ii", 0x616B3432, version) + header + struct.pack("B", tied)).ljust(256, b"\0")
    layers = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_down", "ffn_up"]
    if version:
        order = ["attn_norm", "ffn_norm", "output_norm", "token_embd", *layers]
    else:
        order = ["token_embd", "attn_norm", *layers[:4], "ffn_norm", *layers[4:], "output_norm", "rotary"]
    order += [] if tied else ["output"]
    parts = []
    for name in order:
        if name == "rotary":
            parts.append(torch.zeros(config.max_position_embeddings * config.head_dim))
        elif name in ("token_embd", "output_norm", "output"):
            parts.append(tensors[f"{name}.weight"].flatten())
        else:
            parts += [tensors[f"blk.{i}.{name}.weight"].flatten() for i in range(config.num_hidden_layers)]
    path.write_bytes(header + torch.cat(parts).numpy().tobytes())
    write_tokenizer_bin(path.parent / "tokenizer.bin", *scored_pieces())
    return path


def write_tokenizer_bin(path: Path, pieces: list[str], scores: list[float]) -> Path:
    shown = {"<s>": "\n<s>\n", "</s>": "\n</s>\n"}
    data = struct.pack("<i", max(len(piece.encode()) for piece in pieces))
    for piece, score in zip(pieces, scores, strict=True):
        text = shown.get(piece, piece).replace("▁", " ").encode()
        data += struct.pack("<fi", score, len(text)) + text
    path.write_bytes(data)
    return path


def special(text: str) -> AddedToken:
    return AddedToken(text, normalized=False, special=True)
