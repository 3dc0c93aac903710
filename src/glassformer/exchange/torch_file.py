"""The weights in a file of torch.save, without running anything that is in it.

Such a file is a zip archive: a pickle that describes the objects, and the raw numbers beside it. A pickle is a program
for a small machine that may call anything. The machine here knows plain containers, numbers and texts; the only names
that it accepts are those of tensors and ordered dicts, and it never looks up a name: it calls nothing.
"""

import io
import math
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from glassformer.errors import UserError

TYPES = {
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "DoubleStorage": torch.float64,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}
LARGEST_PICKLE = 1 << 26
OLD = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."  # a pickle of the number that files began with
_MARK = object()


@dataclass(frozen=True)
class Name:
    """A name in the pickle, which stays a name."""

    module: str
    name: str


@dataclass(frozen=True)
class Storage:
    """A row of numbers in the archive."""

    key: str
    dtype: torch.dtype
    size: int


def read_torch_file(path: Path) -> Any:
    """What the file holds: dicts, lists, tuples, numbers, texts and tensors."""
    try:
        if _is_old(path):
            raise UserError(
                f"{path} is in torch's old format, from before 2020, which is not read here.",
                "Take the model as safetensors, or load it with torch and save it again.",
            )
        with zipfile.ZipFile(path) as archive:
            names = {entry.filename: entry for entry in archive.infolist()}
            described = [name for name in names if name.endswith("/data.pkl") or name == "data.pkl"]
            if len(described) != 1:
                raise _unsound(path, "there is no single data.pkl in it")
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in names.values()):
                raise _unsound(path, "its parts are packed, which torch does not do")
            if sum(entry.file_size for entry in names.values()) > path.stat().st_size:
                raise _unsound(path, "its parts hold more than the file")
            if names[described[0]].file_size > LARGEST_PICKLE:
                raise _unsound(path, "its description is too large")
            order = described[0].removesuffix("data.pkl") + "byteorder"
            if order in names and archive.read(order) != b"little":
                raise _unsound(path, "its numbers are not little-endian")
            folder = described[0].removesuffix("data.pkl") + "data/"
            return _Machine(archive, names, folder, path).run(archive.read(described[0]))
    except (
        zipfile.BadZipFile,
        OSError,
        EOFError,
        NotImplementedError,
        struct.error,
        IndexError,
        UnicodeDecodeError,
    ) as error:
        raise _unsound(path, str(error) or type(error).__name__) from None
    except (TypeError, ValueError, KeyError, AttributeError, RuntimeError, OverflowError, RecursionError) as error:
        raise _unsound(path, f"its description makes no sense ({type(error).__name__})") from None


def _is_old(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(OLD)) == OLD


def _unsound(path: Path, why: str) -> UserError:
    return UserError(
        f"{path} is not a file of weights that can be read: {why}.", "Copy it again, or take the model as safetensors."
    )


