"""What the readings say of models whose workings are known."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import UserError
from glassformer.ladder import FullTransformer
from glassformer.look import changed, trace
from glassformer.look.readings.ablation import ablate_heads, without_heads, without_units
from glassformer.look.readings.attention_maps import attention_maps, mean_map, rollout
from glassformer.look.readings.attribution import attribute
from glassformer.look.readings.gradient import gradient_times_input
from glassformer.look.readings.logit_lens import lens_logits, logit_lens
from glassformer.look.readings.patching import patch_heads, patch_stream
from glassformer.look.readings.ranking import rank
from glassformer.look.readings.word_alignment import cross_map, word_alignment
from glassformer.model import DecoderOnly
from glassformer.model.settings import (
    ClassHeadSettings,
    DecoderOnlySettings,
    FeedForwardSettings,
    NormSettings,
    SinusoidalSettings,
    TokenHeadSettings,
)
from glassformer.tasks.alignment import align, cross_weights
from tests.builders import (
    FRONT_ENDS,
    POSITIONS,
    close,
    decoder_only,
    encoder_decoder,
    encoder_only,
    random_ids,
    random_input,
    right_keep,
    stack,
    tokens,
)
from tests.look.hand_made import N, copier, induction

TEXT = [0, 3, 5, 2, 7, 3]  # the word 3 was followed by 5
IDS = torch.tensor([TEXT])


def log_p(model: Any, answer: int, *inputs: torch.Tensor) -> float:
    with torch.no_grad():
        return float(model(*inputs)[0, -1].log_softmax(-1)[answer])


def seen_in(model: Any, *inputs: torch.Tensor | None) -> Any:
    with torch.no_grad(), trace(model) as seen:
        model(*inputs)
    return seen


# ---- the induction head


def test_the_induction_head_looks_after_the_earlier_same_word() -> None:
    model = induction()
    maps = attention_maps(seen_in(model, IDS))
    assert maps.shape == (2, 2, 6, 6)
    assert maps[0, 0, 1:].argmax(-1).tolist() == [0, 1, 2, 3, 4]  # the position before
    assert maps[1, 1, 5].argmax() == 2
    assert maps[1, 1, 5, 2] > 0.99
    assert int(model(IDS)[0, -1].argmax()) == 5


def test_only_the_last_layer_knows_the_answer() -> None:
    model = induction()
    seen = seen_in(model, IDS)
    lens = logit_lens(model, seen, k=2)
    assert lens.ids.shape == (3, 6, 2)
    answers = [float(lens_logits(model, seen, layer)[-1].softmax(-1)[5]) for layer in range(3)]
    assert answers[:2] == pytest.approx([1 / N, 1 / N])
    assert answers[2] > 0.99
    assert lens.ids[2, -1, 0] == 5
    assert lens.probabilities[2, -1, 0] == pytest.approx(answers[2])


def test_each_of_its_two_heads_is_needed_and_no_other() -> None:
    model = induction()
    falls = ablate_heads(model, lambda: log_p(model, 5, IDS))
    needed = {(path, head) for path, fall in falls.items() for head, value in enumerate(fall.tolist()) if value > 0.5}
    assert needed == {("decoder.blocks.0.self_attention", 0), ("decoder.blocks.1.self_attention", 1)}
    assert falls["decoder.blocks.0.self_attention"][1] == 0
    assert falls["decoder.blocks.1.self_attention"][0] == 0
    assert list(ablate_heads(model, lambda: 0.0, only="decoder.blocks.1")) == ["decoder.blocks.1.self_attention"]
    with pytest.raises(UserError, match="no attention below 'encoder'"):
        ablate_heads(model, lambda: 0.0, only="encoder")


def test_the_answer_s_logit_comes_from_one_head_looking_at_one_place() -> None:
    model = induction()
    seen = seen_in(model, IDS)
    found = attribute(model, seen, answer=5)
    logit = float(seen["head.logits"][0, -1, 5])
    assert found.total == pytest.approx(logit, rel=1e-5)
    keys = found.keys["decoder.blocks.1.self_attention"]
    assert float(keys[1, 2]) == pytest.approx(logit, rel=1e-2)
    assert int(found.by_token().argmax()) == 2
    assert found.parts["source.embedding"] == found.parts["source.positions"] == 0


def test_patching_finds_the_word_that_mattered() -> None:
    """Of "3 5 2 7 3" and "3 6 2 7 3", position 2 alone differs; after the last layer's look it is at the end."""
    model = induction()
    other = seen_in(model, torch.tensor([[0, 3, 6, 2, 7, 3]]))
    scores, without = patch_stream(model, other, lambda: log_p(model, 6, IDS))
    assert scores.shape == (2, 6)
    turned = scores - without > 1
    assert turned.nonzero().tolist() == [[0, 2], [1, 2]]
    heads = patch_heads(model, other, lambda: log_p(model, 6, IDS))
    assert {(path, h) for path, s in heads.items() for h, v in enumerate(s.tolist()) if v - without > 1} == {
        ("decoder.blocks.1.self_attention", 1)
    }
    longer = seen_in(model, torch.tensor([[0, 3, 6, 2, 7, 3, 3]]))
    with pytest.raises(UserError, match="Compare inputs of as many tokens"):
        patch_stream(model, longer, lambda: log_p(model, 6, IDS))


