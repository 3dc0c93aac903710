"""Texts laid end to end: C++ between the products gives what torch gives, for stacks of any shape."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.fast.packed import NativePackedEncoder, PackedEncoder
from glassformer.model.inputs import Tokens
from glassformer.model.settings import (
    AttentionSettings,
    FeedForwardSettings,
    NormSettings,
    StackSettings,
    TokensSettings,
)
from glassformer.model.stack import Stack
from tests.fast.test_native import needs_compiler


def both(stack_settings: StackSettings, causal: bool) -> tuple[PackedEncoder, NativePackedEncoder]:
    torch.manual_seed(3)
    source = Tokens(TokensSettings(vocab_size=50), stack_settings.d_model).eval()
    stack = Stack(stack_settings, causal=causal).eval()
    for parameter in stack.parameters():  # biases and norms too
        torch.nn.init.normal_(parameter, std=0.3)
    return tuple(kind(source, stack, stack_settings) for kind in (PackedEncoder, NativePackedEncoder))  # type: ignore[return-value]


@needs_compiler
@settings(max_examples=40, deadline=None)
@given(
    n_heads=st.integers(1, 3),
    d_k=st.integers(1, 37),
    d_ff=st.integers(1, 40),
    place=st.sampled_from(["pre", "post"]),
    kind=st.sampled_from(["layer", "rms"]),
    bias=st.sampled_from(["qkvo", "qvo", ""]),
    activation=st.sampled_from(["relu", "gelu", "gelu_tanh", "silu", "tanh"]),
    causal=st.booleans(),
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=6),
)
def test_any_stack(
    n_heads: int,
    d_k: int,
    d_ff: int,
    place: str,
    kind: str,
    bias: str,
    activation: str,
    causal: bool,
    lengths: list[int],
) -> None:
    plain, native = both(
        StackSettings(
            d_model=n_heads * d_k,
            n_layers=2,
            attention=AttentionSettings(n_heads=n_heads, bias=bias),
            feed_forward=FeedForwardSettings(d_ff=d_ff, activation=activation),  # type: ignore[arg-type]
            norm=NormSettings(kind=kind, place=place),  # type: ignore[arg-type]
        ),
        causal,
    )
    rows = [[(7 * i + n) % 50 for i in range(n)] for n in sorted(lengths)]
    expected, found = plain(rows), native(rows)
    torch.testing.assert_close(found, expected, rtol=2e-4, atol=2e-5 * float(expected.abs().max()))


@needs_compiler
@pytest.mark.parametrize("causal", [False, True])
def test_a_text_is_as_if_alone(causal: bool) -> None:
    _, native = both(StackSettings(d_model=24, n_layers=2, attention=AttentionSettings(n_heads=2)), causal)
    rows = [[1, 2, 3], [4, 5, 6, 7, 8], list(range(33))]
    together, alone = native(rows), torch.cat([native([row]) for row in rows])
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-5)


def test_heads_that_are_not_as_wide_as_the_model_together() -> None:
    """They stay with the model's own modules."""
    assert not PackedEncoder.supports(StackSettings(d_model=24, attention=AttentionSettings(n_heads=2, d_k=8, d_v=8)))
