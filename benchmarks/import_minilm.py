"""MiniLM-L6 imported: hidden states beside transformers', embeddings beside sentence-transformers', and back again.

GLASSFORMER_DATA=… .venv-peers/bin/python -m benchmarks.import_minilm
"""

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
import torch

from benchmarks.environment import describe, need_peers, stop, table, write_result
from benchmarks.minilm import minilm_folder, sentences

TOLERANCE = 1e-5


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--no-result", action="store_true")
    given = parser.parse_args()
    need_peers("transformers", "sentence_transformers")
    os.environ["HF_HUB_OFFLINE"] = "1"
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel, AutoTokenizer

    import glassformer
    from glassformer.exchange.huggingface_export import write_huggingface
    from glassformer.exchange.importing import import_model
    from glassformer.model import EncoderOnly
    from glassformer.tasks.embedder import Embedder

    environment, texts, folder = describe(), sentences(given.sentences), minilm_folder()
    with tempfile.TemporaryDirectory() as scratch:
        report = import_model(folder, Path(scratch) / "minilm")
        ours = glassformer.load(Path(scratch) / "minilm")
        assert isinstance(ours, Embedder)
        write_huggingface(ours.loaded, Path(scratch) / "back")
        vectors = ours.embed(texts)
        theirs, back = (SentenceTransformer(str(f), device="cpu") for f in (folder, Path(scratch) / "back"))
        peers, again = theirs.encode(texts), back.encode(texts)
        model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    encoder, words = ours.loaded.model, ours.loaded.tokenizer
    assert isinstance(encoder, EncoderOnly)
    differences, same = [], 0
    for first, second in zip(texts, texts[1:] + texts[:1], strict=True):  # alone, and as pairs with types
        rows = tokenizer(first, second, return_tensors="pt", truncation=True, max_length=512)
        mine = encoder.states(rows["input_ids"], types=rows["token_type_ids"]).x
        differences.append(float((mine - model(**rows).last_hidden_state).abs().max()))
        marks = words.marks
        same += tokenizer(first).input_ids == [marks.start, *words.encode(first), *marks.ends]
    far = float(np.max(differences))  # a NaN would stay one
    near, returned = float(np.abs(vectors - peers).max()), float(np.abs(again - peers).max())
    rows_of = [
        ["check", "found", "needed", "holds"],
        ["tokens equal transformers'", f"{same} of {len(texts)} texts", "all", same == len(texts)],
        ["hidden states beside transformers', pairs", f"{far:.1e}", f"at most {TOLERANCE:.0e}", far <= TOLERANCE],
        ["vectors beside sentence-transformers'", f"{near:.1e}", f"at most {TOLERANCE:.0e}", near <= TOLERANCE],
        [
            "exported again, by sentence-transformers",
            f"{returned:.1e}",
            f"at most {TOLERANCE:.0e}",
            returned <= TOLERANCE,
        ],
    ]
    print(table(rows_of))
    if not given.no_result:
        data = {"report": report, "states": far, "vectors": near, "exported": returned, "tokens": same}
        write_result("import-minilm", environment, data, {f"MiniLM-L6, {len(texts)} sentences": rows_of})
    if not all(row[-1] for row in rows_of[1:]):
        stop(f"Not equal: {rows_of[1:]}")


if __name__ == "__main__":
    main()
