"""The figures that the Transformer's teaching literature works out by hand, out of the real modules."""

import math

import pytest
import torch
from torch import Tensor, nn

from glassformer.model import attention, build, build_empty
from glassformer.model.attention import MultiHeadAttention
from glassformer.model.layers import build_norm
from glassformer.model.masks import look_ahead_mask
from glassformer.model.settings import (
    AttentionSettings,
    ClassHeadSettings,
    EncoderDecoderSettings,
    NormSettings,
    StackSettings,
    TokensSettings,
)
from tests.builders import close, decoder_only, encoder_decoder, encoder_only, random_ids, stack, tokens


def test_the_scale_keeps_the_softmax_from_saturating() -> None:
    q, k, v = torch.randn(3, 1, 1, 200, 512).unbind()
    _, weights, scores = attention(q, k, v)
    assert scores.std().item() == pytest.approx(1, abs=0.1)
    unscaled = (q @ k.transpose(-2, -1)).softmax(-1)
    assert unscaled.amax(-1).mean() > 0.8
    assert weights.amax(-1).mean() < 0.2


def test_the_column_form_with_softargmax_is_the_row_form() -> None:
    """a = softargmax_β(Kᵀq), h = V a, H = V A; d′ and d″ differ."""
    d1, d2, n, m = 5, 3, 4, 6
    queries, keys, values = torch.randn(d1, n), torch.randn(d1, m), torch.randn(d2, m)  # one column each
    beta = 1 / math.sqrt(d1)
    a = (beta * (keys.T @ queries)).softmax(dim=0)  # (m, n)
    z, weights, _ = attention(queries.T, keys.T, values.T)
    close(weights, a.T)
    close(z.T, values @ a)
    one = (beta * (keys.T @ queries[:, 0])).softmax(dim=0)
    close(z[0], values @ one)


def test_one_stacked_matrix_of_three_h_d_rows_is_the_three_separate_ones() -> None:
    h, d = 4, 5
    layer = MultiHeadAttention(stack(d_model=h * d, attention=AttentionSettings(n_heads=h)))
    x = torch.randn(2, 7, h * d)
    stacked = torch.cat([layer.w_q.weight, layer.w_k.weight, layer.w_v.weight])
    bias = torch.cat([layer.w_q.bias, layer.w_k.bias, layer.w_v.bias])
    assert stacked.shape[0] == 3 * h * d
    q, k, v = ((x @ stacked.T + bias).view(2, 7, 3, h, d)[:, :, i].transpose(1, 2) for i in range(3))
    heads = [attention(q[:, i], k[:, i], v[:, i])[0] for i in range(h)]
    close(layer(x), torch.cat(heads, dim=-1) @ layer.w_o.weight.T + layer.w_o.bias)
    assert layer.w_o.weight.shape == (d * h, h * d)


def test_the_running_example_has_the_shapes_of_the_literature() -> None:
    """n × N one-hot → n × d_model → per head (d_k, d_k, d_v) → n × n → n × h·d_v → n × d_model → n × N."""
    n_words, n, d_model, h, d_k, d_v = 13, 12, 8, 2, 3, 5
    attention_settings = AttentionSettings(n_heads=h, d_k=d_k, d_v=d_v)
    model = decoder_only(
        source=tokens(vocab_size=n_words, positions=None), decoder=stack(d_model=d_model, attention=attention_settings)
    )
    ids = torch.randint(n_words, (1, n))
    one_hot = nn.functional.one_hot(ids[0], n_words).float()
    assert one_hot.shape == (n, n_words)
    x, _ = model.source(ids)
    close(x[0], one_hot @ model.source.embedding.weight)
    seen: dict[str, tuple[Tensor, ...]] = {}
    layer = model.decoder.blocks[0].self_attention
    layer.core.register_forward_hook(lambda _, inputs, out: seen.update(core=(*inputs[:3], out)))
    layer.w_o.register_forward_hook(lambda _, inputs, out: seen.update(w_o=(*inputs, out)))
    logits = model(ids)
    q, k, v, z = seen["core"]
    assert [t.shape[1:] for t in (q, k, v, z)] == [(h, n, d_k), (h, n, d_k), (h, n, d_v), (h, n, d_v)]
    assert attention(q, k, v)[1].shape == (1, h, n, n)
    assert [t.shape[1:] for t in seen["w_o"]] == [(n, h * d_v), (n, d_model)]
    assert logits.shape == (1, n, n_words)


