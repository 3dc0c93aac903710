"""eole: `eole train` on a config file, batches by tokens, its own buckets and loop.

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
    import eole.trainer
    from eole.bin.run.train import Train, _get_parser

    meter = Meter(job)
    step = eole.trainer.Trainer._train_step

    def timed(self: Any, batches: list[Any], *rest: Any, **options: Any) -> None:
        if not meter.n_parameters:
            meter.look_at(self.model)
            without_inner_dropout(self.model)
        step(self, batches, *rest, **options)
        padding = self.train_loss.padding_idx
        meter.step(sum(int((batch["tgt"][:, 1:] != padding).sum()) for batch in batches))  # without the start

    eole.trainer.Trainer._train_step = timed
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "config.yaml"
        path.write_text(yaml.safe_dump(_config(job, scratch)))
        Train.run(_get_parser().parse_args(["--config", str(path)]))


def _config(job: Job, scratch: str) -> dict[str, Any]:
    return {
        "data": {
            "corpus": {"path_src": str(job.folder / "train.source"), "path_tgt": str(job.folder / "train.target")}
        },
        "src_vocab": str(job.folder / "vocab"),
        "tgt_vocab": str(job.folder / "vocab"),
        "share_vocab": True,
        "save_data": scratch,
        "training": {
            "model_path": f"{scratch}/model",
            "save_checkpoint_steps": 10**6,
            "train_steps": 10**6,
            "batch_type": "tokens",
            "batch_size": job.budget,
            "normalization": "tokens",
            "bucket_size": 32768,
            "compute_dtype": "fp32",
            "dropout": [job.dropout],
            "attention_dropout": [0.0],
            "label_smoothing": SMOOTHING,
            "optim": "adam",
            "adam_beta1": BETAS[0],
            "adam_beta2": BETAS[1],
            "learning_rate": LR,
            "max_grad_norm": CLIP,
        },
        "model": {
            "architecture": "transformer",
            "layers": N_LAYERS,
            "hidden_size": D_MODEL,
            "heads": N_HEADS,
            "transformer_ff": D_FF,
            "mlp_activation_fn": "relu",
            "add_qkvbias": True,
            "add_final_linear_bias": True,
            "add_ffnbias": True,
            "share_embeddings": True,
            "share_decoder_embeddings": True,
            "embeddings": {"word_vec_size": D_MODEL, "position_encoding_type": "SinusoidalInterleaved"},
        },
    }
