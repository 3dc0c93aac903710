"""`glassformer export MODEL --to FORMAT --out FOLDER`."""

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from glassformer.cli.options import Model

if TYPE_CHECKING:
    from glassformer.tasks.model_dir import LoadedModel

HOW_TO = """# For CTranslate2

```python
import ctranslate2, tokenizers

tokenizer = tokenizers.Tokenizer.from_file("tokenizer.json")  # source_tokenizer.json for the source, if it is there
translator = ctranslate2.Translator(".", intra_threads=1)
tokens = tokenizer.encode("Where is the station?", add_special_tokens=False).tokens + ["</s>"]
answer = translator.translate_batch([tokens], beam_size=4)[0].hypotheses[0]
print(tokenizer.decode([tokenizer.token_to_id(token) for token in answer]))
```
"""
# Each with its precisions, the usual one first.
FORMATS = {
    "ctranslate2": ("int8", "fp32"),
    "huggingface": ("fp32",),
    "onnx": ("fp32",),
    "glassformer": ("int8", "fp16", "fp32"),
}


def export(
    model: Model,
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    to: Annotated[
        str, typer.Option(help="ctranslate2, huggingface, onnx (encoders), or glassformer for a compact copy.")
    ] = "ctranslate2",
    precision: Annotated[
        str | None,
        typer.Option(help="int8 (the usual) or fp32; for glassformer fp16 too; for huggingface and onnx fp32 only."),
    ] = None,
) -> None:
    """Write a model for another engine, or a smaller copy of it."""
    from glassformer.errors import require
    from glassformer.tasks.built_in import find_model
    from glassformer.tasks.model_dir import load_model

    require(to in FORMATS, f"There is no format {to!r} to export to.", f"Choose {' or '.join(FORMATS)}.")
    known = FORMATS[to]
    precision = known[0] if precision is None else precision
    require(precision in known, f"There is no precision {precision!r} for {to}.", f"Choose {' or '.join(known)}.")
    require(not out.exists(), f"{out} exists already.", "Give another --out.")
    parent = out.absolute().parent
    require(parent.is_dir(), f"There is no folder {parent}.", "Make it first.")
    loaded = load_model(find_model(model))
    with tempfile.TemporaryDirectory(dir=parent, prefix=f".{out.name}.") as scratch:
        folder = Path(scratch) / "whole"
        _write(loaded, to, precision, folder)
        folder.rename(out)  # whole or not there
    size = sum(path.stat().st_size for path in out.iterdir())
    typer.echo(f"{out}: {size / 1e6:.1f} MB, for {to} in {precision}.", err=True)


def _write(loaded: "LoadedModel", to: str, precision: str, folder: Path) -> None:
    from glassformer.errors import UserError
    from glassformer.fast.ctranslate2 import write_ctranslate2
    from glassformer.fast.ctranslate2_decoder import write_ctranslate2_decoder
    from glassformer.model import DecoderOnly, EncoderDecoder
    from glassformer.tasks.model_dir import save_model

    if to == "huggingface":
        from glassformer.exchange.huggingface_export import write_huggingface

        _tell(write_huggingface(loaded, folder))
        return
    if to == "onnx":
        from glassformer.exchange.onnx import write_onnx

        _tell(write_onnx(loaded, folder))
        return
    if to == "glassformer":
        source = None if loaded.source_words is loaded.words else loaded.source_words
        save_model(folder, loaded.task, loaded.model, loaded.words, source, loaded.about, precision)  # type: ignore[arg-type]
        for name in ("README.md", "recipe.toml"):
            if (loaded.path / name).exists():
                shutil.copyfile(loaded.path / name, folder / name)
        return
    kind: Literal["int8", "float32"] = "int8" if precision == "int8" else "float32"
    if isinstance(loaded.model, DecoderOnly):
        _tell(write_ctranslate2_decoder(loaded, folder, kind))
        return
    if not isinstance(loaded.model, EncoderDecoder):
        raise UserError(
            f"This is a model for {loaded.task}, which CTranslate2 does not run here.",
            "Export a translator or a language model.",
        )
    write_ctranslate2(loaded.model, loaded.tokenizer, folder, kind, loaded.source_tokenizer)
    for name in ("tokenizer.json", "source_tokenizer.json"):
        if (loaded.path / name).exists():
            shutil.copyfile(loaded.path / name, folder / name)
    (folder / "README.md").write_text(HOW_TO, encoding="utf-8")


def _tell(report: dict[str, Any]) -> None:
    for check in report["checks"]:
        typer.echo(f"  {check['name']}: {check['found']}", err=True)
