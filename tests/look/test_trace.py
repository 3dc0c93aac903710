"""A trace sees everything, changes nothing, and minds its own thread."""

import sys
import threading
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from glassformer.errors import UserError
from glassformer.look import POINTS, trace
from glassformer.look.points import places
from glassformer.model import attention
from glassformer.model.attention import MultiHeadAttention, ScaledDotProduct
from glassformer.model.settings import (
    ClassHeadSettings,
    EmbeddingHeadSettings,
    FeedForwardSettings,
    NormSettings,
    RegressionHeadSettings,
    TokenHeadSettings,
)
from tests.builders import (
    FRONT_ENDS,
    POSITIONS,
    close,
    decoder_only,
    encoder_decoder,
    encoder_only,
    left_keep,
    listening,
    random_ids,
    random_input,
    refused_in_our_words,
    stack,
)

HEADS: dict[str, Any] = {
    "token": TokenHeadSettings(transform="gelu"),
    "class": ClassHeadSettings(n_classes=3, transform="tanh"),
    "regression": RegressionHeadSettings(),
    "embedding": EmbeddingHeadSettings(transform="tanh"),
}


def n_hooks(model: torch.nn.Module) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def check(model: torch.nn.Module, *inputs: Tensor | None) -> Any:
    """Traced is untraced to the bit, and nothing is left behind."""
    with torch.no_grad():
        plain = model(*inputs)
        with trace(model) as seen:
            assert n_hooks(model) > 0
            traced = model(*inputs)
    assert n_hooks(model) == 0
    assert torch.equal(plain, traced)
    return seen


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("place", ["pre", "post"])
def test_a_decoder_traced_is_the_decoder_to_the_bit(positions: str, place: Any) -> None:
    additive, attention_settings = POSITIONS[positions]
    model = decoder_only(positions, decoder=stack(attention=attention_settings, norm=NormSettings(place=place)))
    seen = check(model, random_ids(2, 7), left_keep([7, 4], 7))
    assert ("source.positions" in seen) == (additive is not None)
    assert ("decoder.cos" in seen) == (attention_settings.rotary is not None)
    assert ("decoder.norm" in seen) == (place == "pre")


@pytest.mark.parametrize("front_end", FRONT_ENDS)
@pytest.mark.parametrize("head", HEADS)
def test_an_encoder_traced_is_the_encoder_to_the_bit(front_end: str, head: str) -> None:
    if head == "token" and front_end != "tokens":
        return
    model = encoder_only(front_end, head=HEADS[head], tie_output=False)
    seen = check(model, random_input(front_end, 2, 9))
    assert ("head.probabilities" in seen) == (head in ("token", "class"))
    assert ("head.vector" in seen) == (head == "embedding")
    assert "source.projection" in seen or "source.embedding" in seen or "source.convolutions.0.convolved" in seen


def test_an_encoder_decoder_traced_is_itself_to_the_bit() -> None:
    model = encoder_decoder("rotary_grouped")
    seen = check(model, random_ids(2, 5), random_ids(2, 7))
    assert seen["decoder.blocks.1.cross_attention.weights"].shape == (2, 4, 7, 5)
    assert seen["decoder.blocks.1.cross_attention.k"].shape == (2, 2, 5, 4)


def test_every_point_of_the_table_is_seen_in_some_model() -> None:
    models: list[tuple[Any, tuple[Tensor, ...]]] = [
        (encoder_decoder(), (random_ids(1, 5), random_ids(1, 4))),
        (listening(), (random_input("frames", 1, 9), random_ids(1, 4))),
        (
            decoder_only("rotary", decoder=stack(feed_forward=FeedForwardSettings(d_ff=8, gated=True))),
            (random_ids(1, 4),),
        ),
        (decoder_only("rotary"), (random_ids(1, 4),)),
        (encoder_only("frames", head=HEADS["class"], tie_output=False), (random_input("frames", 1, 9),)),
        (encoder_only("vectors", head=HEADS["embedding"], tie_output=False), (random_input("vectors", 1, 9),)),
        (encoder_only("tokens", head=HEADS["token"]), (random_ids(1, 5), torch.ones(1, 5, dtype=torch.bool))),
    ]
    found = set()
    for model, inputs in models:
        seen = check(model, *inputs)
        found |= {place.point for place in places(model) if place.name in seen}
    assert [point for point in POINTS if point not in found] == []


