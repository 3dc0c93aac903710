"""`verify` passes on every kind of model, and finds what is broken on purpose."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from glassformer.cli.main import run
from glassformer.data.tokenizer import train_tokenizer
from glassformer.model import Cache, DecoderOnly, Transformer
from glassformer.model.attention import ScaledDotProduct
from glassformer.model.inputs import Tokens
from glassformer.model.settings import ClassHeadSettings, EmbeddingHeadSettings, LearnedSettings, TokenHeadSettings
from glassformer.tasks.model_dir import save_model
from glassformer.verify import Check, verify
from glassformer.verify.answers import Answer, _compare, made_up
from glassformer.verify.passes import check_passes
from tests.builders import FRONT_ENDS, POSITIONS, decoder_only, encoder_decoder, encoder_only, listening, tokens
from tests.fast.models import SETTINGS, lively

TEXTS = ["one red cat here", "two blue dogs there", "three green trees here"]
MODELS: dict[str, Callable[[], Transformer]] = {
    **{f"decoder, {name}": lambda name=name: decoder_only(name) for name in POSITIONS},
    **{f"encoder and decoder, {name}": lambda name=name: encoder_decoder(name) for name in POSITIONS},
    **{f"classes of {name}": lambda name=name: encoder_only(name, head=ClassHeadSettings()) for name in FRONT_ENDS},
    "blanks": lambda: encoder_only(head=TokenHeadSettings(transform="gelu")),
    "vectors of texts": lambda: encoder_only(head=EmbeddingHeadSettings(pooling="mean")),
    "classes by a decoder": lambda: decoder_only(head=ClassHeadSettings(pooling="last"), tie_output=False),
    "sound": listening,
    "one position": lambda: decoder_only(source=tokens(positions=LearnedSettings(max_len=1))),
}


def failed(checks: list[Check]) -> list[str]:
    return [check.name for check in checks if not check.passed]


@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_model_passes(name: str) -> None:
    model = MODELS[name]()
    checks = check_passes(model)
    assert failed(checks) == []
    assert len(checks) == (4 if name.startswith(("classes of", "blanks", "vectors")) else 6)


def spoil_weights(model: DecoderOnly, _: pytest.MonkeyPatch) -> None:
    with torch.no_grad():
        next(model.parameters())[0, 0] = float("nan")


def spoil_attention(_: DecoderOnly, patch: pytest.MonkeyPatch) -> None:
    fused = ScaledDotProduct.forward
    patch.setattr(ScaledDotProduct, "forward", lambda self, q, *rest: fused(self, q * 1.01, *rest))


def spoil_masks(model: DecoderOnly, _: pytest.MonkeyPatch) -> None:
    model.decoder.causal = False


def spoil_padding(_: DecoderOnly, patch: pytest.MonkeyPatch) -> None:
    read = Tokens.forward
    patch.setattr(Tokens, "forward", lambda self, ids, keep=None, positions=None: read(self, ids, None, positions))
    patch.setattr("glassformer.model.stack.padding_mask", lambda keep: torch.ones_like(keep)[:, None, None, :])


def spoil_cache(_: DecoderOnly, patch: pytest.MonkeyPatch) -> None:
    extend = Cache.extend

    def without_positions(self: Cache, *given: Any) -> tuple[int, Tensor, Tensor | None]:
        start, positions, keep = extend(self, *given)
        return start, torch.zeros_like(positions), keep

    patch.setattr(Cache, "extend", without_positions)


def spoil_seeing(model: DecoderOnly, _: pytest.MonkeyPatch) -> None:
    def wobble(_: nn.Module, __: Any, out: Tensor) -> Tensor:
        return out + torch.rand(()) * 1e-6

    model.head.register_forward_hook(wobble)


SPOILED = {
    "finite": spoil_weights,
    "fused": spoil_attention,
    "after it": spoil_masks,
    "in a batch": spoil_padding,
    "cache": spoil_cache,
    "looked at": spoil_seeing,
}


@pytest.mark.parametrize("what", SPOILED)
def test_what_is_broken_is_found(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = decoder_only()
    SPOILED[what](model, monkeypatch)
    assert any(what in name for name in failed(check_passes(model)))


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verify") / "translator"
    words = train_tokenizer(TEXTS * 20, size=300)
    table = tokens(vocab_size=words.vocab_size)
    model = lively(SETTINGS["paper"] | {"source": table, "target": table})
    save_model(folder, "translate", model, words)
    return folder


def test_a_translators_engines_are_compared(translator: Path) -> None:
    checks = verify(translator)
    assert failed(checks) == []
    names = " ".join(check.name for check in checks)
    assert "torch fp32 = CTranslate2 fp32, greedy" in names
    assert "torch fp32 = CTranslate2 fp32, beam 4" in names
    assert "torch fp32: alone = among others" in names


def test_a_language_models_answers_are_compared(tmp_path: Path) -> None:
    words = train_tokenizer(TEXTS * 20, size=300)
    model = decoder_only(source=tokens(vocab_size=words.vocab_size))
    save_model(tmp_path / "writer", "complete", model, words, about={"context": 12})
    checks = verify(tmp_path / "writer")
    assert failed(checks) == []
    assert checks[-1] == Check("torch fp32: alone = among others", True, "12 of 12 answers the same")


def test_answers_that_differ_are_found_and_near_ties_are_not() -> None:
    ours = [Answer([1, 2], -0.5), Answer([3], -0.25)]
    assert _compare("x", ours, ours).found == "2 of 2 answers the same"
    tied = _compare("x", ours, [Answer([1, 4], -0.5002), Answer([3], -0.25)])
    assert tied.passed
    assert "1 nearly tied" in tied.found
    assert not _compare("x", ours, [Answer([1, 4], -0.6), Answer([3], -0.25)]).passed


def test_made_up_rows_have_all_lengths_and_no_marks() -> None:
    words = train_tokenizer(TEXTS * 20, size=300)
    rows = made_up(words)
    assert rows == made_up(words)
    assert {len(row) for row in rows} >= {1, 20}
    assert not words.special & {i for row in rows for i in row}
    assert max(map(len, made_up(words, room=5))) == 5


def test_the_verb_says_it_a_line_a_check(translator: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        run(["verify", str(translator)])
    assert left.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("ok  ") for line in lines)
    assert len(lines) >= 9


def test_a_failure_is_exit_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save_model(tmp_path / "model", "classify", encoder_only("vectors", head=ClassHeadSettings()), None)
    spoil_attention(decoder_only(), monkeypatch)
    with pytest.raises(SystemExit) as left:
        run(["verify", str(tmp_path / "model"), "--json"])
    assert left.value.code == 1
    assert [c["name"] for c in json.loads(capsys.readouterr().out) if not c["passed"]]