def test_the_habits_of_heads_are_found_over_many_texts() -> None:
    model = induction()
    dice = torch.Generator().manual_seed(0)
    halves = [torch.randperm(N - 1, generator=dice)[:5].add(1).tolist() for _ in range(20)]
    found = rank(model, [[0, *half, *half] for half in halves])
    path, head, share = found.strongest_heads("previous", 1)[0]
    assert (path, head) == ("decoder.blocks.0.self_attention", 0)
    assert share > 0.85  # all but the first position
    path, head, share = found.strongest_heads("after same token", 1)[0]
    assert (path, head) == ("decoder.blocks.1.self_attention", 1)
    assert share > 0.35  # from the second half on, where there is an earlier same token with something after it
    spread = found.heads["decoder.blocks.1.self_attention"][0, -1]  # a silent head looks everywhere alike
    assert float(spread) == pytest.approx(sum(math.log2(i + 1) for i in range(11)) / 11, rel=1e-4)


def test_units_are_ranked_by_their_strongest_moments() -> None:
    model, texts = decoder_only(), [random_ids(1, n, seed=n)[0].tolist() for n in (3, 7, 5)]
    found = rank(model, [*texts, []], k=4)
    values, where, at = found.units["decoder.blocks.1.feed_forward"]
    assert values.shape == (24, 4)
    everything = [seen_in(model, torch.tensor([text]))["decoder.blocks.1.feed_forward.hidden"][0] for text in texts]
    for unit in (0, 11, 23):
        close(values[unit], torch.cat([hidden[:, unit] for hidden in everything]).topk(4).values)
        for value, text, place in zip(values[unit], where[unit], at[unit], strict=True):
            assert float(everything[text][place, unit]) == pytest.approx(float(value), abs=1e-5)
    assert found.n_positions == 15


# ---- the copier


def test_the_copier_s_cross_attention_is_the_diagonal() -> None:
    model, text = copier(), torch.tensor([[4, 2, 7, 1, 5]])
    seen = seen_in(model, text, torch.tensor([[0, 4, 2, 7, 1]]))
    weights = cross_map(seen)
    close(weights, torch.eye(5), 1e-3)
    assert word_alignment(weights, 5) == [0, 1, 2, 3, 4]
    assert seen["head.logits"].argmax(-1).tolist() == text.tolist()
    close(cross_map(seen, layer=0, head=1), torch.eye(5), 1e-3)
    cross = "decoder.blocks.0.cross_attention"
    falls = ablate_heads(model, lambda: log_p(model, 5, text, torch.tensor([[0, 4, 2, 7, 1]])))
    assert falls[cross][0] > 1
    assert falls[cross][1] == 0  # it looks but says nothing
    found = attribute(model, seen, answer=7, position=2)
    assert found.total == pytest.approx(float(seen["head.logits"][0, 2, 7]), rel=1e-5)
    assert int(found.by_token("cross").argmax()) == 2


