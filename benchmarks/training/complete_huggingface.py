"""Hugging Face: GPT2LMHeadModel with Trainer, on windows as wide as the context."""

import tempfile
from typing import Any

import torch
from transformers import GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, default_data_collator

from benchmarks.training.complete_huggingface_loop import new_model
from benchmarks.training.complete_shape import Shape, read_stream
from benchmarks.training.meter import Job, Meter


class Windows(torch.utils.data.Dataset):
    def __init__(self, stream: torch.Tensor, width: int) -> None:
        self.rows = stream[: len(stream) // width * width].view(-1, width)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.rows[i], "labels": self.rows[i]}


class Timing(TrainerCallback):
    def __init__(self, meter: Meter, n_tokens: int) -> None:
        self.meter, self.n_tokens = meter, n_tokens

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        self.meter.step(self.n_tokens)


def train(job: Job) -> None:
    shape = Shape.of(job)
    stream, n_words = read_stream(job)
    model: GPT2LMHeadModel = new_model(shape, n_words, job.dropout)
    meter = Meter(job)
    meter.look_at(model)
    with tempfile.TemporaryDirectory() as scratch:
        arguments = TrainingArguments(
            output_dir=scratch,
            per_device_train_batch_size=job.rows,
            dataloader_drop_last=True,
            learning_rate=1e-3,
            adam_beta2=0.98,
            weight_decay=0.1,
            max_grad_norm=1.0,
            max_steps=10**6,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        )
        Trainer(
            model=model,
            args=arguments,
            train_dataset=Windows(torch.from_numpy(stream), shape.context),
            data_collator=default_data_collator,
            callbacks=[Timing(meter, job.rows * shape.context)],
        ).train()
