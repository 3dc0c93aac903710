"""Sequences come back from disk as they went in; every epoch sees each of them once, in batches within the budget."""

import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from glassformer.data import files
from glassformer.data.batch import by_length, cut, pad, pair_batch, plan_epoch
from glassformer.data.files import alone_in, write_text, writing
from glassformer.data.pairs import Pair, open_pairs, read_pairs
from glassformer.data.store import TokenStore, write_store
from glassformer.data.tokenizer import END, PAD, START, automatic_size, train_tokenizer
from glassformer.errors import UserError

SEQUENCES = [[5, 6, 7], [], [8], [9, 10]]
Lengths = NDArray[np.int64]


def some_lengths(n: int = 1000, seed: int = 0) -> list[Lengths]:
    random = np.random.default_rng(seed)
    first = random.integers(1, 40, n)
    return [first, np.maximum(1, first + random.integers(-6, 7, n))]


@pytest.mark.parametrize("vocab_size", [100, 2**16, 2**16 + 1, 2**20])
def test_store_round_trip(tmp_path: Path, vocab_size: int) -> None:
    sequences = [*SEQUENCES, [vocab_size - 1]]
    store = write_store(tmp_path / "new" / "source", iter(sequences), vocab_size)
    for found in (store, TokenStore(tmp_path / "new" / "source")):
        assert [ids.tolist() for ids in found] == sequences
        assert found.lengths.tolist() == [3, 0, 1, 2, 1]
        assert len(found) == 5
        assert found[3].dtype == np.int64


@pytest.mark.parametrize("sequences", [[], [[], []]])
def test_store_of_nothing(tmp_path: Path, sequences: list[list[int]]) -> None:
    assert [ids.tolist() for ids in write_store(tmp_path / "s", sequences, 10)] == sequences


@pytest.mark.parametrize("vocab_size", [100, 2**20])
@pytest.mark.parametrize("n_bytes", [0, 1, 5])
def test_truncated_store_is_refused(tmp_path: Path, vocab_size: int, n_bytes: int) -> None:
    write_store(tmp_path / "s", SEQUENCES, vocab_size)
    os.truncate(tmp_path / "s.ids", n_bytes)
    with pytest.raises(UserError, match="is damaged"):
        TokenStore(tmp_path / "s")


@pytest.mark.parametrize("n_bytes", [12, 17])
def test_half_a_store_of_wide_ids_is_refused(tmp_path: Path, n_bytes: int) -> None:
    write_store(tmp_path / "s", SEQUENCES, 2**20)
    os.truncate(tmp_path / "s.ids", n_bytes)
    with pytest.raises(UserError, match="is damaged"):
        TokenStore(tmp_path / "s")


@pytest.mark.parametrize("n_bytes", [0, 8, 17, 40, 44])
def test_store_with_ends_cut_short_is_refused(tmp_path: Path, n_bytes: int) -> None:
    write_store(tmp_path / "s", SEQUENCES, 100)
    os.truncate(tmp_path / "s.ends", n_bytes)
    with pytest.raises(UserError, match="is damaged"):
        TokenStore(tmp_path / "s")


@pytest.mark.parametrize("suffix", ["ids", "ends"])
def test_store_with_any_byte_altered_is_refused(tmp_path: Path, suffix: str) -> None:
    write_store(tmp_path / "s", SEQUENCES, 100)
    path = tmp_path / f"s.{suffix}"
    whole = path.read_bytes()
    for i in range(len(whole)):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :])
        with pytest.raises(UserError, match="is damaged"):
            TokenStore(tmp_path / "s")
    path.write_bytes(whole)
    assert len(TokenStore(tmp_path / "s")) == len(SEQUENCES)


def test_store_of_an_earlier_version_is_refused(tmp_path: Path) -> None:
    write_store(tmp_path / "s", SEQUENCES, 100)
    np.asarray([2, 4, 3, 3, 4, 6], dtype="<i8").tofile(tmp_path / "s.ends")  # no checksum
    with pytest.raises(UserError, match=r"another version of Glassformer wrote it\. Delete its folder"):
        TokenStore(tmp_path / "s")


def test_store_is_checked_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glassformer.data.store.BLOCK", 5)
    assert [ids.tolist() for ids in write_store(tmp_path / "s", SEQUENCES, 100)] == SEQUENCES


def test_writing_holds_a_number_for_each_sequence(tmp_path: Path) -> None:
    n, held = 20_000, 0

    def sequences() -> Iterator[list[int]]:
        nonlocal held
        yield from ([7] for _ in range(n))
        held = tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        write_store(tmp_path / "s", sequences(), 100)
    finally:
        tracemalloc.stop()
    assert 8 * n < held < 16 * n


@pytest.mark.parametrize("suffix", ["ids", "ends"])
def test_store_with_a_file_missing_is_refused(tmp_path: Path, suffix: str) -> None:
    write_store(tmp_path / "s", SEQUENCES, 100)
    (tmp_path / f"s.{suffix}").unlink()
    with pytest.raises(UserError, match="is not complete"):
        TokenStore(tmp_path / "s")


def test_file_takes_its_place_only_when_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.txt"
    write_text(path, "old")

    def fail_in_the_middle() -> None:
        with writing(path) as file:
            file.write(b"new, but only hal")
            raise RuntimeError("power")

    with pytest.raises(RuntimeError, match="power"):
        fail_in_the_middle()
    assert path.read_text() == "old"
    assert [found.name for found in path.parent.iterdir()] == ["file.txt"]
    write_text(path, "neu ü")
    assert path.read_bytes() == "neu ü".encode()