def test_the_papers_shape_is_the_default() -> None:
    model = build_empty(EncoderDecoderSettings())
    assert (len(model.encoder.blocks), len(model.decoder.blocks)) == (6, 6)
    first = model.encoder.blocks[0]
    assert (first.self_attention.n_heads, first.self_attention.d_k, first.self_attention.d_v) == (8, 64, 64)
    assert first.self_attention.w_q.weight.shape == (512, 512)
    assert first.feed_forward.w_1.weight.shape == (2048, 512)


GERMAN = ["<sos>", "Ich", "habe", "einen", "Apfel", "gegessen", "<eos>"]
ENGLISH = ["I", "ate", "an", "apple", "<eos>"]
WORDS = {word: i for i, word in enumerate(sorted({*GERMAN, *ENGLISH}))}
SOURCE, TARGET = (torch.tensor([[WORDS[word] for word in sentence]]) for sentence in (ENGLISH, GERMAN))


def test_the_look_ahead_mask_of_the_german_sentence_is_seven_by_seven() -> None:
    model, seen = encoder_decoder(), []
    for block in model.decoder.blocks:
        block.self_attention.core.register_forward_hook(lambda _, inputs, __: seen.append(inputs))
    model(SOURCE, TARGET)
    mask = look_ahead_mask(len(GERMAN))
    assert mask.shape == (7, 7)
    assert len(seen) == 2
    for q, k, v, _, causal in seen:
        assert causal
        _, weights, scores = attention(q, k, v, mask)
        above = torch.ones(7, 7).triu(1).bool().expand_as(scores)
        assert (scores[above] == -math.inf).all()
        assert scores[~above].isfinite().all()
        assert (weights[above] == 0).all()
        close(weights.sum(-1), torch.ones(1, 4, 7))


def test_cross_attention_gets_the_final_encoder_output_in_every_layer() -> None:
    model, given = encoder_decoder(decoder=stack(n_layers=3)), []
    for block in model.decoder.blocks:
        block.cross_attention.register_forward_hook(lambda _, inputs, __: given.append(inputs[1]))
    memory = model.encode(SOURCE)
    model.decode(TARGET, memory)
    assert len(given) == 3
    assert all(memory.x is x for x in given)
    final = model.encoder.norm(model.encoder.blocks[1](model.encoder.blocks[0](model.source(SOURCE)[0])))
    close(memory.x, final)


def test_teacher_forcing_on_shifted_targets_is_the_unit_delay_step_by_step() -> None:
    model = encoder_decoder()
    shifted, wanted = TARGET[:, :-1], TARGET[:, 1:]
    forced = model(SOURCE, shifted).log_softmax(-1).gather(2, wanted[..., None])
    memory, cache, stepped = model.encode(SOURCE), model.new_cache(1, 6), []
    with torch.no_grad():
        for t in range(6):
            scores = model.head(model.decode(shifted[:, t : t + 1], memory, cache=cache))
            stepped.append(scores.log_softmax(-1)[0, 0, wanted[0, t]])
    close(torch.stack(stepped), forced[0, :, 0].detach())


def test_the_models_own_predictions_through_a_unit_delay_are_a_fixed_point_of_teacher_forcing() -> None:
    model, ids = encoder_decoder(), TARGET[:, :1]
    for _ in range(8):
        ids = torch.cat([ids, model(SOURCE, ids)[:, -1:].argmax(-1)], dim=1)
    assert torch.equal(model(SOURCE, ids[:, :-1]).argmax(-1), ids[:, 1:])


