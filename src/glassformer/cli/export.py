"""`glassformer export MODEL --to FORMAT --out FOLDER`."""

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from glassformer.cli.options import Model

if TYPE_CHECKING:
    from glassformer.tasks.model_dir import LoadedModel

# Each with its precisions, the usual one first.
FORMATS = {
    "ctranslate2": ("int8", "fp32"),
    "huggingface": ("fp32",),
    "onnx": ("fp32",),
    "glassformer": ("int8", "fp16", "fp32"),
}
MOST_AWAY = {"int8": 0.05, "fp16": 0.001, "fp32": 0.0}  # of a weight that is read back, relative


def export(
    model: Model,
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    to: Annotated[
        str, typer.Option(help="ctranslate2, huggingface, onnx (encoders), or glassformer for a compact copy.")
    ] = "ctranslate2",
    precision: Annotated[
        str | None,
        typer.Option(
            help="int8 (the usual) or fp32; for glassformer fp16 too, and fp32 is usual for a model with an adapter; "
            "for huggingface and onnx fp32 only."
        ),
    ] = None,
) -> None:
    """Write a model for another engine, or a smaller copy of it."""
    from glassformer.errors import require
    from glassformer.tasks.built_in import find_model
    from glassformer.tasks.model_dir import load_model

    require(to in FORMATS, f"There is no format {to!r} to export to.", f"Choose {' or '.join(FORMATS)}.")
    known = FORMATS[to]
    require(
        precision is None or precision in known,
        f"There is no precision {precision!r} for {to}.",
        f"Choose {' or '.join(known)}.",
    )
    require(not out.exists(), f"{out} exists already.", "Give another --out.")
    parent = out.absolute().parent
    require(parent.is_dir(), f"There is no folder {parent}.", "Make it first.")
    loaded = load_model(find_model(model))
    if precision is None:  # an adapter that becomes one with its model is mostly trained on, or used as it was
        precision = "fp32" if loaded.is_adapted and to == "glassformer" else known[0]
    with tempfile.TemporaryDirectory(dir=parent, prefix=f".{out.name}.") as scratch:
        folder = Path(scratch) / "whole"
        _write(loaded, to, precision, folder)
        folder.rename(out)  # whole or not there
    size = sum(path.stat().st_size for path in out.iterdir())
    typer.echo(f"{out}: {size / 1e6:.1f} MB, for {to} in {precision}.", err=True)


def _write(loaded: "LoadedModel", to: str, precision: str, folder: Path) -> None:
    from glassformer.errors import UserError
    from glassformer.fast.ctranslate2_decoder import write_ctranslate2_decoder
    from glassformer.fast.ctranslate2_translator import write_ctranslate2_translator
    from glassformer.model import DecoderOnly, EncoderDecoder

    if to == "huggingface":
        from glassformer.exchange.huggingface_export import write_huggingface

        _tell(write_huggingface(loaded, folder))
        return
    if to == "onnx":
        from glassformer.exchange.onnx import write_onnx

        _tell(write_onnx(loaded, folder))
        return
    if to == "glassformer":
        _write_own(loaded, precision, folder)
        return
    kind: Literal["int8", "float32"] = "int8" if precision == "int8" else "float32"
    if isinstance(loaded.model, DecoderOnly):
        _tell(write_ctranslate2_decoder(loaded, folder, kind))
    elif isinstance(loaded.model, EncoderDecoder):
        _tell(write_ctranslate2_translator(loaded, folder, kind))
    else:
        raise UserError(
            f"This is a model for {loaded.task}, which CTranslate2 does not run here.",
            "Export a translator or a language model.",
        )


def _write_own(loaded: "LoadedModel", precision: str, folder: Path) -> None:
    """A copy in our own format, read back and held against the original."""
    from glassformer.errors import require
    from glassformer.tasks.model_dir import load_model, save_model

    source = None if loaded.source_words is loaded.words else loaded.source_words
    save_model(folder, loaded.task, loaded.model, loaded.words, source, loaded.about, precision)  # type: ignore[arg-type]
    for name in ("README.md", "recipe.toml"):
        if (loaded.path / name).exists():
            shutil.copyfile(loaded.path / name, folder / name)
    copies = load_model(folder).model.state_dict()
    away = {
        name: float((copies[name].float() - weight.float()).norm() / weight.float().norm().clamp(min=1e-12))
        for name, weight in loaded.model.state_dict().items()
        if weight.is_floating_point()
    }
    worst = max(away, key=lambda name: away[name])
    require(
        away[worst] <= MOST_AWAY[precision],
        f"Read back, {worst} is {away[worst]:.2%} away from the original.",
        "This is a fault of Glassformer; please report it.",
    )
    typer.echo(f"  read back: all {len(away)} weights, {away[worst]:.2%} away at most ({worst})", err=True)


def _tell(report: dict[str, Any]) -> None:
    for check in report["checks"]:
        typer.echo(f"  {check['name']}: {check['found']}", err=True)