def test_the_numbers_are_what_the_names_say() -> None:
    """Every step again by the formulas, from the recorded step before it."""
    model = decoder_only("sinusoidal")
    seen = check(model, random_ids(2, 6))
    block, at = model.decoder.blocks[0], "decoder.blocks.0"
    close(seen["source.x"], seen["source.embedding"] + seen["source.positions"])
    close(seen[f"{at}.self_residual.before"], seen["source.x"])
    normed = seen[f"{at}.self_residual.norm"]
    x = seen["source.x"]
    centred = (x - x.mean(-1, keepdim=True)) / seen[f"{at}.self_residual.scale"]
    close(normed, centred * block.self_residual.norm.weight + block.self_residual.norm.bias)
    q, k, v = (seen[f"{at}.self_attention.{name}"] for name in "qkv")
    close(q.transpose(1, 2).flatten(2), block.self_attention.w_q(normed))
    mask = seen[f"{at}.self_attention.mask"]
    assert torch.equal(mask, torch.ones(6, 6).tril().bool())
    z, weights, scores = attention(q, k, v, mask)
    assert torch.equal(weights, seen[f"{at}.self_attention.weights"])
    assert torch.equal(scores, seen[f"{at}.self_attention.scores"])
    close(z, seen[f"{at}.self_attention.z"])
    assert torch.equal(seen[f"{at}.self_attention.z"].transpose(1, 2).flatten(2), seen[f"{at}.self_attention.concat"])
    middle = seen[f"{at}.self_residual.before"] + seen[f"{at}.self_attention.out"]
    close(middle, seen[f"{at}.self_residual.after"])
    assert torch.equal(seen[f"{at}.feed_forward_residual.before"], seen[f"{at}.self_residual.after"])
    close(torch.nn.functional.gelu(seen[f"{at}.feed_forward.w_1"]), seen[f"{at}.feed_forward.hidden"])
    close(block.feed_forward.w_2(seen[f"{at}.feed_forward.hidden"]), seen[f"{at}.feed_forward.out"])
    close(seen["decoder.out"] @ model.head.w.weight.T, seen["head.logits"])
    close(seen["head.logits"].softmax(-1), seen["head.probabilities"])


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(0, 99))
def test_weights_are_shares_and_never_of_what_may_not_be_seen(lengths: list[int], seed: int) -> None:
    n = max(lengths)
    seen = check(decoder_only("rotary"), random_ids(len(lengths), n, seed), left_keep(lengths, n))
    for layer in range(2):
        weights = seen[f"decoder.blocks.{layer}.self_attention.weights"]
        may = seen[f"decoder.blocks.{layer}.self_attention.mask"].expand_as(weights)
        assert bool((weights[~may] == 0).all())
        total = weights.sum(-1)
        assert bool(((total - may.any(-1).float()).abs() < 1e-5).all())


def test_a_decode_is_seen_step_by_step_as_the_whole_pass_sees_it() -> None:
    model, ids = decoder_only("rotary"), random_ids(2, 6)
    whole = check(model, ids)
    cache = model.new_cache(2, 6)
    with torch.no_grad(), trace(model) as steps:
        model(ids[:, :3], cache=cache)
        for i in range(3, 6):
            model(ids[:, i : i + 1], cache=cache)
            cache.select(torch.tensor([1, 0]))  # writes over the old keys
            ids = ids[[1, 0]]
    name = "decoder.blocks.1.self_attention"
    found = steps.every(f"{name}.weights")
    assert [tuple(w.shape) for w in found] == [(2, 4, 3, 3), (2, 4, 1, 4), (2, 4, 1, 5), (2, 4, 1, 6)]
    close(found[1][:, :, 0], whole[f"{name}.weights"][:, :, 3, :4])
    close(found[2][[1, 0]][:, :, 0], whole[f"{name}.weights"][:, :, 4, :5])
    close(steps.every(f"{name}.k")[1], whole[f"{name}.k"][:, :, :4])
    close(steps["head.logits"][:, 0], whole["head.logits"][:, 5])


def test_beams_that_share_a_memory_are_seen_row_by_row() -> None:
    model = encoder_decoder()
    source, target = random_ids(2, 5), random_ids(6, 4)
    keep = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    with torch.no_grad():
        memory = model.encode(source, keep)
        with trace(model) as shared:
            model.decode(target, memory)
        with trace(model) as alone:
            model.decode(target, memory.select(torch.tensor([0, 0, 0, 1, 1, 1])))
    assert shared.names == alone.names
    for name in shared.names:
        if name.endswith("mask") and shared[name].shape != alone[name].shape:
            continue
        close(shared[name].float(), alone[name].float())


