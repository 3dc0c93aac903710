"""Glassformer: the real Trainer over the real CompleteJob, as `glassformer train complete` runs it."""

import tempfile
from pathlib import Path

import torch

from benchmarks.training.complete_shape import Shape, read_stream
from benchmarks.training.meter import Job, Meter
from benchmarks.training.ours import TimedReport
from glassformer import config
from glassformer.data.store import write_store
from glassformer.data.tokenizer import train_tokenizer
from glassformer.model import DecoderOnly, build
from glassformer.model.settings import ModelSettings
from glassformer.sizes import load_size_data
from glassformer.tasks.complete import CompleteJob, CompleteRecipe
from glassformer.tasks.text import TextData, TextTraining
from glassformer.train.loop import Trainer
from glassformer.train.machine import keep_memory


def train(job: Job) -> None:
    keep_memory()
    shape = Shape.of(job)
    stream, n_words = read_stream(job)
    changes = {
        "source": {"vocab_size": n_words, "dropout": job.dropout, "positions": {"max_len": shape.context}},
        "decoder": {
            "d_model": shape.d_model,
            "n_layers": shape.n_layers,
            "dropout": job.dropout,
            "attention": {"n_heads": shape.n_heads, "dropout": job.dropout},
            "feed_forward": {"d_ff": 4 * shape.d_model},
        },
    }
    torch.manual_seed(1)
    model = build(config.parse(ModelSettings, config.merge(load_size_data("gpt-2"), changes), "gpt-2"))
    assert isinstance(model, DecoderOnly)
    settings = TextTraining(
        batch_tokens=job.rows * shape.context, steps=10**6, validations=1, lr=1e-3, dropout_epochs=0, precision="fp32"
    )
    recipe = CompleteRecipe(train=settings, context=shape.context)
    with tempfile.TemporaryDirectory() as scratch:
        tokenizer = train_tokenizer([], "byte", 300)
        data = TextData(write_store(Path(scratch) / "text", [stream.tolist()], n_words), tokenizer)
        meter = Meter(job)
        meter.look_at(model)
        report = TimedReport(Path(scratch), meter)
        Trainer(CompleteJob(model, data, data, recipe), settings, Path(scratch), "speed", report).run()
