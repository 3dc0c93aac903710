"""GLUE's dev figure of the same encoder fine-tuned by Hugging Face transformers: what its weights are good for.

    .venv-peers/bin/python -m benchmarks.glue_peer --task CoLA --from runs/minilm
    .venv-peers/bin/python -m benchmarks.glue_peer --task RTE --from runs/minilm --epochs 8

Our export of the model, their BertForSequenceClassification, AdamW, a learning rate that falls to zero, as their own
example does it. Dev is looked at after every epoch: its last figure is honest, its best one is what papers report.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.environment import data_folder, describe, need_peers, read_lines, settings_of, stop, table, write_result
from benchmarks.glue import GLASSFORMER, TASKS

COLUMNS = {"CoLA": (3, None, 1), "SST-2": (0, None, 1), "RTE": (1, 2, 3)}  # text, second text, label
LONGEST = 128  # tokens, as in their example

Example = tuple[str, str | None, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--task", choices=list(TASKS), required=True)
    parser.add_argument("--from", dest="start", required=True, help="a model of ours, imported or trained")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=5e-5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-result", action="store_true", help="for trying it out: write no file")
    given = parser.parse_args()
    need_peers("transformers")
    environment, (metric, published) = describe(), TASKS[given.task]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        command = [*GLASSFORMER, "export", given.start, "--to", "huggingface", "--out", str(folder)]
        if subprocess.run(command, stdout=subprocess.DEVNULL).returncode:
            stop("The export failed; its own words are above.")
        epochs = fine_tune(folder, given)
    rows = [["after epoch", f"{metric} × 100", "minutes"], *([e["epoch"], e["score"], e["minutes"]] for e in epochs)]
    rows += [["best of them", max(e["score"] for e in epochs), ""], ["MiniLM-L6, published", published, ""]]
    print(table(rows))
    if not given.no_result:
        data = {"settings": settings_of(given), "metric": metric, "epochs": epochs}
        write_result(f"glue-peer-{given.task.lower()}", environment, data, {f"{given.task} dev, transformers": rows})


def fine_tune(folder: Path, given: argparse.Namespace) -> list[dict[str, Any]]:
    """What dev says after each epoch."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, get_linear_schedule_with_warmup

    torch.manual_seed(given.seed)
    train, dev = examples(given.task, "train"), examples(given.task, "dev")
    names = sorted({label for _, _, label in train})
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=len(names))
    words = AutoTokenizer.from_pretrained(folder)

    def read(part: list[Example]) -> Any:
        pair = [text for text, _, _ in part], [second for _, second, _ in part if second is not None] or None
        return words(*pair, truncation=True, max_length=LONGEST, padding=True, return_tensors="pt")

    optimizer = torch.optim.AdamW(model.parameters(), lr=given.lr, weight_decay=0.01)
    n_steps = given.epochs * -(-len(train) // given.batch)
    schedule = get_linear_schedule_with_warmup(optimizer, n_steps // 10, n_steps)
    order, began, found = random.Random(given.seed), time.monotonic(), []
    for epoch in range(1, given.epochs + 1):
        model.train()
        order.shuffle(train)
        for at in range(0, len(train), given.batch):
            part = train[at : at + given.batch]
            labels = torch.tensor([names.index(label) for _, _, label in part])
            model(**read(part), labels=labels).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        model.eval()
        with torch.inference_mode():
            said = [int(i) for at in range(0, len(dev), 64) for i in model(**read(dev[at : at + 64])).logits.argmax(1)]
        score = measure(given.task, [names[i] for i in said], [label for _, _, label in dev])
        found.append({"epoch": epoch, "score": score, "minutes": (time.monotonic() - began) / 60})
        print(f"epoch {epoch}: {score:.2f} after {found[-1]['minutes']:.1f} minutes", file=sys.stderr, flush=True)
    return found


def measure(task: str, said: list[str], wanted: list[str]) -> float:
    from sklearn.metrics import accuracy_score, matthews_corrcoef

    return 100 * float({"accuracy": accuracy_score, "matthews": matthews_corrcoef}[TASKS[task][0]](wanted, said))


def examples(task: str, part: str) -> list[Example]:
    """GLUE's own files; CoLA's have no header."""
    lines = read_lines(data_folder(f"glue/{task}") / f"{part}.tsv")[0 if task == "CoLA" else 1 :]
    first, second, label = COLUMNS[task]
    rows = [line.split("\t") for line in lines]
    return [(row[first], None if second is None else row[second], row[label]) for row in rows]


if __name__ == "__main__":
    main()
