"""Padded = unpadded, batched = single, whatever the front-end, the head and the pooling."""

from typing import Any

import pytest
import torch
from torch import Tensor

from glassformer.model import build, build_empty
from glassformer.model.settings import (
    ClassHeadSettings,
    EmbeddingHeadSettings,
    EncoderOnlySettings,
    FramesSettings,
    LearnedSettings,
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
    random_ids,
    random_input,
    right_keep,
    stack,
    tokens,
)

ALL_POSITIONS = pytest.mark.parametrize("positions", POSITIONS)
POOLINGS = ("first", "mean", "last")
SEQUENCES = pytest.mark.parametrize("front_end", ["tokens", "frames", "frames_plain", "vectors"])
POOLED = {
    f"{kind.__name__}-{pooling}": kind(pooling=pooling)
    for kind in (ClassHeadSettings, RegressionHeadSettings, EmbeddingHeadSettings)
    for pooling in POOLINGS
}
LENGTHS = [9, 6, 5, 1]


def fill(raw: Tensor, keep: Tensor, rubbish: float) -> Tensor:
    """The input with rubbish in its padding."""
    if raw.dim() == 2:
        return raw.where(keep, torch.tensor(int(rubbish)))
    return raw.where(keep[:, :, None], torch.tensor(rubbish))


@SEQUENCES
@pytest.mark.parametrize("head", POOLED)
def test_a_padded_row_gives_what_it_gives_alone(front_end: str, head: str) -> None:
    model = encoder_only(front_end, head=POOLED[head])
    keep = right_keep(LENGTHS, 9)
    raw = random_input(front_end, 4, 9)
    together = model(fill(raw, keep, 3.0), keep)
    for row, length in enumerate(LENGTHS):
        close(together[row], model(raw[row : row + 1, :length])[0])


@SEQUENCES
def test_what_stands_in_the_padding_changes_nothing(front_end: str) -> None:
    model = encoder_only(front_end, head=ClassHeadSettings())
    keep, raw = right_keep(LENGTHS, 9), random_input(front_end, 4, 9)
    rubbish = 7.0 if front_end == "tokens" else float("nan")
    assert torch.equal(model(fill(raw, keep, rubbish), keep), model(fill(raw, keep, 0.0), keep))


@pytest.mark.parametrize("front_end", ["tokens", "vectors"])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_padding_may_stand_on_the_left_of_what_is_not_shortened(front_end: str, pooling: Any) -> None:
    model, raw = encoder_only(front_end, head=ClassHeadSettings(pooling=pooling)), random_input(front_end, 4, 9)
    together = model(raw, left_keep(LENGTHS, 9))
    for row, length in enumerate(LENGTHS):
        close(together[row], model(raw[row : row + 1, -length:])[0])