class _Machine:
    """The stack and the memory of the pickle's program."""

    def __init__(self, archive: zipfile.ZipFile, names: dict[str, zipfile.ZipInfo], folder: str, path: Path) -> None:
        self.archive, self.names, self.folder, self.path = archive, names, folder, path
        self.stack: list[Any] = []
        self.memory: dict[int, Any] = {}
        self.numbers: dict[str, bytearray] = {}  # read once, however many weights lie in them

    def run(self, program: bytes) -> Any:
        file = io.BytesIO(program)
        while True:
            code = file.read(1)
            if code == b".":
                return self.stack.pop()
            self._step(code, file)

    def _step(self, code: bytes, file: io.BytesIO) -> None:
        push, pop = self.stack.append, self.stack.pop
        match code:
            case b"\x80" | b"\x95":  # the protocol, and the size of what follows
                file.read(1 if code == b"\x80" else 8)
            case b"(":
                push(_MARK)
            case b"}" | b"]" | b")":
                push({} if code == b"}" else [] if code == b"]" else ())
            case b"N" | b"\x88" | b"\x89":
                push(None if code == b"N" else code == b"\x88")
            case b"K" | b"M" | b"J" | b"G":
                layout = {b"K": "<B", b"M": "<H", b"J": "<i", b"G": ">d"}[code]
                push(struct.unpack(layout, file.read(struct.calcsize(layout)))[0])
            case b"\x8a":
                push(int.from_bytes(file.read(file.read(1)[0]), "little", signed=True))
            case b"X" | b"\x8c":
                size = file.read(1)[0] if code == b"\x8c" else struct.unpack("<I", file.read(4))[0]
                push(file.read(size).decode("utf-8"))
            case b"q" | b"r" | b"\x94":
                self.memory[self._place(code == b"q", file) if code != b"\x94" else len(self.memory)] = self.stack[-1]
            case b"h" | b"j":
                push(self.memory[self._place(code == b"h", file)])
            case b"\x85" | b"\x86" | b"\x87":
                n = code[0] - 0x84
                self.stack[-n:] = [tuple(self.stack[-n:])]
            case b"t":
                push(tuple(self._since_mark()))
            case b"s" | b"u":
                items = self._since_mark() if code == b"u" else [self.stack.pop(-2), pop()]
                self._of(dict).update(zip(items[::2], items[1::2], strict=True))
            case b"a" | b"e":
                items = self._since_mark() if code == b"e" else [pop()]
                self._of(list).extend(items)
            case b"c" | b"\x93":
                push(self._name(*self._two_names(code, file)))
            case b"Q":
                push(self._storage(pop()))
            case b"R":
                arguments = pop()
                push(self._call(pop(), arguments))
            case b"b":  # attributes of a dict, which are not needed
                pop()
                self._of(dict)
            case _:
                raise _unsound(self.path, f"its description has the instruction {code!r}, which no weights need")

    def _place(self, short: bool, file: io.BytesIO) -> int:
        return file.read(1)[0] if short else int(struct.unpack("<I", file.read(4))[0])

    def _since_mark(self) -> list[Any]:
        place = max(i for i, item in enumerate(self.stack) if item is _MARK)
        items = self.stack[place + 1 :]
        del self.stack[place:]
        return items

    def _of(self, kind: type) -> Any:
        if type(self.stack[-1]) is not kind:
            raise _unsound(self.path, "its description fills something that is no container")
        return self.stack[-1]

    def _two_names(self, code: bytes, file: io.BytesIO) -> tuple[str, str]:
        if code == b"\x93":
            name, module = self.stack.pop(), self.stack.pop()
            return str(module), str(name)
        return file.readline()[:-1].decode("utf-8"), file.readline()[:-1].decode("utf-8")

    def _name(self, module: str, name: str) -> Name:
        known = (module == "torch" and name in TYPES) or (module, name) in _CALLS
        if not known:
            raise UserError(
                f"{self.path} is a pickle that would call {module}.{name}: nothing in it is run here.",
                "Take the model as safetensors, or a file that holds nothing but weights.",
            )
        return Name(module, name)

    def _storage(self, given: Any) -> Storage:
        what, kind, key, _, size = given
        if (
            what != "storage"
            or not isinstance(kind, Name)
            or kind.name not in TYPES
            or type(size) is not int
            or size < 0
        ):
            raise _unsound(self.path, "it names numbers that are none")
        return Storage(str(key), TYPES[kind.name], size)

    def _call(self, name: Any, arguments: Any) -> Any:
        match name:
            case Name("collections", "OrderedDict") if arguments == ():
                return {}
            case Name("torch._utils", "_rebuild_tensor_v2"):
                return self._tensor(*arguments[:4])
            case Name("torch._utils", "_rebuild_parameter"):
                return arguments[0]
        raise _unsound(self.path, "its description calls what cannot be called")

    def _tensor(self, storage: Any, offset: Any, shape: Any, strides: Any) -> Tensor:
        """Part of a storage; never more numbers than there are."""
        whole = [offset, *shape, *strides]
        sound = (
            isinstance(storage, Storage)
            and len(shape) == len(strides)
            and all(type(n) is int and n >= 0 for n in whole)
        )
        if not sound or math.prod(shape) > storage.size:
            raise _unsound(self.path, "a weight has a shape that its numbers do not fill")
        last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
        entry = self.names.get(self.folder + storage.key)
        width = storage.dtype.itemsize
        if entry is None or entry.file_size != storage.size * width or (math.prod(shape) and last >= storage.size):
            raise _unsound(self.path, f"the numbers {storage.key!r} are not there, or not so many")
        if not math.prod(shape):
            return torch.empty(shape, dtype=storage.dtype)
        if storage.key not in self.numbers:
            self.numbers[storage.key] = bytearray(self.archive.read(entry))
        return torch.frombuffer(self.numbers[storage.key], dtype=storage.dtype).as_strided(shape, strides, offset)


_CALLS = {
    ("collections", "OrderedDict"),
    ("torch._utils", "_rebuild_tensor_v2"),
    ("torch._utils", "_rebuild_parameter"),
}
