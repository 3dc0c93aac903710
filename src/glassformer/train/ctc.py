"""What CTC is taught: to say a transcript by any path, and to say the same of two views of one recording.

b rows, t frames, N vocabulary
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.data.tokenizer import END, PAD
from glassformer.decode.ctc import BLANK


def ctc_loss(log_p: Tensor, keep: Tensor | None, target_out: Tensor) -> Tensor:
    """-log p of all paths (b, t, N) that say the transcript, summed; a recording too short for it counts nothing."""
    b, t = log_p.shape[:2]
    lengths = torch.full((b,), t, device=log_p.device) if keep is None else keep.sum(dim=1)
    is_word = (target_out != PAD) & (target_out != END)
    return F.ctc_loss(
        log_p.transpose(0, 1),
        target_out[is_word],
        lengths,
        is_word.sum(dim=1),
        blank=BLANK,
        reduction="sum",
        zero_infinity=True,
    )


def disagreement(log_p: Tensor, keep: Tensor | None) -> Tensor:
    """How far each row is from its other view, half a batch away, which it takes as given; summed over the frames.

    Consistency regularisation (Yao et al., 2024).
    """
    other = torch.cat(log_p.detach().chunk(2)[::-1])
    far = F.kl_div(log_p, other, log_target=True, reduction="none").sum(dim=-1)  # (b, t)
    return (far if keep is None else far.masked_fill(~keep, 0.0)).sum()