def test_full_disk_is_one_sentence_and_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.txt"
    write_text(path, "old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(UserError, match="could not be written: No space left on device"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["file.txt"]


def test_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    write_text(tmp_path / "file", "not a folder")
    with pytest.raises(UserError, match="could not be written"):
        write_text(tmp_path / "file" / "inside", "x")


def test_failed_store_leaves_no_part(tmp_path: Path) -> None:
    def broken() -> object:
        yield [1, 2]
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_store(tmp_path / "s", broken(), 100)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=80),
    st.integers(1, 100),
    st.integers(0, 3),
)
def test_every_row_once_within_the_budget(pairs: list[tuple[int, int]], budget: int, epoch: int) -> None:
    lengths = [np.array(side) for side in zip(*pairs, strict=True)]
    batches = [planned.rows for planned in plan_epoch(lengths, budget, 0, epoch)]
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(pairs)))
    for batch in batches:
        widest = max(side[batch].max() for side in lengths)
        assert len(batch) * widest <= budget or len(batch) == 1


def test_order_depends_on_seed_and_epoch_only() -> None:
    def plan(seed: int, epoch: int) -> list[list[int]]:
        return [planned.rows.tolist() for planned in plan_epoch(some_lengths(), 512, seed, epoch)]

    np.random.default_rng(3).random()
    torch.manual_seed(5)
    first = plan(1, 0)
    torch.manual_seed(6)
    assert plan(1, 0) == first
    assert plan(1, 1) != first
    assert plan(2, 0) != first
    members = [{frozenset(batch) for batch in plan(1, epoch)} for epoch in (0, 1)]
    assert members[0] != members[1]  # other neighbours too, not only another order of the same batches


def test_one_side_alone() -> None:
    lengths = some_lengths()[:1]
    batches = [planned.rows for planned in plan_epoch(lengths, 256, 0, 0)]
    assert sum(map(len, batches)) == 1000
    assert padding(lengths, batches)[0] < 0.03


def test_no_rows() -> None:
    assert plan_epoch([np.array([], dtype=np.int64)] * 2, 100, 0, 0) == []


def test_neighbours_are_alike_on_both_sides() -> None:
    lengths = some_lengths(5000)
    rows = by_length(lengths, np.arange(5000))
    batches = cut(rows, np.max([side[rows] for side in lengths], axis=0), 2048)
    assert max(padding(lengths, batches)) < 0.1


def test_wide_row_stands_alone() -> None:
    assert [b.tolist() for b in cut(np.arange(4), np.array([2, 2, 50, 3]), 10)] == [[0, 1], [2], [3]]


def test_pad() -> None:
    ids, keep = pad([np.array([7, 8]), np.array([9])], before=START, after=END)
    assert ids.tolist() == [[START, 7, 8, END], [START, 9, END, PAD]]
    assert keep.tolist() == [[True] * 4, [True, True, True, False]]
    ids, keep = pad([np.array([7, 8]), np.array([], dtype=np.int64)])
    assert ids.tolist() == [[7, 8], [PAD, PAD]]
    assert keep.tolist() == [[True, True], [False, False]]


def test_pair_batch() -> None:
    batch = pair_batch([np.array([7]), np.array([5, 6])], [np.array([16, 17]), np.array([15])])
    assert batch.source.tolist() == [[7, END, PAD], [5, 6, END]]
    assert batch.source_keep is not None
    assert batch.source_keep.tolist() == [[True, True, False], [True, True, True]]
    assert batch.target_in.tolist() == [[START, 16, 17], [START, 15, PAD]]
    assert batch.target_out.tolist() == [[16, 17, END], [15, END, PAD]]
    assert batch.n_tokens == 5
    assert pair_batch([np.array([7]), np.array([8])], [np.array([16]), np.array([18, 19])]).source_keep is None


def padding(lengths: list[Lengths], batches: list[Lengths]) -> list[float]:
    """Share of each side that is padding."""
    filled = [sum(len(batch) * int(side[batch].max()) for batch in batches) for side in lengths]
    return [1 - int(side.sum()) / full for side, full in zip(lengths, filled, strict=True)]


@pytest.mark.slow
@pytest.mark.skipif("GLASSFORMER_DATA" not in os.environ, reason="GLASSFORMER_DATA names no folder with Multi30k")
def test_padding_on_multi30k() -> None:
    folder = Path(os.environ["GLASSFORMER_DATA"]) / "translation" / "multi30k"
    pairs = [p for p in read_pairs(open_pairs([folder / "train.en", folder / "train.de"])) if isinstance(p, Pair)]
    texts = [[p.source for p in pairs], [p.target for p in pairs]]
    tokenizer = train_tokenizer(texts[0] + texts[1], "bpe", automatic_size(sum(map(len, texts[0] + texts[1]))))
    lengths = [np.array([len(ids) + 1 for ids in tokenizer.encode_batch(side)]) for side in texts]
    assert max(padding(lengths, [planned.rows for planned in plan_epoch(lengths, 4096, 0, 0)])) < 0.05


def test_two_processes_do_not_work_in_one_folder(tmp_path: Path) -> None:
    with alone_in(tmp_path), pytest.raises(UserError, match=r"Another process is at work in"), alone_in(tmp_path):
        pass
    with alone_in(tmp_path):
        assert (tmp_path / ".lock").exists()
