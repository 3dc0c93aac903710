"""BERT and ViT directories: what transformers saved gives the same states, scores and tokens, and goes back."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoImageProcessor, AutoTokenizer, BertConfig, BertForPreTraining, PreTrainedModel

from glassformer import config
from glassformer.data.framing import Framing
from glassformer.data.labels import Labels
from glassformer.data.picture_file import array_picture
from glassformer.data.tokenizer import train_tokenizer
from glassformer.errors import UserError
from glassformer.exchange.huggingface_export import write_huggingface
from glassformer.exchange.huggingface_tokenizer import read_tokenizer
from glassformer.exchange.importing import import_model
from glassformer.model import EncoderOnly, build
from glassformer.model.settings import (
    ClassHeadSettings,
    EmbeddingHeadSettings,
    EncoderOnlySettings,
    PatchesSettings,
    StackSettings,
    TokensSettings,
)
from glassformer.tasks.classifier import Classifier
from glassformer.tasks.model_dir import LoadedModel, load_model, save_model
from glassformer.tasks.picture_settings import use_of
from tests.exchange.foreign_encoders import (
    BERT,
    VOCABULARY,
    add_sentences,
    bare,
    judge,
    masked,
    save_bert,
    save_vit,
    vit_bare,
    vit_judge,
)
from tests.exchange.foreign_models import SENTENCES, rough
from tests.exchange.test_huggingface_dir import change_json, refused

TEXTS = {
    "masked": (masked, "fill"),
    "masked-untied": (lambda: masked(tie_word_embeddings=False, hidden_act="relu"), "fill"),
    "bare": (bare, "embed"),
    "without-pooler": (lambda: bare(pooler=False, type_vocab_size=1), "embed"),
    "judge": (lambda: judge(hidden_act="gelu_new", layer_norm_eps=1e-3), "classify"),
    "score": (lambda: judge(id2label={0: "score"}), "classify"),
}
PICTURES = {
    "vit-bare": (vit_bare, "embed"),
    "vit-without-pooler": (lambda: vit_bare(pooler=False), "embed"),
    "vit-judge": (lambda: vit_judge(qkv_bias=False, image_size=[8, 16]), "classify"),
}


def bring(folder: Path, name: str = "ours", **options: Any) -> LoadedModel:
    import_model(folder, folder.parent / name, **options)
    return load_model(folder.parent / name)


def test_a_bert_as_it_was_trained_first(tmp_path: Path) -> None:
    """It fills blanks; whether a sentence follows another is left out."""
    theirs = rough(BertForPreTraining(BertConfig(**BERT)))
    ids = torch.randint(5, 40, (2, 9))
    model = bring(save_bert(theirs, tmp_path / "theirs"))
    assert model.task == "fill"
    with torch.no_grad():
        torch.testing.assert_close(model.model(ids), theirs(ids).prediction_logits, rtol=1e-4, atol=1e-4)


def close(ours: Tensor, theirs: Tensor) -> None:
    assert 0.01 < theirs.abs().mean() < 100  # so that the tolerance means something
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


@torch.no_grad()
def same_text_model(ours: EncoderOnly, theirs: PreTrainedModel) -> None:
    """States of every position and what the head says, for rows with padding and two types."""
    ids = torch.randint(BERT["vocab_size"], (3, 20), generator=torch.Generator().manual_seed(1))
    keep = torch.arange(20) < torch.tensor([20, 13, 1])[:, None]
    types = ((torch.arange(20) > 8).long() % theirs.config.type_vocab_size).expand(3, -1)
    found = theirs(input_ids=ids, attention_mask=keep.long(), token_type_ids=types, output_hidden_states=True)
    close(ours.states(ids, keep, types).x[keep], found.hidden_states[-1][keep])
    if "logits" in found:
        mine = ours(ids, keep, types)
        close(mine[keep] if found.logits.dim() == 3 else mine, found.logits[keep] if mine.dim() == 3 else found.logits)
    elif found.pooler_output is not None:
        close(ours(ids, keep, types), found.pooler_output)


@torch.no_grad()
def same_picture_model(ours: EncoderOnly, theirs: PreTrainedModel) -> None:
    pictures = torch.randn(2, *ours.source.shape, generator=torch.Generator().manual_seed(2))
    found = theirs(pictures)
    said = found.logits if "logits" in found else found.pooler_output
    close(ours(pictures), found.last_hidden_state[:, 0] if said is None else said)
    close(ours.states(pictures).x, (theirs.vit if "logits" in found else theirs)(pictures).last_hidden_state)


@pytest.mark.parametrize(("name", "shards"), [("judge", "20KB"), *((name, "1GB") for name in TEXTS)])
def test_a_bert_comes_in_and_goes_back(name: str, shards: str, tmp_path: Path) -> None:
    make, task = TEXTS[name]
    theirs = make()
    folder = save_bert(theirs, tmp_path / "theirs", shards)
    assert (folder / "model.safetensors.index.json").exists() == (shards == "20KB")
    loaded = bring(folder)
    assert loaded.task == task
    same_text_model(loaded.model, theirs)
    report = write_huggingface(loaded, tmp_path / "back")
    assert all(check["passed"] for check in report["checks"])
    back = type(theirs).from_pretrained(tmp_path / "back").eval()
    if name == "without-pooler":
        back.pooler = None
    same_text_model(loaded.model, back)
    words, again = AutoTokenizer.from_pretrained(folder), AutoTokenizer.from_pretrained(tmp_path / "back")
    for pair in ((SENTENCES[0],), (SENTENCES[1], SENTENCES[3])):
        for key in ("input_ids", "token_type_ids"):
            assert again(*pair)[key] == words(*pair)[key]
    twice = bring(tmp_path / "back", "twice")
    assert twice.task == task
    assert twice.about.get("labels") == loaded.about.get("labels")
    same_text_model(twice.model, theirs)


@pytest.mark.parametrize("name", PICTURES)
def test_a_vit_comes_in_and_goes_back(name: str, tmp_path: Path) -> None:
    make, task = PICTURES[name]
    theirs = make()
    loaded = bring(save_vit(theirs, tmp_path / "theirs"))
    assert (loaded.task, loaded.words, loaded.about["input"]) == (task, None, "pictures")
    assert loaded.about["pictures"] == {"resample": "bicubic", "mean": [0.4, 0.5, 0.6], "std": [0.2, 0.3, 0.4]}
    same_picture_model(loaded.model, theirs)
    write_huggingface(loaded, tmp_path / "back")
    back = type(theirs).from_pretrained(tmp_path / "back").eval()
    if name == "vit-without-pooler":
        back.pooler = None
    same_picture_model(loaded.model, back)
    twice = bring(tmp_path / "back", "twice")
    assert {**twice.about, "imported": None} == {**loaded.about, "imported": None}


def test_labels_are_named(tmp_path: Path) -> None:
    about = bring(save_bert(judge(), tmp_path / "a" / "theirs")).about
    assert config.parse(Labels, about["labels"], "about") == Labels("class", ("bad", "fair", "good"))
    many = judge(problem_type="multi_label_classification")
    about = bring(save_bert(many, tmp_path / "b" / "theirs")).about
    assert config.parse(Labels, about["labels"], "about").kind == "classes"
    about = bring(save_bert(judge(id2label={0: "x"}), tmp_path / "c" / "theirs")).about
    assert config.parse(Labels, about["labels"], "about") == Labels("number")


def test_one_label_of_which_several_may_hold(tmp_path: Path) -> None:
    theirs = judge(id2label={0: "toxic"}, problem_type="multi_label_classification")
    folder = save_bert(theirs, tmp_path / "theirs")
    loaded, words = bring(folder), AutoTokenizer.from_pretrained(folder)
    assert config.parse(Labels, loaded.about["labels"], "about") == Labels("classes", ("toxic",), ",")
    [answer] = Classifier(loaded).classify([SENTENCES[0]])
    with torch.no_grad():
        wanted = theirs(**words(SENTENCES[0], return_tensors="pt")).logits.sigmoid().item()
    assert answer.probabilities["toxic"] == pytest.approx(wanted, abs=1e-5)


def test_several_numbers_a_text_are_refused(tmp_path: Path) -> None:
    refused(save_bert(judge(problem_type="regression"), tmp_path / "theirs"), "gives one number a text, not 3")
    refused(save_vit(vit_judge(problem_type="regression"), tmp_path / "more" / "theirs"), "tells classes of pictures")


def test_classes_of_the_same_name(tmp_path: Path) -> None:
    theirs = vit_judge(id2label={0: "crane", 1: "dog", 2: "crane"})
    classifier = Classifier(bring(save_vit(theirs, tmp_path / "theirs")))
    [answer] = classifier.classify([np.zeros((12, 12, 3), dtype=np.uint8)])
    assert sorted(answer.probabilities) == ["crane (0)", "crane (2)", "dog"]
    assert sum(answer.probabilities.values()) == pytest.approx(1, abs=1e-6)


def test_single_texts_and_pairs_are_judged_as_given(tmp_path: Path) -> None:
    theirs = judge(max_position_embeddings=400)
    folder = save_bert(theirs, tmp_path / "theirs")
    classifier, words = Classifier(bring(folder)), AutoTokenizer.from_pretrained(folder)
    long = "once upon a time " * 80  # 320 tokens
    inputs: list[Any] = ["once upon", (SENTENCES[0], SENTENCES[1]), long, ("play", long)]
    for one, answer in zip(inputs, classifier.classify(inputs), strict=True):
        texts = [one] if isinstance(one, str) else one
        with torch.no_grad():
            wanted = theirs(**words(*texts, return_tensors="pt")).logits[0].softmax(-1).tolist()
        names = ("bad", "fair", "good")
        assert [answer.probabilities[name] for name in names] == pytest.approx(wanted, abs=1e-5)
    with pytest.raises(UserError, match="one text or two"):
        classifier.classify([("a", "b", "c")])


@pytest.mark.parametrize(
    ("pooling", "normalise", "wanted"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, True, ("mean", True)),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, False, ("first", False)),
        ({"pooling_mode": "lasttoken"}, True, ("last", True)),
    ],
)
def test_sentence_transformers_folders(pooling: dict, normalise: bool, wanted: tuple, tmp_path: Path) -> None:
    theirs = bare()
    folder = add_sentences(save_bert(theirs, tmp_path / "theirs"), pooling, normalise)
    loaded = bring(folder)
    head = loaded.model.settings.head
    assert isinstance(head, EmbeddingHeadSettings)
    assert (head.pooling, head.normalise, head.transform) == (*wanted, None)
    assert loaded.about["context"] == 32
    ids = torch.arange(5, 25)[None]
    with torch.no_grad():
        states = theirs(ids).last_hidden_state[0]
        pooled = {"mean": states.mean(0), "first": states[0], "last": states[-1]}[wanted[0]]
        close(loaded.model(ids)[0], pooled / pooled.norm() if normalise else pooled)
    write_huggingface(loaded, tmp_path / "back")
    twice = bring(tmp_path / "back", "twice")
    assert (twice.model.settings, twice.about["context"]) == (loaded.model.settings, 32)


@pytest.mark.parametrize(
    ("given", "tokenizer", "wanted"),
    [
        ({}, 16, 16),  # as sentence-transformers 6 writes it
        ({"max_seq_length": None}, 16, 16),
        ({"max_seq_length": 24}, 16, 24),
        ({"max_seq_length": 500}, 16, 96),
        ({}, int(1e30), 96),
        ({}, "x", 96),
        ({}, None, 96),
    ],
)
def test_the_longest_sentence(given: dict[str, Any], tokenizer: Any, wanted: int, tmp_path: Path) -> None:
    folder = save_bert(bare(), tmp_path / "theirs", model_max_length=tokenizer)
    add_sentences(folder, {"pooling_mode": "mean"}, False)
    (folder / "sentence_bert_config.json").write_text(json.dumps(given))
    assert bring(folder).about["context"] == wanted


def test_the_transformer_may_lie_in_a_folder_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    add_sentences(save_bert(bare(), folder / "0_Transformer"), {}, False)
    for name in ("modules.json", "1_Pooling"):
        (folder / "0_Transformer" / name).rename(folder / name)
    modules = json.loads((folder / "modules.json").read_text())
    modules[0]["path"] = "0_Transformer"
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    assert bring(folder).about["context"] == 32


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, Any]]:
    """Our tokenizer and theirs from the same folder, for what its files may say."""
    found = {}
    for name, about in {
        "uncased": {},
        "cased": {"do_lower_case": False},
        "accents": {"strip_accents": False},
        "chinese": {"tokenize_chinese_chars": False},
    }.items():
        folder = tmp_path_factory.mktemp(name)
        save_bert(bare(num_hidden_layers=0), folder, **about)
        found[name] = read_tokenizer(folder, {"model_type": "bert"}), AutoTokenizer.from_pretrained(folder)
        # The same with a tokenizer.json that says otherwise: tokenizer_config.json goes before it.
        save_bert(bare(num_hidden_layers=0), folder / "whole", **about)
        core = json.loads(found["uncased"][0].to_json())
        (folder / "whole" / "tokenizer.json").write_text(json.dumps(core))
        both = read_tokenizer(folder / "whole", {"model_type": "bert"}), AutoTokenizer.from_pretrained(folder / "whole")
        found[f"{name}-whole"] = both
    return found


@pytest.mark.parametrize("kind", ["uncased", "cased", "accents", "chinese"])
@pytest.mark.parametrize("whole", ["", "-whole"])
@given(text=st.text(max_size=30) | st.sampled_from(SENTENCES), second=st.none() | st.text("abc é日[]\t", min_size=1))
@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
def test_tokens_are_those_of_transformers(kind: str, whole: str, words: dict, text: str, second: str | None) -> None:
    ours, theirs = words[kind + whole]
    texts = [text] if second is None else [text, second]
    wanted = theirs(*texts, split_special_tokens=True)  # a text that contains "[SEP]" is text, there too
    ids, types = Framing(ours.marks, 1000).frame([torch.tensor(i).long().numpy() for i in ours.encode_batch(texts)])
    assert ids.tolist() == wanted.input_ids
    assert types.tolist() == wanted.token_type_ids


def test_the_marks_of_a_bert(words: dict) -> None:
    marks = words["uncased"][0].marks
    assert [VOCABULARY[i] for i in (marks.start, *marks.ends, marks.mask)] == ["[CLS]", "[SEP]", "[MASK]"]
    assert marks.chat_template is None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_bert(bare(), tmp_path / "theirs", "20KB")


def test_a_missing_shard(folder: Path) -> None:
    shard = next(folder.glob("*-00001-*.safetensors"))
    shard.unlink()
    refused(folder, f"lacks {shard.name}")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 30}, "has shape"),
        ({"vocab_size": 30}, "has shape"),
        ({"num_hidden_layers": 1}, "has no place in it"),
        ({"num_hidden_layers": 10**8}, "encoder.n_layers = 100000000"),
        ({"max_position_embeddings": 10**12}, "max_len = 1000000000000"),
        ({"model_type": "roberta"}, "model_type = roberta"),
        ({"architectures": ["BertForTokenClassification"]}, "BertForTokenClassification"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type"),
    ],
)
def test_a_config_that_does_not_fit(changes: dict[str, Any], message: str, folder: Path) -> None:
    change_json(folder / "config.json", **changes)
    refused(folder, message)


def test_what_is_read_is_named(folder: Path) -> None:
    """As a user finds it in a config.json, and not as it is called here."""
    hints = []
    for changes in ({"model_type": "roberta"}, {"model_type": "bert", "architectures": ["BertForTokenClassification"]}):
        change_json(folder / "config.json", **changes)
        with pytest.raises(UserError) as caught:
            import_model(folder, folder.parent / "ours")
        hints.append(caught.value.hint)
    assert hints[0] == "Glassformer reads bert, gpt2, llama, mistral, qwen2, vit, whisper."
    names = "BertForMaskedLM, BertForSequenceClassification, BertModel"
    assert hints[1] == f"Glassformer reads {names}."


@pytest.mark.parametrize("make", [masked, judge, vit_judge])
def test_what_a_config_leaves_out_is_what_transformers_takes(make: Any, tmp_path: Path) -> None:
    theirs = make()
    folder = (save_vit if make is vit_judge else save_bert)(theirs, tmp_path / "theirs")
    said = json.loads((folder / "config.json").read_text())
    left_out = ("hidden_act", "initializer_range", "hidden_dropout_prob", "attention_probs_dropout_prob")
    (folder / "config.json").write_text(json.dumps({k: v for k, v in said.items() if k not in left_out}))
    settings = bring(folder).model.settings
    assert {name: getattr(type(theirs.config)(), name) for name in left_out} == {
        "hidden_act": settings.encoder.feed_forward.activation,
        "initializer_range": settings.init_std,
        "hidden_dropout_prob": settings.encoder.dropout,
        "attention_probs_dropout_prob": settings.encoder.attention.dropout,
    }


def test_vocabularies_that_do_not_fit(folder: Path) -> None:
    path = folder / "vocab.txt"
    path.write_text("\n".join([*VOCABULARY, *"αβγδ"]) + "\n")
    refused(folder, "does not fit the weights: its last token")
    path.write_text("\n".join([*VOCABULARY, "once"]) + "\n")
    refused(folder, "holds a token twice")
    path.write_text("\n".join(VOCABULARY[2:]) + "\n")
    refused(folder, r"has no token \[UNK\]")
    path.write_bytes(b"[UNK]\n\xff\xfe\n")
    refused(folder, "cannot be read")
    path.unlink()
    refused(folder, "nor BERT's vocab.txt")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"unk_token": "[GONE]"}, "no token for what it cannot spell"),
        ({"unk_token": None}, "no token for what it cannot spell"),
        ({"max_input_chars_per_word": 10**9}, "max_input_chars_per_word = 1000000000"),
        ({"max_input_chars_per_word": -1}, "max_input_chars_per_word"),
        ({"vocab": {"[UNK]": 0, "a": 0}}, "a number of its own"),
        ({"vocab": {"[UNK]": 0, "a": 2**70}}, "a number of its own"),
        ({"vocab": []}, "a number of its own"),
        ({"continuing_subword_prefix": 3}, "is not a tokenizer"),
    ],
)
def test_a_hostile_tokenizer(changes: dict[str, Any], message: str, folder: Path, words: dict) -> None:
    data = json.loads(words["uncased"][0].to_json())
    data["model"] |= changes
    (folder / "tokenizer.json").write_text(json.dumps(data))
    refused(folder, message)


def test_a_tokenizer_of_another_house(folder: Path, words: dict) -> None:
    """One that puts nothing around a text, or only a mark before it."""
    data = json.loads(words["uncased"][0].to_json())
    cls = {"SpecialToken": {"id": "[CLS]", "type_id": 0}}
    sequence = {"Sequence": {"id": "A", "type_id": 0}}
    for single in ([sequence], [cls, sequence]):
        data["post_processor"] = {
            "type": "TemplateProcessing",
            "single": single,
            "pair": [sequence, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}},
        }
        (folder / "tokenizer.json").write_text(json.dumps(data))
        refused(folder, "one mark before a text and one behind it")


@pytest.mark.parametrize(
    ("pooling", "message"),
    [
        ({"pooling_mode_max_tokens": True}, "pools by max"),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, "pools by cls, mean"),
        ({}, "pools by nothing"),
        ({"pooling_mode": ["mean", "cls"]}, "pools by mean, cls"),
        ({"pooling_mode": {}}, "pools by nothing"),
    ],
)
def test_poolings_that_are_not_known(pooling: dict[str, Any], message: str, folder: Path) -> None:
    refused(add_sentences(folder, pooling, False), message)


@pytest.mark.parametrize("modules", ["[]", "{}", "[1]", "{", '[{"type": "x.Transformer"}, {"type": "x.Dense"}]'])
def test_modules_that_are_not_known(modules: str, folder: Path) -> None:
    (folder / "modules.json").write_text(modules)
    refused(folder, "asks for|holds no list|cannot be read")


@pytest.mark.parametrize("path", ["..", "/etc", "a/b", 3, None, "a\\b"])
def test_modules_stay_in_their_folder(path: Any, folder: Path) -> None:
    add_sentences(folder, {"pooling_mode": "mean"}, False)
    modules = json.loads((folder / "modules.json").read_text())
    modules[1]["path"] = path
    (folder / "modules.json").write_text(json.dumps(modules))
    refused(folder, "which is not in it")


def test_words_before_each_text_are_refused(folder: Path) -> None:
    add_sentences(folder, {"pooling_mode": "mean"}, False)
    about = {"prompts": {"query": "query: "}, "default_prompt_name": "query"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(about))
    refused(folder, "puts the words 'query: ' before each text")


def test_vectors_that_are_cut_off_are_refused(folder: Path) -> None:
    add_sentences(folder, {"pooling_mode": "mean"}, False)
    (folder / "config_sentence_transformers.json").write_text('{"truncate_dim": 8}')
    refused(folder, "keeps only the first 8 numbers of each vector")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image_mean": [0.5]}, "image_mean"),
        ({"image_std": [0.5, 0.5, 0]}, "image_std"),
        ({"image_std": "x"}, "image_std"),
        ({"rescale_factor": 1 / 127.5}, "divides them by 255"),
        ({"size": 14, "do_center_crop": True, "crop_size": 12}, "makes pictures of .* and cuts out"),
        ({"size": {"shortest_edge": 14}, "do_center_crop": True, "crop_size": 12}, "and cuts out"),
        ({"size": {"shortest_edge": 12}}, "makes pictures of .*shortest_edge"),
        ({"size": 24}, "but the model reads 12 × 12"),
    ],
)
def test_pictures_that_cannot_be_prepared(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    refused(save_vit(vit_judge(), tmp_path / "theirs", **changes), message)


def test_pictures_are_prepared_as_transformers_does(tmp_path: Path) -> None:
    loaded = bring(save_vit(vit_judge(), tmp_path / "theirs"))
    write_huggingface(loaded, tmp_path / "back")
    processor = AutoImageProcessor.from_pretrained(tmp_path / "back")
    assert [*processor.image_mean, *processor.image_std] == [0.4, 0.5, 0.6, 0.2, 0.3, 0.4]
    assert dict(processor.size) == {"height": 12, "width": 12}
    assert int(processor.resample) == 3


@pytest.mark.parametrize(
    ("changes", "fit"),
    [
        ({"size": 12}, "stretch"),
        ({"size": {"height": 12, "width": 12}, "do_center_crop": True, "crop_size": 12}, "stretch"),
        ({"size": {"shortest_edge": 12}, "do_center_crop": True, "crop_size": {"height": 12, "width": 12}}, "crop"),
        ({"do_resize": False, "size": 50}, "stretch"),
    ],
)
def test_pictures_are_stretched_or_cut(changes: dict[str, Any], fit: str, tmp_path: Path) -> None:
    _, use = use_of(bring(save_vit(vit_judge(), tmp_path / "theirs", **changes)))
    assert use.fit == fit


SOFT = np.add.outer(np.sin(np.arange(40) / 9), np.cos(np.arange(23) / 7))  # a picture that is not square
PICTURE = np.stack([(SOFT * a * 30 + 128).astype(np.uint8) for a in (1.0, 1.5, -1.2)], axis=-1)


def prepared(folder: Path) -> np.ndarray:
    processor = AutoImageProcessor.from_pretrained(folder)
    return np.asarray(processor(Image.fromarray(PICTURE), return_tensors="np")["pixel_values"][0])


@pytest.mark.parametrize("resample", [2, 3])
def test_pictures_that_are_cut_go_out_again(resample: int, tmp_path: Path) -> None:
    crop = {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 12}, "do_center_crop": True}
    folder = save_vit(
        vit_judge(), tmp_path / "theirs", **crop, crop_size={"height": 12, "width": 12}, resample=resample
    )
    loaded = bring(folder)
    report = write_huggingface(loaded, tmp_path / "back")
    assert "transformers rounds" in report["checks"][-1]["found"]
    source, use = use_of(loaded)
    seen = (array_picture(PICTURE, use.frame(source)) / 255 - np.array(use.mean)) / np.array(use.std)
    back = prepared(tmp_path / "back")
    np.testing.assert_allclose(back, prepared(folder))
    stretched = prepared(write_and_stretch(loaded, tmp_path / "stretched"))
    # Less than a pixel apart, where stretching is far off.
    assert np.abs(back - seen.transpose(2, 0, 1)).mean() < 0.1 * np.abs(stretched - back).mean()


def write_and_stretch(loaded: LoadedModel, folder: Path) -> Path:
    pictures = {**loaded.about["pictures"], "fit": "stretch"}
    write_huggingface(dataclasses.replace(loaded, about={**loaded.about, "pictures": pictures}), folder)
    return folder


@pytest.mark.parametrize(("size", "fit"), [(12, "pad"), ([8, 16], "crop")])
def test_pictures_that_no_processor_prepares(size: Any, fit: str, tmp_path: Path) -> None:
    loaded = bring(save_vit(vit_judge(image_size=size), tmp_path / "theirs"))
    loaded.about["pictures"]["fit"] = fit
    report = write_huggingface(loaded, tmp_path / "back")
    assert [check["passed"] for check in report["checks"]].count(False) == 1
    card = (tmp_path / "back" / "README.md").read_text()
    assert f"they are {'padded' if fit == 'pad' else 'cut'} to" in card


def test_weights_that_are_no_numbers(tmp_path: Path) -> None:
    folder = save_bert(bare(), tmp_path / "theirs")
    weights = load_file(folder / "model.safetensors")
    weights["embeddings.LayerNorm.weight"][3] = torch.nan
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    refused(folder, "no numbers")


def test_what_no_layout_has_is_named(tmp_path: Path) -> None:
    words = train_tokenizer(SENTENCES, "bpe", 300)
    made = EncoderOnlySettings(
        source=TokensSettings(vocab_size=words.vocab_size),
        encoder=StackSettings(d_model=16, n_layers=1),
        head=ClassHeadSettings(),
    )
    save_model(tmp_path / "ours", "classify", build(made), words)
    with pytest.raises(UserError, match=r"layout of BERT.*encoder.norm.place = pre.*source.positions = sinusoidal"):
        write_huggingface(load_model(tmp_path / "ours"), tmp_path / "back")


def test_patches_that_see_their_neighbours_are_not_vits(tmp_path: Path) -> None:
    made = EncoderOnlySettings(
        source=PatchesSettings(height=8, width=8, n_channels=1, patch=4, margin=1),
        encoder=StackSettings(d_model=16, n_layers=1),
        head=ClassHeadSettings(pooling="first"),
    )
    save_model(tmp_path / "ours", "classify", build(made), None)
    with pytest.raises(UserError, match=r"layout of ViT.*source.margin = 1"):
        write_huggingface(load_model(tmp_path / "ours"), tmp_path / "back")
