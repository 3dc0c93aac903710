"""A llama2.c model imported: greedy text as llama2.c writes it, logits as Hugging Face's Llama computes them.

GLASSFORMER_DATA=… python -m benchmarks.import_stories
"""

import argparse
import hashlib
import tempfile
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from benchmarks.environment import data_folder, describe, need_peers, stop, write_result
from glassformer.exchange.foreign import Foreign, to_halves
from glassformer.exchange.importing import import_model, read_foreign
from glassformer.exchange.proof import continue_greedily
from glassformer.model import DecoderOnly
from glassformer.tasks.model_dir import load_model

# How llama2.c's own program goes on from nothing with this model at temperature 0.
KNOWN = "Once upon a time, there was a little girl named Lily. She loved to play outside in the park."
# llama2.c's page about the model shows its whole answer of 256 steps; these are the first digits of its SHA-256.
KNOWN_WHOLE = "30b2ffb07967"
N_TOKENS = 256
TOLERANCE = 1e-4


def theirs(foreign: Foreign) -> LlamaForCausalLM:
    """The same weights in Hugging Face's own class, which nothing of ours converts but the order of rows."""
    keys = ("architectures", "model_type")
    config = LlamaConfig(**{key: value for key, value in foreign.config.items() if key not in keys})
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    state = {
        name: to_halves(weight, heads[part]) if (part := name.split(".")[-2]) in heads else weight
        for name, weight in foreign.weights.items()
    }
    if config.tie_word_embeddings:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model = LlamaForCausalLM(config)
    model.load_state_dict(state)
    return model.eval()


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-result", action="store_true")
    given = parser.parse_args()
    need_peers("transformers")
    source = data_folder("weights/stories260k") / "stories260K.bin"
    with tempfile.TemporaryDirectory() as scratch:
        report = import_model(source, Path(scratch) / "stories")
        loaded = load_model(Path(scratch) / "stories")
    model, tokenizer, peer = loaded.model, loaded.tokenizer, theirs(read_foreign(source))
    assert isinstance(model, DecoderOnly)
    ids = continue_greedily(model, tokenizer, "", N_TOKENS)
    start = torch.tensor([[tokenizer.marks.start]])
    peer_ids = peer.generate(start, max_new_tokens=N_TOKENS, do_sample=False, eos_token_id=list(tokenizer.marks.ends))
    text = tokenizer.decode(ids)
    batch = torch.randint(len(report["ends"]), report["rows"], (4, 256), generator=torch.Generator().manual_seed(0))
    difference = max(float((model(x) - peer(x).logits).abs().max()) for x in (torch.tensor([ids]), batch))
    rows = [
        ["check", "found", "needed", "holds"],
        ["text begins as llama2.c's", f"{len(text)} characters", f"{len(KNOWN)} of them known", text.startswith(KNOWN)],
        ["text of 256 tokens is llama2.c's", sha256(text), KNOWN_WHOLE, sha256(text) == KNOWN_WHOLE],
        ["greedy tokens equal Hugging Face's Llama", len(ids) - 1, "all", ids == peer_ids[0, : len(ids)].tolist()],
        ["largest difference of logits", f"{difference:.1e}", f"at most {TOLERANCE:.0e}", difference <= TOLERANCE],
    ]
    data = {"report": report, "text": text, "ids": ids, "difference": difference}
    print(text)
    if not given.no_result:
        write_result("import-stories", describe(), data, {"stories260K, imported from llama2.c": rows})
    if not all(row[-1] for row in rows[1:]):
        stop(f"Not equal: {rows[1:]}")


if __name__ == "__main__":
    main()
