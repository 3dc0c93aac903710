"""A language model as a folder that `ctranslate2.Generator` loads without us, held against the original.

Deliberately not here: how weights look there (`ctranslate2_spec`), and an engine for `complete`, as our own in int8 is
at least as fast, draws with a seed and streams (see `docs/log.md`).
"""

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import torch
from ctranslate2.specs import transformer_spec
from torch import Tensor

from glassformer.data.files import write_text
from glassformer.data.tokenizer import PAD, Tokenizer
from glassformer.errors import UserError
from glassformer.exchange.proof import Check, compare, sample_ids
from glassformer.fast.ctranslate2 import Precision, write_spec
from glassformer.fast.ctranslate2_spec import (
    N_POSITIONS,
    array,
    check_can_run,
    fill_linear,
    fill_stack,
    fill_tokens,
    names,
    position_table,
    shape,
)
from glassformer.model import DecoderOnly
from glassformer.model.heads import TokenHead
from glassformer.tasks.model_dir import LoadedModel

CARD = """# {name}, for CTranslate2

```python
import ctranslate2, tokenizers

tokenizer = tokenizers.Tokenizer.from_file("tokenizer.json")
generator = ctranslate2.Generator(".")
tokens = {start} + tokenizer.encode("Once upon a time", add_special_tokens=False).tokens
answer = generator.generate_batch([tokens], max_length=40, include_prompt_in_result=False, end_token={ends})[0]
print(tokenizer.decode(answer.sequences_ids[0]))
```
{longest}
## Checked at export

{checks}

Everything is in `export.json`.
"""


def to_decoder_spec(model: DecoderOnly, tokens: list[str], unknown: int, start: int, end: int, n_positions: int) -> Any:
    """The model as CTranslate2 describes one; `unknown` stands for tokens that are not in the vocabulary."""
    settings = model.settings.decoder
    check_can_run(model.settings)
    assert isinstance(model.head, TokenHead)
    attention = settings.attention
    grouped = {} if attention.kv_heads == attention.n_heads else {"num_heads_kv": attention.kv_heads}
    decoder = transformer_spec.TransformerDecoderSpec(**shape(settings), **grouped, with_encoder_attention=False)
    fill_tokens(decoder, decoder.embeddings, model.source)
    if attention.rotary is None:
        decoder.position_encodings.encodings = array(position_table(model.source, n_positions))
    fill_stack(decoder, model.decoder)
    fill_linear(decoder.projection, model.head.w)
    spec = transformer_spec.TransformerDecoderModelSpec(decoder)
    all_tokens = names(tokens, model.settings.source.vocab_size)
    spec.register_vocabulary(all_tokens)
    config = spec.config
    config.unk_token, config.bos_token, config.eos_token = all_tokens[unknown], all_tokens[start], all_tokens[end]
    config.layer_norm_epsilon = settings.norm.eps
    return spec


def write_ctranslate2_decoder(loaded: LoadedModel, folder: Path, precision: Precision = "int8") -> dict[str, Any]:
    """Write the folder and give the report that lies in it as export.json."""
    model, tokenizer = loaded.model, loaded.tokenizer
    if not isinstance(model, DecoderOnly):
        raise UserError(f"This is a model for {loaded.task}, not for completion.", "Export a language model.")
    context = loaded.about.get("context")
    n_positions = max(N_POSITIONS, context) if isinstance(context, int) else N_POSITIONS
    marks = tokenizer.marks
    end = marks.ends[0]
    start = end if marks.start is None else marks.start

    def write(where: Path, kind: Precision) -> None:
        unknown = PAD if tokenizer.is_ours else end
        write_spec(to_decoder_spec(model, _tokens(tokenizer), unknown, start, end, n_positions), where, kind)

    write(folder, precision)
    with tempfile.TemporaryDirectory() as exact:
        if precision != "float32":
            write(Path(exact), "float32")
        checks = _prove(model, tokenizer, folder if precision == "float32" else Path(exact), folder, precision)
    found: dict[str, Any] = {
        "format": "CTranslate2",
        "source": loaded.path.absolute().name,
        "precision": precision,
        "parameters": sum(p.numel() for p in model.parameters()),
        "start": marks.start,
        "ends": list(marks.ends),
        "checks": [asdict(check) for check in checks],
    }
    write_text(folder / "tokenizer.json", tokenizer.to_json())
    write_text(folder / "export.json", json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    write_text(folder / "README.md", _card(found["source"], model, tokenizer, n_positions, checks))
    return found


def _tokens(tokenizer: Tokenizer) -> list[str]:
    """A name for each id; a foreign vocabulary may have gaps."""
    found = [tokenizer.core.id_to_token(i) for i in range(tokenizer.vocab_size)]
    return [f"<unused {i}>" if token is None else str(token) for i, token in enumerate(found)]


def _prove(model: DecoderOnly, tokenizer: Tokenizer, exact: Path, folder: Path, precision: Precision) -> list[Check]:
    """What was written, run by CTranslate2: in fp32 the same numbers; in int8 mostly the same next tokens."""
    ids = sample_ids(tokenizer, model)
    with torch.no_grad():
        ours = model(ids[None])[0]
    checks = [compare(_logits(exact, ids, "float32"), ours, "the model that was exported, in fp32")]
    if precision != "float32":
        rounded = _logits(folder, ids, precision)
        n_same = int((rounded.argmax(dim=-1) == ours.argmax(dim=-1)).sum())
        away = float((rounded - ours).norm() / ours.norm())
        found = f"the same at {n_same} of {len(ids)} places, logits {away:.1%} away"
        checks.append(Check(f"the likeliest next token in {precision}", n_same > len(ids) // 2, found))
    return checks


def _logits(folder: Path, ids: Tensor, precision: Precision) -> Tensor:
    generator = ctranslate2.Generator(str(folder), compute_type=precision, intra_threads=1)
    return torch.from_numpy(np.array(generator.forward_batch([ids.tolist()]))[0])


def _card(name: str, model: DecoderOnly, tokenizer: Tokenizer, n_positions: int, checks: list[Check]) -> str:
    marks = tokenizer.marks
    longest = ""
    if model.settings.decoder.attention.rotary is None:
        n = getattr(model.settings.source.positions, "max_len", n_positions)
        longest = f"\nPrompt and answer may have {n:,} tokens together; CTranslate2 does not check this.\n"
    return CARD.format(
        name=name,
        start=[] if marks.start is None else [tokenizer.piece(marks.start)],
        ends=[tokenizer.piece(i) for i in marks.ends],
        longest=longest,
        checks="\n".join(f"- {check.name}: {check.found}" for check in checks),
    )
