"""The losses of CTC beside sums written out."""

import pytest
import torch

from glassformer.data.tokenizer import END, PAD
from glassformer.train.ctc import ctc_loss, disagreement


def test_a_transcript_may_be_said_by_any_path() -> None:
    """One word in three frames: it is said once, twice or three times in a row, with silence before or after."""
    log_p = torch.randn(1, 3, 6, dtype=torch.float64).log_softmax(dim=-1)
    word = 5
    paths = [(5, 0, 0), (0, 5, 0), (0, 0, 5), (5, 5, 0), (0, 5, 5), (5, 5, 5)]
    wanted = sum(float(sum(log_p[0, t, token] for t, token in enumerate(path)).exp()) for path in paths)
    found = ctc_loss(log_p, None, torch.tensor([[word, END, PAD]]))
    assert float(found) == pytest.approx(-torch.tensor(wanted, dtype=torch.float64).log().item())


def test_frames_that_are_padding_say_nothing() -> None:
    log_p = torch.randn(2, 6, 7).log_softmax(dim=-1)
    keep = torch.arange(6) < torch.tensor([6, 4])[:, None]
    targets = torch.tensor([[5, 6, END], [6, END, PAD]])
    alone = [ctc_loss(log_p[i : i + 1, :n], None, targets[i : i + 1]) for i, n in enumerate((6, 4))]
    torch.testing.assert_close(ctc_loss(log_p, keep, targets), alone[0] + alone[1])


def test_one_that_is_too_short_counts_nothing() -> None:
    assert float(ctc_loss(torch.randn(1, 1, 7).log_softmax(dim=-1), None, torch.tensor([[5, 6, END]]))) == 0


def test_disagreement_is_the_divergence_of_the_views_from_each_other() -> None:
    log_p = torch.randn(4, 7, 5, dtype=torch.float64).log_softmax(dim=-1).requires_grad_()
    keep = torch.arange(7) < torch.tensor([7, 4, 7, 4])[:, None]
    found = disagreement(log_p, keep)
    wanted = 0.0
    for row in range(4):
        for frame in range(7 if row % 2 == 0 else 4):
            one, other = log_p[row, frame].detach(), log_p[(row + 2) % 4, frame].detach()
            wanted += float((other.exp() * (other - one)).sum())
    assert found.item() == pytest.approx(wanted)
    assert disagreement(log_p[:2].repeat(2, 1, 1), None).item() == pytest.approx(0.0)
    [gradient] = torch.autograd.grad(found, log_p)  # the other view is taken as given
    torch.testing.assert_close(gradient[0, 0], -log_p[2, 0].detach().exp())
