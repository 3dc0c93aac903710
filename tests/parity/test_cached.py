"""Cached step by step = chunk by chunk = the full forward; and beams, whatever they share."""

import random

import pytest
import torch
from torch import Tensor

from glassformer.errors import UserError
from glassformer.model import Cache, DecoderOnly
from tests.builders import (
    POSITIONS,
    VOCABULARY,
    close,
    decoder_only,
    encoder_decoder,
    left_keep,
    random_ids,
    right_keep,
)

ALL_POSITIONS = pytest.mark.parametrize("positions", POSITIONS)
CHUNKS = pytest.mark.parametrize("seed", [None, 0, 1, 2], ids=["one by one", "chunks a", "chunks b", "chunks c"])


def cut(n: int, seed: int | None) -> list[int]:
    """Sizes that add up to n: all ones, or random."""
    if seed is None:
        return [1] * n
    chance, sizes = random.Random(seed), []
    while sum(sizes) < n:
        sizes.append(chance.randint(1, min(5, n - sum(sizes))))
    return sizes


@torch.no_grad()
def run_in_chunks(
    model: DecoderOnly, ids: Tensor, sizes: list[int], cache: Cache, keep: Tensor | None = None
) -> Tensor:
    out, start = [], 0
    for size in sizes:
        part = slice(start, start + size)
        out.append(model(ids[:, part], None if keep is None else keep[:, part], cache))
        start += size
    return torch.cat(out, dim=1)


@ALL_POSITIONS
@CHUNKS
def test_a_cached_decoder_gives_the_full_forward(positions: str, seed: int | None) -> None:
    model, ids = decoder_only(positions), random_ids(3, 11)
    cache = model.new_cache(3, 11)
    close(run_in_chunks(model, ids, cut(11, seed), cache), model(ids).detach())
    assert cache.length == 11


@ALL_POSITIONS
@CHUNKS
def test_a_cached_decoder_with_a_padded_source_gives_the_full_forward(positions: str, seed: int | None) -> None:
    model, source, target = encoder_decoder(positions), random_ids(3, 7), random_ids(3, 9, seed=2)
    keep = right_keep([7, 3, 1], 7)
    with torch.no_grad():
        memory, cache = model.encode(source, keep), model.new_cache(3, 12)
        parts = target.split(cut(9, seed), dim=1)
        cached = torch.cat([model.head(model.decode(part, memory, cache=cache)) for part in parts], dim=1)
        close(cached, model(source, target, keep))


@ALL_POSITIONS
@CHUNKS
def test_left_padded_rows_in_a_cache_give_what_each_row_gives_alone(positions: str, seed: int | None) -> None:
    model, ids, lengths = decoder_only(positions), random_ids(3, 10), [10, 6, 1]
    keep = left_keep(lengths, 10)
    together = run_in_chunks(model, ids, cut(10, seed), model.new_cache(3, 10), keep)
    assert together.isfinite().all()
    for row, length in enumerate(lengths):
        close(together[row, -length:], model(ids[row : row + 1, -length:])[0].detach())


@ALL_POSITIONS
def test_rows_padded_on_the_left_go_on_without_a_keep(positions: str) -> None:
    model, ids, more = decoder_only(positions), random_ids(2, 6), random_ids(2, 4, seed=3)
    with torch.no_grad():
        cache = model.new_cache(2, 10)
        model(ids, left_keep([6, 2], 6), cache)
        continued = torch.cat([model(more[:, i : i + 1], cache=cache) for i in range(4)], dim=1)
        alone = model(torch.cat([ids[1:, -2:], more[1:]], dim=1))
    close(continued[1:], alone[:, 2:])


@ALL_POSITIONS
def test_padding_in_the_middle_of_a_cache_does_not_count(positions: str) -> None:
    model, first, second = decoder_only(positions), random_ids(2, 5), random_ids(2, 4, seed=3)
    with torch.no_grad():
        cache = model.new_cache(2, 9)
        model(first, right_keep([5, 3], 5), cache)
        out = model(second, cache=cache)
        close(out[1:], model(torch.cat([first[1:, :3], second[1:]], dim=1))[:, 3:])


@ALL_POSITIONS
def test_selecting_rows_of_a_cache_is_running_the_reordered_prefix_from_scratch(positions: str) -> None:
    model, prefix = decoder_only(positions), random_ids(4, 6)
    keep, rows = left_keep([6, 4, 2, 5], 6), [2, 0, 0, 3]
    for chosen in (rows, [1], [3, 1, 1, 0, 2, 2]):  # as many rows, fewer, more
        cache, order = model.new_cache(4, 10), torch.tensor(chosen)
        following = random_ids(len(chosen), 3, seed=5)
        with torch.no_grad():
            model(prefix, keep, cache)
            cache.select(order)
            scratch = model(torch.cat([prefix[order], following], 1), torch.cat([keep[order], following >= 0], 1))
        close(run_in_chunks(model, following, [1, 2], cache), scratch[:, 6:])


