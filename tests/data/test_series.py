"""Series of vectors are read from NPZ, NPY and JSON lines, ragged or padded; nothing in a file is executed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glassformer.data.series import Series, holds_series, parse_series, read_series
from glassformer.errors import UserError

RAGGED = [np.arange(6.0).reshape(3, 2), np.arange(2.0).reshape(1, 2), np.arange(4.0).reshape(2, 2)]
LABELS = ["a", "b", "a"]


def saved(path: Path, *unnamed: Any, **arrays: Any) -> Path:
    np.savez(path, *unnamed, **arrays)
    return path


def same(found: Series) -> bool:
    return len(found.values) == 3 and all(np.array_equal(a, b) for a, b in zip(found.values, RAGGED, strict=True))


def test_one_after_the_other(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.npz", x=np.concatenate(RAGGED), lengths=[3, 1, 2], y=np.array(LABELS))
    found = read_series([path])
    assert same(found)
    assert found.labels == LABELS
    assert found.places[1] == f"{path} series 2"
    assert str(found) == "3 series of 2 numbers a step, 1 to 3 steps."


def test_padded(tmp_path: Path) -> None:
    padded = np.full((3, 3, 2), np.nan)
    for i, values in enumerate(RAGGED):
        padded[i, : len(values)] = values
    assert same(read_series([saved(tmp_path / "a.npz", X=padded, lengths=[3, 1, 2], labels=[0, 1, 0])]))


def test_npy_with_labels_beside_it(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((3, 5)))
    (tmp_path / "y.txt").write_text("a\nb\na\n")
    found = read_series([tmp_path / "x.npy"], tmp_path / "y.txt")
    assert [values.shape for values in found.values] == [(5, 1)] * 3
    assert found.labels == LABELS
    np.save(tmp_path / "y.npy", np.array([0.5, 1.5, 2.5]))
    assert read_series([tmp_path / "x.npy"], tmp_path / "y.npy").labels == ["0.5", "1.5", "2.5"]


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    records = [{"vectors": v.tolist(), "label": y} for v, y in zip(RAGGED, LABELS, strict=True)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert holds_series(path)
    found = read_series([path])
    assert same(found)
    assert found.labels == LABELS
    assert found.places[2] == f"{path} line 3"
    assert parse_series("[1, 2, 3]", 1).tolist() == parse_series('{"vectors": [[1], [2], [3]]}', 1).tolist()


def test_several_columns_are_many_classes(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.npz", x=np.zeros((2, 3, 1)), y=[[1, 0, 1], [0, 0, 0]])
    assert read_series([path]).labels == [("0", "2"), ()]


@pytest.mark.parametrize(
    ("y", "labels"),
    [
        ([[7], [0]], ["7", "0"]),
        ([[0.5], [1.5]], ["0.5", "1.5"]),
        ([b"caf\xc3\xa9", b"b"], ["café", "b"]),
        ([[b"a"], [b"b"]], ["a", "b"]),
        ([[0, 0, 1], [1, 0, 0]], ["2", "0"]),
        (np.eye(2, dtype=np.float32), ["0", "1"]),
    ],
)
def test_one_label_each_in_another_shape(tmp_path: Path, y: Any, labels: list[str]) -> None:
    assert read_series([saved(tmp_path / "a.npz", x=np.zeros((2, 3, 1)), y=np.array(y))]).labels == labels


def test_texts_are_no_series(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "x", "label": 1}\n')
    assert not holds_series(tmp_path / "a.jsonl")
    assert not holds_series(tmp_path / "a.tsv")


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"z": np.zeros(3)}, "has no array of vectors"),
        ({"x": np.array(["a", "b"])}, "which is no number"),
        ({"x": np.zeros(3)}, r"x has shape \(3,\)"),
        ({"x": np.zeros((2, 3, 1)), "y": [1, 2, 3]}, "has 2 series, but 3 labels"),
        ({"x": np.zeros((2, 3, 1)), "lengths": [1, 4]}, "lengths do not fit"),
        ({"x": np.zeros((5, 2)), "lengths": [1, 3]}, "lengths add up to 4, but x has 5 steps"),
        ({"x": np.zeros((5, 2)), "lengths": [5, 0]}, "whole numbers above 0"),
        ({"x": np.array([[[1.0], [np.inf]]])}, "series 1 has a value that is not a number"),
        ({"x": np.zeros((2, 3, 1)), "y": [[2, 0], [0, 1]]}, "labels in several columns are to be 0 or 1"),
    ],
)
def test_useless_arrays(tmp_path: Path, arrays: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said) as raised:
        read_series([saved(tmp_path / "a.npz", **arrays)])
    assert "a.npz" in raised.value.message


def test_one_array_for_each_series(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.npz", *[np.zeros((i + 1, 2)) for i in range(300)])
    with pytest.raises(UserError, match=r"it has arr_0, arr_1, .*arr_11, …\.") as raised:
        read_series([path])
    assert "arr_12" not in raised.value.message
    assert "x=numpy.concatenate(them), lengths=[len(one) for one in them]" in str(raised.value.hint)


class Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path("/nowhere").write_text, ("executed",))


def test_objects_are_refused_and_not_executed(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([Trap()], dtype=object), allow_pickle=True)
    with pytest.raises(UserError, match="holds Python objects"):
        read_series([tmp_path / "a.npz"])


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 broken", b"\x93NUMPY\x01\x00\x10\x00{'descr': '", b"just text"])
def test_broken_files(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(UserError, match=r"a\.npz"):
        read_series([tmp_path / "a.npz"])


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (['{"vectors": [[1, 2], [3]], "label": 1}'], "line 1 has no vectors, or vectors of different widths"),
        (['{"vectors": [[1]], "label": 1}', '{"vectors": [[1, 2]], "label": 1}'], "line 2 has 2 numbers a step"),
        ([f'{{"vectors": [{10**400}], "label": 1}}'], "line 1 has a number that is far too large"),
        (['{"vectors": [[1]], "label": 1}', "no json"], "line 2 is not JSON"),
        (['{"vectors": [[1]], "label": 1}', '{"vectors": [[1]]}'], "1 of 2 lines have no field label"),
    ],
)
def test_useless_lines(tmp_path: Path, lines: list[str], said: str) -> None:
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    with pytest.raises(UserError, match=said):
        read_series([tmp_path / "a.jsonl"])


def test_fingerprint_changes_with_values_and_labels(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((3, 5)))
    (tmp_path / "y.txt").write_text("a\nb\na\n")
    (tmp_path / "z.txt").write_text("a\nb\nb\n")
    one, same_labels, others = (
        read_series([tmp_path / "x.npy"], tmp_path / name) for name in ("y.txt",) * 2 + ("z.txt",)
    )
    assert one.fingerprint() == same_labels.fingerprint() != others.fingerprint()
    np.save(tmp_path / "x.npy", np.ones((3, 5)))
    assert read_series([tmp_path / "x.npy"], tmp_path / "y.txt").fingerprint() != one.fingerprint()
