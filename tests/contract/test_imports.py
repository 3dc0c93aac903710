"""Imports point one way through the house, and nothing in it executes what it reads."""

import ast
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "glassformer"
FILES = sorted(SOURCE.rglob("*.py"))

# Each part may import what stands on a floor below it, and itself.
FLOORS = [
    {"errors", "config"},
    {"model", "data"},
    {"sizes"},
    {"ladder", "decode"},
    {"train", "tasks"},
    {"fast", "look", "exchange", "learn"},
    {"api"},
    {"verify"},
    {"serve"},
    {"cli"},
]
# Neighbours on one floor that know each other, in this direction only.
NEIGHBOURS = {("config", "errors"), ("tasks", "train"), ("fast", "exchange")}
FLOOR = {part: i for i, floor in enumerate(FLOORS) for part in floor}


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Full names of all modules that a file imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=aliases):
                names |= {alias.name for alias in aliases}
            case ast.ImportFrom(module=module, names=aliases, level=0):
                names |= {f"{module}.{alias.name}" for alias in aliases}
            case ast.ImportFrom():
                raise AssertionError(f"{path}: imports are absolute here")
    return names


def breaches(part: str, names: set[str]) -> list[str]:
    """Which of the imported names stand on the same floor or above."""
    found = []
    for name in sorted(names):
        if not name.startswith("glassformer.") or name.split(".")[1] in (part, "__version__"):
            continue
        other = name.split(".")[1]
        if other not in FLOOR or (FLOOR[other] >= FLOOR[part] and (part, other) not in NEIGHBOURS):
            found.append(name)
    return found


def name_of(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def test_every_part_of_the_house_has_its_floor() -> None:
    assert {part_of(path) for path in FILES} - {"__init__"} <= FLOOR.keys()


@pytest.mark.parametrize("path", [p for p in FILES if part_of(p) in FLOOR], ids=name_of)
def test_imports_point_one_way(path: Path) -> None:
    assert breaches(part_of(path), imported(path)) == []


def test_a_wrong_import_would_be_found() -> None:
    assert breaches("model", {"glassformer.sizes", "torch", "glassformer.model.cache"}) == ["glassformer.sizes"]
    assert breaches("data", {"glassformer.model.build"}) == ["glassformer.model.build"]
    assert breaches("errors", {"glassformer.config.parse"}) == ["glassformer.config.parse"]
    assert breaches("train", {"glassformer.tasks.backend"}) == ["glassformer.tasks.backend"]
    assert breaches("cli", {"glassformer.nowhere"}) == ["glassformer.nowhere"]
    assert breaches("cli", {"glassformer.serve.app", "glassformer.config.parse"}) == []
    assert breaches("decode", {"glassformer.sizes.load_size", "glassformer.__version__"}) == []


@pytest.mark.parametrize("path", [p for p in FILES if part_of(p) == "model"], ids=name_of)
def test_the_model_knows_torch_and_the_standard_library_only(path: Path) -> None:
    for name in imported(path):
        top, *rest = name.split(".")
        assert (
            top in sys.stdlib_module_names
            or top == "torch"
            or (top == "glassformer" and rest[0] in ("errors", "model"))
        )


FORBIDDEN_MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
FORBIDDEN_CALLS = {"eval", "exec", "torch.load"}


def executes(source: str) -> list[str]:
    """Calls and imports by which data would become code."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=function) if ast.unparse(function) in FORBIDDEN_CALLS:
                found.append(ast.unparse(function))
            case ast.Import(names=aliases):
                found += [alias.name for alias in aliases if alias.name.split(".")[0] in FORBIDDEN_MODULES]
            case ast.ImportFrom(module=str(module), names=aliases):
                found += [module] if module.split(".")[0] in FORBIDDEN_MODULES else []
                found += [f"torch.{a.name}" for a in aliases if module == "torch" and a.name == "load"]
            case ast.keyword(arg="allow_pickle", value=value) if not (
                isinstance(value, ast.Constant) and value.value is False
            ):
                found.append("allow_pickle")
    return found


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_file_executes_what_it_reads(path: Path) -> None:
    assert executes(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from pickle import loads",
        "eval('1')",
        "exec(code)",
        "torch.load(path)",
        "from torch import load",
        "np.load(path, allow_pickle=True)",
    ],
)
def test_what_executes_would_be_found(line: str) -> None:
    assert len(executes(line)) == 1
    assert executes("model.eval()\nnp.load(path, allow_pickle=False)\nsafetensors.torch.load_file(path)") == []
