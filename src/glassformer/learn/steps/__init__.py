"""The table of all steps: lesson.toml has their order and words, the files here make their figures."""

from pathlib import Path

from glassformer.config import read_toml
from glassformer.learn.step import Make, Step
from glassformer.learn.steps.completion import make_completion
from glassformer.learn.steps.counting import make_first_order, make_masking, make_second_order, make_skips
from glassformer.learn.steps.heads import make_many_heads, make_one_head
from glassformer.learn.steps.layers import make_layer_norm, make_skip_connections
from glassformer.learn.steps.learned import make_de_embedding, make_embeddings, make_many_layers
from glassformer.learn.steps.matrices import make_attention, make_pairs
from glassformer.learn.steps.positions import make_positions
from glassformer.learn.steps.senses import make_audio, make_pictures
from glassformer.learn.steps.stacks import make_cross_attention, make_decoder_stack, make_encoder_stack
from glassformer.learn.steps.tokens import make_bpe, make_tokenizing
from glassformer.learn.steps.training import make_fine_tuning
from glassformer.learn.steps.words import make_dot_product, make_lookup, make_one_hot

MAKERS: dict[str, Make] = {
    "one-hot": make_one_hot,
    "dot-product": make_dot_product,
    "lookup": make_lookup,
    "first-order": make_first_order,
    "second-order": make_second_order,
    "skips": make_skips,
    "masking": make_masking,
    "attention": make_attention,
    "pairs": make_pairs,
    "completion": make_completion,
    "embeddings": make_embeddings,
    "positions": make_positions,
    "de-embedding": make_de_embedding,
    "many-heads": make_many_heads,
    "one-head": make_one_head,
    "skip-connections": make_skip_connections,
    "layer-norm": make_layer_norm,
    "many-layers": make_many_layers,
    "decoder-stack": make_decoder_stack,
    "encoder-stack": make_encoder_stack,
    "cross-attention": make_cross_attention,
    "tokenizing": make_tokenizing,
    "bpe": make_bpe,
    "audio": make_audio,
    "pictures": make_pictures,
    "fine-tuning": make_fine_tuning,
}
_LESSON = read_toml(Path(__file__).parents[1] / "lesson.toml")
assert _LESSON.keys() == MAKERS.keys()
STEPS: tuple[Step, ...] = tuple(
    Step(
        name=name,
        title=step["title"],
        text=" ".join(step["text"].split()),
        example=step["example"],
        live=step.get("live", True),
        make=MAKERS[name],
    )
    for name, step in _LESSON.items()
)
