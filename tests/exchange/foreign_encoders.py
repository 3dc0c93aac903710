"""Tiny encoders as transformers and sentence-transformers write them."""

import json
from pathlib import Path
from typing import Any

from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    PreTrainedModel,
    ViTConfig,
    ViTForImageClassification,
    ViTModel,
)

from tests.exchange.foreign_models import SENTENCES, rough

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = sorted({c for text in SENTENCES for c in text.lower() if not c.isspace()} | set("abcdefghijklmnopqrstuvwxyz"))
VOCABULARY = [*WORDS, *PIECES, *(f"##{c}" for c in PIECES), "once", "upon", "time", "play", "##ing", "Once", "Köln"]
BERT: dict[str, Any] = {
    "vocab_size": len(VOCABULARY) + 3,  # spare rows
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 96,
}
VIT: dict[str, Any] = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "image_size": 12,
    "patch_size": 4,
}


def masked(**changes: Any) -> BertForMaskedLM:
    return rough(BertForMaskedLM(BertConfig(**BERT | changes)))


def bare(pooler: bool = True, **changes: Any) -> BertModel:
    return rough(BertModel(BertConfig(**BERT | changes), add_pooling_layer=pooler))


def judge(**changes: Any) -> BertForSequenceClassification:
    labels = {"id2label": {0: "bad", 1: "fair", 2: "good"}}
    return rough(BertForSequenceClassification(BertConfig(**BERT | labels | changes)))


def vit_bare(pooler: bool = True, **changes: Any) -> ViTModel:
    return rough(ViTModel(ViTConfig(**VIT | changes), add_pooling_layer=pooler))


def vit_judge(**changes: Any) -> ViTForImageClassification:
    return rough(ViTForImageClassification(ViTConfig(**VIT | {"id2label": {0: "cat", 1: "dog"}} | changes)))


def save_bert(model: PreTrainedModel, folder: Path, shards: str = "1GB", **tokenizer: Any) -> Path:
    """The model and a vocab.txt, as the first BERTs came."""
    model.save_pretrained(folder, max_shard_size=shards)
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    about = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, **tokenizer}
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    return folder


def save_vit(model: PreTrainedModel, folder: Path, **changes: Any) -> Path:
    model.save_pretrained(folder)
    about = {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.3, 0.4], "resample": 3} | changes
    (folder / "preprocessor_config.json").write_text(json.dumps(about))
    return folder


def add_sentences(folder: Path, pooling: dict[str, Any], normalise: bool, **about: Any) -> Path:
    """What sentence-transformers writes beside a model."""
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling")] + ([("2_Normalize", "Normalize")] if normalise else [])
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 24, **pooling}))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 32, **about}))
    return folder
