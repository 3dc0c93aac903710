"""An encoder as an ONNX file: text, pictures or vectors in, any number at once and texts of any length, proven equal.

The graph comes from torch.export; the older tracer writes one that onnxruntime refuses, and freezes sizes on the way.
"""

import contextlib
import io
import json
import logging
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer as Core
from torch import Tensor, nn

from glassformer.data.files import write_text
from glassformer.errors import UserError
from glassformer.exchange.huggingface_words import frame
from glassformer.exchange.proof import Check, compare
from glassformer.model import EncoderOnly
from glassformer.model.settings import EmbeddingHeadSettings, PatchesSettings, TokensSettings, VectorsSettings
from glassformer.tasks.embedder import longest_text
from glassformer.tasks.model_dir import LoadedModel

PACKAGES = ("onnx", "onnxscript", "onnxruntime")
LARGEST_FILE = 1_500_000_000  # bytes; ONNX holds at most two gigabytes in one, more goes beside it
CARD = """# {name}

An encoder exported by Glassformer for ONNX.

```python
{use}
```

Inputs: {inputs}. Outputs: {outputs}.

## Checked at export

{checks}

Everything is in `export.json`.
"""
USE_TEXT = """import numpy, onnxruntime, tokenizers

tokenizer = tokenizers.Tokenizer.from_file("tokenizer.json")
tokenizer.enable_truncation({longest})
tokenizer.enable_padding()
rows = tokenizer.encode_batch(["A man plays the guitar.", "Where is the station?"])
given = {{"input_ids": [r.ids for r in rows], "attention_mask": [r.attention_mask for r in rows]{types}}}
session = onnxruntime.InferenceSession("model.onnx")
print(session.run(None, {{name: numpy.array(values) for name, values in given.items()}}))"""
USE_OTHER = """import numpy, onnxruntime

session = onnxruntime.InferenceSession("model.onnx")
print(session.run(None, {{"{name}": numpy.zeros({shape}, dtype=numpy.float32){keep}}}))"""


class TextGraph(nn.Module):
    """The model with inputs as others name them: 1 in the mask is a real position."""

    def __init__(self, model: EncoderOnly) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        states = self.model.states(input_ids, attention_mask != 0, token_type_ids)
        return states.x, self.model.head(states.x, states.keep)


class SeriesGraph(nn.Module):
    def __init__(self, model: EncoderOnly) -> None:
        super().__init__()
        self.model = model

    def forward(self, vectors: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        states = self.model.states(vectors, attention_mask != 0)
        return states.x, self.model.head(states.x, states.keep)


class PictureGraph(nn.Module):
    def __init__(self, model: EncoderOnly) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixel_values: Tensor) -> tuple[Tensor, Tensor]:
        states = self.model.states(pixel_values)
        return states.x, self.model.head(states.x, states.keep)


