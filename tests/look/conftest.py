"""Small model directories of every task to look at."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from glassformer import config
from glassformer.data.features import FeatureSettings
from glassformer.data.labels import Labels
from glassformer.data.tokenizer import Tokenizer, train_tokenizer, with_mask
from glassformer.look.scene import Scene, look_at
from glassformer.look.subject import LookOptions
from glassformer.model.settings import (
    AttentionSettings,
    ClassHeadSettings,
    DecoderOnlySettings,
    EncoderDecoderSettings,
    EncoderOnlySettings,
    FeedForwardSettings,
    FramesSettings,
    ModelSettings,
    NormSettings,
    PatchesSettings,
    RegressionHeadSettings,
    RotarySettings,
    TokenHeadSettings,
    VectorsSettings,
)
from glassformer.tasks.model_dir import LoadedModel, load_model, save_model
from tests.builders import rough, stack, tokens
from tests.data.sounds import speechlike, write_sound
from tests.tasks.tones import RATE, say

TEXTS = ["the old man reads a book", "the young woman writes a long letter", "where is the station please"] * 4
OPTIONS = LookOptions(beam=2, max_tokens=4)


def tokenizer_of(sentences: bool = True) -> Tokenizer:
    return train_tokenizer(TEXTS, "word", 320, sentences=sentences)


def save(folder: Path, task: str, settings: ModelSettings, words: Tokenizer | None, **about: Any) -> LoadedModel:
    """A model with rough weights, whose answers mean nothing but are always the same."""
    save_model(folder, task, rough(settings), words, about={"context": 64, **about})
    return load_model(folder)


@pytest.fixture(scope="session")
def translator(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    words = tokenizer_of()
    sides = {side: tokens(vocab_size=words.vocab_size) for side in ("source", "target")}
    settings = EncoderDecoderSettings(**sides, encoder=stack(n_layers=1), decoder=stack(n_layers=2))
    return save(tmp_path_factory.mktemp("translator"), "translate", settings, words)


@pytest.fixture(scope="session")
def completer(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """Post-norm and shared keys: as unlike the translator as can be."""
    words, attention = tokenizer_of(sentences=False), AttentionSettings(n_heads=4, n_kv_heads=2)
    decoder = stack(attention=attention, norm=NormSettings(kind="rms", place="post"))
    settings = DecoderOnlySettings(source=tokens(vocab_size=words.vocab_size), decoder=decoder)
    return save(tmp_path_factory.mktemp("completer"), "complete", settings, words)


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """Turned queries and keys, gates, and hardly a bias."""
    words, attention = tokenizer_of(sentences=False), AttentionSettings(n_heads=4, bias="v", rotary=RotarySettings())
    decoder = stack(
        attention=attention, feed_forward=FeedForwardSettings(d_ff=24, activation="silu", gated=True, bias=False)
    )
    settings = DecoderOnlySettings(source=tokens(vocab_size=words.vocab_size, positions=None), decoder=decoder)
    return save(tmp_path_factory.mktemp("llama"), "complete", settings, words)


@pytest.fixture(scope="session")
def filler(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    words = with_mask(tokenizer_of(sentences=False))
    source = tokens(vocab_size=words.vocab_size, n_types=2, norm=NormSettings())
    settings = EncoderOnlySettings(source=source, encoder=stack(), head=TokenHeadSettings(transform="gelu", bias=True))
    return save(tmp_path_factory.mktemp("filler"), "fill", settings, words)


def classifier(folder: Path, labels: Labels, decoder: bool = False) -> LoadedModel:
    words, n = tokenizer_of(), labels.n_out
    source = tokens(vocab_size=words.vocab_size)
    head: Any = RegressionHeadSettings() if labels.kind == "number" else ClassHeadSettings(n_classes=n)
    about = {"labels": config.to_data(labels), "input": "text", "n_texts": 1}
    settings: ModelSettings = (
        DecoderOnlySettings(source=source, decoder=stack(), head=head, tie_output=False)
        if decoder
        else EncoderOnlySettings(source=source, encoder=stack(), head=head, tie_output=False)
    )
    return save(folder, "classify", settings, words, **about)


@pytest.fixture(scope="session")
def recogniser(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    words = tokenizer_of()
    settings = EncoderDecoderSettings(
        source=FramesSettings(n_features=8, strides=(2, 2), dropout=0.0),
        target=tokens(vocab_size=words.vocab_size),
        encoder=stack(),
        decoder=stack(),
        tie_source_target=False,
        ctc=TokenHeadSettings(),
    )
    features = FeatureSettings(n_features=8, n_mels=8, rate=RATE, n_fft=256)
    return save(
        tmp_path_factory.mktemp("recogniser"), "transcribe", settings, words, features=config.to_data(features), ctc=0.3
    )


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A model of pictures in colour, and two of them beside it."""
    return pictures_of(tmp_path_factory.mktemp("pictures"), PatchesSettings(height=8, width=12, patch=4))


