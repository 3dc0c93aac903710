"""The tree of a beam search, seen from between the search and the decoder: neither knows that it is watched."""

import math
from dataclasses import dataclass, replace

from torch import Tensor

from glassformer.decode.beam import beam_search
from glassformer.decode.options import DecodeOptions, Hypothesis
from glassformer.decode.steps import Steps


@dataclass(frozen=True)
class Node:
    """One token that the beam held: its parent in the tree, its log-probability, and that of all up to it."""

    parent: int  # -1 is the beginning
    token: int
    log_p: float
    total: float
    step: int
    ended: bool = False


class WatchedSteps:
    """Steps of one sentence's search, with a record of what was fed and what came of it."""

    def __init__(self, steps: Steps, normalise: bool = True) -> None:
        """Scores that are log-probabilities already are not to be normalised again, as in the search itself."""
        self.steps, self.normalise = steps, normalise
        self.nodes: list[Node] = []
        self.rows: list[int] = []  # the node that each row of the beam has come to
        self.children: dict[int, Tensor] = {}  # node -> log-probabilities (N) of what may follow it
        self.n_steps = 0

    def step(self, ids: Tensor) -> Tensor:
        scores = self.steps.step(ids)
        if self.n_steps == 0:
            self.rows = [-1] * len(ids)
        else:
            self.rows = [
                self._grow(parent, token) for parent, token in zip(self.rows, ids[:, -1].tolist(), strict=True)
            ]
        for row, node in enumerate(self.rows):
            self.children[node] = scores[row].float().log_softmax(dim=-1) if self.normalise else scores[row].float()
        self.n_steps += 1
        return scores

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        assert sentences is None or len(sentences) == 1, "One sentence is watched at a time."
        self.steps.select(rows, sentences)
        self.rows = [self.rows[row] for row in rows.tolist()]

    def finish(self, found: list[Hypothesis], end: int) -> list[Node]:
        """The whole tree: what was held, and where the answers ended."""
        for hypothesis in found:
            node = -1
            for token in hypothesis.ids:
                node = self._find(node, token)
            if node in self.children:  # else it ended because there was no room for more
                self._grow(node, end, ended=True)
        return self._possible()

    def _possible(self) -> list[Node]:
        """Without what rules forbid, which fills a beam where they leave too little; nothing that counts follows it."""
        places = {-1: -1}
        for i, node in enumerate(self.nodes):
            if math.isfinite(node.total):
                places[i] = len(places) - 1
        return [replace(self.nodes[i], parent=places[self.nodes[i].parent]) for i in places if i >= 0]

    def _find(self, parent: int, token: int) -> int:
        for i, node in enumerate(self.nodes):
            if (node.parent, node.token) == (parent, token):
                return i
        return self._grow(parent, token)  # the last token of an answer that had no room for its end

    def _grow(self, parent: int, token: int, ended: bool = False) -> int:
        log_p = float(self.children[parent][token])
        before = 0.0 if parent < 0 else self.nodes[parent].total
        depth = 1 if parent < 0 else self.nodes[parent].step + 1
        self.nodes.append(Node(parent, token, log_p, before + log_p, depth, ended))
        return len(self.nodes) - 1


@dataclass(frozen=True)
class Watched:
    """The answer of a search, its tree, and the answer's way through it."""

    ids: list[int]
    nodes: list[Node]
    path: list[int]
    score: float = 0.0  # as the search gives it


def watched_search(steps: Steps, start: Tensor, options: DecodeOptions, end: int, normalise: bool = True) -> Watched:
    """Beam search for one sentence, as it is done unseen."""
    watched = WatchedSteps(steps, normalise)
    found = beam_search(watched, start, options, end, normalise)[0]
    ids = found[0].ids if found else []
    nodes = watched.finish(found, end)
    return Watched(ids, nodes, best_path(nodes, [*ids, end]), found[0].score if found else 0.0)


def best_path(nodes: list[Node], ids: list[int]) -> list[int]:
    """The nodes of one answer, from its first token on."""
    path, at = [], -1
    for token in ids:
        at = next((i for i, node in enumerate(nodes) if (node.parent, node.token) == (at, token)), -2)
        if at < 0:
            break
        path.append(at)
    return path
