"""The proof finds what it is there to find, and the report says no more than is so."""

import copy
import dataclasses
import sys
from pathlib import Path

import pytest
import torch
from tokenizers import normalizers
from transformers import LlamaForCausalLM

from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import UserError
from glassformer.exchange.foreign import Foreign, convert
from glassformer.exchange.importing import import_model, read_foreign
from glassformer.exchange.plain import plain_logits
from glassformer.exchange.proof import check_texts, prove
from tests.exchange.foreign_models import byte_level_core, gpt2, llama, save_huggingface, write_gguf


@pytest.fixture(params=["gpt2", "llama", "gguf"])
def foreign(request: pytest.FixtureRequest, tmp_path: Path) -> Foreign:
    if request.param == "gguf":
        return read_foreign(write_gguf(tmp_path / "m.gguf", llama()))
    return read_foreign(save_huggingface({"gpt2": gpt2, "llama": llama}[request.param](), tmp_path / "theirs"))


def test_each_weight_matters_to_the_proof(foreign: Foreign) -> None:
    model = copy.deepcopy(convert(foreign))  # else both would look at the same numbers
    assert all(check.passed for check in prove(foreign, model))
    for name, weight in model.named_parameters():
        if name.endswith("w_k.bias"):
            continue  # the same for all keys, so that the softmax does not see it
        kept = weight.detach().clone()
        weight.data.add_(torch.randn_like(weight) * 0.05)
        with pytest.raises(UserError, match="differs from the file's weights"):
            prove(foreign, model)
        weight.data.copy_(kept)
    prove(foreign, model)


def test_rows_in_the_wrong_order_are_found(foreign: Foreign) -> None:
    if foreign.config["model_type"] == "llama":
        turned = dataclasses.replace(foreign, interleaved=not foreign.interleaved)
        with pytest.raises(UserError, match="differs from the file's weights"):
            prove(turned, convert(foreign))


def test_plain_formulas_are_those_of_transformers(tmp_path: Path) -> None:
    for make in (gpt2, llama):
        theirs = make()
        foreign = read_foreign(save_huggingface(theirs, tmp_path / make.__name__))
        ids = torch.arange(5, 45)
        with torch.no_grad():
            wanted = theirs(ids[None]).logits[0]
            found = plain_logits(foreign, convert(foreign).settings, ids)
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=0)


def test_the_report_s_text_is_what_transformers_would_write(tmp_path: Path) -> None:
    folder = save_huggingface(llama(), tmp_path / "theirs")
    report = import_model(folder, tmp_path / "ours")
    ids = byte_level_core().encode(report["greedy"]["prompt"]).ids
    theirs = LlamaForCausalLM.from_pretrained(folder)
    longer = theirs.generate(torch.tensor([ids]), max_new_tokens=24, do_sample=False, pad_token_id=1)[0].tolist()
    assert report["greedy"]["ids"] == [i for i in longer if i != 1]


def test_a_tokenizer_that_changes_texts_is_told_not_refused() -> None:
    core = byte_level_core()
    core.normalizer = normalizers.Lowercase()
    found = check_texts(Tokenizer(core, None))
    assert not found.passed
    assert "of 4" in found.found


def test_without_the_package_gguf_the_way_to_get_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_gguf(tmp_path / "m.gguf", llama())
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(UserError, match=r"pip install 'glassformer\[gguf\]'"):
        import_model(path, tmp_path / "ours")
