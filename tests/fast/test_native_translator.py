"""The translator in C++: the answers of rounded layers by the textbook, alone and in company to the bit."""

import copy
import math
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch

from glassformer.decode.options import DecodeOptions
from glassformer.errors import UserError
from glassformer.fast import native_translator
from glassformer.fast.native_translator import NativeBackend, cannot_translate
from glassformer.model.settings import AttentionSettings, FeedForwardSettings, TokenHeadSettings
from glassformer.tasks.backend import Request, TorchBackend
from tests.builders import stack, tokens
from tests.fast.models import SETTINGS, UNTIED, lively, requests
from tests.fast.rounded import needs_compiler, rounded
from tests.parity.test_engines import SEARCHES, Answers

pytestmark = needs_compiler

RUNNABLE = [name for name, changes in SETTINGS.items() if "rotary" not in name and name != "llama"]


def agree(found: Answers, expected: Answers) -> None:
    """A number that lies between two steps may be rounded the other way, and move an answer that is nearly as good."""
    assert [len(each) for each in found] == [len(each) for each in expected]
    alike = 0
    for ours, theirs in zip(found, expected, strict=True):
        assert [h.score for h in ours] == sorted((h.score for h in ours), reverse=True)
        a, b = ({tuple(h.ids): h.score for h in each} for each in (ours, theirs))
        # Of twenty answers one may have been pushed out by another that is as good.
        alike += len(a.keys() ^ b.keys()) <= len(a) // 10 and all(abs(a[i] - b[i]) < 0.03 for i in a.keys() & b.keys())
    assert alike >= 0.9 * len(found)


@pytest.mark.parametrize("name", RUNNABLE)
@pytest.mark.parametrize("search", ["greedy", "n-best"])
def test_every_model(name: str, search: str) -> None:
    model, asked = lively(SETTINGS[name]), requests(24, size=19)
    found = NativeBackend(model).generate(asked, SEARCHES[search])
    agree(found, TorchBackend(rounded(copy.deepcopy(model))).generate(asked, SEARCHES[search]))


@pytest.mark.parametrize("name", ["paper", "learned"])
@pytest.mark.parametrize("prefixes", [False, True], ids=["free", "with prefixes"])
@pytest.mark.parametrize("search", SEARCHES)
def test_every_search(name: str, prefixes: bool, search: str) -> None:
    model, asked = lively(SETTINGS[name]), requests(32, prefixes)
    found = NativeBackend(model).generate(asked, SEARCHES[search])
    agree(found, TorchBackend(rounded(copy.deepcopy(model))).generate(asked, SEARCHES[search]))
    assert all(tuple(h.ids[: len(r.prefix)]) == r.prefix for r, each in zip(asked, found, strict=True) for h in each)


TWO, THREE = ["paper", "learned"], ["pre-norm", "unequal stacks", "wide keys"]


@pytest.mark.parametrize(("names", "search"), [*((TWO, search) for search in SEARCHES), (THREE, "n-best")])
def test_several_models_together(names: list[str], search: str) -> None:
    models = [lively(SETTINGS[name], seed) for seed, name in enumerate(names)]
    first, *others = (rounded(copy.deepcopy(model)) for model in models)
    asked = requests(32, prefixes=True)
    found = NativeBackend(models[0], models[1:]).generate(asked, SEARCHES[search])
    agree(found, TorchBackend(first, others=others).generate(asked, SEARCHES[search]))


def test_models_of_different_vocabularies_do_not_answer_together() -> None:
    with pytest.raises(UserError, match="vocabularies of 19 and 29 tokens"):
        NativeBackend(lively({}), [lively(SETTINGS["small target"])])


@pytest.mark.parametrize("others", [[], ["learned"]], ids=["one", "two"])
@pytest.mark.parametrize("rows", [1, 7, 64])
@pytest.mark.parametrize("cores", [1, 2, 3])
def test_company_changes_no_bit(others: list[str], rows: int, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = NativeBackend(lively(SETTINGS["paper"]), [lively(SETTINGS[name]) for name in others])
    asked, options = requests(40, prefixes=True), SEARCHES["n-best"]
    alone = [backend.generate([one], options)[0] for one in asked]
    monkeypatch.setattr(native_translator, "ROWS", rows)
    monkeypatch.setattr(native_translator, "n_cores", lambda: cores)
    assert backend.generate(asked, options) == alone
    assert len({len(each[0].ids) for each in alone}) > 3


def test_several_threads_may_ask_at_once() -> None:
    backend, asked = NativeBackend(lively({})), [requests(9, seed=seed) for seed in range(12)]
    options = DecodeOptions(beam=3, max_len=20)
    expected = [backend.generate(some, options) for some in asked]
    fresh = NativeBackend(lively({}))  # whose tables grow while others read them
    longer = [replace(options, beam=1, max_len=20 + 400 * (i % 4)) for i in range(12)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fresh.generate, asked, longer))
        assert list(pool.map(lambda some: fresh.generate(some, options), asked)) == expected