def write_onnx(loaded: LoadedModel, folder: Path) -> dict[str, Any]:
    """Write the folder and give the report that lies in it as export.json."""
    _need_packages()
    model = loaded.model
    if not isinstance(model, EncoderOnly) or model.settings.source.kind == "frames":
        raise UserError(f"This is a model for {loaded.task}, which is not written as ONNX here.", "Export an encoder.")
    folder.mkdir(parents=True)
    longest = longest_text(loaded)
    samples = _samples(model, longest)
    outputs = ["last_hidden_state", _output_name(model)]
    _export(model, samples[0], outputs, longest, folder / "model.onnx")
    checks = _prove(model, samples, folder / "model.onnx")
    if loaded.words is not None:
        _write_tokenizer(loaded, folder)
    found = {
        "format": "ONNX",
        "source": loaded.path.absolute().name,
        "task": loaded.task,
        "inputs": list(samples[0]),
        "outputs": outputs,
        "labels": loaded.about.get("labels"),
        "max_tokens": None if loaded.words is None else longest,
        "checks": [asdict(check) for check in checks],
    }
    write_text(folder / "export.json", json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    write_text(folder / "README.md", _card(found, model, longest))
    return found


def _need_packages() -> None:
    for name in PACKAGES:
        try:
            with _silence():
                import_module(name)
        except Exception as error:  # one that is broken may fail in any way
            why = "is not installed" if isinstance(error, ModuleNotFoundError) else f"fails: {str(error)[:100]}"
            raise UserError(
                f"To write ONNX, the package {name} is needed, which {why}.", "Run: pip install 'glassformer[onnx]'."
            ) from None


def _samples(model: EncoderOnly, longest: int) -> list[dict[str, Tensor]]:
    """Inputs of several shapes, with padding; the first is what the graph is made from."""
    source, generator = model.settings.source, torch.Generator().manual_seed(1)
    found = []
    for b, n in ((2, min(7, longest)), (1, 1), (3, longest)):
        lengths = torch.tensor([n, max(1, n - 3), 1])[:b]
        mask = (torch.arange(n) < lengths[:, None]).long()
        if isinstance(source, PatchesSettings):
            shape = (b, source.n_channels, source.height, source.width)
            found.append({"pixel_values": torch.randn(shape, generator=generator)})
        elif isinstance(source, VectorsSettings):
            vectors = torch.randn((b, n, source.n_features), generator=generator)
            found.append({"vectors": vectors, "attention_mask": mask})
        else:
            assert isinstance(source, TokensSettings)
            ids = torch.randint(source.vocab_size, (b, n), generator=generator)
            found.append({"input_ids": ids, "attention_mask": mask})
            if source.n_types:
                found[-1]["token_type_ids"] = torch.randint(source.n_types, (b, n), generator=generator)
    return found


def _graph(model: EncoderOnly) -> nn.Module:
    kinds = {"tokens": TextGraph, "vectors": SeriesGraph, "patches": PictureGraph}
    return kinds[model.settings.source.kind](model).eval()


def _export(model: EncoderOnly, sample: dict[str, Tensor], outputs: list[str], longest: int, path: Path) -> None:
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length", max=longest)
    positions = getattr(model.source, "positions", None)
    if isinstance(positions, nn.Module):
        positions(torch.arange(longest))  # waves that are made as they are needed must all be there now
    moving = {name: {0: batch} if name == "pixel_values" else {0: batch, 1: length} for name in sample}
    size = sum(p.numel() * 4 for p in model.parameters())
    with _silence():
        torch.onnx.export(
            _graph(model),
            (),
            path,
            kwargs=sample,
            input_names=list(sample),
            output_names=outputs,
            dynamic_shapes=moving,
            dynamo=True,
            external_data=size > LARGEST_FILE,
            verbose=False,
        )


def _prove(model: EncoderOnly, samples: list[dict[str, Tensor]], path: Path) -> list[Check]:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    checks, what = [], f"onnxruntime {onnxruntime.__version__}"
    for sample in samples:
        with torch.no_grad():
            ours = _graph(model)(**sample)
        theirs = session.run(None, {name: given.numpy() for name, given in sample.items()})
        keep = sample.get("attention_mask", torch.ones(ours[0].shape[:2])) != 0
        shape = " x ".join(map(str, ours[0].shape[:2]))
        checks.append(compare(ours[0][keep], torch.from_numpy(theirs[0])[keep], what, f"hidden states of {shape}"))
        out = (ours[1], torch.from_numpy(theirs[1]))
        out = (out[0][keep], out[1][keep]) if ours[1].dim() == 3 else out
        checks.append(compare(*out, what, f"what the head says of {shape}"))
    return checks


def _write_tokenizer(loaded: LoadedModel, folder: Path) -> None:
    core, marks = Core.from_str(loaded.tokenizer.to_json()), loaded.tokenizer.marks
    if core.post_processor is None or loaded.tokenizer.is_ours:
        frame(core, marks.start, marks.ends[0])
    write_text(folder / "tokenizer.json", core.to_str(pretty=False))


def _output_name(model: EncoderOnly) -> str:
    if not isinstance(model.settings.head, EmbeddingHeadSettings):
        return "logits"
    return "sentence_embedding" if model.settings.source.kind == "tokens" else "embedding"


def _card(found: dict[str, Any], model: EncoderOnly, longest: int) -> str:
    source = model.settings.source
    if isinstance(source, TokensSettings):
        types = ', "token_type_ids": [r.type_ids for r in rows]' if source.n_types else ""
        use = USE_TEXT.format(longest=longest, types=types)
    elif isinstance(source, VectorsSettings):
        keep = ', "attention_mask": numpy.ones((1, 9), dtype=numpy.int64)'
        use = USE_OTHER.format(name="vectors", shape=(1, 9, source.n_features), keep=keep)
    else:
        assert isinstance(source, PatchesSettings)
        shape = (1, source.n_channels, source.height, source.width)
        use = USE_OTHER.format(name="pixel_values", shape=shape, keep="")
    lines = "\n".join(f"- {check['name']}: {check['found']}" for check in found["checks"])
    said = {key: ", ".join(f"`{name}`" for name in found[key]) for key in ("inputs", "outputs")}
    return CARD.format(name=found["source"], use=use, checks=lines, **said)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """The exporter talks about its own inside."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
