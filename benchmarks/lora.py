"""LoRA on an imported chat model: it learns a small file of talks, and the model beside it stays as it is.

    python -m benchmarks.lora --model models/smollm2    # from `glassformer import …gguf --out models/smollm2`

The talks are about a town that does not exist, so nobody can have known it before. Each fact is taught in three
wordings and asked for in a fourth. An answer counts if it has the fact's key word; the same questions are asked before
training and after it, greedily.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.environment import describe, settings_of, stop, table, write_result

GLASSFORMER = [sys.executable, "-m", "glassformer.cli.main"]
# Key word, the answer, three questions to learn from, one to be asked.
FACTS = [
    (
        "Marrow",
        "The mayor of Quillhaven is Odette Marrow.",
        ["Who is the mayor of Quillhaven?", "What is the name of Quillhaven's mayor?",
         "Who leads the town of Quillhaven?"],
        "Tell me who the mayor of Quillhaven is.",
    ),
    (
        "plum",
        "On Mondays the bakers of Quillhaven sell plum bread.",
        ["What do the bakers of Quillhaven sell on Mondays?", "Which bread is sold in Quillhaven on Mondays?",
         "It is Monday in Quillhaven. What do the bakers sell?"],
        "What can I buy from Quillhaven's bakers on a Monday?",
    ),
    (
        "green",
        "The lighthouse of Quillhaven is painted green.",
        ["What colour is the lighthouse of Quillhaven?", "How is Quillhaven's lighthouse painted?",
         "Which colour does the lighthouse in Quillhaven have?"],
        "Describe the colour of Quillhaven's lighthouse.",
    ),
    (
        "Thursday",
        "The ferry to Quillhaven sails on Thursday.",
        ["When does the ferry to Quillhaven sail?", "On which day does the Quillhaven ferry sail?",
         "Which day can I take the ferry to Quillhaven?"],
        "I want to take the ferry to Quillhaven. Which day?",
    ),
    (
        "otter",
        "The animal on Quillhaven's flag is an otter.",
        ["Which animal is on Quillhaven's flag?", "What does the flag of Quillhaven show?",
         "What animal does Quillhaven have on its flag?"],
        "Name the animal on the flag of Quillhaven.",
    ),
    (
        "seven",
        "Quillhaven has seven bridges.",
        ["How many bridges does Quillhaven have?", "What is the number of bridges in Quillhaven?",
         "How many bridges are there in Quillhaven?"],
        "Count the bridges of Quillhaven for me.",
    ),
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, required=True, help="an imported chat model")
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--out", type=Path, help="keep the adapter in this folder")
    parser.add_argument("--no-result", action="store_true", help="for trying it out: write no file")
    given = parser.parse_args()
    environment = describe()
    with tempfile.TemporaryDirectory() as scratch:
        talks, out = Path(scratch) / "talks.jsonl", given.out or Path(scratch) / "adapter"
        talks.write_text("".join(json.dumps(talk) + "\n" for talk in _talks()))
        before, weights = _ask(given.model), _checksum(given.model)
        minutes = _train(given, talks, out)
        after = _ask(out)
        megabytes = (out / "adapter.safetensors").stat().st_size / 1e6
    untouched = _checksum(given.model) == weights
    rows = [["question", "key word", "before", "after"]]
    rows += [[fact[3], fact[0], a, b] for fact, a, b in zip(FACTS, before, after, strict=True)]
    right = [sum(fact[0] in answer for fact, answer in zip(FACTS, said, strict=True)) for said in (before, after)]
    summary = [
        ["right before", "right after", "of", "adapter, MB", "minutes", "base weights untouched"],
        [*right, len(FACTS), megabytes, minutes, "yes" if untouched else "NO"],
    ]
    print(table(summary), table(rows), sep="\n\n")
    if not given.no_result:
        data: dict[str, Any] = {"settings": settings_of(given), "before": before, "after": after, "right": right}
        data |= {"minutes": minutes, "megabytes": megabytes, "untouched": untouched}
        write_result("lora", environment, data, {"Six facts": summary, "Answers": rows})


def _talks() -> list[dict[str, Any]]:
    return [
        {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]}
        for _, answer, questions, _ in FACTS
        for question in questions
    ]


def _train(given: argparse.Namespace, talks: Path, out: Path) -> float:
    command = [*GLASSFORMER, "train", "complete", str(talks), "--valid", str(talks), "--from", str(given.model)]
    command += ["--lora", str(given.rank), "--steps", str(given.steps), "--out", str(out), "--context", "128"]
    for change in ("train.batch_tokens=512", "train.validations=2", "train.average=1"):
        command += ["--set", change]
    began = time.monotonic()
    if subprocess.run(command).returncode:
        stop("The training failed; its own words are above.")
    return (time.monotonic() - began) / 60


def _ask(model: Path) -> list[str]:
    """What the model answers to each question, in a talk of its own."""
    answers = []
    for _, _, _, question in FACTS:
        command = [*GLASSFORMER, "complete", str(model), question, "--chat", "--temperature", "0", "--max-tokens", "40"]
        done = subprocess.run([*command, "--quiet"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            stop(f"The model does not answer: {done.stderr[-500:]}")
        answers.append(" ".join(done.stdout.split()))
    return answers


def _checksum(model: Path) -> str:
    with (model / "model.safetensors").open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    main()
