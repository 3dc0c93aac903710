"""Glassformer: the real Trainer over the real TranslateJob, as `glassformer train translate --size tiny` runs it."""

import tempfile
from pathlib import Path

import torch

from benchmarks.corpus import Corpus
from benchmarks.training.meter import BETAS, CLIP, LR, SMOOTHING, Job, Meter
from glassformer import config
from glassformer.model import EncoderDecoder, build
from glassformer.model.settings import ModelSettings
from glassformer.sizes import load_size_data
from glassformer.tasks.translate import TranslateJob
from glassformer.train.loop import Trainer
from glassformer.train.machine import keep_memory
from glassformer.train.report import Report
from glassformer.train.run_files import Progress
from glassformer.train.settings import TrainSettings


class TimedReport(Report):
    """The loop tells its report of every step."""

    def __init__(self, folder: Path, meter: Meter) -> None:
        super().__init__(folder, quiet=True)
        self.meter = meter

    def step(self, progress: Progress, loss: float, n_tokens: int, lr: float, gradient_norm: float) -> None:
        super().step(progress, loss, n_tokens, lr, gradient_norm)
        self.meter.step(n_tokens)


def train(job: Job) -> None:
    keep_memory()
    data = Corpus(job.folder).pair_data()
    dropout = {"dropout": job.dropout}
    size = config.merge(
        load_size_data("translate-tiny"),
        {
            "source": {"vocab_size": data.source.tokenizer.vocab_size, **dropout},
            "target": {"vocab_size": data.target.tokenizer.vocab_size, **dropout},
            "encoder": dropout,
            "decoder": dropout,
        },
    )
    torch.manual_seed(1)
    model = build(config.parse(ModelSettings, size, "translate-tiny"))
    assert isinstance(model, EncoderDecoder)
    settings = TrainSettings(
        batch_tokens=job.budget,
        steps=10**6,
        validations=1,
        lr=LR,
        betas=BETAS,
        clip=CLIP,
        label_smoothing=SMOOTHING,
        dropout_epochs=0,  # the full rate from the start, as all others have it
        precision="fp32",
    )
    with tempfile.TemporaryDirectory() as scratch:
        meter = Meter(job)
        meter.look_at(model)
        report = TimedReport(Path(scratch), meter)
        Trainer(TranslateJob(model, data, data, settings), settings, Path(scratch), "speed", report).run()
