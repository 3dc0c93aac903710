"""A foreign model into a model directory: find out the format, read, convert, prove, write."""

import json
import re
import tempfile
from pathlib import Path
from typing import Any, Literal, get_args

import torch

from glassformer.data.files import write_text
from glassformer.errors import UserError, require
from glassformer.exchange.foreign import Foreign, ForeignModel, Progress, convert, task_of
from glassformer.exchange.gguf_model import read_gguf
from glassformer.exchange.huggingface_dir import read_huggingface
from glassformer.exchange.llama2c import read_llama2c
from glassformer.exchange.proof import Check, prove, report, sample_ids, sample_picture
from glassformer.exchange.whisper import import_whisper, is_whisper
from glassformer.model import EncoderOnly
from glassformer.tasks.model_dir import Storage, load_model, save_model

Format = Literal["auto", "huggingface", "gguf", "llama2c"]
READERS = {"huggingface": read_huggingface, "gguf": read_gguf, "llama2c": read_llama2c}
# How files begin that hold a pickle: a zip archive (torch), or the pickle itself, whose third byte is not zero: a
# llama2.c file of width 640 begins with 80 02 00 00.
PICKLE = re.compile(rb"PK\x03\x04|\x80[\x02-\x05][^\x00]")


def import_model(
    source: Path,
    out: Path,
    form: Format = "auto",
    tokenizer: Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write the folder `out`, whole or not at all, and give the report that lies in it as import.json."""
    require(
        form in get_args(Format), f"There is no format {form!r} to import.", f"Choose {', '.join(get_args(Format))}."
    )
    check_free(out)
    if form == "auto" and is_whisper(source):
        return import_whisper(source, out, tokenizer)
    foreign = read_foreign(source, form, tokenizer, progress)
    model = convert(foreign)
    found = report(foreign, model, prove(foreign, model))
    foreign.weights.clear()  # from here on ours are enough
    with tempfile.TemporaryDirectory(dir=out.absolute().parent, prefix=f".{out.name}.") as scratch:
        folder = Path(scratch) / "whole"
        found["storage"], again = _write(foreign, model, found, folder)
        found["checks"].append({"name": again.name, "passed": again.passed, "found": again.found})
        write_text(folder / "import.json", json.dumps(found, indent=2, ensure_ascii=False) + "\n")
        write_text(folder / "README.md", card(found))
        folder.rename(out)
    return found


def check_free(out: Path) -> None:
    require(not out.exists(), f"{out} exists already.", "Give another --out.")
    parent = out.absolute().parent
    require(parent.is_dir(), f"There is no folder {parent}.", "Make it first.")


def read_foreign(
    source: Path, form: Format = "auto", tokenizer: Path | None = None, progress: Progress | None = None
) -> Foreign:
    """What the source holds, in its own order of rows."""
    require(
        source.exists(),
        f"There is no file or folder {source}.",
        "Glassformer fetches nothing: download the model first, then give its folder or file.",
    )
    chosen = _find_format(source) if form == "auto" else form
    require(
        (chosen == "huggingface") == source.is_dir(),
        f"{source} is a {'folder' if source.is_dir() else 'file'}, but {chosen} is to be read.",
        "A Hugging Face model is a folder; GGUF and llama2.c models are files.",
    )
    require(
        tokenizer is None or tokenizer.is_file(), f"There is no tokenizer file {tokenizer}.", "Check --tokenizer FILE."
    )
    return READERS[chosen](source, tokenizer, progress)


def _find_format(source: Path) -> str:
    if source.is_dir():
        return "huggingface"
    with source.open("rb") as file:
        head = file.read(4)
    if head == b"GGUF" or source.suffix == ".gguf":
        return "gguf"
    if PICKLE.match(head) or source.suffix in (".pt", ".pth", ".ckpt"):
        raise UserError(
            f"{source} is a pickle, which may run any code: it is never loaded here.",
            "Write the model as safetensors where you trust it, and import the folder.",
        )
    if source.suffix in (".safetensors", ".json"):
        raise UserError(f"{source} is a part of a Hugging Face directory.", f"Give the folder: {source.parent}.")
    require(
        source.suffix == ".bin",
        f"{source} is in no format that is known here.",
        "Give a Hugging Face folder, a .gguf file or a llama2.c .bin file, or say which with --from-format.",
    )
    return "llama2c"


def _write(foreign: Foreign, model: ForeignModel, found: dict[str, Any], folder: Path) -> tuple[Storage, Check]:
    """The model directory, read again to see that it gives the same numbers."""
    storage: Storage = "fp16" if all(_fits_half(p) for p in model.parameters()) else "fp32"
    about = {"context": foreign.context, "imported": {key: found[key] for key in ("format", "source", "weights")}}
    about |= foreign.use
    save_model(folder, task_of(model.settings), model, foreign.words, about=about, storage=storage)
    if foreign.words is None:
        assert isinstance(model, EncoderOnly)
        sample = sample_picture(model)[None]
    else:
        sample = sample_ids(foreign.words, model)[None]
    again = load_model(folder).model
    # Weights to the bit; numbers nearly so: the last bits of a product may depend on where its weights lie in memory.
    same = all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    with torch.no_grad():
        before, after = model(sample), again(sample)
    same = same and torch.allclose(before, after, rtol=1e-4, atol=1e-5)
    require(same, f"{folder} does not read back as it was written.", "Check the disk.")
    return storage, Check(
        "read again from the folder",
        True,
        f"equal weights, {before.numel():,} numbers within 1e-4; stored as {storage}",
    )


def _fits_half(weight: torch.Tensor) -> bool:
    """Nothing is lost in 16 bits."""
    return torch.equal(weight.detach().half().float(), weight.detach())


def card(found: dict[str, Any]) -> str:
    """The model card."""
    kinds = ", ".join(f"{n} {kind}" for kind, n in found["weights"].items())
    rows = [
        ("source", f"{found['source']} ({found['format']})"),
        ("task", found["task"]),
        ("weights", f"{found['parameters']:,} numbers; {kinds}; stored here as {found['storage']}"),
    ]
    if "vocabulary" in found:
        words = f"{found['vocabulary']:,} tokens, {found['rows']:,} rows; tokenizer: {found['tokenizer']}"
        rows += [("vocabulary", words), ("context", f"{found['context']:,} tokens" if found["context"] else "not said")]
    checks = [f"- {'passed' if c['passed'] else 'NOT PASSED'}: {c['name']} ({c['found']})" for c in found["checks"]]
    if "greedy" in found:
        rows.append(("chat", "has a template" if found["chat_template"] else "no template"))
        checks.append(f"- greedy continuation of {found['greedy']['prompt']!r}: {found['greedy']['text']!r}")
    return "\n".join(
        [
            f"# {found['source']}",
            "",
            "A model that was imported by Glassformer. Licence and origin are those of its source.",
            "",
            "| | |",
            "|---|---|",
            *(f"| {name} | {value} |" for name, value in rows),
            "",
            "## Checked at import",
            "",
            *checks,
            "",
            "Everything is in `import.json`.",
            "",
        ]
    )