def test_the_alignment_is_the_one_that_translation_tells() -> None:
    model, source, target = encoder_decoder(), [5, 7, 9, 11], [4, 6, 8]
    seen = seen_in(model, torch.tensor([[*source, 2]]), torch.tensor([[1, *target]]))
    weights = cross_map(seen)[: len(target)]
    close(weights, cross_weights(model, source, target))
    assert word_alignment(weights, len(source)) == align(model, source, target)


# ---- the ladder's battery and program

PROGRAM, BATTERY = (f"check the {word} log and find out whether it ran".split() for word in ("program", "battery"))


@pytest.fixture(scope="module")
def fitted() -> tuple[DecoderOnly, dict[str, int], list[torch.Tensor]]:
    torch.manual_seed(0)
    small = DecoderOnlySettings(source=tokens(), decoder=stack(d_model=32))
    rung = FullTransformer(small, steps=120, lr=1e-2, seed=1).fit([[*PROGRAM, "please"], [*BATTERY, "down", "please"]])
    network = rung.network
    assert isinstance(network, DecoderOnly)
    ids = {word: i for i, word in enumerate(sorted({*PROGRAM, *BATTERY, "please", "down"}))}
    windows = [torch.as_tensor(rung.window(words))[None] for words in (PROGRAM, BATTERY)]
    return network.eval(), ids, windows


def test_the_word_that_decides_is_found_far_back(fitted: Any) -> None:
    """Battery or program: only this word differs, so only there the answer can turn at the front of the model."""
    model, ids, (program, battery) = fitted
    other = seen_in(model, battery)
    differs = (program != battery)[0].nonzero()[0].tolist()

    def score() -> float:
        return log_p(model, ids["down"], program) - log_p(model, ids["please"], program)

    assert score() < 0
    scores, without = patch_stream(model, other, score)
    assert (scores[0] > 0).nonzero().flatten().tolist() == differs
    rest = [i for i in range(scores.shape[1]) if i not in differs]
    close(scores[0, rest], torch.full((len(rest),), without))
    end = float(other["head.logits"][0, -1, ids["down"]] - other["head.logits"][0, -1, ids["please"]])
    assert scores[0, differs[0]] == pytest.approx(end, rel=1e-4)
    x = seen_in(model, program)["source.x"]
    pull = gradient_times_input(model, lambda: _lead(model(battery), ids), instead=x)[0]
    assert pull.nonzero().flatten().tolist() == differs
    assert float(pull[differs]) > 0


def _lead(logits: torch.Tensor, ids: dict[str, int]) -> torch.Tensor:
    return logits[0, -1, ids["down"]] - logits[0, -1, ids["please"]]


def test_the_lead_of_one_answer_over_another_is_a_sum(fitted: Any) -> None:
    model, ids, (_, battery) = fitted
    seen = seen_in(model, battery)
    found = attribute(model, seen, ids["down"], against=ids["please"])
    assert found.total == pytest.approx(float(_lead(seen["head.logits"], ids)), rel=1e-4, abs=1e-4)


# ---- attribution sums to the logit, whatever the shape


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("norm", [("layer", "pre"), ("layer", "post"), ("rms", "pre"), ("rms", "post")])
def test_attribution_sums_to_the_logit_in_a_decoder(positions: str, norm: Any) -> None:
    settings = NormSettings(kind=norm[0], place=norm[1])
    gated = FeedForwardSettings(d_ff=24, activation="silu", gated=True)
    model = decoder_only(
        positions,
        decoder=stack(attention=POSITIONS[positions][1], norm=settings, feed_forward=gated),
        head=TokenHeadSettings(bias=True),
    )
    seen = seen_in(model, random_ids(2, 6), right_keep([6, 4], 6))
    for row, position, answer in ((0, -1, 3), (1, 3, 17), (0, 0, 5)):
        found = attribute(model, seen, answer, position, row=row)
        assert found.total == pytest.approx(float(seen["head.logits"][row, position, answer]), rel=1e-4, abs=1e-4)
        for path, heads in found.heads.items():
            assert heads.shape == (4,)
            assert float(heads.sum()) == pytest.approx(found.parts[path], abs=1e-9)


