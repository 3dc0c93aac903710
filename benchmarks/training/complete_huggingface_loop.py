"""Hugging Face: GPT2LMHeadModel in a plain loop of one's own, as nanoGPT's: windows drawn at random, fused AdamW."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from benchmarks.training.complete_shape import Shape, read_stream
from benchmarks.training.meter import Job, Meter


def new_model(shape: Shape, n_words: int, dropout: float) -> GPT2LMHeadModel:
    torch.manual_seed(1)
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=n_words,
            n_positions=shape.context,
            n_embd=shape.d_model,
            n_layer=shape.n_layers,
            n_head=shape.n_heads,
            resid_pdrop=dropout,
            embd_pdrop=dropout,
            attn_pdrop=dropout,
            use_cache=False,
            bos_token_id=1,
            eos_token_id=2,
        )
    )


def train(job: Job) -> None:
    shape = Shape.of(job)
    stream, n_words = read_stream(job)
    text = torch.from_numpy(stream)
    model = new_model(shape, n_words, job.dropout).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.1, fused=True)
    meter = Meter(job)
    meter.look_at(model)
    while True:  # the meter ends the process
        starts = torch.randint(len(text) - shape.context, (job.rows,))
        rows = torch.stack([text[i : i + shape.context] for i in starts])
        loss = model(input_ids=rows, labels=rows).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        meter.step(rows.numel())
