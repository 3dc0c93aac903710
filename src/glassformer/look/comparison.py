"""Two inputs side by side: where the difference between them is at work."""

from typing import Any

import torch

from glassformer.look.readings.patching import patch_stream
from glassformer.look.scene import Scene, mean_log_p
from glassformer.model import DecoderOnly

MOST_PASSES = 600  # of the model; a picture that takes longer than to look at it is none


def compare(first: Scene, second: Scene) -> dict[str, Any]:
    """How likely each input makes the second's answer, and which parts of the stream carry it over.

    The map tells, for each layer and position, how likely the first input's pass makes the second's answer when its
    stream there is replaced by the second's: 0 is no more than before, 1 as likely as for the second input itself.
    """
    own, foreign = score_of(second, second), score_of(first, second)
    stack = "decoder" if isinstance(first.model, DecoderOnly) else "encoder"
    found: dict[str, Any] = {"own": own, "foreign": foreign, "stack": stack, "map": None}
    shapes = [scene.seen[f"{stack}.blocks.0.self_residual.before"].shape for scene in (first, second)]
    if isinstance(first.model, DecoderOnly):
        alike = first.subject.n_prompt == second.subject.n_prompt
    else:
        alike = shapes[0] == shapes[1]
    n_layers = sum(name.startswith(stack) and name.endswith("self_residual.before") for name in second.seen.names)
    if not alike or abs(own - foreign) < 1e-6 or n_layers * shapes[1][1] > MOST_PASSES:
        return found
    scores, without = patch_stream(first.model, second.seen, lambda: score_of(first, second), stack)
    shares = (scores - without) / (own - without)
    return found | {"map": [[float(f"{v:.6g}") for v in row] for row in shares.tolist()]}


@torch.no_grad()
def score_of(given: Scene, wanted: Scene) -> float:
    """The mean log-probability of one scene's answer after another's input."""
    inputs, answers = (given.subject.inputs[0], *wanted.subject.inputs[1:]), wanted.subject.answers
    if isinstance(given.model, DecoderOnly):  # its answer stands in the same row as its input
        prompt, n_own = given.subject.n_prompt, wanted.subject.n_prompt
        row = [inputs[0][:, : prompt + 1], wanted.subject.inputs[0][:, n_own + 1 :]]
        inputs, answers = (torch.cat(row, dim=1),), [-1] * prompt + answers[n_own:]
    return mean_log_p(given.model(*inputs), answers)
