"""Which Hugging Face layout an encoder of ours has, BERT's or ViT's, and its config.json."""

from typing import Any

from glassformer import config as checked
from glassformer.errors import UserError
from glassformer.exchange.huggingface_layout import ACTIVATIONS
from glassformer.exchange.huggingface_settings import VIT_ALONE
from glassformer.exchange.sentence_transformers import ARCHITECTURE
from glassformer.model.settings import (
    ClassHeadSettings,
    EmbeddingHeadSettings,
    EncoderOnlySettings,
    LearnedSettings,
    PatchesSettings,
    RegressionHeadSettings,
    StackSettings,
    TokenHeadSettings,
    TokensSettings,
)


def make_encoder_config(settings: EncoderOnlySettings) -> dict[str, Any]:
    """The config.json, from which `settings_from_config` reads the same model again."""
    if isinstance(settings.source, PatchesSettings):
        _refuse("ViT", settings, {**_both_have(settings.encoder, "pre"), **_vit_has(settings, settings.source)})
        return {**_vit(settings, settings.source), **_common(settings)}
    if isinstance(settings.source, TokensSettings):
        _refuse("BERT", settings, {**_both_have(settings.encoder, "post"), **_bert_has(settings, settings.source)})
        return {**_bert(settings, settings.source), **_common(settings)}
    raise UserError(
        f"The model reads {settings.source.kind}, which has no layout at Hugging Face here.", "Export it to ONNX."
    )


def _refuse(layout: str, settings: EncoderOnlySettings, has: dict[str, bool]) -> None:
    flat = checked.flatten(checked.to_data(settings))
    strange = [name for name, fits in has.items() if not fits]
    values = [flat.get(name, flat.get(f"{name}.kind", "none")) for name in strange]
    said = ", ".join(f"{name} = {value}" for name, value in zip(strange, values, strict=True))
    if strange:
        raise UserError(f"The model does not fit the layout of {layout}, which lacks {said}.", "Export it to ONNX.")


def _both_have(stack: StackSettings, place: str) -> dict[str, bool]:
    attention, d_head = stack.attention, stack.d_model / stack.attention.n_heads
    return {
        "encoder.norm.kind": stack.norm.kind == "layer",
        "encoder.norm.place": stack.norm.place == place,
        "encoder.norm.final": stack.norm.has_final == (place == "pre"),
        "encoder.attention.rotary": attention.rotary is None,
        "encoder.attention.n_kv_heads": attention.kv_heads == attention.n_heads,
        "encoder.attention.d_k": stack.d_k == d_head,
        "encoder.attention.d_v": stack.d_v == d_head,
        "encoder.feed_forward.gated": not stack.feed_forward.gated,
    }


def _bert_has(settings: EncoderOnlySettings, source: TokensSettings) -> dict[str, bool]:
    head, eps = settings.head, settings.encoder.norm.eps
    has = {
        "source.positions": isinstance(source.positions, LearnedSettings),
        "source.scale": not source.is_scaled,
        "source.norm": source.norm is not None and source.norm.kind == "layer",
        "source.norm.eps": source.norm is None or source.norm.eps == eps,
    }
    if isinstance(head, TokenHeadSettings):
        activation = settings.encoder.feed_forward.activation
        return {**has, "head.transform": head.transform == activation, "head.norm.eps": head.norm.eps == eps}
    if isinstance(head, EmbeddingHeadSettings) and head.transform is None:
        return has
    return {**has, **_has_pooler(settings)}


def _vit_has(settings: EncoderOnlySettings, source: PatchesSettings) -> dict[str, bool]:
    has = {
        "source.class_token": source.class_token,
        "source.learned_positions": source.learned_positions,
        "source.margin": source.margin == 0,
    }
    if isinstance(settings.head, ClassHeadSettings):
        return {
            **has,
            "head.pooling": settings.head.pooling == "first",
            "head.transform": settings.head.transform is None,
        }
    alone = getattr(settings.head, "transform", "") is None
    found = {**has, "head": isinstance(settings.head, EmbeddingHeadSettings), **_has_pooler(settings)}
    return {**found, "head.transform": alone or found["head.transform"]}


def _has_pooler(settings: EncoderOnlySettings) -> dict[str, bool]:
    head = settings.head
    assert not isinstance(head, TokenHeadSettings)
    plain = not isinstance(head, EmbeddingHeadSettings) or not head.normalise
    return {
        "head.pooling": head.pooling == "first",
        "head.transform": head.transform == "tanh",
        "head.normalise": plain,
    }


def _common(settings: EncoderOnlySettings) -> dict[str, Any]:
    stack, activation = settings.encoder, settings.encoder.feed_forward.activation
    found: dict[str, Any] = {
        "hidden_size": stack.d_model,
        "num_hidden_layers": stack.n_layers,
        "num_attention_heads": stack.attention.n_heads,
        "intermediate_size": stack.feed_forward.d_ff,
        "hidden_act": ACTIVATIONS.get(activation, activation),
        "hidden_dropout_prob": stack.dropout,
        "attention_probs_dropout_prob": stack.attention.dropout,
        "layer_norm_eps": stack.norm.eps,
        "initializer_range": 0.02 if settings.init_std is None else settings.init_std,
        "dtype": "float32",
    }
    if isinstance(settings.head, ClassHeadSettings | RegressionHeadSettings):
        found["num_labels"] = getattr(settings.head, "n_classes", getattr(settings.head, "n_values", 1))
        found["classifier_dropout"] = settings.head.dropout
    return found


def _bert(settings: EncoderOnlySettings, source: TokensSettings) -> dict[str, Any]:
    head = settings.head
    found: dict[str, Any] = {
        "model_type": "bert",
        "vocab_size": source.vocab_size,
        "max_position_embeddings": getattr(source.positions, "max_len", None),
        "type_vocab_size": max(1, source.n_types),
        "position_embedding_type": "absolute",
        "tie_word_embeddings": settings.tie_output,
    }
    if isinstance(head, TokenHeadSettings):
        return {**found, "architectures": ["BertForMaskedLM"]}
    if not isinstance(head, EmbeddingHeadSettings):
        return {**found, "architectures": ["BertForSequenceClassification"]}
    if head.transform is not None:
        return {**found, "architectures": ["BertModel"]}
    pooling = {"sentence_pooling": head.pooling, "sentence_normalise": head.normalise}
    return {**found, "architectures": [ARCHITECTURE], **pooling}


def _vit(settings: EncoderOnlySettings, source: PatchesSettings) -> dict[str, Any]:
    square, head = source.height == source.width, settings.head
    bare = VIT_ALONE if getattr(head, "transform", None) is None else "ViTModel"
    return {
        "model_type": "vit",
        "architectures": ["ViTForImageClassification" if isinstance(head, ClassHeadSettings) else bare],
        "image_size": source.height if square else [source.height, source.width],
        "patch_size": source.patch,
        "num_channels": source.n_channels,
        "qkv_bias": any(part in settings.encoder.attention.bias for part in "qkv"),
        "pooler_act": "tanh",
    }
