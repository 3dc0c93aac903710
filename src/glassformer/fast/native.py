"""The C++ beside this file, compiled on first use for the processor that it will run on, and called through ctypes.

Where there is no compiler or no AVX2, `why_no_native` says so, and torch does the work. GLASSFORMER_CXXFLAGS of the
environment are added: `-mno-avx512f` makes what a processor without it would get.
"""

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from ctypes import POINTER, Structure, c_double, c_float, c_int, c_int32, c_int64, c_void_p
from pathlib import Path

import torch
from torch import Tensor, nn

HEADERS = [Path(__file__).with_name(name) for name in ("lanes.h", "vector.h", "whole.h")]
SOURCES = [Path(__file__).with_name(name) for name in ("native.cpp", "packed.cpp", "translate.cpp")]
FLAGS = ("-std=c++17", "-O3", "-march=native", "-mprefer-vector-width=512", "-fPIC", "-w")
NEEDED = {"avx2", "fma", "f16c"}  # which processors have had together since 2013; AVX-512 with VNNI is used where it is

ACTIVATIONS = {"relu": 0, "gelu": 1, "gelu_tanh": 2, "silu": 3, "tanh": 4}


class Linear(Structure):
    _fields_ = [
        ("weight", c_void_p),
        ("scale", c_void_p),
        ("bias", c_void_p),
        ("shift", c_void_p),
        ("n_in", c_int32),
        ("n_out", c_int32),
    ]


class Norm(Structure):
    _fields_ = [("weight", c_void_p), ("bias", c_void_p), ("eps", c_float)]


class Layer(Structure):
    _fields_ = [
        *((name, Linear) for name in ("qkv", "o", "w_1", "gate", "w_2")),
        *((name, Norm) for name in ("attention_norm", "ff_norm")),
        *((name, Linear) for name in ("cross_q", "cross_kv", "cross_o")),
        ("cross_norm", Norm),
    ]


class Stack(Structure):
    _fields_ = [
        ("layers", POINTER(Layer)),
        ("last", Norm),
        *((name, c_int32) for name in ("n_layers", "d_model", "h", "h_kv", "d_k", "d_v", "d_ff")),
        *((name, c_int32) for name in ("activation", "pre_norm", "rotary")),
    ]


class Call(Structure):
    _fields_ = [
        *((name, c_void_p) for name in ("x", "k", "v", "mask", "cos", "sin")),
        *((name, c_int64) for name in ("b", "n", "start", "capacity")),
    ]


class Words(Structure):
    _fields_ = [("table", c_void_p), ("positions", c_void_p), ("norm", Norm)]


class Translator(Structure):
    _fields_ = [
        *((name, Stack) for name in ("encoder", "decoder")),
        *((name, Words) for name in ("source", "target")),
        ("head", Linear),
        *((name, c_int32) for name in ("start", "end")),
    ]


class Texts(Structure):
    _fields_ = [
        *((name, c_void_p) for name in ("source", "begins", "prefixes")),
        *((name, c_int64) for name in ("n", "n_prefix", "beam", "n_best", "max_len", "no_repeat")),
        ("length_penalty", c_double),
        *((name, c_void_p) for name in ("ids", "lengths", "scores")),
    ]


N_THREADS = c_int

FUNCTIONS = {
    "linear": (POINTER(Linear), c_void_p, c_int64, c_int64, c_void_p, N_THREADS),
    "stack": (POINTER(Stack), POINTER(Call), N_THREADS),
    "log_totals": (c_void_p, c_int64, c_int64, c_void_p, N_THREADS),
    "attend": (c_void_p, c_void_p, c_void_p, c_int64, c_int, c_int, c_int, c_void_p, N_THREADS),
    "activate": (c_void_p, c_void_p, c_int64, c_int, c_int, N_THREADS),
    "add": (c_void_p, c_void_p, c_void_p, c_int64, c_int, POINTER(Norm), N_THREADS),
    "translate": (POINTER(Translator), c_int, POINTER(Texts)),
}


def why_no_native() -> str | None:
    """Why the compiled code cannot run here, or None if it can."""
    reason, _ = _found()
    return reason


def library() -> ctypes.CDLL:
    """The compiled code; ask `why_no_native` first."""
    reason, found = _found()
    assert found is not None, reason
    return found


@functools.cache
def _found() -> tuple[str | None, ctypes.CDLL | None]:
    if not (platform.system() == "Linux" and set(_processor().split()) >= NEEDED):
        return "it needs Linux on a processor with AVX2", None
    compiler = shutil.which("g++")
    if compiler is None:
        return "there is no compiler (g++)", None
    try:
        found = ctypes.CDLL(str(_compiled(compiler)))
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:  # no home is a RuntimeError
        return f"the C++ could not be compiled or loaded: {error}", None
    for name, arguments in FUNCTIONS.items():
        function = getattr(found, f"glassformer_{name}")
        function.argtypes, function.restype = list(arguments), c_int if name == "translate" else None
    return None, found


def most_together() -> int:
    """What four weights of one sign may be together as whole numbers; 0: anything."""
    return c_int32.in_dll(library(), "glassformer_most_together").value


def norm_of(norm: nn.Module | None) -> tuple[Norm, list[Tensor]]:
    """A norm as C++ reads it, and the tensors that it has addresses of."""
    if norm is None:
        return Norm(), []
    weights = [norm.weight] if isinstance(norm, nn.RMSNorm) else [norm.weight, norm.bias]
    owned = [torch.as_tensor(w).detach().float().clone() for w in weights]
    return Norm(owned[0].data_ptr(), owned[1].data_ptr() if len(owned) > 1 else None, norm.eps), owned


def _processor() -> str:
    """What Linux says of the first core."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0]
    except OSError:
        return ""


def _compiled(compiler: str) -> Path:
    """From the cache of the user, where the name says what it was made from and for which processor."""
    flags = [line for line in _processor().splitlines() if line.startswith(("model name", "flags"))]
    sources = [path.read_text(encoding="utf-8") for path in (*HEADERS, *SOURCES)]
    how = [*FLAGS, *os.environ.get("GLASSFORMER_CXXFLAGS", "").split()]
    made_from = [*sources, *how, *flags, torch.__version__]
    name = hashlib.sha256("\n".join(made_from).encode()).hexdigest()[:20]
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "glassformer"
    path = folder / f"native-{name}.so"
    if not path.exists():
        if sys.stderr.isatty():
            sys.stderr.write("Compiling the C++ engine for this processor, once; a few seconds …\n")
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            parts = {source: Path(scratch) / f"{source.stem}.o" for source in SOURCES}
            linked = Path(scratch) / "native.so"
            commands = [[*how, "-fopenmp", "-c", str(source), "-o", str(part)] for source, part in parts.items()]
            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda command: _run(compiler, *command), commands))
            # Not linked with -fopenmp: a second pool of threads would fight with torch's.
            _run(compiler, "-shared", *map(str, parts.values()), "-o", str(linked))
            linked.replace(path)
    return path


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=120)  # noqa: S603 (all of it is ours)