@pytest.mark.parametrize("front_end", FRONT_ENDS)
@pytest.mark.parametrize("pooling", ["mean", "first", "last"])
def test_attribution_sums_to_the_logit_of_a_class(front_end: str, pooling: Any) -> None:
    model = encoder_only(front_end, head=ClassHeadSettings(n_classes=3, pooling=pooling), tie_output=False)
    keep = None if front_end == "patches" else right_keep([9, 5], 9)
    seen = seen_in(model, random_input(front_end, 2, 9), keep)
    for row in (0, 1):
        found = attribute(model, seen, answer=2, row=row)
        assert found.total == pytest.approx(float(seen["head.logits"][row, 2]), rel=1e-4, abs=1e-4)


def test_attribution_sums_to_the_logit_of_a_translation() -> None:
    model = encoder_decoder("learned")
    seen = seen_in(model, random_ids(1, 5), random_ids(1, 7))
    found = attribute(model, seen, answer=11, position=4, against=12)
    lead = float(seen["head.logits"][0, 4, 11] - seen["head.logits"][0, 4, 12])
    assert found.total == pytest.approx(lead, rel=1e-4, abs=1e-4)
    assert found.by_token("cross").shape == (5,)


def test_a_head_that_is_not_linear_is_refused() -> None:
    model = encoder_only("tokens", head=TokenHeadSettings(transform="gelu"))
    with pytest.raises(UserError, match=r"not linear .* Use gradient_times_input"):
        attribute(model, seen_in(model, random_ids(1, 4)), answer=1)


def test_ablation_takes_away_just_what_attribution_says_in_the_last_layer() -> None:
    """Without norms between, the last layer's heads have no way but the direct one."""
    last = stack(n_layers=1, norm=NormSettings(kind="rms", final=False), feed_forward=FeedForwardSettings(d_ff=4))
    model = decoder_only(decoder=last)
    with torch.no_grad():
        model.decoder.blocks[0].feed_forward.w_2.weight.zero_()
    ids = random_ids(1, 6)
    found = attribute(model, seen_in(model, ids), answer=7)
    falls = ablate_heads(model, lambda: float(model(ids)[0, -1, 7]))
    close(falls["decoder.blocks.0.self_attention"], found.heads["decoder.blocks.0.self_attention"].float(), 1e-4)


# ---- changes and gradients


def test_a_change_reaches_exactly_what_depends_on_it() -> None:
    model, ids = decoder_only(), random_ids(1, 6)
    plain = seen_in(model, ids)
    name = "decoder.blocks.1.self_attention.z"
    with torch.no_grad(), changed(model, {name: without_heads([2])}), trace(model) as seen:
        model(ids)
    before = [n for n in plain.names if not n.startswith(("decoder.blocks.1.", "decoder.norm", "decoder.out", "head"))]
    assert all(torch.equal(plain[n], seen[n]) for n in before if n != "decoder.scale")
    concat, old = seen["decoder.blocks.1.self_attention.concat"], plain["decoder.blocks.1.self_attention.concat"]
    assert bool((concat[..., 8:12] == 0).all())
    assert torch.equal(concat[..., :8], old[..., :8])
    assert torch.equal(concat[..., 12:], old[..., 12:])
    assert not torch.equal(seen["head.logits"], plain["head.logits"])
    close(model(ids), plain["head.logits"])  # nothing stays


