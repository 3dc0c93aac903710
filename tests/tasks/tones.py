"""A language of two words, "low" and "high", each a tone, that a small model learns in seconds."""

from pathlib import Path
from typing import Any

import numpy as np

from glassformer import config
from glassformer.data.audio import Series
from glassformer.tasks.transcribe import TranscribeRecipe
from tests.data.sounds import noise, tone, write_sound

RATE = 8000
WORDS = {"low": 300.0, "high": 1500.0}


def say(text: str, seed: int = 0) -> Series:
    random = np.random.default_rng(seed)
    parts = [np.zeros(round(RATE * 0.1), dtype=np.float32)]
    for word in text.split():
        parts.append(tone(random.uniform(0.15, 0.2), WORDS[word] * random.uniform(0.9, 1.1), RATE, 0.3))
        parts.append(np.zeros(round(RATE * 0.1), dtype=np.float32))
    wave = np.concatenate(parts)
    return (wave + noise(len(wave) / RATE, RATE, 0.003, seed)[: len(wave)]).astype(np.float32)


def sentences(n: int, seed: int = 0) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(list(WORDS), size=random.integers(1, 4))) for _ in range(n)]


def write_recordings(folder: Path, n: int = 60, seed: int = 0) -> Path:
    """A list of n recordings."""
    folder.mkdir(exist_ok=True)
    lines = []
    for i, text in enumerate(sentences(n, seed)):
        write_sound(folder / f"{i}.wav", say(text, seed * 1000 + i), RATE)
        lines.append(f"{i}.wav\t{text}\n")
    (folder / "list.tsv").write_text("".join(lines))
    return folder / "list.tsv"


def tiny_recipe(**changes: Any) -> TranscribeRecipe:
    stack = {"d_model": 32, "attention": {"n_heads": 2}, "feed_forward": {"d_ff": 64}, "dropout": 0.0}
    data = {
        "size": "tiny",
        "dropout": 0.0,
        "model": {"encoder": {**stack, "n_layers": 2}, "decoder": {**stack, "n_layers": 1}},
        "tokenizer": {"kind": "word", "size": 300},
        "train": {"steps": 12, "batch_tokens": 200, "validations": 3, "n_translated": 8, "lr": 5e-3},
    }
    return config.parse(TranscribeRecipe, config.merge(data, changes))  # type: ignore[no-any-return]
