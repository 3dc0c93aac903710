"""A model of ours as a Hugging Face directory that `transformers` loads, read again and held against the original.

Decoders are here, encoders in `huggingface_export_encoder.py`.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from tokenizers import Tokenizer as Core
from tokenizers import processors
from torch import Tensor

from glassformer.data.files import write_text, writing
from glassformer.data.tokenizer import PAD, Tokenizer
from glassformer.errors import UserError, require
from glassformer.exchange.foreign import convert, to_halves
from glassformer.exchange.huggingface import find_family
from glassformer.exchange.huggingface_dir import read_huggingface
from glassformer.exchange.huggingface_export_encoder import write_encoder
from glassformer.exchange.huggingface_layout import has_bias, make_config
from glassformer.exchange.huggingface_tokenizer import put_in_front
from glassformer.exchange.proof import TEXTS, Check, compare, prove, sample_ids
from glassformer.model import DecoderOnly, EncoderOnly
from glassformer.tasks.model_dir import LoadedModel

CARD = """# {name}

A model exported by Glassformer, in the layout of {layout}.

```python
{use}
```

## Checked at export

{checks}

Everything is in `export.json`.
"""
USES = {
    "decoder": """from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(".")
model = AutoModelForCausalLM.from_pretrained(".")
ids = tokenizer("Once upon a time", return_tensors="pt").input_ids
print(tokenizer.decode(model.generate(ids, max_new_tokens=40)[0], skip_special_tokens=True))""",
    "text": """import transformers

tokenizer = transformers.AutoTokenizer.from_pretrained(".")
name = transformers.AutoConfig.from_pretrained(".").architectures[0]
model = getattr(transformers, name).from_pretrained(".")
print(model(**tokenizer("A man plays the guitar.", return_tensors="pt")))""",
    "pictures": """import transformers
from PIL import Image