def test_truncating_a_cache_takes_steps_back() -> None:
    model, ids, other = decoder_only("rotary"), random_ids(2, 6), random_ids(2, 2, seed=7)
    keep = left_keep([6, 3], 6)
    cache = model.new_cache(2, 6)
    run_in_chunks(model, ids, [6], cache, keep)
    cache.truncate(4)
    again = run_in_chunks(model, other, [2], cache)
    close(again, model(torch.cat([ids[:, :4], other], 1), keep)[:, 4:].detach())


@ALL_POSITIONS
def test_beams_that_share_a_memory_are_beams_with_a_memory_each(positions: str) -> None:
    model, beams, b = encoder_decoder(positions), 3, 2
    source, keep, target = random_ids(b, 7), right_keep([4, 7], 7), random_ids(b * beams, 8, seed=2)
    with torch.no_grad():
        memory = model.encode(source, keep)
        repeated = memory.select(torch.arange(b).repeat_interleave(beams))
        expected = model.decode(target, repeated)
        close(model.decode(target, memory), expected)
        cache = model.new_cache(b * beams, 8)
        cached = torch.cat([model.decode(part, memory, cache=cache) for part in target.split([1, 3, 4], 1)], 1)
    close(cached, expected)
    assert cache.layers[0].memory is not None
    assert cache.layers[0].memory[0].shape[0] == b


@ALL_POSITIONS
def test_a_beam_search_that_reorders_and_drops_sentences_keeps_to_the_scratch_run(positions: str) -> None:
    """Three sentences, two beams: prefill with one row each, spread, reorder, let the middle sentence go, step on."""
    model, source, keep = encoder_decoder(positions), random_ids(3, 6), right_keep([6, 2, 4], 6)
    prefix = random_ids(3, 2, seed=2)
    with torch.no_grad():
        memory, cache = model.encode(source, keep), model.new_cache(3, 8)
        model.decode(prefix, memory, cache=cache)
        spread = torch.tensor([0, 0, 1, 1, 2, 2])
        cache.select(spread)
        words = random_ids(6, 2, seed=3)
        model.decode(words, memory, cache=cache)
        so_far = torch.cat([prefix[spread], words], dim=1)
        order, sentences = torch.tensor([1, 0, 5, 5]), torch.tensor([0, 2])
        cache.select(order)
        cache.select_memory(sentences)
        memory, so_far, last = memory.select(sentences), so_far[order], random_ids(4, 1, seed=4)
        stepped = model.decode(last, memory, cache=cache)
        full = model.decode(torch.cat([so_far, last], 1), memory.select(torch.tensor([0, 0, 1, 1])))
    close(stepped, full[:, -1:])


@pytest.mark.parametrize(
    ("ids", "keep"),
    [
        (torch.full((2, 2), VOCABULARY), None),  # an id out of range
        (random_ids(2, 2), torch.ones(2, 3, dtype=torch.bool)),  # a keep of another length
        (random_ids(2, 2), torch.ones(3, 2, dtype=torch.bool)),  # and of other rows
        (random_ids(3, 2), None),  # other rows than the cache
        (random_ids(2, 9), None),  # too long
        (random_ids(2, 2)[0], None),  # no rows at all
    ],
)
def test_a_refused_input_leaves_the_cache_as_it_was(ids: Tensor, keep: Tensor | None) -> None:
    model, prefix, following = decoder_only("learned"), random_ids(2, 4), random_ids(2, 2, seed=2)
    cache = model.new_cache(2, 8)
    run_in_chunks(model, prefix, [4], cache)
    with pytest.raises(UserError):
        model(ids, keep, cache)
    assert (cache.length, cache.keep) == (4, None)
    close(run_in_chunks(model, following, [2], cache), model(torch.cat([prefix, following], 1))[:, 4:].detach())


def test_a_stack_counts_positions_behind_a_cache_by_itself() -> None:
    decoder = decoder_only("rotary").decoder
    x, keep = torch.randn(2, 6, 16), left_keep([6, 3], 6)
    for all_keep in (None, keep):
        cache = decoder_only("rotary").new_cache(2, 6)
        with torch.no_grad():
            decoder(x[:, :4], None if all_keep is None else all_keep[:, :4], cache=cache)
            close(decoder(x[:, 4:], all_keep, cache=cache, start=4), decoder(x, all_keep)[:, 4:])


def test_a_cache_works_in_mixed_precision() -> None:
    model, source, target = encoder_decoder("rotary_grouped"), random_ids(2, 5), random_ids(2, 6, seed=2)
    full = model(source, target).detach()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        memory, cache = model.encode(source), model.new_cache(2, 6)
        cached = torch.cat([model.head(model.decode(part, memory, cache=cache)) for part in target.split(2, 1)], 1)
    assert (cached.float() - full).pow(2).mean().sqrt() < 0.05 * full.std()