def test_layer_norm_of_two_four_six_eight() -> None:
    x = torch.tensor([[2.0, 4.0, 6.0, 8.0]])
    assert (x.mean().item(), x.var(unbiased=False).item()) == (5, 5)
    norm = build_norm(NormSettings(kind="layer"), 4)
    close(norm(x), torch.tensor([[-1.3416, -0.4472, 0.4472, 1.3416]]), 1e-4)


def test_layer_norm_works_across_the_features_and_batch_norm_down_the_batch() -> None:
    x = torch.randn(5, 4) * 3 + 2
    layer, batch = build_norm(NormSettings(kind="layer"), 4), nn.BatchNorm1d(4)
    close(layer(x).mean(dim=1), torch.zeros(5))
    close(batch(x).mean(dim=0), torch.zeros(4))
    assert layer(x).mean(dim=0).abs().max() > 0.1
    others_changed = torch.cat([x[:1], torch.randn(4, 4) * 9])
    assert torch.equal(layer(others_changed)[0], layer(x)[0])
    assert not torch.allclose(batch(others_changed)[0], batch(x)[0])


def test_an_encoder_sees_all_positions_and_a_vocabulary_head_makes_it_fill_blanks() -> None:
    model, ids = encoder_only(), random_ids(1, 6)
    changed = ids.clone()
    changed[0, 5] = (ids[0, 5] + 1) % 29
    assert model(ids).shape == (1, 6, 29)
    assert not torch.allclose(model(ids)[:, 0], model(changed)[:, 0], atol=1e-4)


def test_a_decoder_gives_tokens_and_its_states_before_the_head_are_a_representation() -> None:
    model, ids = decoder_only(), random_ids(2, 6)
    states = model.states(ids)
    assert states.shape == (2, 6, 16)
    close(states @ model.head.w.weight.T, model(ids))


def test_a_tied_table_embeds_and_de_embeds() -> None:
    settings = StackSettings(d_model=8, n_layers=0, attention=AttentionSettings(n_heads=2), dropout=0.0)
    source = TokensSettings(vocab_size=13, positions=None, dropout=0.0)
    settings_ = EncoderDecoderSettings(source=source, target=source, encoder=settings, decoder=settings)
    model = build(settings_).eval()
    table = model.target.embedding.weight
    assert model.head.w.weight is table
    assert table.shape == (13, 8)
    ids = torch.tensor([[3, 1, 12]])
    close(model(ids, ids), nn.functional.layer_norm(table[ids], (8,)) @ table.T)


def test_a_picture_is_cut_into_patches_that_attend_to_each_other() -> None:
    model, picture = encoder_only("patches", head=ClassHeadSettings(pooling="first")), torch.randn(1, 2, 8, 12)
    before = model.states(picture).x
    assert before.shape == (1, 1 + 2 * 3, 16)
    picture[0, :, 5, 9] += 5  # lower row, last column: the sixth patch
    changed = (model.states(picture).x - before).abs().amax(dim=-1)[0]
    assert (changed > 1e-4).all()


SENTENCE = ["The", "animal", "didn't", "cross", "the", "street", "because", "it", "was", "too", "tired"]


def test_any_layer_and_head_shows_where_it_looks() -> None:
    words = {word: i for i, word in enumerate(sorted(set(SENTENCE)))}
    model, seen = encoder_only(), {}
    for i, block in enumerate(model.encoder.blocks):
        block.self_attention.core.register_forward_hook(lambda _, a, out, i=i: seen.update({i: (*a[:3], out)}))
    model(torch.tensor([[words[word] for word in SENTENCE]]))
    rows = []
    for q, k, v, out in seen.values():
        z, weights, _ = attention(q, k, v)
        close(z, out)
        rows += list(weights[0, :, SENTENCE.index("it")])
    assert len(rows) == 2 * 4
    for row in rows:
        assert row.shape == (len(SENTENCE),)
        assert row.sum().item() == pytest.approx(1)
    assert not torch.allclose(rows[0], rows[1], atol=1e-3)
