"""Trained models become classifiers: a new head on an encoder, GPT's way on a language model, parts held fast."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

import glassformer
from glassformer import config
from glassformer.data.framing import Framing
from glassformer.data.labelled_batch import LabelledBatch, TextExamples, text_inputs
from glassformer.data.labels import Labels
from glassformer.data.tokenizer import Tokenizer, train_tokenizer
from glassformer.errors import UserError
from glassformer.model import DecoderOnly, EncoderOnly, build
from glassformer.model.settings import EmbeddingHeadSettings, EncoderOnlySettings
from glassformer.sizes import load_size
from glassformer.tasks.classifier import Classifier
from glassformer.tasks.classify import ClassifyJob, ClassifyRecipe
from glassformer.tasks.classify_model import load_start, tuned_model, with_head
from glassformer.tasks.model_dir import load_model, save_model
from tests.tasks.labelled import chases, pairs, train, write

LABELS = Labels("class", ("does", "suffers"))
SMALL = ["d_model=32", "n_layers=2", "attention.n_heads=2", "feed_forward.d_ff=48", "dropout=0.0"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer((text for text, _ in chases()), "word", 400)


def saved(folder: Path, task: str, size: str, stack: str, tokenizer: Tokenizer) -> Path:
    changes = [f"{stack}.{change}" for change in SMALL]
    torch.manual_seed(1)
    model = build(load_size(size, [*changes, f"source.vocab_size={tokenizer.vocab_size}", "source.dropout=0.0"]))
    save_model(folder, task, model, tokenizer)
    return folder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Path:
    return saved(tmp_path_factory.mktemp("encoder"), "fill", "encode-tiny", "encoder", tokenizer)


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Path:
    return saved(tmp_path_factory.mktemp("decoder"), "complete", "complete-tiny", "decoder", tokenizer)


@pytest.fixture(scope="module")
def tuned(encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tuned")
    assert train(write(folder / "a.tsv", chases()), folder / "out", start=str(encoder))
    return folder / "out"


def classifier(folder: Path) -> Classifier:
    model = glassformer.load(folder)
    assert isinstance(model, Classifier)
    return model


def accuracy(folder: Path) -> float:
    answers = classifier(folder).classify([text for text, _ in chases()])
    return float(np.mean([a.label == label for a, (_, label) in zip(answers, chases(), strict=True)]))


def test_the_body_stays_and_the_head_is_new(encoder: Path) -> None:
    start = load_start(str(encoder))
    model, speaker = tuned_model(ClassifyRecipe(start=str(encoder)), LABELS, start)
    assert speaker is None
    assert isinstance(model, EncoderOnly)
    assert isinstance(start.model, EncoderOnly)
    ids = torch.tensor([[1, 5, 9, 2]])
    torch.testing.assert_close(model.eval().states(ids).x, start.model.states(ids).x)
    assert model(ids).shape == (1, 2)


def test_frozen_layers_stay_to_the_bit(encoder: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "a.tsv", chases())
    assert train(data, tmp_path / "out", start=str(encoder), freeze=1, train={"steps": 5})
    before, after = (load_file(folder / "model.safetensors") for folder in (encoder, tmp_path / "out"))
    body = [name for name in after if not name.startswith("head.")]
    changed = {name for name in body if not torch.equal(before[name], after[name])}
    assert changed == {name for name in body if name.startswith(("encoder.blocks.1.", "encoder.norm"))}
    with pytest.raises(UserError, match="3 layers are to be frozen, but the model has 2"):
        train(data, tmp_path / "other", start=str(encoder), freeze=3)


def test_lora_is_an_adapter_with_a_head_of_its_own(tuned: Path, tmp_path: Path) -> None:
    out, before = tmp_path / "out", load_file(tuned / "model.safetensors")
    others = {"does": "up", "suffers": "down"}
    data = write(tmp_path / "a.tsv", [(text, others[label]) for text, label in chases()])
    assert train(data, out, start=str(tuned), lora={"rank": 4}, train={"steps": 40})
    assert not (out / "model.safetensors").exists()
    kept = load_file(out / "adapter.safetensors")
    assert {name for name in kept if not name.endswith((".a", ".b"))} == {"head.w.weight", "head.w.bias"}
    assert all(torch.equal(t, before[name]) for name, t in load_file(tuned / "model.safetensors").items())
    assert load_model(out).is_adapted
    said = classifier(out).classify([text for text, _ in chases()])
    assert np.mean([a.label == others[label] for a, (_, label) in zip(said, chases(), strict=True)]) > 0.95


def test_the_learning_rate_is_that_of_fine_tuning(encoder: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "a.tsv", chases())
    assert train(data, tmp_path / "out", start=str(encoder), train={"steps": 2, "lr": "none", "layer_decay": 0.8})
    settled = config.read_toml(tmp_path / "out" / "recipe.toml")["train"]
    assert settled["lr"] == pytest.approx(0.03 / 32)
    assert (settled["head_speed"], settled["layer_decay"]) == (5.0, 0.8)


def test_a_trained_pooler_goes_on_before_the_new_scores(encoder: Path) -> None:
    start = load_start(str(encoder)).model
    assert isinstance(start.settings, EncoderOnlySettings)
    head = EmbeddingHeadSettings(pooling="first", transform="tanh")
    bert = build(replace(start.settings, head=head, tie_output=False))
    assert isinstance(bert, EncoderOnly)
    recipe = ClassifyRecipe(start="bert")
    made, _ = tuned_model(recipe, LABELS, replace(load_model(encoder), model=bert))
    assert made.settings.head.pooling == "first"  # type: ignore[union-attr]
    assert torch.equal(made.head.transform.w.weight, bert.head.transform.w.weight)  # type: ignore[union-attr]
    assert not torch.equal(made.head.w.weight[:1], bert.head.transform.w.weight[:1])  # type: ignore[union-attr]


def test_an_encoder_is_tuned(tuned: Path) -> None:
    assert accuracy(tuned) > 0.95


def test_the_same_labels_keep_their_head(tuned: Path) -> None:
    start = load_start(str(tuned))
    kept, _ = tuned_model(ClassifyRecipe(start="one"), LABELS, start)
    other, _ = tuned_model(ClassifyRecipe(start="one"), Labels("class", ("x", "y")), start)
    assert torch.equal(kept.head.w.weight, start.model.head.w.weight)  # type: ignore[union-attr]
    assert not torch.equal(other.head.w.weight, start.model.head.w.weight)  # type: ignore[union-attr]


def job_of(decoder: Path, tokenizer: Tokenizer, lm_weight: float) -> tuple[ClassifyJob, TextExamples]:
    recipe = ClassifyRecipe(start=str(decoder), lm_weight=lm_weight)
    model, speaker = tuned_model(recipe, LABELS, load_start(str(decoder)))
    texts = [np.array(tokenizer.encode(text)) for text, _ in chases()[::40]]

    class Side:
        lengths = np.array([len(ids) for ids in texts])

        def __getitem__(self, i: int) -> np.ndarray:
            return texts[i]

    targets = np.arange(len(texts)) % 2
    data = TextExamples([Side()], Framing(tokenizer.marks, 64), False, targets, tokenizer.decode)
    return ClassifyJob(model.eval(), data, data, LABELS, recipe, speaker), data


def test_gpts_way_adds_the_loss_of_the_language_model(decoder: Path, tokenizer: Tokenizer) -> None:
    """L₃ = L₂ + λ L₁, as the paper writes it: here by hand, row by row and without padding."""
    job, data = job_of(decoder, tokenizer, lm_weight=0.5)
    assert job.speaker is not None
    rows = np.arange(len(data.targets))
    found = job.loss(data.train_batch(rows))
    language = load_model(decoder).model
    assert isinstance(language, DecoderOnly)
    labels, words, n_words = torch.tensor(0.0), torch.tensor(0.0), 0
    for i in rows:
        ids = torch.tensor([[1, *data.sides[0][i].tolist(), 2]])
        state = language.states(ids)[0]
        assert isinstance(job.model, DecoderOnly)
        scores = job.model.head.w(state[-1])  # type: ignore[union-attr, operator]
        labels = labels + F.cross_entropy(scores[None], torch.tensor([data.targets[i]]))
        told = language.head(state[None])[0, :-1]
        words, n_words = words + F.cross_entropy(told, ids[0, 1:], reduction="sum"), n_words + ids.shape[1] - 1
    torch.testing.assert_close(found, labels + 0.5 * len(rows) * words / n_words, rtol=1e-4, atol=1e-4)


def test_without_weight_there_is_no_other_loss(decoder: Path, tokenizer: Tokenizer) -> None:
    job, data = job_of(decoder, tokenizer, lm_weight=0.0)
    assert job.speaker is None
    batch: LabelledBatch = data.train_batch(np.arange(4))
    scores = job.model(batch.inputs.source, batch.inputs.keep)
    torch.testing.assert_close(job.loss(batch), F.cross_entropy(scores, batch.targets, reduction="sum"))


def test_the_shared_table_learns_from_both_losses(decoder: Path, tokenizer: Tokenizer) -> None:
    job, data = job_of(decoder, tokenizer, lm_weight=0.5)
    job.loss(data.train_batch(np.arange(4))).backward()
    assert isinstance(job.model, DecoderOnly)
    grad = job.model.source.embedding.weight.grad
    assert grad is not None
    unread = torch.tensor(
        [i for i in range(tokenizer.vocab_size) if i > 250 and i not in data.load(np.arange(4)).source]
    )
    assert grad[unread].abs().sum() > 0  # only the language model's scores touch words that were not read


def test_gpts_way_learns(decoder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert train(write(tmp_path / "a.tsv", chases()), out, start=str(decoder))
    settings = json.loads((out / "settings.json").read_text())["model"]
    assert (settings["kind"], settings["head"]["kind"], settings["head"]["pooling"]) == (
        "decoder_only",
        "class",
        "last",
    )
    assert accuracy(out) > 0.95


def test_pairs_on_a_language_model(decoder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert train(write(tmp_path / "a.tsv", pairs()), out, start=str(decoder), train={"steps": 3})
    assert len(classifier(out).classify([("a cat sees a dog", "it is a cat")])) == 1


def test_padding_does_not_count(decoder: Path, tokenizer: Tokenizer) -> None:
    model = with_head(load_start(str(decoder)).model, replace(load_size("classify-tiny").head, pooling="last")).eval()  # type: ignore[arg-type]
    framing = Framing(tokenizer.marks, 64)
    rows = [[np.array(tokenizer.encode(text))] for text in ("the cat", "the dog sees the cat here")]
    together = text_inputs(rows, framing, with_types=False)
    for i, row in enumerate(rows):
        alone = text_inputs([row], framing, with_types=False)
        torch.testing.assert_close(model(together.source, together.keep)[i], model(alone.source, alone.keep)[0])


def test_what_cannot_be_a_start(encoder: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "a.tsv", chases())
    with pytest.raises(UserError, match="en-de is a model for translate: a classifier cannot start from it"):
        train(data, tmp_path / "out", start="en-de")
    with pytest.raises(UserError, match="whose size, shape and vocabulary are given"):
        train(data, tmp_path / "out", start=str(encoder), size="tiny")
    with pytest.raises(UserError, match="LoRA leaves all layers as they are"):
        train(data, tmp_path / "out", start=str(encoder), freeze=1, lora={"rank": 2})