def test_only_what_is_asked_for_is_kept() -> None:
    model, ids = decoder_only(), random_ids(1, 5)
    with torch.no_grad(), trace(model, keep=["decoder.blocks.1.*", "head.*"], drop="*.probabilities") as some:
        model(ids)
    assert all(name.startswith(("decoder.blocks.1.", "head.")) for name in some.names)
    assert "head.logits" in some
    assert "head.probabilities" not in some
    with torch.no_grad(), trace(model) as all_of_it:
        model(ids)
    assert some.n_bytes < 0.6 * all_of_it.n_bytes
    with torch.no_grad(), trace(model, keep="*.weights") as weights:
        model(ids)
    assert weights.n_bytes == 2 * 4 * 5 * 5 * 4
    weights.clear()
    assert weights.names == []


def test_a_point_that_is_not_kept_costs_no_hook() -> None:
    model = decoder_only()
    with trace(model, keep="decoder.blocks.0.self_attention.out"):
        assert n_hooks(model) == 1
    with pytest.raises(ZeroDivisionError), trace(model):
        _ = 1 / 0
    assert n_hooks(model) == 0


def test_a_pass_after_a_trace_makes_not_one_call_more() -> None:
    """Off means off: the very functions that ran before, and no other."""
    model, ids = decoder_only(), random_ids(1, 5)

    def calls() -> list[str]:
        found: list[str] = []

        def note(frame: Any, event: str, what: Any) -> None:
            if event in ("call", "c_call"):
                found.append(frame.f_code.co_qualname if event == "call" else what.__qualname__)

        sys.setprofile(note)
        try:
            model(ids)
        finally:
            sys.setprofile(None)
        return found

    with torch.no_grad():
        model(ids)
        before = calls()
        with trace(model):
            during = calls()
        after = calls()
    assert before == after
    assert len(during) > len(before) > 100


def test_what_a_trace_is_asked_wrongly() -> None:
    model = decoder_only()
    refused_in_our_words(lambda: trace(model, keep="*.weight"), "No point of the model matches '*.weight'.", "Patterns")
    with pytest.raises(UserError, match=r"Did you mean decoder\.blocks\.0\.self_attention\.weights\?"):
        trace(model, keep="decoder.blocks.0.self_attention.weight")
    refused_in_our_words(lambda: trace(model, drop="*"), "The patterns choose no point", "Keep more, or drop less.")
    with trace(model) as seen:
        pass
    refused_in_our_words(lambda: seen["head.logits"], "The trace holds no 'head.logits'.", "Run the model")
    with torch.no_grad(), trace(model) as seen:
        model(random_ids(1, 3))
    with pytest.raises(UserError, match=r"Did you mean head\.logits"):
        seen["head.logit"]


def test_each_thread_sees_its_own_passes_only() -> None:
    model = decoder_only()
    inputs = [random_ids(1, 3 + i, seed=i) for i in range(4)]
    with torch.no_grad():
        wanted = [model(ids) for ids in inputs]
    failures: list[str] = []
    barrier = threading.Barrier(5)

    def work(i: int) -> None:
        barrier.wait()
        for _ in range(15):
            with torch.no_grad(), trace(model, keep=["source.input", "head.logits"]) as seen:
                out = model(inputs[i])
                out = model(inputs[i])
            mine = seen.every("source.input")
            if len(mine) != 2 or not all(torch.equal(ids, inputs[i]) for ids in mine):
                failures.append(f"thread {i} saw {len(mine)} passes")
            if not torch.equal(out, wanted[i]):
                failures.append(f"thread {i} got another answer")

    def bystander() -> None:
        barrier.wait()
        for _ in range(60):
            with torch.no_grad():
                if not torch.equal(model(inputs[0]), wanted[0]):
                    failures.append("an untraced pass changed")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)] + [threading.Thread(target=bystander)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert n_hooks(model) == 0


def test_the_model_s_files_know_nothing_of_it() -> None:
    """A hook on the parameter-free core is all that is needed; gradients flow through a traced pass as ever."""
    model = decoder_only()
    assert not list(ScaledDotProduct().parameters())
    assert isinstance(model.decoder.blocks[0].self_attention, MultiHeadAttention)
    plain, traced = [], []
    for grads, context in ((plain, None), (traced, trace(model))):
        model.zero_grad()
        if context is not None:
            context.__enter__()
        model(random_ids(1, 5)).square().sum().backward()
        if context is not None:
            context.__exit__()
            assert not any(t.requires_grad for name in context.names for t in context.every(name))
        grads += [p.grad.clone() for p in model.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(plain, traced, strict=True))
