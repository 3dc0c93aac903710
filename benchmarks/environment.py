"""Where and with what a measurement was made, and the dated files that it leaves behind."""

import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
PACKAGES = (
    "glassformer",
    "torch",
    "numpy",
    "tokenizers",
    "ctranslate2",
    "transformers",
    "sentence-transformers",
    "transformer-lens",
    "OpenNMT-py",
    "eole",
    "sacrebleu",
    "openai-whisper",
    "faster-whisper",
    "jiwer",
)

Rows = Sequence[Sequence[Any]]


def stop(message: str) -> NoReturn:
    """One sentence for what the person at the keyboard can mend."""
    print(message, file=sys.stderr)
    sys.exit(2)


def data_folder(part: str) -> Path:
    """A folder of the data set that GLASSFORMER_DATA names."""
    given = os.environ.get("GLASSFORMER_DATA")
    if not given:
        stop(f"Set GLASSFORMER_DATA to the folder that holds {part}: the data is not part of this project.")
    folder = Path(given) / part
    if not folder.is_dir():
        stop(f"GLASSFORMER_DATA is {given}, but there is no folder {part} in it.")
    return folder


def read_lines(path: Path, n: int | None = None) -> list[str]:
    if not path.exists():
        stop(f"{path.name} is missing from {path.parent.name} in GLASSFORMER_DATA.")
    return path.read_text(encoding="utf-8").split("\n")[:-1][:n]


def need_peers(*modules: str) -> None:
    """Stop if a peer is not installed here."""
    from importlib.util import find_spec

    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        stop(f"{', '.join(missing)} cannot be imported: run `make peers`, then this with .venv-peers/bin/python.")


def in_own_process(module: str, order: dict[str, Any], threads: int) -> dict[str, Any]:
    """Run `python -m module --work ORDER` and give back what it prints after METER."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    command = [sys.executable, "-W", "ignore", "-m", module, "--work", json.dumps(order)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    found = [line for line in done.stdout.splitlines() if line.startswith("METER ")]
    if not found:
        stop(f"{order['system']} ended without a measurement:\n{(done.stderr or done.stdout)[-3000:]}")
    return dict(json.loads(found[-1].removeprefix("METER ")))


def describe() -> dict[str, Any]:
    """Hardware, versions, commit."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "date": date.today().isoformat(),
        "command": _command(),
        "commit": _git("rev-parse", "--short", "HEAD")
        + (" with changes" if _git("status", "--porcelain", "--untracked-files=no") else ""),
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": _memory_gb(),
        "load_at_start": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": versions,
    }


def settings_of(given: Namespace) -> dict[str, Any]:
    """The arguments of a script as they go into its result."""
    kept = {key: value for key, value in vars(given).items() if key not in ("work", "no_result", "out")}
    return {
        key: [_name(each) for each in value] if isinstance(value, list) else _name(value) for key, value in kept.items()
    }


def _name(value: Any) -> Any:
    return value.name if isinstance(value, Path) else value


def write_result(name: str, environment: dict[str, Any], data: dict[str, Any], tables: dict[str, Rows]) -> Path:
    """YYYY-MM-DD-name.json with everything, and beside it the tables (first row: heads) for people."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{environment['date']}-{name}.json"
    path.write_text(_elsewhere(json.dumps({"environment": environment, **data}, indent=2, ensure_ascii=False)) + "\n")
    path.with_suffix(".md").write_text(_elsewhere(_page(name, environment, tables)))
    shown = path.relative_to(ROOT)
    print(f"Written: {shown} and {shown.with_suffix('.md').name}", file=sys.stderr)
    return path


def _elsewhere(text: str) -> str:
    """As it could have been written on another machine: where its folders lie is nobody's business."""
    data = os.environ.get("GLASSFORMER_DATA")
    for folder in (ROOT, *([Path(data)] if data else []), Path(tempfile.gettempdir()), Path.home()):
        text = text.replace(f"{folder}/", "")
    return text


def table(rows: Rows) -> str:
    """A Markdown table; the first row is its head."""
    head, *body = [[_cell(cell) for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    if not isinstance(value, float):
        return str(value).replace("|", "\\|")
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.2f}" if abs(value) < 100 else f"{value:.1f}"


def _page(name: str, environment: dict[str, Any], tables: dict[str, Rows]) -> str:
    e = environment
    versions = ", ".join(f"{package} {number}" for package, number in e["versions"].items())
    about = (
        f"# {name}, {e['date']}\n\n`{e['command']}`\n\n"
        f"{e['cpu']}, {e['cores']} cores, {e['memory_gb']} GB; Python {e['python']}; {versions}; commit {e['commit']}."
    )
    return "\n\n".join([about, *(f"## {title}\n\n{table(rows)}" for title, rows in tables.items())]) + "\n"


def _command() -> str:
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    called = ["-m", spec.name] if spec is not None else [Path(sys.argv[0]).name]
    return shlex.join(["python", *called, *sys.argv[1:]])


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or ("" if done.returncode == 0 else "unknown")


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _memory_gb() -> int | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (AttributeError, ValueError, OSError):
        return None
