"""Two inputs side by side: where the difference between them is at work."""

from typing import Any

import torch

from glassformer.look.readings.patching import patch_stream
from glassformer.look.scene import Scene, score_answers
from glassformer.model import DecoderOnly, EncoderDecoder

MOST_PASSES = 600  # of the model; a picture that takes longer than to look at it is none
LENGTHS = "The two have different lengths, so that the stream of one cannot be put into the other place by place."


def compare(first: Scene, second: Scene) -> dict[str, Any]:
    """How likely each input makes the second's answer, and which parts of the stream carry it over.

    The map tells, for each layer and position, how likely the first input's pass makes the second's answer when its
    stream there is replaced by the second's: 0 is no more than before, 1 as likely as for the second input itself.
    Where there is no map, it is said why.
    """
    model, writes = first.model, isinstance(first.model, DecoderOnly) and len(first.subject.answers) > 1
    stack = "decoder" if isinstance(model, DecoderOnly) else "encoder"
    shapes = [scene.seen[f"{stack}.blocks.0.self_residual.before"].shape for scene in (first, second)]
    alike = first.subject.n_prompt == second.subject.n_prompt if writes else shapes[0] == shapes[1]
    found: dict[str, Any] = {"own": None, "foreign": None, "stack": stack, "map": None, "why": LENGTHS}
    if not alike and not writes and not isinstance(model, EncoderDecoder) and len(second.subject.answers) > 1:
        return found  # answers at positions that the other does not have
    own, foreign = score_of(second, second), score_of(first, second)
    n_layers = sum(name.startswith(stack) and name.endswith("self_residual.before") for name in second.seen.names)
    n_passes = n_layers * shapes[1][1]
    why = None
    if first.subject.join is not None or second.subject.join is not None:  # such streams are not whole
        why = "The sound has too many positions to put the stream of one into the other place by place."
    elif not alike:
        why = LENGTHS
    elif abs(own - foreign) < 1e-6:
        why = "Both inputs make this answer equally likely, so that there is no difference to find a place for."
    elif n_passes > MOST_PASSES:
        why = f"It would take {n_passes:,} runs of the model to find out; look does at most {MOST_PASSES}."
    found |= {"own": own, "foreign": foreign, "why": why}
    if why is not None:
        return found
    scores, without = patch_stream(model, second.seen, lambda: score_of(first, second), stack)
    shares = (scores - without) / (own - without)
    return found | {"map": [[float(f"{v:.6g}") for v in row] for row in shares.tolist()]}


@torch.no_grad()
def score_of(given: Scene, wanted: Scene) -> float:
    """How likely one scene's answer is after another's input: its mean log-probability."""
    model, inputs, answers = given.model, given.subject.inputs, wanted.subject.answers
    if isinstance(model, EncoderDecoder):
        inputs = (inputs[0], *wanted.subject.inputs[1:])
    elif isinstance(model, DecoderOnly) and len(answers) > 1:  # its answer stands in the same row as its input
        prompt, n_own = given.subject.n_prompt, wanted.subject.n_prompt
        first, second = inputs[0], wanted.subject.inputs[0]
        assert first is not None
        assert second is not None
        inputs = (torch.cat([first[:, : prompt + 1], second[:, n_own + 1 :]], dim=1),)
        answers = [-1] * prompt + answers[n_own:]
    return score_answers(model(*inputs), answers, wanted.subject.kind)
