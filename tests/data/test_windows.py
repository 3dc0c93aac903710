"""Windows over a stream: every token is predicted, and documents do not see each other."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer import config
from glassformer.data.windows import plan_windows, window_batch
from glassformer.model import DecoderOnly, build
from glassformer.model.settings import DecoderOnlySettings

START = 1


@given(n=st.integers(3, 300), width=st.integers(1, 40), rows=st.integers(1, 7), epoch=st.integers(0, 5))
def test_windows_fit_and_cover_nearly_all(n: int, width: int, rows: int, epoch: int) -> None:
    width = min(width, n - 1)
    batches = plan_windows(n, width, rows, seed=3, epoch=epoch)
    starts = np.concatenate(batches)
    assert all(len(batch) <= rows for batch in batches)
    assert starts.min() >= 0
    assert starts.max() + width + 1 <= n
    predicted = {place for start in starts for place in range(start + 1, start + width + 1)}
    assert len(predicted) >= n - 1 - 2 * width  # what is missing is less than a window at each end


def test_epochs_differ_and_repeat_by_seed() -> None:
    first, again, other = (plan_windows(1000, 10, 4, 1, epoch) for epoch in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert sorted(np.concatenate(first)) != sorted(np.concatenate(other))


def model_of(positions: object) -> DecoderOnly:
    torch.manual_seed(0)
    data = {
        "source": {"kind": "tokens", "vocab_size": 12, "positions": positions},
        "decoder": {
            "d_model": 8,
            "n_layers": 2,
            "attention": {"n_heads": 2} | ({"rotary": {}} if positions == "none" else {}),
            "feed_forward": {"d_ff": 8},
        },
    }
    model = build(config.parse(DecoderOnlySettings, data))
    assert isinstance(model, DecoderOnly)
    return model.eval()


def test_documents_in_a_window_are_as_if_alone() -> None:
    stream = np.array([5, 6, 2, START, 7, 8, 9, 2, START, 3, 4], dtype=np.uint16)
    batch = window_batch(stream, np.array([0]), 10, np.array([3, 8]))
    assert batch.mask is not None
    for positions in ("none", {"kind": "sinusoidal"}, {"kind": "learned", "max_len": 16}):
        model = model_of(positions)
        together = model.states(batch.ids, mask=batch.mask, positions=batch.positions)[0]
        for begin, end in ((0, 3), (3, 8), (8, 10)):
            alone = model.states(batch.ids[:, begin:end])[0]
            torch.testing.assert_close(together[begin:end], alone, atol=1e-5, rtol=1e-5)


def test_attention_across_documents_where_asked() -> None:
    stream = np.array([5, 2, START, 7, 8], dtype=np.uint16)
    batch = window_batch(stream, np.array([0]), 4, None)
    assert batch.mask is None
    assert batch.positions is None
    assert batch.ids.tolist() == [[5, 2, START, 7]]
    assert batch.answers.tolist() == [[2, START, 7, 8]]


def test_window_inside_one_document_needs_no_mask() -> None:
    stream = np.array([START, 7, 8, 9, 7, 2], dtype=np.uint16)
    assert window_batch(stream, np.array([0]), 5, np.array([0])).mask is None
