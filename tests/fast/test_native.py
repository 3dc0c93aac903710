"""The stack in C++: the same sums as whole numbers by the textbook, rows that are as if alone, the cache as ever."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from glassformer.decode.complete_options import CompleteOptions
from glassformer.errors import UserError
from glassformer.fast import native
from glassformer.fast.choose import LARGE, choose_decoder
from glassformer.fast.native_stack import NativeLinear, NativeStack, log_totals, run_natively
from glassformer.model import DecoderOnly
from glassformer.model.cache import LayerCache
from glassformer.model.settings import FeedForwardSettings
from glassformer.tasks.generator import Generator
from tests.builders import encoder_decoder, left_keep, random_ids, stack
from tests.fast.decoders import DECODERS, decoder, prompts
from tests.fast.rounded import Rounded, needs_compiler, rounded


class Halves(LayerCache):
    """Keys and values that are kept in fp16."""

    def append(self, k: Tensor, v: Tensor, start: int) -> tuple[Tensor, Tensor]:
        return super().append(k.half().float(), v.half().float(), start)


def expected(model: DecoderOnly, ids: Tensor) -> Tensor:
    """What the textbook says of rounded layers, keys and values."""
    cache = model.new_cache(*ids.shape)
    cache.layers = [Halves(layer.k, layer.v) for layer in cache.layers]
    return rounded(model)(ids, cache=cache)


@needs_compiler
@settings(max_examples=60, deadline=None)
@given(
    d_in=st.integers(1, 70),
    d_out=st.integers(1, 70),
    rows=st.integers(1, 35),
    bias=st.booleans(),
    seed=st.integers(0, 99),
)
@torch.inference_mode()
def test_a_linear_layer_of_any_shape(d_in: int, d_out: int, rows: int, bias: bool, seed: int) -> None:
    torch.manual_seed(seed)
    linear, x = nn.Linear(d_in, d_out, bias=bias), torch.randn(rows, d_in)
    x[0] *= 1000  # a loud row must not blur its neighbours
    x[-1] *= 0
    found = NativeLinear(linear)(x)
    torch.testing.assert_close(found, Rounded(linear)(x), rtol=1e-5, atol=1e-5 * float(found.abs().max()))
    assert torch.equal(NativeLinear(linear)(x[rows // 2 :]), found[rows // 2 :])


@needs_compiler
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("d_in", [4, 8, 64, 300])
@torch.inference_mode()
def test_the_largest_sums_that_there_are(d_in: int, sign: int) -> None:
    linear, x = nn.Linear(d_in, 40, bias=False), torch.ones(9, d_in)  # every input is the largest of its row
    linear.weight.copy_(sign - 0.01 * torch.rand(40, d_in))
    linear.weight[10:20] *= torch.arange(d_in) % 4 < 2  # what AVX2 sums in 16 bits: two of a four and two of the next
    linear.weight[20:30] *= torch.arange(d_in) % 4 >= 2
    linear.weight[30:] *= torch.arange(d_in) % 8 < 4
    torch.testing.assert_close(NativeLinear(linear)(x), Rounded(linear)(x), rtol=1e-5, atol=0)
    torch.testing.assert_close(NativeLinear(linear)(-x), -Rounded(linear)(x), rtol=1e-5, atol=0)


@needs_compiler
@pytest.mark.parametrize("name", DECODERS)
@torch.inference_mode()
def test_every_model_gives_the_numbers_of_rounded_layers(name: str) -> None:
    model, ids = decoder(name), random_ids(3, 11)
    exact, found = model(ids), run_natively(model)(ids)
    # A number that lies between two steps may be rounded the other way, and makes others a little different.
    assert (found - expected(model, ids)).norm() <= 0.005 * found.norm()
    assert (found - exact).norm() <= 0.03 * exact.norm()


@needs_compiler
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu", "tanh"])
@torch.inference_mode()
def test_every_activation(activation: str, gated: bool) -> None:
    feed_forward = FeedForwardSettings(d_ff=37, activation=activation, gated=gated)  # type: ignore[arg-type]
    model, ids = decoder("no positions", decoder=stack(feed_forward=feed_forward)), random_ids(3, 11)
    found = run_natively(model)(ids)
    assert (found - expected(model, ids)).norm() <= 0.005 * found.norm()


@needs_compiler
@pytest.mark.parametrize("name", DECODERS)
@torch.inference_mode()
def test_rows_and_chunks_change_no_bit(name: str) -> None:
    """Padded, in a batch and in pieces, every row gets exactly the numbers that it gets alone and at once."""
    model, lengths = run_natively(decoder(name)), [9, 1, 6, 4, 9]
    ids, keep = random_ids(5, 9), left_keep(lengths, 9)
    cache = model.new_cache(5, 12)
    together = torch.cat(
        [model(ids[:, part], keep[:, part], cache) for part in (slice(4), slice(4, 8), slice(8, 9))], 1
    )
    for row, length in enumerate(lengths):
        alone = model(ids[row : row + 1, 9 - length :])
        assert torch.equal(together[row, 9 - length :], alone[0])


@needs_compiler
@torch.inference_mode()
def test_a_mask_hides() -> None:
    model, ids = decoder("gpt-2"), random_ids(2, 8)
    mask = torch.ones(8, 8, dtype=torch.bool).tril()
    mask[4:, :4] = False  # two documents
    found = run_natively(model).states(ids, mask=mask)
    close_to = rounded(model).states(ids, mask=mask)
    assert (found - close_to).norm() <= 0.005 * close_to.norm()


@needs_compiler
def test_threads_change_no_bit() -> None:
    model, ids = run_natively(decoder("llama")), random_ids(3, 20)
    before = torch.get_num_threads()
    with torch.inference_mode():
        torch.set_num_threads(1)
        one = model(ids)
        torch.set_num_threads(3)
        three = model(ids)
        torch.set_num_threads(before)
    assert torch.equal(one, three)


@needs_compiler
@pytest.mark.parametrize("name", DECODERS)
def test_prompts_in_a_batch_go_on_as_alone(name: str) -> None:
    model, options = run_natively(decoder(name)), CompleteOptions(max_tokens=15, temperature=0)
    asked = prompts(11)

    def answers(some: list[list[int]]) -> list[list[tuple[int, float]]]:
        found: list[list[tuple[int, float]]] = [[] for _ in some]
        for step in Generator(model, some, options, ends=(2,)):
            for row, chosen in step:
                found[row].append((chosen.id, chosen.log_p))
        return found

    together = answers(asked)
    assert together == [answers([prompt])[0] for prompt in asked]
    assert len({tuple(i for i, _ in answer) for answer in together}) > 3


@needs_compiler
def test_the_given_model_stays_and_is_shared() -> None:
    model = decoder("gpt-2")
    before = {path: weight.clone() for path, weight in model.state_dict().items()}
    fast = run_natively(model)
    assert fast.source is model.source
    assert isinstance(model.head.w, nn.Linear)
    assert all(torch.equal(weight, before[path]) for path, weight in model.state_dict().items())
    assert choose_decoder(model, "int8")[1] == "C++ int8"


def test_small_models_stay_as_they_are() -> None:
    model = decoder("gpt-2")
    assert sum(p.numel() for p in model.parameters()) < LARGE
    assert choose_decoder(model) == (model, "torch fp32")


def test_without_a_compiler_torch_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native.shutil, "which", lambda name: None)
    native._found.cache_clear()
    try:
        assert native.why_no_native() is not None
        with pytest.raises(UserError, match=r"compiled engine cannot run here: .*torch engine"):
            run_natively(decoder("gpt-2"))
        assert choose_decoder(decoder("gpt-2"), "int8")[1] == "torch int8"
    finally:
        native._found.cache_clear()


@needs_compiler
def test_other_precisions_are_refused() -> None:
    with pytest.raises(UserError, match=r"bfloat16, not float32"):
        run_natively(decoder("gpt-2").bfloat16())


@needs_compiler
@torch.inference_mode()
def test_rows_that_leave_take_their_cache_along() -> None:
    model, ids = run_natively(decoder("llama")), random_ids(4, 6)
    cache = model.new_cache(4, 9)
    model(ids[:, :5], cache=cache)
    cache.select(torch.tensor([3, 1]))
    found = model(ids[[3, 1], 5:], cache=cache)
    assert torch.equal(found[:, 0], model(ids)[[3, 1], 5])


@needs_compiler
def test_a_failed_compilation_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "native.cpp"
    broken.write_text("this is no program")
    monkeypatch.setattr(native, "SOURCES", [broken])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    native._found.cache_clear()
    try:
        assert "could not be compiled" in str(native.why_no_native())
        assert list((tmp_path / "cache" / "glassformer").iterdir()) == []
    finally:
        native._found.cache_clear()


@needs_compiler
def test_a_stack_with_a_memory_is_refused() -> None:
    model = encoder_decoder()
    with pytest.raises(UserError, match="decoders alone"):
        NativeStack(model.decoder, model.settings.decoder)


@needs_compiler
@torch.inference_mode()
def test_keys_too_large_for_fp16_stay_numbers() -> None:
    model, ids = decoder("no positions"), random_ids(2, 5)
    for block in model.decoder.blocks:
        block.self_attention.w_k.weight.mul_(1e6)  # type: ignore[union-attr, operator]
    assert run_natively(model)(ids).isfinite().all()


@needs_compiler
@settings(max_examples=30, deadline=None)
@given(rows=st.integers(1, 5), n=st.integers(1, 70), seed=st.integers(0, 99))
def test_totals_are_those_of_torch(rows: int, n: int, seed: int) -> None:
    scores = 20 * torch.randn(rows, n, generator=torch.Generator().manual_seed(seed))
    scores[0, 1:] = -torch.inf
    torch.testing.assert_close(log_totals(scores), scores.logsumexp(dim=-1))
    wide = torch.randn(n, rows, generator=torch.Generator().manual_seed(seed)).T  # rows that are not side by side
    torch.testing.assert_close(log_totals(wide), wide.logsumexp(dim=-1))
