"""The same weights in each system, as a function from prompts to new tokens, both as ids: no tokenizer in the time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import glassformer
from glassformer.decode.complete_options import CompleteOptions
from glassformer.exchange.huggingface_export import export_weights
from glassformer.exchange.huggingface_layout import make_config
from glassformer.fast.choose import choose_decoder
from glassformer.fast.ctranslate2 import write_spec
from glassformer.fast.ctranslate2_decoder import to_decoder_spec
from glassformer.model import DecoderOnly, build
from glassformer.sizes import load_size
from glassformer.tasks.completer import Completer
from glassformer.tasks.generator import Generator

Generate = Callable[[list[list[int]]], list[list[int]]]


def make_model(name: str) -> DecoderOnly:
    """A size by name with random weights, the same in every process; or a model directory."""
    if Path(name).is_dir():
        completer = glassformer.load(name, precision="fp32")
        assert isinstance(completer, Completer)
        return completer.model
    torch.manual_seed(1)
    model = build(load_size(name))
    assert isinstance(model, DecoderOnly)
    return model.eval()


def write_for_ctranslate2(model: DecoderOnly, folder: Path) -> None:
    tokens = [str(i) for i in range(model.settings.source.vocab_size)]
    write_spec(to_decoder_spec(model, tokens, unknown=0, start=1, end=2, n_positions=1024), folder, "int8")


def make_generate(system: str, order: dict[str, Any]) -> tuple[Generate, str]:
    """`ours PRECISION`, `huggingface`, or `ctranslate2 INTER INTRA MAX_BATCH`, and what it calls itself."""
    name, *details = system.split()
    n = order["new"]
    match name:
        case "ours":
            model, engine = choose_decoder(make_model(order["model"]), details[0])  # type: ignore[arg-type]
            return _ours(model, n), engine
        case "huggingface":
            return _huggingface(order, n), "transformers fp32"
        case _:
            return _ctranslate2(order["ctranslate2"], *map(int, details), n), "CTranslate2 int8"


def _ours(model: DecoderOnly, n: int) -> Generate:
    def generate(prompts: list[list[int]]) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in prompts]
        for step in Generator(model, prompts, CompleteOptions(max_tokens=n, temperature=0)):
            for row, chosen in step:
                found[row].append(chosen.id)
        return found

    return generate


def _ctranslate2(folder: str, inter: int, intra: int, max_batch: int, n: int) -> Generate:
    """Prompts are read at once, as its guide advises for speed."""
    import ctranslate2

    engine = ctranslate2.Generator(folder, compute_type="int8", inter_threads=inter, intra_threads=intra)

    def generate(prompts: list[list[int]]) -> list[list[int]]:
        results = engine.generate_batch(
            [[str(i) for i in prompt] for prompt in prompts],
            max_batch_size=max_batch,
            max_length=n,
            min_length=n,
            include_prompt_in_result=False,
        )
        return [list(result.sequences_ids[0]) for result in results]

    return generate


def _huggingface(order: dict[str, Any], n: int) -> Generate:
    if order.get("gguf"):
        from transformers import AutoModelForCausalLM

        file = Path(order["gguf"])
        model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32).eval()
    else:
        model = to_huggingface(make_model(order["model"]))
    # No token ends an answer, so that every system makes as many.
    model.generation_config.eos_token_id = model.generation_config.pad_token_id = None

    def generate(prompts: list[list[int]]) -> list[list[int]]:
        ids = torch.tensor(prompts)
        found = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=n)
        return [row[len(prompts[0]) :] for row in found.tolist()]

    return generate


def to_huggingface(model: DecoderOnly) -> Any:
    """Our GPT-2 in the class of theirs."""
    from transformers import GPT2Config, GPT2LMHeadModel

    from glassformer.data.tokenizer import Marks

    config = make_config(model.settings, Marks(start=1, ends=(2,)), None)
    theirs = GPT2LMHeadModel(GPT2Config(**config))
    theirs.load_state_dict(export_weights(model, config), strict=False)
    theirs.tie_weights()
    return theirs.eval()