@pytest.mark.parametrize("strides", [(1,), (2,), (3,), (1, 2), (2, 2), (2, 3, 1), (5,)], ids=str)
@pytest.mark.parametrize("n", [1, 2, 5, 12, 13])
def test_strides_shorten_a_padded_row_as_they_shorten_it_alone(strides: tuple[int, ...], n: int) -> None:
    source = FramesSettings(n_features=6, strides=strides, positions=LearnedSettings(max_len=20), dropout=0.0)
    model = encoder_only("frames", source=source, head=EmbeddingHeadSettings())
    lengths = [n, max(1, n - 1), max(1, n // 2), 1]
    raw, keep = random_input("frames", 4, n), right_keep(lengths, n)
    memory = model.states(fill(raw, keep, 9.0), keep)
    assert memory.keep is not None
    for row, length in enumerate(lengths):
        alone = model.states(raw[row : row + 1, :length])
        assert int(memory.keep[row].sum()) == alone.x.shape[1]
        close(memory.x[row, : alone.x.shape[1]], alone.x[0])


@ALL_POSITIONS
@pytest.mark.parametrize("make_keep", [left_keep, right_keep])
def test_a_padded_decoder_row_gives_what_it_gives_alone(positions: str, make_keep: Any) -> None:
    model, ids, keep = decoder_only(positions), random_ids(4, 9), make_keep(LENGTHS, 9)
    together = model(fill(ids, keep, 3), keep)
    for row in range(4):
        close(together[row, keep[row]], model(ids[row, keep[row]][None])[0])


@ALL_POSITIONS
def test_padded_pairs_give_what_each_pair_gives_alone(positions: str) -> None:
    model, source, target = encoder_decoder(positions), random_ids(3, 7), random_ids(3, 6, seed=2)
    source_lengths, target_lengths = [7, 2, 5], [3, 6, 1]
    together = model(source, target, right_keep(source_lengths, 7), right_keep(target_lengths, 6))
    for row, (m, n) in enumerate(zip(source_lengths, target_lengths, strict=True)):
        close(together[row, :n], model(source[row : row + 1, :m], target[row : row + 1, :n])[0])


@ALL_POSITIONS
def test_a_keep_of_all_true_is_no_keep(positions: str) -> None:
    model, ids = decoder_only(positions), random_ids(3, 8)
    close(model(ids, torch.ones(3, 8, dtype=torch.bool)), model(ids))


@pytest.mark.parametrize("front_end", FRONT_ENDS)
@pytest.mark.parametrize(
    "head", ["ClassHeadSettings-first", "RegressionHeadSettings-mean", "EmbeddingHeadSettings-last"]
)
def test_a_batch_gives_what_each_row_gives(front_end: str, head: str) -> None:
    model, raw = encoder_only(front_end, head=POOLED[head]), random_input(front_end, 5, 8)
    close(model(raw), torch.cat([model(row[None]) for row in raw]))


def test_a_token_head_over_a_padded_encoder_gives_what_each_row_gives() -> None:
    model, ids, keep = encoder_only(head=TokenHeadSettings(transform="gelu")), random_ids(4, 9), right_keep(LENGTHS, 9)
    types = random_ids(4, 9, seed=4) % 2
    together = model(ids, keep, types)
    for row, n in enumerate(LENGTHS):
        close(together[row, :n], model(ids[row : row + 1, :n], types=types[row : row + 1, :n])[0])


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary_grouped"])
def test_documents_packed_in_one_row_give_what_each_gives_alone(positions: str) -> None:
    model, lengths = decoder_only(positions), [3, 5, 1]
    documents = [random_ids(1, n, seed=n) for n in lengths]
    owner = torch.repeat_interleave(torch.arange(3), torch.tensor(lengths))
    counted = torch.cat([torch.arange(n) for n in lengths])
    same = (owner[:, None] == owner)[None, None]
    states = model.states(torch.cat(documents, dim=1), mask=same, positions=counted)
    close(states[0], torch.cat([model.states(document)[0] for document in documents]))


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_an_empty_model_filled_with_the_weights_of_another_is_that_other(front_end: str) -> None:
    model = encoder_only(front_end, head=ClassHeadSettings())
    empty = build_empty(model.settings)
    assert all(p.is_meta for p in empty.parameters())
    empty.load_state_dict(model.state_dict(), assign=True)
    raw = random_input(front_end, 2, 6)
    assert torch.equal(empty.eval()(raw), model(raw))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_half_precision_stays_close_also_far_from_the_start(dtype: torch.dtype, positions: str) -> None:
    """A rotary angle rounded to bfloat16 would be off by whole turns at position 900."""
    model, ids = decoder_only(positions), random_ids(1, 900)
    full = model(ids).detach()
    half = model.to(dtype)(ids).detach().float()
    difference = (half - full).pow(2).mean().sqrt() / full.std()
    assert difference < 0.03


def test_series_of_another_precision_are_read_in_the_models_own() -> None:
    settings = EncoderOnlySettings(source=FRONT_ENDS["vectors"], encoder=stack(), head=ClassHeadSettings())
    model, raw = build(settings).eval(), random_input("vectors", 2, 5)
    assert torch.equal(model(raw.double()), model(raw))
    assert model.bfloat16()(raw).dtype == torch.bfloat16


def test_a_longer_input_than_the_table_of_waves_makes_it_longer() -> None:
    long, short = decoder_only(source=tokens()), decoder_only(source=tokens())
    ids = random_ids(1, 700)
    before = short(ids[:, :600])
    long(ids)
    close(long(ids[:, :600]), before)
    assert short.source.positions.table.shape[0] >= 600
