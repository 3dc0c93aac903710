"""Small models of every task, from a fixed seed: what they say means nothing, but it is always the same."""

from pathlib import Path

import torch

from glassformer import config
from glassformer.data.tokenizer import Marks, Tokenizer, train_tokenizer, with_mask
from glassformer.model import DecoderOnly, EncoderOnly, build
from glassformer.model.settings import DecoderOnlySettings, EncoderOnlySettings
from glassformer.tasks.classifier import Classifier
from glassformer.tasks.completer import Completer
from glassformer.tasks.filler import Filler
from glassformer.tasks.model_dir import LoadedModel
from tests.tasks.test_chat import TEMPLATE
from tests.tasks.test_marks import foreign

TEXTS = ["the cat sat on the mat and the dog", "ein Hündchen läuft über die Straße €", "1 2 3 4 5 6"]
STACK = {"d_model": 16, "n_layers": 2, "attention": {"n_heads": 2, "rotary": {}}, "feed_forward": {"d_ff": 16}}


def decoder(vocab_size: int) -> DecoderOnly:
    torch.manual_seed(1)
    data = {"source": {"kind": "tokens", "vocab_size": vocab_size, "positions": "none"}, "decoder": STACK}
    model = build(config.parse(DecoderOnlySettings, data))
    assert isinstance(model, DecoderOnly)
    for parameter in model.parameters():
        parameter.data.mul_(3)  # far from uniform
    return model.eval()


def encoder(vocab_size: int, head: dict[str, object]) -> EncoderOnly:
    torch.manual_seed(2)
    data = {
        "source": {"kind": "tokens", "vocab_size": vocab_size, "positions": "none"},
        "encoder": STACK,
        "head": head,
    }
    model = build(config.parse(EncoderOnlySettings, data))
    assert isinstance(model, EncoderOnly)
    return model.eval()


def picture_classifier(path: Path) -> Classifier:
    torch.manual_seed(3)
    data = {
        "source": {"kind": "patches", "height": 8, "width": 8, "n_channels": 3, "patch": 4},
        "encoder": {**STACK, "attention": {"n_heads": 2}},
        "head": {"kind": "class", "n_classes": 2},
    }
    model = build(config.parse(EncoderOnlySettings, data))
    about = {"labels": {"kind": "class", "names": ["dark", "light"]}, "input": "pictures"}
    return Classifier(LoadedModel(path, "classify", model.eval(), None, None, about))


def series_classifier(path: Path) -> Classifier:
    torch.manual_seed(4)
    data = {
        "source": {"kind": "vectors", "n_features": 3},
        "encoder": STACK,
        "head": {"kind": "class", "n_classes": 2},
    }
    model = build(config.parse(EncoderOnlySettings, data))
    about = {"labels": {"kind": "class", "names": ["up", "down"]}, "input": "vectors", "n_features": 3}
    return Classifier(LoadedModel(path, "classify", model.eval(), None, None, about))


def words() -> Tokenizer:
    return train_tokenizer(TEXTS * 3, "bpe", 300, sentences=False)


def plain_completer(path: Path, context: int = 200) -> Completer:
    tokenizer = words()
    about = {"context": context}
    return Completer(LoadedModel(path, "complete", decoder(tokenizer.vocab_size), tokenizer, tokenizer, about))


def chat_completer(path: Path) -> Completer:
    tokenizer = foreign(Marks(None, (257,), TEMPLATE))
    return Completer(LoadedModel(path, "complete", decoder(258), tokenizer, tokenizer, {"context": 512}))


def filler(path: Path) -> Filler:
    tokenizer = with_mask(words())
    model = encoder(tokenizer.vocab_size, {"kind": "token"})
    return Filler(LoadedModel(path, "fill", model, tokenizer, tokenizer, {}))


def classifier(path: Path) -> Classifier:
    tokenizer = words()
    about = {"labels": {"kind": "class", "names": ["good", "bad"]}}
    model = encoder(tokenizer.vocab_size, {"kind": "class", "n_classes": 2})
    return Classifier(LoadedModel(path, "classify", model, tokenizer, tokenizer, about))