def pictures_of(folder: Path, source: PatchesSettings) -> LoadedModel:
    dice = np.random.default_rng(0)
    for i in range(2):
        Image.fromarray(dice.integers(0, 256, (8, 12, 3), dtype=np.uint8)).save(folder / f"{i}.png")
    head = ClassHeadSettings(n_classes=3, pooling="first")
    settings = EncoderOnlySettings(source=source, encoder=stack(), head=head, tie_output=False)
    labels = config.to_data(Labels("class", ("cat", "dog", "hen")))
    use = {"mean": [0.4, 0.5, 0.6], "std": [0.2, 0.25, 0.3]}
    return save(folder, "classify", settings, None, labels=labels, input="pictures", pictures=use)


@pytest.fixture(scope="session")
def gestures(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A model of series of three numbers a step, and a file of two such series."""
    folder, dice = tmp_path_factory.mktemp("gestures"), np.random.default_rng(0)
    np.savez(folder / "gestures.npz", x=dice.normal(size=(13, 3)), lengths=[7, 6])
    source, head = VectorsSettings(n_features=3, dropout=0.0), ClassHeadSettings(n_classes=2)
    settings = EncoderOnlySettings(source=source, encoder=stack(), head=head, tie_output=False)
    labels = config.to_data(Labels("class", ("wave", "point")))
    return save(folder, "classify", settings, None, labels=labels, input="vectors", n_features=3)


@pytest.fixture(scope="session")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """One that knows many languages."""
    from glassformer.exchange.importing import import_model
    from tests.exchange.test_whisper import N_ROWS, theirs, write_openai, write_ranks  # takes its time to load

    folder = tmp_path_factory.mktemp("whisper")
    write_ranks(folder / "multilingual.tiktoken")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("glassformer.exchange.whisper.MULTILINGUAL", N_ROWS)  # real ones have many more words
        import_model(write_openai(theirs(), folder / "small.pt"), folder / "ears")
    return load_model(folder / "ears")


@contextmanager
def believing() -> Iterator[None]:
    """A Whisper of lottery weights says unlikely things, which are not to be drawn again and again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("glassformer.tasks.whisper.TEMPERATURES", (0.0,))
        patch.setattr("glassformer.tasks.whisper.LEAST_AVERAGE", -1e9)
        yield


@dataclass(frozen=True)
class Kind:
    """Two inputs of a task, seen through."""

    task: str
    places: list[str]  # texts, or names of files
    scenes: list[Scene]


@pytest.fixture(scope="session")
def kinds(
    translator: LoadedModel,
    completer: LoadedModel,
    filler: LoadedModel,
    recogniser: LoadedModel,
    pictures: LoadedModel,
    gestures: LoadedModel,
    whisper: LoadedModel,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Kind]:
    """Every kind of model that look shows."""
    folder = tmp_path_factory.mktemp("kinds")
    for name in ("low high", "high"):
        write_sound(folder / f"{name}.wav", say(name), RATE)
    for seconds in (1.0, 4.0):  # with all positions, and with joined ones
        write_sound(folder / f"{seconds}.wav", speechlike(seconds))

    def texts(loaded: LoadedModel, *given: str) -> Kind:
        return Kind(loaded.task, list(given), [look_at(loaded, text, OPTIONS) for text in given])

    good = Labels("class", ("good", "bad", "neither"))
    many, number = Labels("classes", ("old", "young", "long")), Labels("number")
    found = {
        "translate": texts(translator, "the old man reads a book", "the old woman reads a book"),
        "complete": texts(completer, "where is the station", "the young woman"),
        "fill": texts(filler, "the old ___ reads a book", "the young ___ reads a book"),
        "classify": texts(classifier(folder / "class", good), TEXTS[0], TEXTS[2]),
        "classify_by_decoder": texts(classifier(folder / "decoder", good, decoder=True), TEXTS[0], TEXTS[2]),
        "choices": texts(classifier(folder / "many", many), TEXTS[0], TEXTS[1]),
        "number": texts(classifier(folder / "number", number), TEXTS[0], "the old man reads a letter"),
        "transcribe": texts(recogniser, str(folder / "low high.wav"), str(folder / "high.wav")),
    }
    with believing():
        heard = texts(whisper, *(str(folder / f"{seconds}.wav") for seconds in (1.0, 4.0)))
    return found | {
        "picture": texts(pictures, *(str(pictures.path / f"{i}.png") for i in range(2))),
        "series": texts(gestures, *(f"{gestures.path / 'gestures.npz'}:{i}" for i in (1, 2))),
        "whisper": heard,
    }
