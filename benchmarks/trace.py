"""A full trace beside TransformerLens on GPT-2 with the same random weights: equal activations, time and memory.

The peer is its HookedTransformer, which computes by modules of its own; version 3.9 is the last that has it.

OMP_NUM_THREADS=1 taskset -c 1 .venv-peers/bin/python -W ignore -m benchmarks.trace --rounds 5
"""

import argparse
import ctypes
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.environment import describe, in_own_process, need_peers, settings_of, stop, write_result
from glassformer.look import trace
from glassformer.model import DecoderOnly, build
from glassformer.sizes import load_size

TOLERANCE = 1e-4
DROPPED = "head.probabilities"  # the peer keeps none


def make_ours(size: str) -> DecoderOnly:
    torch.manual_seed(0)
    model = build(load_size(size))
    assert isinstance(model, DecoderOnly)
    with torch.no_grad():
        for p in model.parameters():  # biases and norms that are not all zero or one
            p.add_(torch.randn_like(p) * 0.02)
    return model.eval()


def make_theirs(ours: DecoderOnly) -> Any:
    """The same weights in TransformerLens's own class."""
    from transformer_lens import HookedTransformer, HookedTransformerConfig

    s, a = ours.settings.decoder, ours.settings.decoder.attention
    config = HookedTransformerConfig(
        n_layers=s.n_layers,
        d_model=s.d_model,
        n_ctx=ours.source.positions.table.shape[0],
        d_head=s.d_k,
        n_heads=a.n_heads,
        d_mlp=s.feed_forward.d_ff,
        act_fn="gelu_new",
        d_vocab=ours.settings.source.vocab_size,
        normalization_type="LN",
        eps=s.norm.eps,
        device="cpu",
    )
    theirs = HookedTransformer(config)
    state = {name: value for name, value in theirs.state_dict().items() if "mask" in name or "IGNORE" in name}
    state["embed.W_E"], state["pos_embed.W_pos"] = ours.source.embedding.weight, ours.source.positions.table
    state["unembed.W_U"], state["unembed.b_U"] = ours.head.w.weight.T, torch.zeros(config.d_vocab)
    state["ln_final.w"], state["ln_final.b"] = ours.decoder.norm.weight, ours.decoder.norm.bias
    h, d = a.n_heads, s.d_model
    for i, block in enumerate(ours.decoder.blocks):
        attention, feed, at = block.self_attention, block.feed_forward, f"blocks.{i}"
        for letter in "qkv":
            linear = getattr(attention, f"w_{letter}")
            state[f"{at}.attn.W_{letter.upper()}"] = linear.weight.view(h, -1, d).transpose(1, 2)
            state[f"{at}.attn.b_{letter.upper()}"] = linear.bias.view(h, -1)
        state[f"{at}.attn.W_O"] = attention.w_o.weight.view(d, h, -1).permute(1, 2, 0)
        state[f"{at}.attn.b_O"] = attention.w_o.bias
        state[f"{at}.mlp.W_in"], state[f"{at}.mlp.b_in"] = feed.w_1.weight.T, feed.w_1.bias
        state[f"{at}.mlp.W_out"], state[f"{at}.mlp.b_out"] = feed.w_2.weight.T, feed.w_2.bias
        for name, residual in (("ln1", block.self_residual), ("ln2", block.feed_forward_residual)):
            state[f"{at}.{name}.w"], state[f"{at}.{name}.b"] = residual.norm.weight, residual.norm.bias
    theirs.load_state_dict({name: value.detach().clone() for name, value in state.items()})
    return theirs.eval()


