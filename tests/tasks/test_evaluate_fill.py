"""Guesses by counting against plain loops, and the model beside them."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from glassformer.api import load_filler
from glassformer.cli.evaluate_fill import explain_fill
from glassformer.data.documents import open_documents
from glassformer.tasks.evaluate_fill import TRUST, Neighbours, evaluate_fill
from glassformer.tasks.text import TextFiles
from glassformer.tasks.train_fill import train_fill
from tests.tasks.test_fill import recipe_of, write_text


def test_counts_are_those_of_a_plain_loop() -> None:
    random = np.random.default_rng(0)
    stream, n = random.integers(0, 6, size=300), 7
    counts = Neighbours(stream, n)
    pairs = np.zeros((n, n))
    for a, b in itertools.pairwise(stream):
        pairs[a, b] += 1
    for before in range(n):
        p = counts._after(before)
        assert p.sum() == pytest.approx(1)
        if pairs[before].sum():
            expected = TRUST * pairs[before] / pairs[before].sum() + (1 - TRUST) * counts.common
            np.testing.assert_allclose(p, expected)
    for after in range(n):
        expected = [
            TRUST * pairs[x, after] / max(1, pairs[x].sum()) + (1 - TRUST) * counts.common[after] for x in range(n)
        ]
        np.testing.assert_allclose(counts._leads_to(after), expected)


def test_a_certain_neighbour_is_always_right() -> None:
    stream = np.array([3, 4, 5] * 50)
    unigram, bigram, both = Neighbours(stream, 6).guess(*(np.array(x) for x in ([3, 4], [4, 5], [5, 3])))
    assert bigram.accuracy == both.accuracy == 1
    assert unigram.accuracy < 1
    assert both.perplexity < bigram.perplexity < unigram.perplexity


def test_report(tmp_path: Path) -> None:
    text = write_text(tmp_path)
    assert train_fill(
        TextFiles(open_documents([text]), None), recipe_of(train={"steps": 20}), tmp_path / "out", quiet=True
    )
    filler = load_filler(tmp_path / "out")
    report = evaluate_fill(filler, open_documents([text]))
    assert [row.name for row in report.guessers] == ["unigram", "bigram", "both neighbours", "this model"]
    assert report.guessers[2].accuracy > report.guessers[1].accuracy > report.guessers[0].accuracy
    shown = "\n".join(explain_fill("out", report))
    assert "no better than counting" in shown  # after twenty steps
    assert json.dumps(report.counted_on) == '"the model\'s own training text"'
