"""Hugging Face: MarianMTModel with Seq2SeqTrainer, its length-grouped sampler and DataCollatorForSeq2Seq.

Its batches count sentences: as many as give the same real target tokens a step as ours have in the mean.
Grouping by length is not its default (random order is): it wastes less on padding, so it is the stronger peer.
"""

import tempfile
from typing import Any

import torch
from transformers import (
    DataCollatorForSeq2Seq,
    MarianConfig,
    MarianMTModel,
    PreTrainedTokenizerFast,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    TrainerCallback,
)

from benchmarks.corpus import Corpus
from benchmarks.training.meter import BETAS, CLIP, D_FF, D_MODEL, LR, N_HEADS, N_LAYERS, SMOOTHING, Job, Meter
from glassformer.data.tokenizer import END, PAD, START


class Examples(torch.utils.data.Dataset):
    def __init__(self, corpus: Corpus) -> None:
        self.rows = [{"input_ids": source, "labels": target} for source, target in corpus.ids()]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> dict[str, list[int]]:
        return self.rows[i]


class Counting(DataCollatorForSeq2Seq):
    """Their collator, which also notes the real target tokens of each batch in turn."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        batch = super().__call__(*arguments, **options)
        self.counts.append(int((batch["labels"] != -100).sum()))
        return batch


class Timing(TrainerCallback):
    def __init__(self, meter: Meter, counts: list[int]) -> None:
        self.meter, self.counts = meter, counts

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        self.meter.step(self.counts.pop(0))  # the loader may be a batch ahead, never behind


def train(job: Job) -> None:
    corpus = Corpus(job.folder)
    model = MarianMTModel(_config(corpus.tokenizer.vocab_size, job.dropout))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=corpus.tokenizer.core, pad_token="<pad>", bos_token="<s>", eos_token="</s>"
    )
    collate = Counting(tokenizer, model=model)
    collate.counts = []
    meter = Meter(job)
    meter.look_at(model)
    with tempfile.TemporaryDirectory() as scratch:
        arguments = Seq2SeqTrainingArguments(
            output_dir=scratch,
            per_device_train_batch_size=job.rows,
            train_sampling_strategy="group_by_length",
            label_smoothing_factor=SMOOTHING,
            learning_rate=LR,
            adam_beta1=BETAS[0],
            adam_beta2=BETAS[1],
            max_grad_norm=CLIP,
            max_steps=10**6,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        )
        Seq2SeqTrainer(
            model=model,
            args=arguments,
            train_dataset=Examples(corpus),
            data_collator=collate,
            callbacks=[Timing(meter, collate.counts)],
        ).train()


def _config(n_words: int, dropout: float) -> MarianConfig:
    return MarianConfig(
        vocab_size=n_words,
        d_model=D_MODEL,
        encoder_layers=N_LAYERS,
        decoder_layers=N_LAYERS,
        encoder_attention_heads=N_HEADS,
        decoder_attention_heads=N_HEADS,
        encoder_ffn_dim=D_FF,
        decoder_ffn_dim=D_FF,
        activation_function="relu",
        dropout=dropout,
        max_position_embeddings=512,
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        pad_token_id=PAD,
        bos_token_id=START,
        decoder_start_token_id=START,
        eos_token_id=END,
        forced_eos_token_id=None,
        use_cache=False,
    )