def shared(ours_model: DecoderOnly) -> dict[str, tuple[str, Callable[[Tensor], Tensor]]]:
    """Their name -> our name, and how their layout becomes ours."""

    def same(t: Tensor) -> Tensor:
        return t

    def heads(t: Tensor) -> Tensor:
        return t.transpose(1, 2)  # (b, n, h, d) -> (b, h, n, d)

    def one_row(t: Tensor) -> Tensor:
        return t[0]

    def stretched(norm: Any) -> Callable[[Tensor], Tensor]:
        return lambda t: t * norm.weight + norm.bias  # they look before the learned factors, we behind them

    decoder = ours_model.decoder
    names = {
        "hook_embed": ("source.embedding", same),
        "hook_pos_embed": ("source.positions", one_row),
        "ln_final.hook_scale": ("decoder.scale", same),
        "ln_final.hook_normalized": ("decoder.norm", stretched(decoder.norm)),
    }
    for i, block in enumerate(decoder.blocks):
        first, second = block.self_residual.norm, block.feed_forward_residual.norm
        theirs, ours = f"blocks.{i}", f"decoder.blocks.{i}"
        attention, feed = f"{ours}.self_attention", f"{ours}.feed_forward"
        names |= {
            f"{theirs}.hook_resid_pre": (f"{ours}.self_residual.before", same),
            f"{theirs}.ln1.hook_scale": (f"{ours}.self_residual.scale", same),
            f"{theirs}.ln1.hook_normalized": (f"{ours}.self_residual.norm", stretched(first)),
            f"{theirs}.attn.hook_q": (f"{attention}.q", heads),
            f"{theirs}.attn.hook_k": (f"{attention}.k", heads),
            f"{theirs}.attn.hook_v": (f"{attention}.v", heads),
            f"{theirs}.attn.hook_attn_scores": (f"{attention}.scores", same),
            f"{theirs}.attn.hook_pattern": (f"{attention}.weights", same),
            f"{theirs}.attn.hook_z": (f"{attention}.z", heads),
            f"{theirs}.hook_attn_out": (f"{attention}.out", same),
            f"{theirs}.hook_resid_mid": (f"{ours}.self_residual.after", same),
            f"{theirs}.ln2.hook_scale": (f"{ours}.feed_forward_residual.scale", same),
            f"{theirs}.ln2.hook_normalized": (f"{ours}.feed_forward_residual.norm", stretched(second)),
            f"{theirs}.mlp.hook_pre": (f"{feed}.w_1", same),
            f"{theirs}.mlp.hook_post": (f"{feed}.hidden", same),
            f"{theirs}.hook_mlp_out": (f"{feed}.out", same),
            f"{theirs}.hook_resid_post": (f"{ours}.feed_forward_residual.after", same),
        }
    return names


def compare(ours: DecoderOnly, theirs: Any, ids: Tensor) -> dict[str, Any]:
    """The largest difference of all activations that both have; masked scores are minus infinity on both sides."""
    with trace(ours, drop=DROPPED) as seen:
        logits = ours(ids)
    their_logits, cache = theirs.run_with_cache(ids)
    names = shared(ours)
    unknown = sorted(set(cache.keys()) - set(names))
    worst = {"logits": float((logits - their_logits).abs().max())}
    for name, (own, arrange) in names.items():
        a, b = arrange(cache[name]), seen[own]
        open_ = b.isfinite()
        worst[name] = float((a - b)[open_].abs().max())
    return {
        "compared": len(worst),
        "worst": max(worst.values()),
        "at": max(worst, key=worst.__getitem__),
        "theirs_only": unknown,
        "ours_only": len(set(seen.names) - {own for own, _ in names.values()}),
    }


def clock(run: Callable[[], object]) -> float:
    """Seconds of this process's own, whatever else the machine is doing."""
    start = time.process_time()
    run()
    return time.process_time() - start


def full_trace(model: DecoderOnly, ids: Tensor) -> None:
    with trace(model, drop=DROPPED):
        model(ids)


def times(ours: DecoderOnly, theirs: Any, ids: Tensor, rounds: int) -> dict[str, float]:
    """Medians over interleaved rounds, in seconds of processor time."""
    runs: dict[str, Callable[[], object]] = {
        "ours, plain pass": lambda: ours(ids),
        "ours, full trace": lambda: full_trace(ours, ids),
        "TransformerLens, plain pass": lambda: theirs(ids),
        "TransformerLens, full trace": lambda: theirs.run_with_cache(ids),
    }
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds + 1):
        for name, run in runs.items():
            found[name].append(clock(run))
    return {name: statistics.median(seconds[1:]) for name, seconds in found.items()}  # the first warms up


