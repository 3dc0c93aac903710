"""OpenNMT-py: `onmt_train` on a config file, batches by tokens, its own buckets and loop.

Its loop is left as it is; only the method that does one step is wrapped, to look at the clock when it is done.
"""

import tempfile
from pathlib import Path
from typing import Any

import yaml

from benchmarks.training.meter import (
    BETAS,
    CLIP,
    D_FF,
    D_MODEL,
    LR,
    N_HEADS,
    N_LAYERS,
    SMOOTHING,
    Job,
    Meter,
    without_inner_dropout,
)


def train(job: Job) -> None:
    import onmt.trainer
    from onmt.bin.train import _get_parser
    from onmt.bin.train import train as onmt_train

    meter = Meter(job)
    step = onmt.trainer.Trainer._gradient_accumulation

    def timed(self: Any, batches: list[Any], *rest: Any) -> None:
        if not meter.n_parameters:
            meter.look_at(self.model)
            without_inner_dropout(self.model)
        step(self, batches, *rest)
        padding = self.train_loss.padding_idx
        meter.step(sum(int((batch["tgt"][:, 1:] != padding).sum()) for batch in batches))  # without the start

    onmt.trainer.Trainer._gradient_accumulation = timed
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "config.yaml"
        path.write_text(yaml.safe_dump(_config(job, scratch)))
        options, _ = _get_parser().parse_known_args(["-config", str(path)])
        onmt_train(options)


def _config(job: Job, scratch: str) -> dict[str, Any]:
    return {
        "data": {
            "corpus": {"path_src": str(job.folder / "train.source"), "path_tgt": str(job.folder / "train.target")}
        },
        "src_vocab": str(job.folder / "vocab"),
        "share_vocab": True,
        "save_model": f"{scratch}/model",
        "save_checkpoint_steps": 10**6,
        "train_steps": 10**6,
        "batch_type": "tokens",
        "batch_size": job.budget,
        "normalization": "tokens",
        "bucket_size": 32768,
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "position_encoding": True,
        "layers": N_LAYERS,
        "hidden_size": D_MODEL,
        "word_vec_size": D_MODEL,
        "transformer_ff": D_FF,
        "heads": N_HEADS,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "dropout": [job.dropout],
        "attention_dropout": [0.0],
        "label_smoothing": SMOOTHING,
        "optim": "adam",
        "adam_beta1": BETAS[0],
        "adam_beta2": BETAS[1],
        "learning_rate": LR,
        "max_grad_norm": CLIP,
    }
