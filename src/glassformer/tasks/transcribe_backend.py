"""The engine of a speech model that we trained: features in, hypotheses out, by attention and CTC together."""

import numpy as np
import torch
from torch import Tensor

from glassformer.data.batch import by_length, cut
from glassformer.data.features import pad_features
from glassformer.data.tokenizer import END, START
from glassformer.decode.beam import beam_search
from glassformer.decode.ctc import CtcPrefixes, JointSteps
from glassformer.decode.options import DecodeOptions, Hypothesis
from glassformer.decode.steps import Steps
from glassformer.decode.tree import Tree, TreeSteps
from glassformer.model import EncoderDecoder, Memory
from glassformer.tasks.backend import DecoderSteps, fit_options

FRAMES = 4096  # of features in a batch


class TranscribeBackend:
    """A model with a CTC head, or without one where `ctc` is 0."""

    def __init__(self, model: EncoderDecoder, ctc: float, batch_frames: int = FRAMES) -> None:
        self.model, self.ctc, self.batch_frames = model.eval(), ctc if model.ctc is not None else 0.0, batch_frames
        self.name = "torch fp32"

    @torch.inference_mode()
    def generate(
        self, features: list[Tensor], options: DecodeOptions, tree: Tree | None = None
    ) -> list[list[Hypothesis]]:
        """For each series of features (n, f) its answers, best first; with a tree, only answers that it holds."""
        answers: list[list[Hypothesis]] = [[] for _ in features]
        if not features:
            return answers
        lengths = np.array([len(f) for f in features])
        order = by_length([lengths], np.arange(len(features)))
        for rows in cut(order, lengths[order], self.batch_frames):
            found = self._generate([features[i] for i in rows], options, tree)
            for row, hypotheses in zip(rows.tolist(), found, strict=True):
                answers[row] = hypotheses
        return answers

    def _generate(self, features: list[Tensor], options: DecodeOptions, tree: Tree | None) -> list[list[Hypothesis]]:
        model, device = self.model, next(self.model.parameters()).device
        batch, keep = pad_features(features)
        memory = model.encode(batch.to(device), None if keep is None else keep.to(device))
        prefix = torch.full((len(features), 1), START, device=device)
        options = fit_options(model, 0, options)
        steps = self.steps(memory, options)
        if tree is not None:
            steps = TreeSteps(steps, tree, len(features) * options.beam, normalise=not self.ctc)
        return beam_search(steps, prefix, options, END, normalise=not self.ctc and tree is None)

    def steps(self, memory: Memory, options: DecodeOptions) -> Steps:
        """The decoder on its way, with CTC where the model has it: then the scores are log-probabilities already."""
        model = self.model
        steps: Steps = DecoderSteps(model, memory, options.beam, 1 + options.max_len)
        if self.ctc and model.ctc is not None:
            log_p = model.ctc(memory.x).float().log_softmax(dim=-1)
            steps = JointSteps(steps, CtcPrefixes(log_p, memory.keep, options.beam, END), self.ctc)
        return steps