def test_a_vocabulary_of_many_blocks() -> None:
    """More words than are looked through at a time, and a last block that is not full."""
    table = tokens(vocab_size=2 * 960 + 37)
    model, asked = lively({"source": table, "target": table}), requests(8)
    options = DecodeOptions(beam=6, nbest=6, max_len=12)
    found = NativeBackend(model).generate(asked, options)
    agree(found, TorchBackend(rounded(copy.deepcopy(model))).generate(asked, options))
    assert max(i for each in found for h in each for i in h.ids) > 960


ODD = {
    "narrow": {"d_model": 7, "n_layers": 1, "attention": AttentionSettings(n_heads=1)},
    "odd": {
        "d_model": 18,
        "attention": AttentionSettings(n_heads=3, n_kv_heads=1, d_k=17, d_v=5),
        "feed_forward": FeedForwardSettings(d_ff=37),
    },
    "no layers": {"n_layers": 0},
}


@pytest.mark.parametrize("name", ODD)
def test_widths_that_fill_no_register(name: str) -> None:
    model, asked = lively({"encoder": stack(**ODD[name]), "decoder": stack(**ODD[name])}), requests(24, prefixes=True)
    found = NativeBackend(model).generate(asked, SEARCHES["n-best"])
    agree(found, TorchBackend(rounded(copy.deepcopy(model))).generate(asked, SEARCHES["n-best"]))


@pytest.mark.parametrize(
    "path", ["encoder.blocks.0.feed_forward.w_1.weight", "decoder.blocks.1.self_attention.w_q.bias"]
)
def test_weights_that_are_no_numbers_are_told(path: str) -> None:
    model = lively({})
    with torch.no_grad():
        model.get_parameter(path).view(-1)[3] = math.nan
    with pytest.raises(UserError, match=r"not finite.*lower learning rate"):
        NativeBackend(model)


def test_much_is_done_in_parts_that_fit_into_memory() -> None:
    def sizes(n_tokens: int, n: int = 100, **options: int) -> set[int]:
        asked = [Request([3] * n_tokens) for _ in range(n)]
        return {len(group) for group in native_translator._groups(asked, DecodeOptions(**options), 1)}

    assert sizes(9) == {16, 4}
    assert sizes(9, beam=1) == {64, 36}
    assert sizes(199, beam=1) == {10}  # of 200 tokens with the end
    assert sizes(5000) == {1}
    assert sizes(9, n=8, max_len=8192, beam=1) == {4}
    assert sizes(9, n=3, max_len=100_000) == {1}


def test_long_sources_and_answers() -> None:
    chance, model = random.Random(0), lively({})
    asked = [Request([5]), Request([chance.randrange(3, 29) for _ in range(1500)])]
    backend = NativeBackend(model)
    options = DecodeOptions(max_len=6)
    found, expected = (each.generate(asked, options) for each in (backend, TorchBackend(model)))
    for ours, theirs in zip(found, expected, strict=True):
        assert ours[0].ids == theirs[0].ids
        assert ours[0].score == pytest.approx(theirs[0].score, abs=0.02)
    assert backend.generate([Request([5])], replace(options, max_len=4000))


def test_a_vocabulary_without_a_start_is_refused() -> None:
    model = lively({"target": tokens(vocab_size=3)} | UNTIED)
    model.target.embedding = torch.nn.Embedding(1, model.target.embedding.embedding_dim)
    with pytest.raises(UserError, match="none of the 1 of the vocabulary"):
        NativeBackend(model).generate([Request([3])], DecodeOptions())


@pytest.mark.parametrize("request_", [Request([99]), Request([-1]), Request([3], (99,))])
def test_ids_that_are_none_are_refused(request_: Request) -> None:
    with pytest.raises(UserError, match="none of the 29 of the vocabulary"):
        NativeBackend(lively({})).generate([request_], DecodeOptions())


def test_what_it_leaves_to_torch() -> None:
    backend = NativeBackend(lively({}))
    with pytest.raises(UserError, match=r"cannot draw.*torch engine"):
        backend.generate([Request([3])], DecodeOptions(sample=True))
    with pytest.raises(UserError, match=r"contain phrases.*torch engine"):
        backend.generate([Request([3], phrases=((4, 5),))], DecodeOptions())
    assert backend.generate([], DecodeOptions()) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (SETTINGS["llama"], "rotary"),
        (SETTINGS["rotary encoder"], "rotary"),
        ({"source": tokens(n_types=2), "tie_source_target": False}, "token types"),
        ({"head": TokenHeadSettings(transform="gelu")}, "transform"),
    ],
)
def test_it_says_what_it_cannot_run(changes: dict[str, object], reason: str) -> None:
    model = lively(changes)
    assert reason in str(cannot_translate(model))
    with pytest.raises(UserError, match=f"cannot run this model: .*{reason}.*another engine"):
        NativeBackend(model)


def test_half_precision_is_refused() -> None:
    assert "bfloat16" in str(cannot_translate(lively({}).bfloat16()))


def test_the_given_model_stays_as_it_is() -> None:
    model = lively({"encoder": stack(), "decoder": stack()})
    before = {path: weight.clone() for path, weight in model.state_dict().items()}
    NativeBackend(model).generate(requests(3), DecodeOptions(max_len=5))
    assert all(torch.equal(weight, before[path]) for path, weight in model.state_dict().items())
