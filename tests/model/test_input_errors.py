"""Bad input meets one sentence that names the setting and a hint that names the way out; never torch's own words."""

from typing import Any

import pytest
import torch

from glassformer.model import Memory, MultiHeadAttention
from glassformer.model.settings import (
    ClassHeadSettings,
)
from tests.builders import (
    Case,
    decoder_only,
    encoder_decoder,
    encoder_only,
    left_keep,
    random_ids,
    refused_in_our_words,
    stack,
    tokens,
)


def bools(*shape: int) -> torch.Tensor:
    return torch.ones(*shape, dtype=torch.bool)


IDS = random_ids(2, 4)
SERIES = torch.randn(2, 4, 6)
PICTURES = torch.randn(2, 2, 8, 12)
CLASS = ClassHeadSettings()


def classify(front_end: str, *arguments: Any, **named: Any) -> Any:
    return encoder_only(front_end, head=CLASS)(*arguments, **named)


def cached(n: int, b: int = 2) -> Any:
    model = decoder_only()
    return model(random_ids(b, n), cache=model.new_cache(2, 5))


def decode_over(rows: int, ids: torch.Tensor) -> Any:
    model = encoder_decoder()
    return model.decode(ids, model.encode(random_ids(rows, 3)))


# What is wrong: the call, a piece of the message, a piece of the hint.
INPUTS: dict[str, Case] = {
    "id too large": (
        lambda: decoder_only()(IDS + 29),
        "out of range: vocab_size is 29, so ids go from 0 to 28",
        "vocab",
    ),
    "id below zero": (lambda: decoder_only()(IDS - 29), "The id -", "tokenizer"),
    "source id too large": (lambda: encoder_decoder()(IDS + 29, IDS), "vocab_size is 29", "tokenizer"),
    "target id too large": (lambda: encoder_decoder()(IDS, IDS + 29), "vocab_size is 29", "tokenizer"),
    "type too large": (lambda: encoder_only()(IDS, types=torch.full_like(IDS, 2)), "n_types is 2", "n_types"),
    "types of another shape": (lambda: encoder_only()(IDS, types=IDS[:, :2] % 2), "types have shape (2, 2)", "each id"),
    "types without a table": (lambda: encoder_only(source=tokens())(IDS, types=IDS * 0), "n_types is 0", "None"),
    "types of vectors": (lambda: classify("vectors", SERIES, types=IDS), "source is vectors", "types = None"),
    "float ids": (lambda: decoder_only()(IDS.float()), "torch.float32", "int64"),
    "bool ids": (lambda: decoder_only()(IDS > 3), "torch.bool", "int64"),
    "one row without a batch": (lambda: decoder_only()(IDS[0]), "shape (4,)", "(batch, length)"),
    "empty rows": (lambda: decoder_only()(IDS[:, :0]), "shape (2, 0)", "at least one id a row"),
    "no rows": (lambda: decoder_only()(IDS[:0]), "shape (0, 4)", "(batch, length)"),
    "cached row without a batch": (
        lambda: (model := decoder_only())(IDS[0], cache=model.new_cache(1, 9)),
        "shape (4,)",
        "(batch, length)",
    ),
    "keep of another length": (lambda: decoder_only()(IDS, bools(2, 5)), "keep has shape (2, 5)", "(2, 4)"),
    "keep of ones": (lambda: decoder_only()(IDS, bools(2, 4).long()), "type torch.int64", "bool tensor"),
    "source keep": (lambda: encoder_decoder()(IDS, IDS, bools(2, 3)), "keep has shape (2, 3)", "(2, 4)"),
    "target keep": (lambda: encoder_decoder()(IDS, IDS, None, bools(1, 4)), "keep has shape (1, 4)", "(2, 4)"),
    "vectors keep": (lambda: classify("vectors", SERIES, bools(2, 3)), "keep has shape (2, 3)", "(2, 4)"),
    "frames keep": (lambda: classify("frames", SERIES, bools(3, 4)), "keep has shape (3, 4)", "(2, 4)"),
    "frames padded on the left": (
        lambda: classify("frames", SERIES, left_keep([4, 2], 4)),
        "padding before real frames",
        "at the end",
    ),
    "mask of another size": (lambda: decoder_only().states(IDS, mask=bools(3, 3)), "mask has shape (3, 3)", "(4, 4)"),
    "float mask": (lambda: decoder_only().states(IDS, mask=torch.zeros(4, 4)), "torch.float32", "bool tensor"),
    "mask without a place for heads": (
        lambda: decoder_only().states(IDS, mask=bools(4, 4, 4)),
        "mask has shape (4, 4, 4)",
        "(2, 1, 4, 4)",
    ),
    "mask straight into attention": (
        lambda: MultiHeadAttention(stack())(torch.randn(2, 4, 16), mask=bools(4, 3)),
        "(2, 4, 4, 4)",
        "(4, 4)",
    ),
    "mask and causal at once": (
        lambda: MultiHeadAttention(stack())(torch.randn(2, 4, 16), mask=bools(4, 4), causal=True),
        "causal",
        "look_ahead",
    ),
    "longer than learned": (
        lambda: decoder_only("learned")(random_ids(1, 41)),
        "41 positions long, but positions.max_len is 40",
        "larger positions.max_len",
    ),
    "cache grows over learned": (
        lambda: (model := decoder_only("learned"))(random_ids(1, 41), cache=model.new_cache(1, 50)),
        "max_len is 40",
        "Shorten",
    ),
    "cache overflow": (lambda: cached(6), "The cache holds 5 positions, but 6 are asked for", "larger capacity"),
    "cache of other rows": (lambda: cached(2, b=1), "The cache has 2 rows, but the input has 1", "cache.select"),
    "cache and positions": (
        lambda: (model := decoder_only()).states(IDS, cache=model.new_cache(2, 9), positions=IDS),
        "by itself",
        "None",
    ),
    "truncating to more": (
        lambda: decoder_only().new_cache(2, 5).truncate(1),
        "holds 0 positions, not 1",
        "from 0 to 0",
    ),
    "positions of another shape": (
        lambda: decoder_only().states(IDS, positions=torch.arange(3)),
        "positions have shape (3,)",
        "(2, 4)",
    ),
    "float positions": (lambda: decoder_only().states(IDS, positions=torch.zeros(2, 4)), "torch.float32", "int64"),
    "negative positions": (
        lambda: decoder_only("learned").states(IDS, positions=torch.arange(4) - 1),
        "below 0",
        "from 0",
    ),
    "memory of other rows": (
        lambda: decode_over(3, IDS),
        "The memory has 3 rows, but the target has 2",
        "group of beams",
    ),
    "memory of more rows": (
        lambda: decode_over(2, IDS[:1]),
        "The memory has 2 rows, but the target has 1",
        "group of beams",
    ),
    "memory of another width": (
        lambda: encoder_decoder().decode(IDS, Memory(torch.randn(2, 3, 12), None)),
        "The memory is 12 wide, but the decoder looks at one of 16",
        "the model that encoded",
    ),
    "no memory": (lambda: encoder_decoder().decoder(torch.randn(2, 4, 16)), "memory", "encoder's output"),
    "memory to an encoder": (
        lambda: encoder_decoder().encoder(torch.randn(2, 4, 16), memory=torch.randn(2, 4, 16)),
        "memory",
        "decoder",
    ),
    "other features": (lambda: classify("vectors", SERIES[:, :, :5]), "(batch, length, 6)", "source.n_features"),
    "other frame features": (lambda: classify("frames", SERIES[:, :, :5]), "(batch, length, 6)", "source.n_features"),
    "whole numbers for vectors": (lambda: classify("vectors", SERIES.long()), "torch.int64", "float tensor"),
    "no vectors": (lambda: classify("vectors", SERIES[:, :0]), "shape (2, 0, 6)", "that shape"),
    "no rows of vectors": (lambda: classify("vectors", SERIES[:0]), "shape (0, 4, 6)", "that shape"),
    "one series without a batch": (lambda: classify("frames", SERIES[0]), "shape (4, 6)", "that shape"),
    "picture of another size": (lambda: classify("patches", PICTURES[:, :, :4]), "(2, 2, 4, 12)", "patches.height"),
    "picture of another depth": (lambda: classify("patches", PICTURES[:, :1]), "(2, 8, 12)", "patches.n_channels"),
    "one picture without a batch": (lambda: classify("patches", PICTURES[0]), "(2, 8, 12)", "Resize"),
    "picture of bytes": (lambda: classify("patches", PICTURES.byte()), "torch.uint8", "255"),
    "padded pictures": (lambda: classify("patches", PICTURES, bools(2, 7)), "no padding", "keep = None"),
}


@pytest.mark.parametrize("case", INPUTS.values(), ids=list(INPUTS))
def test_an_impossible_input_is_refused_by_name(case: Case) -> None:
    refused_in_our_words(*case)