def cost_when_off(rounds: int) -> dict[str, float]:
    """A small model that was traced before beside its twin that never was: a small one shows overhead best.

    Whatever disturbs makes a pass slower, never faster: the fastest tenth of each tells.
    """
    traced, untouched = make_ours("complete-tiny"), make_ours("complete-tiny")
    ids = torch.randint(100, (1, 16))
    full_trace(traced, ids)
    pairs = []
    for i in range(rounds * 100):
        order = (traced, untouched) if i % 2 else (untouched, traced)
        seconds = {id(model): clock(lambda model=model: model(ids)) for model in order}
        pairs.append((seconds[id(traced)], seconds[id(untouched)]))
    a, b = (statistics.quantiles(side, n=10)[0] for side in zip(*pairs, strict=True))
    return {"traced before": a, "never traced": b, "ratio": a / b}


def measure_memory(order: dict[str, Any]) -> None:
    """In a process of its own: how far one full trace raises the most memory ever held, in megabytes."""
    ours = make_ours(order["size"])
    ids = torch.randint(1000, (1, order["length"]), generator=torch.Generator().manual_seed(1))
    model = ours if order["system"] == "ours" else make_theirs(ours)
    if order["system"] != "ours":
        del ours
    model(ids)
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # what the pass before has left behind
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before = _status("VmRSS")
    if order["system"] == "ours":
        with trace(model, drop=DROPPED) as seen:
            model(ids)
        held = seen.n_bytes / 2**20
    else:
        _, cache = model.run_with_cache(ids)
        stores = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in cache.cache_dict.values()}
        held = sum(stores.values()) / 2**20
    print("METER " + json.dumps({"peak_mb": _status("VmHWM") - before, "held_mb": held}))


def _status(name: str) -> float:
    """A line of what Linux knows about this process, in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1024


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="gpt-2")
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--no-result", action="store_true")
    given = parser.parse_args()
    need_peers("transformer_lens")
    torch.set_num_threads(1)
    if given.work:
        return measure_memory(json.loads(given.work))
    environment = describe()
    ours = make_ours(given.size)
    theirs = make_theirs(ours)
    ids = torch.randint(1000, (1, given.length), generator=torch.Generator().manual_seed(1))
    equal = compare(ours, theirs, ids)
    print(equal)
    seconds = times(ours, theirs, ids, given.rounds)
    off = cost_when_off(given.rounds)
    del ours, theirs
    order = {"size": given.size, "length": given.length}
    memory = {s: in_own_process("benchmarks.trace", order | {"system": s}, 1) for s in ("ours", "TransformerLens")}
    rows = [["", "plain pass, CPU s", "full trace, CPU s", "trace / pass", "trace holds, MB", "peak rises by, MB"]]
    for name in ("ours", "TransformerLens"):
        plain, full = seconds[f"{name}, plain pass"], seconds[f"{name}, full trace"]
        rows.append([name, plain, full, full / plain, memory[name]["held_mb"], memory[name]["peak_mb"]])
    checks = [
        ["check", "found"],
        ["activations compared", equal["compared"]],
        ["largest difference", f"{equal['worst']:.1e} at {equal['at']}, tolerance {TOLERANCE:.0e}"],
        ["only theirs", ", ".join(equal["theirs_only"]) or "none"],
        ["tensors that only ours keeps", equal["ours_only"]],
        ["pass of a model traced before / never traced", f"{off['ratio']:.3f}"],
    ]
    title = f"{given.size}, {given.length} tokens, one row, one thread, median of {given.rounds} interleaved rounds"
    print(rows, checks)
    if not given.no_result:
        data = {"settings": settings_of(given), "equal": equal, "seconds": seconds, "off": off, "memory": memory}
        write_result("trace", environment, data, {title: rows, "Equality and cost when off": checks})
    if equal["worst"] > TOLERANCE:
        stop(f"{equal['at']} differs by {equal['worst']:.1e}.")
    return None


if __name__ == "__main__":
    main()
