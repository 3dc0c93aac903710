"""A translator as a folder that `ctranslate2.Translator` loads without us, held against the original."""

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ctranslate2
import torch
from torch import Tensor

from glassformer.data.files import write_text
from glassformer.data.tokenizer import END, START, Tokenizer
from glassformer.errors import UserError
from glassformer.exchange.proof import TEXTS, Check, compare
from glassformer.fast.ctranslate2 import Precision, write_ctranslate2
from glassformer.model import EncoderDecoder
from glassformer.tasks.backend import room
from glassformer.tasks.model_dir import LoadedModel

N_SAMPLE = 24  # tokens of each side that the proof looks at

CARD = """# {name}, for CTranslate2

```python
import ctranslate2, tokenizers

tokenizer = tokenizers.Tokenizer.from_file("tokenizer.json")  # source_tokenizer.json for the source, if it is there
translator = ctranslate2.Translator(".", intra_threads=1)
tokens = tokenizer.encode("Where is the station?", add_special_tokens=False).tokens  # it adds the end by itself
answer = translator.translate_batch([tokens], beam_size=4)[0].hypotheses[0]
print(tokenizer.decode([tokenizer.token_to_id(token) for token in answer]))
```

## Checked at export

{checks}

Everything is in `export.json`.
"""


def write_ctranslate2_translator(loaded: LoadedModel, folder: Path, precision: Precision = "int8") -> dict[str, Any]:
    """Write the folder and give the report that lies in it as export.json."""
    model, words, source_words = loaded.model, loaded.tokenizer, loaded.source_tokenizer
    if not isinstance(model, EncoderDecoder):
        raise UserError(f"This is a model for {loaded.task}, not for translation.", "Export a translator.")
    write_ctranslate2(model, words, folder, precision, source_words)
    with tempfile.TemporaryDirectory() as exact:
        if precision != "float32":
            write_ctranslate2(model, words, Path(exact), "float32", source_words)
        checks = _prove(loaded, folder if precision == "float32" else Path(exact), folder, precision)
    found: dict[str, Any] = {
        "format": "CTranslate2",
        "source": loaded.path.absolute().name,
        "precision": precision,
        "parameters": sum(p.numel() for p in model.parameters()),
        "checks": [asdict(check) for check in checks],
    }
    write_text(folder / "tokenizer.json", words.to_json())
    if source_words is not words:
        write_text(folder / "source_tokenizer.json", source_words.to_json())
    write_text(folder / "export.json", json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    told = "\n".join(f"- {check.name}: {check.found}" for check in checks)
    write_text(folder / "README.md", CARD.format(name=found["source"], checks=told))
    return found


def _prove(loaded: LoadedModel, exact: Path, folder: Path, precision: Precision) -> list[Check]:
    """What was written, run by CTranslate2, on a text and a given answer: how likely is each token of the answer?"""
    model = loaded.model
    assert isinstance(model, EncoderDecoder)
    n_source, n_target = ((room(side) or 2 * N_SAMPLE) - 1 for side in (model.source, model.target))
    source = loaded.source_tokenizer.encode(TEXTS[0])[: min(N_SAMPLE, n_source)]
    spread = torch.linspace(END + 1, loaded.tokenizer.vocab_size - 1, N_SAMPLE).long().tolist()
    target = (loaded.tokenizer.encode(TEXTS[0])[: N_SAMPLE // 2] + spread)[:n_target]
    ours = _log_p(model, source, target)
    pair = (_tokens(loaded.source_tokenizer, source), _tokens(loaded.tokenizer, target))
    name = "log-probabilities of an answer"
    checks = [compare(_scored(exact, *pair, "float32"), ours, "the model that was exported, in fp32", name)]
    if precision != "float32":
        away = float((_scored(folder, *pair, precision) - ours).abs().mean())
        checks.append(Check(f"{name} in {precision}", away < 0.5, f"{away:.1e} away from fp32 in the mean"))
    return checks


@torch.no_grad()
def _log_p(model: EncoderDecoder, source: list[int], target: list[int]) -> Tensor:
    scores: Tensor = model(torch.tensor([[*source, END]]), torch.tensor([[START, *target]]))[0].log_softmax(dim=-1)
    return scores.gather(1, torch.tensor([*target, END])[:, None])[:, 0]


def _tokens(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    return [tokenizer.piece(i) for i in ids]


def _scored(folder: Path, source: list[str], target: list[str], precision: Precision) -> Tensor:
    translator = ctranslate2.Translator(str(folder), compute_type=precision, intra_threads=1)
    [found] = translator.score_batch([source], [target])
    return torch.tensor(found.log_probs)
