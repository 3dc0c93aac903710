"""What a model's numbers must fulfil on any input: fused = textbook, alone = in company, cached = all at once, …

b rows, n length of what a decoder reads
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.exchange.proof import TOLERANCE, Check
from glassformer.look.trace import trace
from glassformer.model import DecoderOnly, EncoderDecoder, Transformer
from glassformer.model.attention import ScaledDotProduct, attention
from glassformer.model.masks import look_ahead_mask
from glassformer.verify.samples import Sample, make_sample, run

Pairs = list[tuple[Tensor, Tensor]]  # what must be the same
States = Callable[..., Tensor]  # of ids, maybe with a cache
CHUNKS = (3, 1)  # tokens that a cached decoder gets at its first steps; then all others one by one


@torch.inference_mode()
def check_passes(model: Transformer) -> list[Check]:
    """The first says whether the weights are numbers; without that there are no others."""
    model.eval()
    weights = _weights(model)
    if not weights.passed:
        return [weights]
    sample = make_sample(model)
    checks = [weights, _fused(model, sample), _traced(model, sample), _alone(model, sample)]
    if isinstance(model, (EncoderDecoder, DecoderOnly)):
        checks += [_cached(model, sample), _blind(model, sample)]
    return checks


def _weights(model: nn.Module) -> Check:
    bad = [name for name, p in model.named_parameters() if not bool(p.isfinite().all())]
    n = sum(p.numel() for p in model.parameters())
    return Check("the weights are finite numbers", not bad, f"not in {', '.join(bad)}" if bad else f"{n:,} of them")


def _compare(name: str, pairs: Pairs) -> Check:
    """Numbers that must be the same but for their last digits."""
    worst = max(float((a - b).abs().max()) / max(1.0, float(b.abs().max())) for a, b in pairs)
    n = sum(a.numel() for a, _ in pairs)
    finite = all(bool(a.isfinite().all()) for a, _ in pairs)
    return Check(name, finite and worst <= TOLERANCE, f"largest difference {worst:.1e} in {n:,} numbers")


def _fused(model: Transformer, sample: Sample) -> Check:
    """Every attention of a pass, done again by the formula of the paper."""
    pairs: Pairs = []

    def again(_: nn.Module, inputs: tuple[Any, ...], z: Tensor) -> None:
        q, k, v, mask, causal = inputs
        k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], dim=1) for t in (k, v))
        seen = look_ahead_mask(q.shape[2], k.shape[2], q.device) if causal else mask
        pairs.append((z, attention(q, k, v, seen)[0]))

    cores = [module for module in model.modules() if isinstance(module, ScaledDotProduct)]
    handles = [core.register_forward_hook(again) for core in cores]
    try:
        run(model, sample)
    finally:
        for handle in handles:
            handle.remove()
    return _compare("fused attention = softmax(QKᵀ/√d_k) V by the textbook", pairs)


def _traced(model: Transformer, sample: Sample) -> Check:
    plain = run(model, sample)
    with trace(model) as seen:
        watched = run(model, sample)
    same = torch.equal(plain, watched)
    found = f"{len(seen.names)} points seen, {'to the bit' if same else 'not to the bit'}"
    return Check("looked at = not looked at", same, found)


def _alone(model: Transformer, sample: Sample) -> Check:
    """Rows of a batch, beside longer ones and padding, and each by itself."""
    together, pairs = run(model, sample), []
    for i in range(len(together)):
        alone = run(model, sample.row(i))[0]
        if together.dim() == 3:  # something for each position, those of padding too
            pairs.append((together[i][-len(alone) :] if sample.on_the_left else together[i][: len(alone)], alone))
        else:
            pairs.append((together[i], alone))
    return _compare("alone = in a batch, padded", pairs)


def _decoder(model: EncoderDecoder | DecoderOnly, sample: Sample) -> tuple[Tensor, int, States]:
    """The tokens that a decoder reads, how many there are to choose from, and how it comes to its states."""
    if isinstance(model, DecoderOnly):
        return sample.source, model.settings.source.vocab_size, lambda ids, cache=None: model.states(ids, cache=cache)
    memory = model.encode(sample.source, sample.keep)
    assert sample.target is not None
    states: States = lambda ids, cache=None: model.decode(ids, memory, cache=cache)  # noqa: E731
    return sample.target, model.settings.target.vocab_size, states


def _cached(model: EncoderDecoder | DecoderOnly, sample: Sample) -> Check:
    ids, _, states = _decoder(model, sample)
    b, n = ids.shape
    first = list(CHUNKS) if n > sum(CHUNKS) else []
    cache = model.new_cache(b, n)
    sizes = [*first, *[1] * (n - sum(first))]
    steps = [states(part, cache) for part in torch.split(ids, sizes, dim=1)]
    return _compare("step by step with a cache = all at once", [(torch.cat(steps, dim=1), states(ids))])


def _blind(model: EncoderDecoder | DecoderOnly, sample: Sample) -> Check:
    """Other tokens from the middle on must not change what was thought before it."""
    ids, n_known, states = _decoder(model, sample)
    middle = max(1, ids.shape[1] // 2)
    others = torch.cat([ids[:, :middle], (ids[:, middle:] + 1) % n_known], dim=1)
    return _compare("no position sees what comes after it", [(states(others)[:, :middle], states(ids)[:, :middle])])