def test_weights_can_be_changed_and_units_silenced() -> None:
    model, ids = decoder_only("rotary_grouped"), random_ids(1, 5)
    same = {"decoder.blocks.0.self_attention.weights": lambda w: w}
    with torch.no_grad():
        plain = model(ids)
        with changed(model, same):
            close(model(ids), plain)

        def only_itself(weights: torch.Tensor) -> torch.Tensor:
            return torch.eye(weights.shape[-1]).expand_as(weights)

        with changed(model, {"decoder.blocks.0.self_attention.weights": only_itself}), trace(model) as seen:
            model(ids)
        v = seen["decoder.blocks.0.self_attention.v"].repeat_interleave(2, dim=1)
        close(seen["decoder.blocks.0.self_attention.concat"], v.transpose(1, 2).flatten(2))
        with changed(model, {"decoder.blocks.1.feed_forward.hidden": without_units(range(24))}), trace(model) as seen:
            model(ids)
        close(seen["decoder.blocks.1.feed_forward.out"], model.decoder.blocks[1].feed_forward.w_2.bias.expand(1, 5, 16))
    with (
        pytest.raises(UserError, match="computed for the eye only"),
        changed(model, {"head.probabilities": lambda p: p}),
    ):
        pass
    with pytest.raises(UserError, match=r"Did you mean decoder\.out"), changed(model, {"decoder.ou": lambda p: p}):
        pass


@pytest.mark.parametrize("seed", range(3))
def test_gradient_times_input_is_the_sum_of_a_model_without_bends(seed: int) -> None:
    """Without layers a logit is linear in the input: each position's product is all there is."""
    model = decoder_only(decoder=stack(n_layers=0, norm=NormSettings(final=False)))
    ids = random_ids(1, 5, seed)
    parts = gradient_times_input(model, lambda: model(ids)[0, 2, 4])
    x = model.source(ids)[0].detach()
    close(parts[0], torch.tensor([0, 0, float(x[0, 2] @ model.head.w.weight[4].detach()), 0, 0]))


def test_gradient_times_input_is_the_slope() -> None:
    model = decoder_only("none", source=tokens(positions=SinusoidalSettings())).double()
    ids = random_ids(1, 5)
    parts = gradient_times_input(model, lambda: model(ids)[0, -1, 4])[0]
    for position in range(5):
        scores = []
        for size in (1 - 1e-6, 1 + 1e-6):

            def shrink(x: torch.Tensor, position: int = position, size: float = size) -> torch.Tensor:
                x = x.clone()
                x[:, position] *= size
                return x

            with torch.no_grad(), changed(model, {"source.x": shrink}):
                scores.append(float(model(ids)[0, -1, 4]))
        assert float(parts[position]) == pytest.approx((scores[1] - scores[0]) / 2e-6, rel=1e-4, abs=1e-6)


# ---- maps of attention


@given(st.integers(1, 4), st.integers(1, 7), st.booleans(), st.integers(0, 999))
def test_rolled_out_attention_stays_a_share(n_layers: int, n: int, causal: bool, seed: int) -> None:
    scores = torch.randn(n_layers, 3, n, n, generator=torch.Generator().manual_seed(seed))
    if causal:
        scores = scores.masked_fill(~torch.ones(n, n).tril().bool(), -torch.inf)
    rolled = rollout(scores.softmax(-1))
    close(rolled.sum(-1), torch.ones(n))
    assert bool((rolled >= 0).all())
    if causal:
        assert bool((rolled.triu(1) == 0).all())
    close(rollout(torch.eye(n).expand(n_layers, 3, n, n)), torch.eye(n))
    close(mean_map(scores), scores.flatten(0, 1).mean(0))


def test_two_layers_of_moves_roll_out_to_their_product() -> None:
    step = torch.zeros(4, 4)
    step[torch.arange(1, 4), torch.arange(3)] = 1
    step[0, 0] = 1
    rolled = rollout(step.expand(2, 1, 4, 4), skip=0.0)
    assert rolled.argmax(-1).tolist() == [0, 0, 0, 1]


def test_a_stack_that_is_not_there_is_refused() -> None:
    with pytest.raises(UserError, match="no cross-attention of a stack 'decoder'"):
        attention_maps(seen_in(decoder_only(), random_ids(1, 3)), kind="cross")
