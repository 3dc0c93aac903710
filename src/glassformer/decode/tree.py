"""A search that may only say certain sentences: they stand in a tree, where equal beginnings share a branch."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from glassformer.decode.steps import Steps


@dataclass
class Tree:
    """What may follow here, by token."""

    branches: dict[int, "Tree"] = field(default_factory=dict)

    def add(self, ids: Iterable[int]) -> None:
        node = self
        for token in ids:
            node = node.branches.setdefault(token, Tree())


def build_tree(sentences: Iterable[list[int]], end: int) -> Tree:
    tree = Tree()
    for ids in sentences:
        tree.add([*ids, end])
    return tree


class TreeSteps:
    """Steps whose scores are log-probabilities, -inf for all that no sentence goes on with."""

    def __init__(self, steps: Steps, tree: Tree, n_rows: int, normalise: bool = True) -> None:
        self.steps, self.normalise = steps, normalise
        self.nodes: list[Tree | None] = [tree] * n_rows
        self.begun = False

    def step(self, ids: Tensor) -> Tensor:
        scores = self.steps.step(ids)
        scores = scores.float().log_softmax(dim=-1) if self.normalise else scores
        if self.begun:
            fed = ids[:, -1].tolist()
            self.nodes = [None if n is None else n.branches.get(i) for n, i in zip(self.nodes, fed, strict=True)]
        self.begun = True
        allowed = torch.full_like(scores, -math.inf)
        for row, node in enumerate(self.nodes):
            tokens = list(node.branches) if node is not None else []
            allowed[row, tokens] = scores[row, tokens]
        return allowed

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        self.steps.select(rows, sentences)
        self.nodes = [self.nodes[i] for i in rows.tolist()]
