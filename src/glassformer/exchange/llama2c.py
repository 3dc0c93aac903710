"""llama2.c's files: the .bin of weights (its first format and version 1) and the tokenizer.bin beside it.

Version 2, its int8, is not read: two layouts of it are about, and a file does not say which it has.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from glassformer.data.tokenizer import Marks, Tokenizer
from glassformer.errors import UserError, require
from glassformer.exchange.cursor import Cursor
from glassformer.exchange.foreign import Foreign, Progress, read_settings
from glassformer.exchange.pieces import scored_pieces_tokenizer

MAGIC = 0x616B3432  # "ak42", before version 1 and later
BOS, EOS = 1, 2
# llama2.c writes line feeds around these two, so that a terminal shows them well.
PLAIN_NAMES = {"\n<s>\n": "<s>", "\n</s>\n": "</s>"}


@dataclass(frozen=True)
class Header:
    version: int
    d_model: int
    d_ff: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    vocab_size: int
    context: int
    tied: bool

    @property
    def d_head(self) -> int:
        return self.d_model // self.n_heads


def read_llama2c(path: Path, tokenizer: Path | None = None, progress: Progress | None = None) -> Foreign:
    with path.open("rb") as file:
        cursor = Cursor(file, path, "llama2.c")
        header = _read_header(cursor)
        shapes = dict(_layout(header))
        stored = {name: shape for name, shape in shapes.items() if not name.startswith("rotary.")}
        read_settings(_config(header), stored)
        weights = {}
        for i, (name, shape) in enumerate(shapes.items()):
            flat = torch.from_numpy(cursor.array("<f4", shape[0] * (shape[1] if len(shape) > 1 else 1), name))
            if name in stored:  # the rotary tables follow from the settings
                weights[name] = flat.reshape(shape)
            if progress is not None:
                progress(i + 1, len(shapes))
        require(
            cursor.left == 0,
            f"{path} has {cursor.left:,} bytes more than a llama2.c file of its settings.",
            "Check that it is one; other formats are named by --from-format.",
        )
    vocabulary = _find_tokenizer(path, tokenizer, header.vocab_size)
    about = {
        "format": f"llama2.c version {header.version}",
        "source": path.name,
        "weights": {"F32": len(weights)},
        "tokenizer": f"SentencePiece BPE of {vocabulary.name}",
    }
    return Foreign(_config(header), weights, read_tokenizer(vocabulary, header.vocab_size), True, about)


def _read_header(cursor: Cursor) -> Header:
    first = cursor.number("I", "the header")
    version = cursor.number("i", "the header") if first == MAGIC else 0
    require(
        version in (0, 1),
        f"{cursor.path} is a llama2.c file of version {version}, which is not read.",
        "Export the model again with --version 0 or 1.",
    )
    rest = cursor.numbers("7i" if version else "6i", "the header")
    numbers = rest if version else (first, *rest)
    vocab_size = numbers[5]
    # The first format says by a negative size that the output has weights of its own.
    tied = cursor.number("B", "the header") == 1 if version else vocab_size > 0
    if version:
        cursor.skip_to(256, "the header")
    d_model, d_ff, n_layers, n_heads, n_kv_heads, _, context = numbers
    header = Header(version, d_model, d_ff, n_layers, n_heads, n_kv_heads, abs(vocab_size), context, tied)
    sound = min(numbers[:5]) > 0 and header.vocab_size > EOS and context > 0
    if not sound or d_model % n_heads or n_heads % n_kv_heads or header.d_head % 2:
        raise cursor.fail(f"its header holds the sizes {', '.join(map(str, numbers))}")
    # Before any name is made: each layer holds more bytes than this.
    cursor.need(4 * n_layers * d_model * (2 + d_model), f"{n_layers:,} layers")
    return header


def _layout(header: Header) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Hugging Face's name and the shape of each weight in the order of the file."""
    d, d_kv = header.d_model, header.n_kv_heads * header.d_head

    def layers(part: str, *shape: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        for i in range(header.n_layers):
            yield f"model.layers.{i}.{part}.weight", shape

    embedding = ("model.embed_tokens.weight", (header.vocab_size, d))
    if header.version:
        yield from layers("input_layernorm", d)
        yield from layers("post_attention_layernorm", d)
        yield "model.norm.weight", (d,)
        yield embedding
    else:
        yield embedding
        yield from layers("input_layernorm", d)
    yield from layers("self_attn.q_proj", d, d)
    yield from layers("self_attn.k_proj", d_kv, d)
    yield from layers("self_attn.v_proj", d_kv, d)
    yield from layers("self_attn.o_proj", d, d)
    if not header.version:
        yield from layers("post_attention_layernorm", d)
    yield from layers("mlp.gate_proj", header.d_ff, d)
    yield from layers("mlp.down_proj", d, header.d_ff)
    yield from layers("mlp.up_proj", header.d_ff, d)
    if not header.version:
        yield "model.norm.weight", (d,)
        yield from ((f"rotary.{part}", (header.context, header.d_head // 2)) for part in ("cos", "sin"))
    if not header.tied:
        yield "lm_head.weight", (header.vocab_size, d)


def _config(header: Header) -> dict[str, object]:
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": header.d_model,
        "intermediate_size": header.d_ff,
        "num_hidden_layers": header.n_layers,
        "num_attention_heads": header.n_heads,
        "num_key_value_heads": header.n_kv_heads,
        "vocab_size": header.vocab_size,
        "max_position_embeddings": header.context,
        "tie_word_embeddings": header.tied,
        # The format fixes these.
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10_000.0,
        "initializer_range": 0.02,
    }


def _find_tokenizer(path: Path, given: Path | None, vocab_size: int) -> Path:
    if given is not None:
        return given
    names = (f"tok{vocab_size}.bin", "tokenizer.bin")
    for name in names:
        if (path.parent / name).is_file():
            return path.parent / name
    raise UserError(f"There is no tokenizer {' or '.join(names)} beside {path}.", "Name it with --tokenizer FILE.")


def read_tokenizer(path: Path, vocab_size: int) -> Tokenizer:
    """A tokenizer.bin: a score and a text for each token."""
    pieces, scores = [], []
    try:
        with path.open("rb") as file:
            cursor = Cursor(file, path, "llama2.c tokenizer")
            cursor.number("i", "the header")  # the longest piece, which C needs to know
            cursor.need(8 * vocab_size, f"a vocabulary of {vocab_size:,} tokens")
            for i in range(vocab_size):
                scores.append(float(cursor.numbers("f", f"the score of token {i}")[0]))
                pieces.append(cursor.text(cursor.number("i", f"the length of token {i}"), f"token {i}"))
            left = cursor.left
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.", "Check the name.") from None
    require(
        left == 0,
        f"The tokenizer {path} does not fit the weights: it holds more than their {vocab_size:,} tokens.",
        "Take the tokenizer that the model was trained with.",
    )
    names = [PLAIN_NAMES.get(piece, piece) for piece in pieces]
    core = scored_pieces_tokenizer(names, scores, special=(0, BOS, EOS), unknown=0, start=BOS)
    return Tokenizer(core, Marks(BOS, (EOS,)))
