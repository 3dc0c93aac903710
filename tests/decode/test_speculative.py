"""The rule of speculation gives exactly the large model's distribution."""

import pytest
import torch

from glassformer.decode.choose import draw
from glassformer.decode.speculative import judge

CASES = {
    "apart": ([0.7, 0.2, 0.1, 0.0], [0.1, 0.2, 0.3, 0.4]),
    "same": ([0.25, 0.25, 0.5, 0.0], [0.25, 0.25, 0.5, 0.0]),
    "no common word": ([0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]),
    "certain": ([0.0, 1.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]),
}


@pytest.mark.parametrize("name", CASES)
def test_judged_tokens_come_from_p(name: str) -> None:
    p, q = (torch.tensor(values, dtype=torch.float64) for values in CASES[name])
    random = torch.Generator().manual_seed(11)
    counts, taken, n = torch.zeros(4), 0, 6000
    for _ in range(n):
        token, had = judge(p, q, int(draw(q, random)), random)
        counts[token] += 1
        taken += had
    # Four standard deviations of a share are at most 0.026 here.
    assert (counts / n).tolist() == pytest.approx(p.tolist(), abs=0.026)
    assert taken / n == pytest.approx(float(torch.minimum(p, q).sum()), abs=0.026)
