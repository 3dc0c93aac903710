"""Each shape is one graph for torch.compile, gives the same numbers there, and does not start anew for each length."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from glassformer.model.settings import (
    ClassHeadSettings,
    EmbeddingHeadSettings,
    RegressionHeadSettings,
    TokenHeadSettings,
)
from tests.builders import (
    POSITIONS,
    close,
    decoder_only,
    encoder_decoder,
    encoder_only,
    left_keep,
    random_ids,
    random_input,
    right_keep,
    stack,
)

KEEP = right_keep([6, 3], 6)
MODELS: dict[str, Callable[[], tuple[Any, tuple[Any, ...]]]] = {
    **{
        f"decoder {positions}": lambda p=positions: (decoder_only(p), (random_ids(2, 6),))  # type: ignore[misc]
        for positions in POSITIONS
    },
    "decoder padded on the left": lambda: (decoder_only("rotary"), (random_ids(2, 6), left_keep([6, 3], 6))),
    "encoder-decoder": lambda: (encoder_decoder(), (random_ids(2, 6), random_ids(2, 5))),
    "encoder-decoder padded": lambda: (
        encoder_decoder("rotary_grouped"),
        (random_ids(2, 6), random_ids(2, 5), KEEP, right_keep([2, 5], 5)),
    ),
    "tokens": lambda: (encoder_only(head=TokenHeadSettings(transform="gelu")), (random_ids(2, 6), KEEP)),
    "frames": lambda: (encoder_only("frames", head=ClassHeadSettings()), (random_input("frames", 2, 6), KEEP)),
    "vectors": lambda: (
        encoder_only("vectors", head=RegressionHeadSettings(pooling="last")),
        (random_input("vectors", 2, 6), KEEP),
    ),
    "patches": lambda: (
        encoder_only("patches", head=EmbeddingHeadSettings(pooling="first")),
        (random_input("patches", 2, 0),),
    ),
}


@pytest.fixture(autouse=True)
def _no_graphs_of_others() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def graphs() -> int:
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_one_graph_with_equal_output(name: str) -> None:
    model, arguments = MODELS[name]()
    before = graphs()
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    close(compiled(*arguments), model(*arguments))
    assert graphs() - before == 1


@pytest.mark.parametrize("name", ["decoder rotary", "encoder-decoder padded", "frames"])
def test_a_compiled_model_has_equal_gradients(name: str) -> None:
    model, arguments = MODELS[name]()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    weights = list(model.parameters())
    eager = torch.autograd.grad(model(*arguments).square().mean(), weights)
    for a, b in zip(torch.autograd.grad(compiled(*arguments).square().mean(), weights), eager, strict=True):
        close(a, b)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("padded", [False, True])
def test_many_lengths_share_a_few_graphs(positions: str, padded: bool) -> None:
    """A message that is made in vain, or a flag that depends on the length, would pin a graph to one length."""
    one_layer = stack(n_layers=1, attention=POSITIONS[positions][1])  # each takes long to trace, and all are alike
    model, before = decoder_only(positions, decoder=one_layer), graphs()
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    for n in range(3, 15):
        arguments: tuple[Tensor | None, ...] = (random_ids(2, n), right_keep([n, n - 1], n) if padded else None)
        close(compiled(*arguments), model(*arguments))
    assert graphs() - before <= 3


def test_a_compiled_model_reads_more_than_its_first_table_of_waves() -> None:
    model, ids = decoder_only(), random_ids(1, 600)
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    close(compiled(ids), model(ids))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("name", MODELS)
def test_the_inductor_gives_equal_output(name: str) -> None:
    model, arguments = MODELS[name]()
    compiled = torch.compile(model, fullgraph=True)
    close(compiled(*arguments), model(*arguments), 1e-4)
