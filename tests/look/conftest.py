"""Small model directories to look at, and one browser for all tests of a process."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from glassformer.data.tokenizer import train_tokenizer
from glassformer.model.settings import AttentionSettings, DecoderOnlySettings, EncoderDecoderSettings, NormSettings
from glassformer.tasks.model_dir import LoadedModel, load_model, save_model
from tests.builders import rough, stack, tokens
from tests.learn.browser import Browser, chromium_or_skip

TEXTS = ["the old man reads a book", "the young woman writes a long letter", "where is the station please"] * 4


def save(folder: Path, task: str, settings: Any) -> LoadedModel:
    """A model with rough weights, whose answers mean nothing but are always the same."""
    torch.manual_seed(0)
    tokenizer = train_tokenizer(TEXTS, "word", 320, sentences=task == "translate")
    save_model(folder, task, rough(settings(tokenizer.vocab_size)), tokenizer, about={"context": 64})
    return load_model(folder)


@pytest.fixture(scope="session")
def translator(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    def settings(n: int) -> EncoderDecoderSettings:
        sides = {"source": tokens(vocab_size=n), "target": tokens(vocab_size=n)}
        return EncoderDecoderSettings(**sides, encoder=stack(n_layers=1), decoder=stack(n_layers=2))

    return save(tmp_path_factory.mktemp("translator"), "translate", settings)


@pytest.fixture(scope="session")
def completer(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """Post-norm, rotary, shared keys: as unlike the translator as can be."""
    attention = AttentionSettings(n_heads=4, n_kv_heads=2)

    def settings(n: int) -> DecoderOnlySettings:
        decoder = stack(attention=attention, norm=NormSettings(kind="rms", place="post"))
        return DecoderOnlySettings(source=tokens(vocab_size=n), decoder=decoder)

    return save(tmp_path_factory.mktemp("completer"), "complete", settings)


@pytest.fixture(scope="session")
def started_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(chromium_or_skip(), tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def browser(started_browser: Browser) -> Browser:
    started_browser.size(1280, 900)
    started_browser.open("about:blank")
    started_browser.events.clear()
    return started_browser
