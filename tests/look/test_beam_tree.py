"""The tree is what the search did, and watching does not change it."""

import torch

from glassformer.data.tokenizer import END, START
from glassformer.decode.beam import beam_search
from glassformer.decode.options import DecodeOptions
from glassformer.look.beam_tree import WatchedSteps, best_path
from glassformer.model import EncoderDecoder
from glassformer.tasks.backend import DecoderSteps
from tests.builders import encoder_decoder, random_ids


def search(model: EncoderDecoder, watch: bool, max_len: int = 8) -> tuple[list, WatchedSteps | None]:
    options = DecodeOptions(beam=3, nbest=3, max_len=max_len)
    with torch.inference_mode():
        steps = DecoderSteps(model, model.encode(random_ids(1, 5, seed=4)), 3, max_len + 1)
        watched = WatchedSteps(steps) if watch else None
        return beam_search(watched or steps, torch.tensor([[START]]), options, END)[0], watched


def test_a_watched_search_is_the_search_and_its_tree_has_every_answer() -> None:
    model = encoder_decoder()
    for max_len in (3, 8):
        plain, _ = search(model, watch=False, max_len=max_len)
        found, watched = search(model, watch=True, max_len=max_len)
        assert found == plain
        assert watched is not None
        nodes = watched.finish(found, END)
        for hypothesis in found:
            ended = len(hypothesis.ids) < max_len
            path = best_path(nodes, [*hypothesis.ids, END] if ended else hypothesis.ids)
            assert len(path) == len(hypothesis.ids) + ended
            total = nodes[path[-1]].total
            assert (
                total / len(path) == torch.tensor(hypothesis.score).item()
                or abs(total / len(path) - hypothesis.score) < 1e-5
            )
            assert sum(nodes[i].log_p for i in path) - total < 1e-5
            assert nodes[path[-1]].ended is ended
        for i, node in enumerate(nodes):
            assert node.parent < i
            assert node.step == (1 if node.parent < 0 else nodes[node.parent].step + 1)
        assert max(sum(not n.ended and n.step == s for n in nodes) for s in range(1, max_len)) <= 3 * 2


def test_the_probabilities_of_the_tree_are_the_model_s() -> None:
    model = encoder_decoder()
    found, watched = search(model, watch=True)
    assert watched is not None
    nodes = watched.finish(found, END)
    path = best_path(nodes, found[0].ids)
    with torch.no_grad():
        logits = model(random_ids(1, 5, seed=4), torch.tensor([[START, *found[0].ids]]))[0]
    for place, node in enumerate(path):
        wanted = float(logits[place].log_softmax(-1)[nodes[node].token])
        assert abs(nodes[node].log_p - wanted) < 1e-4
    assert best_path(nodes, [*found[0].ids, 28, 28]) == path or len(best_path(nodes, [28] * 20)) < 20