processor = transformers.AutoImageProcessor.from_pretrained(".")
name = transformers.AutoConfig.from_pretrained(".").architectures[0]
model = getattr(transformers, name).from_pretrained(".")
print(model(**processor(Image.open("picture.png").convert("RGB"), return_tensors="pt")))""",
}


def write_huggingface(loaded: LoadedModel, folder: Path) -> dict[str, Any]:
    """Write the folder and give the report that lies in it as export.json."""
    if isinstance(loaded.model, EncoderOnly):
        layout, checks = write_encoder(loaded, loaded.model, folder)
    elif isinstance(loaded.model, DecoderOnly) and loaded.task == "complete":
        layout, checks = _write_decoder(loaded, loaded.model, folder)
    else:
        raise UserError(
            f"This is a model for {loaded.task}, which has no layout at Hugging Face here.",
            "Export a model that completes texts, or an encoder, or choose another format.",
        )
    found = {
        "format": "Hugging Face directory",
        "source": loaded.path.absolute().name,
        "layout": layout,
        "parameters": sum(p.numel() for p in loaded.model.parameters()),
        "checks": [asdict(check) for check in checks],
    }
    _write_json(folder / "export.json", found)
    lines = "\n".join(f"- {check.name}: {check.found}" for check in checks)
    use = USES["decoder" if isinstance(loaded.model, DecoderOnly) else "text" if loaded.words else "pictures"]
    write_text(folder / "README.md", CARD.format(name=found["source"], layout=layout, checks=lines, use=use))
    return found


def _write_decoder(loaded: LoadedModel, model: DecoderOnly, folder: Path) -> tuple[str, list[Check]]:
    tokenizer, context = loaded.tokenizer, loaded.about.get("context")
    config = make_config(model.settings, tokenizer.marks, context if isinstance(context, int) else None)
    _write_json(folder / "config.json", config)
    with writing(folder / "model.safetensors") as file:
        file.write(save(export_weights(model, config), metadata={"format": "pt"}))
    _write_tokenizer(folder, tokenizer, config)
    return config["architectures"][0], _prove(folder, model, tokenizer)


def export_weights(model: DecoderOnly, config: Mapping[str, Any]) -> dict[str, Tensor]:
    """Our weights under their names: stacked and transposed where theirs are, with zeros for biases that ours lacks."""
    family, architecture = find_family(config)
    state = _in_halves(model)
    head = {} if config["tie_word_embeddings"] else family.architectures[architecture].weights
    table = [(family.prefix, item) for item in family.weights.items()] + [("", item) for item in head.items()]
    found = {}
    for prefix, (theirs, ours) in table:
        for i in range(model.settings.decoder.n_layers) if "{i}" in theirs else range(1):
            names = [our.replace("{i}", str(i)) for our in ([ours] if isinstance(ours, str) else ours)]
            for ending, weight in _parts(names, state, has_bias(theirs, config)):
                turned = weight.T if theirs + ending in family.transposed else weight
                found[prefix + theirs.replace("{i}", str(i)) + ending] = turned.contiguous()
    return found


def _parts(names: list[str], state: Mapping[str, Tensor], with_bias: bool) -> Iterator[tuple[str, Tensor]]:
    """What stands under one of their names: the weight, the bias, or one tensor that is neither."""
    if names[0] in state:
        yield "", state[names[0]]
        return
    weights = [state[f"{name}.weight"] for name in names]
    yield ".weight", torch.cat(weights)
    if with_bias:
        pairs = zip(names, weights, strict=True)
        yield ".bias", torch.cat([state.get(f"{name}.bias", weight.new_zeros(len(weight))) for name, weight in pairs])


def _in_halves(model: DecoderOnly) -> dict[str, Tensor]:
    """The weights on the CPU, queries and keys in the order of rows that Hugging Face turns."""
    state = {name: weight.detach().cpu().float() for name, weight in model.state_dict().items()}
    attention = model.settings.decoder.attention
    if attention.rotary is None or attention.rotary.layout == "halves":
        return state
    for name, weight in state.items():
        if "self_attention.w_q." in name:
            state[name] = to_halves(weight, attention.n_heads)
        elif "self_attention.w_k." in name:
            state[name] = to_halves(weight, attention.kv_heads)
    return state


def _write_tokenizer(folder: Path, tokenizer: Tokenizer, config: Mapping[str, Any]) -> None:
    marks, core = tokenizer.marks, Core.from_str(tokenizer.to_json())
    if marks.start is not None and put_in_front(core) != marks.start:
        start = tokenizer.piece(marks.start)
        core.post_processor = processors.TemplateProcessing(
            single=[start, "$A"], pair=[start, "$A", start, "$B"], special_tokens=[(start, marks.start)]
        )
    write_text(folder / "tokenizer.json", core.to_str(pretty=False))
    end = tokenizer.piece(marks.ends[0])
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": tokenizer.piece(marks.bos) if marks.bos is not None else None,
        "eos_token": end,
        "pad_token": tokenizer.piece(PAD) if tokenizer.is_ours else end,
        "model_max_length": config.get("n_positions", config.get("max_position_embeddings")),
        "clean_up_tokenization_spaces": False,
    }
    if marks.chat_template is not None:
        about["chat_template"] = marks.chat_template
    _write_json(folder / "tokenizer_config.json", about)
    pad = PAD if tokenizer.is_ours else marks.ends[0]
    generation = {key: config[key] for key in ("bos_token_id", "eos_token_id")}
    _write_json(folder / "generation_config.json", {**generation, "pad_token_id": pad})


def _prove(folder: Path, model: DecoderOnly, tokenizer: Tokenizer) -> list[Check]:
    """What was written, read as if it came from elsewhere."""
    foreign = read_huggingface(folder)
    again, ids = convert(foreign), sample_ids(tokenizer, model)
    assert isinstance(again, DecoderOnly)
    with torch.no_grad():
        same = compare(again(ids[None])[0], model(ids[None])[0], "the model that was exported")
    texts = [foreign.tokenizer.encode(text) == tokenizer.encode(text) for text in TEXTS]
    require(all(texts), "The exported tokenizer cuts texts in another way.", "Please report this as a fault.")
    equal_texts = Check("texts against the tokenizer that was exported", True, f"{len(texts)} of {len(texts)} equal")
    return [same, *prove(foreign, again), equal_texts]


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")
