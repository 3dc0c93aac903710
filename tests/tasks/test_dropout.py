"""The dial for dropout reaches every part of a model, also of one that is trained already."""

from pathlib import Path

import pytest
import torch

from glassformer.data.tokenizer import train_tokenizer
from glassformer.model import Transformer
from glassformer.model.dropout import Dropout
from glassformer.model.lora import LoraSettings
from glassformer.tasks.complete import COMPLETE, CompleteRecipe
from glassformer.tasks.fill import FILL, FillRecipe
from glassformer.tasks.model_dir import load_model, save_adapter, save_model
from glassformer.tasks.prepare import Tokenizers
from glassformer.tasks.text import make_model as make_text_model
from glassformer.tasks.translate import TranslateRecipe
from glassformer.tasks.translate_model import make_model as make_translator
from tests.builders import decoder_only, encoder_decoder, encoder_only, tokens

WORDS = train_tokenizer(["Some words."], "char", 300)
SIDE = tokens(vocab_size=WORDS.vocab_size)


def started(task: str, folder: Path, dropout: float | None) -> Transformer:
    """The model that a training would start with."""
    start = str(folder)
    if task == "translate":
        save_model(folder, task, encoder_decoder(source=SIDE, target=SIDE), WORDS)
        return make_translator(TranslateRecipe(start=start, dropout=dropout), Tokenizers(WORDS, WORDS))
    if task == "fill":
        save_model(folder, task, encoder_only(source=SIDE), WORDS)
        return make_text_model(FILL, FillRecipe(start=start, dropout=dropout), WORDS.vocab_size)
    save_model(folder, "complete", decoder_only(source=SIDE, tie_output=False), WORDS)
    lora = LoraSettings(rank=2) if task == "lora" else None
    return make_text_model(COMPLETE, CompleteRecipe(start=start, dropout=dropout, lora=lora), WORDS.vocab_size)


def rates(model: Transformer) -> set[float]:
    return {module.p for module in model.modules() if isinstance(module, Dropout)}


@pytest.mark.parametrize("task", ["complete", "fill", "translate"])
def test_a_trained_model_gets_it_and_keeps_its_weights(tmp_path: Path, task: str) -> None:
    model = started(task, tmp_path, 0.375)
    parts = [getattr(model.settings, part, None) for part in ("source", "target", "encoder", "decoder")]
    assert {part.dropout for part in parts if part is not None} == {0.375}
    assert rates(model) <= {0.375, 0.0}  # inside attention there is none
    before = load_model(tmp_path).model
    assert 0.375 not in rates(before)
    kept = dict(model.named_parameters())
    for name, parameter in before.named_parameters():
        assert torch.equal(parameter, kept[name]), name
    assert rates(started(task, tmp_path, None)) == rates(before)


def test_detours_are_all_that_is_trained_then_too(tmp_path: Path) -> None:
    model = started("lora", tmp_path, 0.375)
    assert 0.375 in rates(model)
    trained = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    assert trained
    assert all(name.endswith((".a", ".b")) for name in trained)
    save_adapter(tmp_path / "adapter", "complete", model, LoraSettings(rank=2), str(tmp_path), {})
    ids = torch.arange(3, 9)[None]
    with torch.inference_mode():
        torch.testing.assert_close(load_model(tmp_path / "adapter").model(ids), model.eval()(ids))
