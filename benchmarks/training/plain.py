"""The loop that people write around torch.nn.Transformer: batches sorted by length, tied tables, clipping, Adam."""

import math
import random

import torch
from torch import Tensor, nn

from benchmarks.corpus import Corpus
from benchmarks.training.meter import BETAS, CLIP, D_FF, D_MODEL, LR, N_HEADS, N_LAYERS, SMOOTHING, Job, Meter
from glassformer.data.tokenizer import PAD, START

Pair = tuple[list[int], list[int]]


class Model(nn.Module):
    def __init__(self, n_words: int, dropout: float) -> None:
        super().__init__()
        self.table = nn.Embedding(n_words, D_MODEL, padding_idx=PAD)
        nn.init.normal_(self.table.weight, std=D_MODEL**-0.5)
        self.core = nn.Transformer(
            D_MODEL, N_HEADS, N_LAYERS, N_LAYERS, D_FF, dropout, batch_first=True, norm_first=True
        )
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("waves", _waves(300))
        for layer in (*self.core.encoder.layers, *self.core.decoder.layers):
            # The same places of dropout as in the other systems' settings: none on weights and inside feed-forward.
            layer.dropout.p = layer.self_attn.dropout = 0.0
            if isinstance(layer, nn.TransformerDecoderLayer):
                layer.multihead_attn.dropout = 0.0

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.table(ids) * math.sqrt(D_MODEL) + self.waves[: ids.shape[1]])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        padding = source == PAD
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        x = self.core(
            self.embed(source),
            self.embed(target),
            tgt_mask=causal,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return x @ self.table.weight.T


def train(job: Job) -> None:
    corpus = Corpus(job.folder)
    pairs = list(corpus.ids())
    model = Model(corpus.tokenizer.vocab_size, job.dropout)
    model.train()
    loss_of = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=SMOOTHING)
    optimizer = torch.optim.Adam(model.parameters(), lr=LR, betas=BETAS)
    meter = Meter(job)
    meter.look_at(model)
    while True:
        for batch in _batches(pairs, job.budget):
            source, answer = _pad([s for s, _ in batch]), _pad([t for _, t in batch])
            target = _pad([[START, *t[:-1]] for _, t in batch])
            optimizer.zero_grad()
            loss = loss_of(model(source, target).flatten(0, 1), answer.flatten())
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            meter.step(int((answer != PAD).sum()))


def _batches(pairs: list[Pair], budget: int) -> list[list[Pair]]:
    """Sorted by target, then source length; equal lengths in a new order each epoch; batches shuffled."""
    random.shuffle(pairs)
    batches: list[list[Pair]] = [[]]
    widest = 0
    for pair in sorted(pairs, key=lambda pair: (len(pair[1]), len(pair[0]))):
        widest = max(widest, len(pair[0]), len(pair[1]))
        if widest * (len(batches[-1]) + 1) > budget:
            batches.append([])
            widest = max(len(pair[0]), len(pair[1]))
        batches[-1].append(pair)
    random.shuffle(batches)
    return batches


def _pad(rows: list[list[int]]) -> Tensor:
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD)


def _waves(n: int) -> Tensor:
    angles = torch.arange(n)[:, None] * torch.exp(torch.arange(0, D_MODEL, 2) * (-math.log(10000.0) / D_MODEL))
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
