"""Attention with embeddings finds by itself what the hand-made tables of the one-hot rung hold."""

import pytest
import torch

from glassformer.ladder import EmbeddedAttention
from glassformer.ladder.embedded import EmbeddedNetwork

PROGRAM, BATTERY = (
    f"check the {word} log and find out whether it ran {end}".split()
    for word, end in (("program", "please"), ("battery", "down please"))
)


@pytest.fixture(scope="module", params=[1, 2, 3])
def rung(request: pytest.FixtureRequest) -> EmbeddedAttention:
    return EmbeddedAttention(width=16, steps=200, seed=request.param).fit([PROGRAM, BATTERY])


def test_the_deciding_word_far_back_decides(rung: EmbeddedAttention) -> None:
    to_ran = BATTERY.index("ran") + 1
    assert rung.predict(BATTERY[:to_ran])["down"] > 0.99
    assert rung.predict(PROGRAM[:to_ran])["please"] > 0.99


def test_what_cannot_be_known_stays_open(rung: EmbeddedAttention) -> None:
    after_the = rung.predict(["check", "the"])
    assert after_the["battery"] == pytest.approx(0.5, abs=0.02)
    assert after_the["program"] == pytest.approx(0.5, abs=0.02)
    n = len(PROGRAM) + len(BATTERY)
    assert rung.perplexity([PROGRAM, BATTERY]) == pytest.approx(2 ** (2 / n), abs=0.002)  # one doubt in each sentence


def test_the_explanation_shows_the_pairs(rung: EmbeddedAttention) -> None:
    """Only battery and program tell the sentences apart, so what is looked up must hold one of them in each."""
    for sentence, word in ((BATTERY, "battery"), (PROGRAM, "program")):
        reasons = {r.name: r for r in rung.explain(sentence[: sentence.index("ran") + 1]).reasons}
        assert sum(r.weight for r in reasons.values()) == pytest.approx(1)
        assert f"{word} … ran (attention)" in reasons
        assert "ran … ran (attention)" not in reasons
    looked = [
        {r.name: r.weight for r in rung.explain(s[: s.index("ran") + 1]).reasons}[f"{w} … ran (attention)"]
        for s, w in ((BATTERY, "battery"), (PROGRAM, "program"))
    ]
    assert max(looked) > 0.5


def test_a_reason_tells_what_would_come_if_it_were_looked_at_alone(rung: EmbeddedAttention) -> None:
    explanation = rung.explain(["check", "the"])
    network = rung.network
    assert isinstance(network, EmbeddedNetwork)
    with torch.no_grad():
        x = network.embedding(rung.window(["check", "the"]))
        alone = network.speak(x[1], x[2])[: len(rung.vocabulary)].softmax(-1)
    assert explanation.reasons[1].name == "check … the (attention)"
    assert explanation.reasons[1].scores == pytest.approx(alone.numpy(), abs=1e-5)


def test_earlier_words_lie_in_a_bag() -> None:
    rung = EmbeddedAttention(8, steps=2).fit(["abcd"])
    assert rung.predict("abc").scores == pytest.approx(rung.predict("bac").scores, abs=1e-7)
    assert rung.predict("abc").scores != pytest.approx(rung.predict("acb").scores, abs=1e-7)


def test_gradients_are_numbers_though_the_first_word_looks_at_nothing() -> None:
    network = EmbeddedNetwork(4, 6, 8)
    network(torch.tensor([[3, 0, 1]])).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())
    _, weights = network.look_up(network.embedding(torch.tensor([[3, 0, 1]])))
    assert weights[0].sum(dim=-1).tolist() == pytest.approx([0, 1, 1])
    assert weights[0].triu().abs().sum() == 0
