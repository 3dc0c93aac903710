"""Files of torch.save are read without torch.load, and nothing in them is ever run."""

import contextlib
import copy
import io
import os
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import UserError
from glassformer.exchange.torch_file import read_torch_file

WEIGHTS = OrderedDict(
    a=torch.arange(6.0).reshape(2, 3),
    half=torch.randn(4, 2).half(),
    b16=torch.randn(3).bfloat16(),
    whole=torch.arange(5),
    turned=torch.randn(4, 3).T,
    part=torch.randn(10)[3:7],
    empty=torch.empty(0, 2),
    one=torch.tensor(2.5),
)


def saved(value: Any, path: Path) -> Path:
    torch.save(value, path)
    return path


def test_weights_and_plain_data_come_back(tmp_path: Path) -> None:
    value = {"dims": {"n": 3, "big": 1 << 40, "x": 0.5, "yes": True, "no": None}, "state": WEIGHTS, "list": [1, ("a",)]}
    found = read_torch_file(saved(value, tmp_path / "a.pt"))
    assert found["dims"] == value["dims"]
    assert found["list"] == value["list"]
    assert found["state"].keys() == WEIGHTS.keys()
    for name, weight in WEIGHTS.items():
        assert found["state"][name].dtype == weight.dtype
        assert torch.equal(found["state"][name], weight)


def test_a_whole_module_and_parameters(tmp_path: Path) -> None:
    state = torch.nn.Linear(3, 2).state_dict()
    found = read_torch_file(saved(state, tmp_path / "a.pt"))
    assert all(torch.equal(found[name], weight) for name, weight in state.items())
    parameter = torch.nn.Parameter(torch.randn(2))
    assert torch.equal(read_torch_file(saved({"p": parameter}, tmp_path / "b.pt"))["p"], parameter)


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("exploded",)


def archive(program: bytes, path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", program)
        file.writestr("archive/data/0", b"\0" * 16)
    return path


@pytest.mark.parametrize(
    "program",
    [
        pickle.dumps(Bomb(), protocol=2),
        pickle.dumps(Bomb(), protocol=4),
        b"cos\nsystem\n(X\x04\x00\x00\x00truetR.",
        b"cbuiltins\neval\n(X\x01\x00\x00\x001tR.",
        b"ctorch._utils\n_rebuild_tensor_v2\n(tR.",
        b"ccollections\nOrderedDict\n(K\x01tR.",
        b"(ios\nsystem\n.",
        b"\x80\x02.",
        b"}K\x01K\x02K\x03s.",
        b"",
    ],
)
def test_code_is_refused(program: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"a\.pt"):
        read_torch_file(archive(program, tmp_path / "a.pt"))
    assert not (tmp_path / "exploded").exists()


def test_the_name_that_would_be_called_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"would call \w+\.mkdir: nothing in it is run"):
        read_torch_file(archive(pickle.dumps(Bomb(), protocol=2), tmp_path / "a.pt"))


def test_a_shape_larger_than_its_numbers_is_refused(tmp_path: Path) -> None:
    huge = torch.zeros(1).expand(1 << 40)
    with pytest.raises(UserError, match="shape that its numbers do not fill"):
        read_torch_file(saved({"w": huge}, tmp_path / "a.pt"))


def test_numbers_that_are_named_often_are_read_once(tmp_path: Path) -> None:
    one = torch.randn(1000)
    found = read_torch_file(saved({str(i): one.clone() if i == 0 else one for i in range(50)}, tmp_path / "a.pt"))
    assert torch.equal(found["7"], one)
    assert len({weight.data_ptr() for weight in found.values()}) == 2


def test_parts_that_lie_on_each_other_are_refused(tmp_path: Path) -> None:
    path = saved({"w": torch.zeros(4000)}, tmp_path / "a.pt")
    listed = zipfile.ZipFile(path)
    entry = next(entry for entry in listed.infolist() if entry.filename.endswith("data/0"))
    with zipfile.ZipFile(path, "a") as file:
        again = copy.copy(entry)
        again.filename = entry.filename[:-1] + "1"
        file.filelist.append(again)
        file._didModify = True  # type: ignore[attr-defined]
    listed.close()
    with pytest.raises(UserError, match="hold more than the file"):
        read_torch_file(path)


def test_the_old_format_is_named(tmp_path: Path) -> None:
    torch.save({"w": torch.zeros(3)}, tmp_path / "a.bin", _use_new_zipfile_serialization=False)
    with pytest.raises(UserError, match="torch's old format"):
        read_torch_file(tmp_path / "a.bin")


def test_packed_archives_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.pt", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("archive/data.pkl", pickle.dumps({}, protocol=2))
    with pytest.raises(UserError, match="packed"):
        read_torch_file(tmp_path / "a.pt")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Path]:
    folder = tmp_path_factory.mktemp("fuzz")
    return saved({"dims": {"n": 3}, "state": WEIGHTS}, folder / "a.pt").read_bytes(), folder


@given(st.data())
def test_damage_is_an_error_of_the_user_or_does_no_harm(sound: tuple[bytes, Path], data: st.DataObject) -> None:
    whole, folder = sound
    harmed = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        harmed[data.draw(st.integers(0, len(harmed) - 1))] = data.draw(st.integers(0, 255))
    (folder / "b.pt").write_bytes(bytes(harmed[: data.draw(st.sampled_from([len(harmed), len(harmed) // 2]))]))
    with contextlib.suppress(UserError):
        read_torch_file(folder / "b.pt")


@given(st.binary(max_size=60), st.integers(0, 400), st.integers(0, 255))
def test_any_program_ends_well(sound: tuple[bytes, Path], program: bytes, place: int, byte: int) -> None:
    """Random programs, and a sound one with one byte changed, which no checksum catches here."""
    whole = bytearray(_program())
    whole[place % len(whole)] = byte
    for tried in (program, bytes(whole)):
        with contextlib.suppress(UserError):
            read_torch_file(archive(tried, sound[1] / "c.pt"))


def _program() -> bytes:
    stream = io.BytesIO()
    torch.save({"w": torch.zeros(4), "dims": {"n": 1}}, stream)
    with zipfile.ZipFile(stream) as file:
        return file.read(next(name for name in file.namelist() if name.endswith("data.pkl")))
