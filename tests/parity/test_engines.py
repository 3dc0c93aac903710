"""torch = CTranslate2: the same answers, token for token, with the same scores."""

import pytest

from glassformer.decode.options import DecodeOptions, Hypothesis
from glassformer.fast.ctranslate2 import CTranslate2Backend
from glassformer.tasks.backend import Backend, TorchBackend
from tests.fast.models import SETTINGS, lively, requests

SEARCHES = {
    "greedy": DecodeOptions(beam=1, max_len=20),
    "beam": DecodeOptions(beam=4, max_len=20),
    "n-best": DecodeOptions(beam=4, nbest=4, max_len=20),
    "no penalty": DecodeOptions(beam=4, nbest=2, length_penalty=0.0, max_len=20),
    "some penalty": DecodeOptions(beam=5, nbest=5, length_penalty=0.6, max_len=20),
    "no repeats": DecodeOptions(beam=3, nbest=3, no_repeat=2, max_len=12),
    "no word twice": DecodeOptions(beam=3, nbest=3, no_repeat=1, max_len=6),
    "greedy, no repeats": DecodeOptions(beam=1, no_repeat=2, max_len=12),
    "one word": DecodeOptions(beam=4, nbest=4, max_len=1),
    "wider than the vocabulary": DecodeOptions(beam=20, nbest=20, max_len=6),
}
A_FEW = ["paper", "learned", "llama"]

Answers = list[list[Hypothesis]]


def same(ours: Answers, theirs: Answers, tolerance: float = 1e-4) -> None:
    assert [[h.ids for h in found] for found in ours] == [[h.ids for h in found] for found in theirs]
    for a, b in zip(ours, theirs, strict=True):
        assert [h.score for h in a] == pytest.approx([h.score for h in b], abs=tolerance, rel=0)


@pytest.fixture(scope="module")
def engines() -> dict[str, tuple[Backend, Backend]]:
    return {}


def both(engines: dict[str, tuple[Backend, Backend]], name: str) -> tuple[Backend, Backend]:
    if name not in engines:
        model = lively(SETTINGS[name])
        engines[name] = (TorchBackend(model), CTranslate2Backend(model, "float32"))
    return engines[name]


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("search", ["greedy", "n-best"])
def test_every_model(engines: dict[str, tuple[Backend, Backend]], name: str, search: str) -> None:
    torch_engine, ct2 = both(engines, name)
    asked = requests(24, size=19)
    same(torch_engine.generate(asked, SEARCHES[search]), ct2.generate(asked, SEARCHES[search]))


@pytest.mark.parametrize("name", A_FEW)
@pytest.mark.parametrize("prefixes", [False, True], ids=["free", "with prefixes"])
@pytest.mark.parametrize("search", SEARCHES)
def test_every_search(engines: dict[str, tuple[Backend, Backend]], name: str, prefixes: bool, search: str) -> None:
    torch_engine, ct2 = both(engines, name)
    asked = requests(32, prefixes)
    ours = torch_engine.generate(asked, SEARCHES[search])
    same(ours, ct2.generate(asked, SEARCHES[search]))
    assert all(tuple(h.ids[: len(r.prefix)]) == r.prefix for r, found in zip(asked, ours, strict=True) for h in found)


@pytest.mark.parametrize("name", A_FEW)
@pytest.mark.parametrize("engine", [0, 1], ids=["torch", "CTranslate2"])
def test_batched_is_single(engines: dict[str, tuple[Backend, Backend]], name: str, engine: int) -> None:
    backend = both(engines, name)[engine]
    asked, options = requests(40, prefixes=True), SEARCHES["n-best"]
    same(backend.generate(asked, options), [backend.generate([one], options)[0] for one in asked])


@pytest.mark.parametrize("name", A_FEW)
def test_these_models_end_at_varied_lengths(engines: dict[str, tuple[Backend, Backend]], name: str) -> None:
    answers = both(engines, name)[0].generate(requests(40), SEARCHES["n-best"])
    assert len({len(found[0].ids) for found in answers}) > 3
    assert len({tuple(found[0].ids) for found in answers}) > 8


@pytest.mark.parametrize("engine", [0, 1], ids=["torch", "CTranslate2"])
def test_no_requests_no_answers(engines: dict[str, tuple[Backend, Backend]], engine: int) -> None:
    assert both(engines, "paper")[engine].generate([], DecodeOptions()) == []
