"""Positions: the figures of the teaching literature, and what is promised about them."""

import math

import pytest
import torch
from torch import Tensor

from glassformer.errors import UserError
from glassformer.model.positions import (
    LearnedPositions,
    Rotary,
    RotaryAngles,
    SinusoidalPositions,
    count_positions,
    sinusoids,
    turns,
)
from glassformer.model.settings import LearnedSettings, RotaryScaling, RotarySettings, SinusoidalSettings
from tests.builders import close, left_keep


def waves(n: int, d: int) -> Tensor:
    out: Tensor = SinusoidalPositions(SinusoidalSettings(), d)(torch.arange(n))
    return out


def test_four_wide_positions_start_as_in_the_literature() -> None:
    close(waves(2, 4), torch.tensor([[0, 1, 0, 1], [0.8415, 0.5403, 0.0100, 0.99995]]), 5e-5)


def test_positions_follow_the_formula_entry_by_entry() -> None:
    d, table = 6, waves(50, 6)
    for pos in (0, 1, 7, 49):
        for i in range(3):
            angle = pos / 10_000 ** (2 * i / d)
            assert table[pos, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[pos, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_odd_widths_work() -> None:
    columns = [
        [0, 0.841, 0.909, 0.141, -0.757],
        [1, 0.540, -0.416, -0.990, -0.654],
        [0, 0.025, 0.050, 0.075, 0.100],
        [1, 1.000, 0.999, 0.997, 0.995],
        [0, 0.001, 0.001, 0.002, 0.003],
    ]
    close(waves(5, 5), torch.tensor(columns).T, 6e-4)


def test_positions_are_unique_and_bounded() -> None:
    table = waves(512, 8)
    assert table.abs().max() <= 1
    nearest = torch.cdist(table, table).fill_diagonal_(math.inf)
    assert nearest.min() > 0.1


@pytest.mark.parametrize("c", [1, 5, 100])
def test_a_step_of_c_is_one_rotation_wherever_it_starts(c: int) -> None:
    """PE(t + c) = M_c · PE(t): fitted at some places, M_c holds at all others, and turns without stretching."""
    d = 6
    table = sinusoids(torch.arange(400), d)
    m_c = torch.linalg.lstsq(table[:100], table[c : 100 + c]).solution
    close(table[200:290] @ m_c, table[200 + c : 290 + c], 1e-7)
    close(m_c @ m_c.T, torch.eye(d, dtype=torch.float64), 1e-7)
    assert torch.linalg.det(m_c).item() == pytest.approx(1)


def test_learned_positions_have_the_same_shape_and_are_trained() -> None:
    learned = LearnedPositions(LearnedSettings(max_len=9), 6)
    assert learned(torch.arange(5)).shape == waves(5, 6).shape
    learned(torch.arange(5)).sum().backward()
    assert learned.table.grad is not None
    assert learned.table.grad[:5].eq(1).all()
    assert learned.table.grad[5:].eq(0).all()
    assert not list(SinusoidalPositions(SinusoidalSettings(), 6).parameters())


def test_the_halves_layout_holds_the_same_numbers_in_another_order() -> None:
    table = SinusoidalPositions(SinusoidalSettings(layout="halves"), 7)(torch.arange(9))
    close(table, torch.cat([waves(9, 7)[:, 0::2], waves(9, 7)[:, 1::2]], dim=1))


def test_positions_count_real_tokens_only() -> None:
    keep = torch.tensor([[False, False, True, True], [True, False, True, False], [True, True, True, True]])
    counted = count_positions(4, keep, keep.device)
    assert counted[keep].tolist() == [0, 1, 0, 1, 0, 1, 2, 3]
    assert counted.min() >= 0
    assert count_positions(3, None, keep.device).tolist() == [0, 1, 2]
    assert count_positions(5, left_keep([2], 5), keep.device)[0, 3:].tolist() == [0, 1]


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
def test_rotary_turns_each_pair_by_position_times_theta(layout: str) -> None:
    """As complex numbers: x · e^(i m θ)."""
    d, m, base = 6, 3, 100.0
    settings = RotarySettings(layout=layout, base=base)  # type: ignore[arg-type]
    x = torch.randn(1, 1, 1, d)
    turned = Rotary(settings)(x, RotaryAngles(settings, d)(torch.tensor([m])))[0, 0, 0]
    for i in range(d // 2):
        pair = [i, i + d // 2] if layout == "halves" else [2 * i, 2 * i + 1]
        angle = m * base ** (-2 * i / d)
        expected = complex(*x[0, 0, 0, pair].tolist()) * complex(math.cos(angle), math.sin(angle))
        assert turned[pair].tolist() == pytest.approx([expected.real, expected.imag], abs=1e-5)


def test_rotary_angles_do_not_depend_on_the_models_precision() -> None:
    angles, positions = RotaryAngles(RotarySettings(), 8), torch.tensor([900])
    exact = angles(positions)
    for a, b in zip(angles.bfloat16()(positions), exact, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("scaling", "theirs"),
    [
        (RotaryScaling(factor=4.0), {"rope_type": "linear", "factor": 4.0}),
        (
            RotaryScaling(kind="llama3", factor=32.0, original=64, slow=1.0, quick=4.0),
            {
                "rope_type": "llama3",
                "factor": 32.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            },
        ),
    ],
    ids=["linear", "llama3"],
)
def test_slower_turns_are_those_of_hugging_face(scaling: RotaryScaling, theirs: dict[str, object]) -> None:
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    config = LlamaConfig(
        hidden_size=64,
        num_attention_heads=2,
        max_position_embeddings=2048,
        rope_parameters={"rope_theta": 10_000.0, **theirs},
    )
    expected = ROPE_INIT_FUNCTIONS["linear" if scaling.kind == "linear" else "llama3"](config, "cpu")[0]
    torch.testing.assert_close(turns(RotarySettings(scaling=scaling), 32), expected)


@pytest.mark.parametrize("wrong", [{"factor": 0.5}, {"slow": 4.0, "quick": 1.0}, {"original": 0}])
def test_senseless_scaling_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UserError):
        RotaryScaling(**wrong)  # type: ignore[arg-type]
