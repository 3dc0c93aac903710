"""The cells are those of torch.nn, and the fused kernel is the written-out LSTM."""

import pytest
import torch
from torch import nn

from glassformer.ladder import LSTM, Recurrent
from glassformer.ladder.recurrent import Cell, LSTMCell, PlainCell, RecurrentNetwork, unroll, unroll_fused

D = 5
PAIRS = [("program", "please"), ("battery", "down please")]


def with_our_weights(theirs: nn.RNNBase, cell: Cell) -> nn.RNNBase:
    w_x, w_h = cell.w.weight.chunk(2, dim=1)
    ours = [w_x, w_h, cell.w.bias, torch.zeros_like(cell.w.bias)]
    with torch.no_grad():
        for parameter, value in zip(theirs.parameters(), ours, strict=True):
            parameter.copy_(value)
    return theirs


@pytest.fixture
def x() -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(3, 7, D)


def test_the_plain_cell_is_torchs_rnn(x: torch.Tensor) -> None:
    cell = PlainCell(D)
    theirs = with_our_weights(nn.RNN(D, D, batch_first=True), cell)
    torch.testing.assert_close(unroll(cell, x), theirs(x)[0])


def test_the_lstm_cell_is_torchs_lstm(x: torch.Tensor) -> None:
    cell = LSTMCell(D)
    theirs = with_our_weights(nn.LSTM(D, D, batch_first=True), cell)
    torch.testing.assert_close(unroll(cell, x), theirs(x)[0])


def test_the_fused_lstm_is_the_written_out_one_and_so_are_its_gradients(x: torch.Tensor) -> None:
    cell = LSTMCell(D)
    results = []
    for run in (unroll, unroll_fused):
        cell.zero_grad()
        said = run(cell, x)
        said.square().sum().backward()
        results.append((said, cell.w.weight.grad, cell.w.bias.grad))
    for written, fused in zip(*results, strict=True):
        torch.testing.assert_close(written, fused)
    with torch.no_grad():
        torch.testing.assert_close(unroll_fused(cell, x), results[0][0])


def test_a_new_lstm_keeps_what_it_knows() -> None:
    cell = LSTMCell(D)
    assert cell.w.bias.chunk(4)[1].tolist() == [1.0] * D


@pytest.mark.parametrize("kind", [Recurrent, LSTM])
def test_gradient_times_input_is_the_slope_of_the_best_word(kind: type[Recurrent] | type[LSTM]) -> None:
    rung = kind(6, steps=20).fit(["abcabd", "bca"])
    network, ids = rung.network, rung.window("abca")
    assert isinstance(network, RecurrentNetwork)
    n, best = len(rung.vocabulary), int(rung.predict("abca").scores.argmax())
    x, step = network.embedding(ids[None]).detach().double(), 1e-4
    network.double()

    def log_p(at: int, factor: float) -> float:
        scaled = x.clone()
        scaled[0, at] *= factor
        with torch.no_grad():
            return float(network.read(scaled)[0, -1, :n].log_softmax(-1)[best])

    slopes = [(log_p(i, 1 + step) - log_p(i, 1 - step)) / (2 * step) for i in range(len(ids))]
    assert rung.weigh(ids).tolist() == pytest.approx(slopes, rel=1e-4, abs=1e-6)


def test_a_memory_with_gates_carries_a_word_further_than_a_plain_one() -> None:
    sentences = [f"check the {w} log and find out whether it ran {e}".split() for w, e in PAIRS]
    errors = [r.fit(sentences).perplexity(sentences) for r in (LSTM(32), Recurrent(32))]
    assert errors[0] < 1.09 < 1.12 < errors[1]
