"""Voice commands, spoken by espeak-ng: commands heard by voices never heard before, and other sentences refused.

    python -m benchmarks.commands            # about 35 minutes; needs espeak-ng (Debian: espeak-ng)

The recogniser learns the commands, and other sentences made of many words at random, from some voices at several speeds
and pitches; other voices say the commands, and sentences that were never learned, as a test.
"""

import argparse
import itertools
import json
import random
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.environment import ROOT, describe, settings_of, stop, table, write_result
from benchmarks.speech import GLASSFORMER, Listed, train, write_list

RECIPE = ROOT / "recipes" / "commands.toml"
COMMANDS = [
    f"show me my {what} please"
    for what in ("files", "pictures", "letters", "music", "messages", "photos", "directories", "songs")
] + ["open the window", "close the window", "stop the music", "what time is it", "good night", "play the next song"]
# What other sentences are made of: words of every day, those of the commands among them.
WORDS = (ROOT / "benchmarks" / "words.txt").read_text().split()
N_OTHERS = 2000
OUTSIDE = [
    "show me my money please",
    "open the bottle",
    "what a lovely evening",
    "the cat sat on the mat",
    "stop the car",
    "play the piano",
    "close the book",
    "show your pictures",
    "where is my hat",
    "we like music",
    "good luck",
    "how old are you",
]
LEARNED = ("en-us+m1", "en-us+m3", "en-us+f1", "en-us+f2", "en-gb+m2", "en-gb+m4", "en-gb+f3", "en-gb+m7")
UNSEEN = ("en-us+m5", "en-gb+f4", "en-gb+m6")
SPEEDS, PITCHES = (130, 150, 170, 190), (40, 55)
TEST = ((140, 160, 180), (50,))

Way = tuple[str, str, int, int]  # text, voice, speed, pitch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--recipe", type=Path, default=RECIPE)
    parser.add_argument("--minutes", type=float, help="instead of the recipe's")
    parser.add_argument("--threshold", type=float, default=0.5)
    parser.add_argument("--out", type=Path, help="keep the model in this folder")
    parser.add_argument("--no-result", action="store_true", help="for trying it out: write no file")
    given = parser.parse_args()
    if shutil.which("espeak-ng") is None:
        stop("espeak-ng is not installed: apt install espeak-ng.")
    environment = describe()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        learned = [*ways(COMMANDS, LEARNED, SPEEDS, PITCHES), *other_sentences()]
        data = write_list(folder / "train.tsv", speak(folder / "train", learned))
        inside = speak(folder / "inside", ways(COMMANDS, UNSEEN, *TEST))
        outside = speak(folder / "outside", ways(OUTSIDE, UNSEEN, *TEST))
        model = given.out or folder / "model"
        changes = [f"train.minutes={given.minutes}"] if given.minutes else []
        minutes = train(data, model, given.recipe, changes=changes)
        (folder / "commands.txt").write_text("\n".join(COMMANDS) + "\n")
        heard = [listen(model, folder / "commands.txt", listed, given.threshold) for listed in (inside, outside)]
    right = sum(answer["command"] == text for answer, (_, text) in zip(heard[0], inside, strict=True)) / len(inside)
    refused = sum(answer["command"] is None for answer in heard[1]) / len(outside)
    rows = [
        ["test", "recordings", "right", "minutes of training"],
        ["commands by unseen voices", len(inside), f"{right:.1%}", minutes],
        ["other sentences refused", len(outside), f"{refused:.1%}", ""],
    ]
    print(table(rows))
    if not given.no_result:
        kept = {
            "settings": settings_of(given),
            "right": right,
            "refused": refused,
            "heard": [nameless(answers) for answers in heard],
        }
        write_result("commands", environment, kept, {"Voice commands": rows})


def ways(texts: list[str], voices: Any, speeds: Any, pitches: Any) -> list[Way]:
    """Each sentence by each voice at each speed and pitch."""
    return list(itertools.product(texts, voices, speeds, pitches))


def other_sentences() -> list[Way]:
    """Sentences that mean nothing, each said once by somebody; none that is a command or will be asked for."""
    draw = random.Random(1)
    taken = {*COMMANDS, *OUTSIDE}
    found: list[Way] = []
    while len(found) < N_OTHERS:
        text = " ".join(draw.choices(WORDS, k=draw.randint(2, 6)))
        if text not in taken:
            found.append((text, draw.choice(LEARNED), draw.choice(SPEEDS), draw.choice(PITCHES)))
    return found


def speak(folder: Path, said: list[Way]) -> list[Listed]:
    folder.mkdir()
    listed = []
    for i, (text, voice, speed, pitch) in enumerate(said):
        path = folder / f"{i}.wav"
        subprocess.run(
            ["espeak-ng", "-v", voice, "-s", str(speed), "-p", str(pitch), "-w", str(path), text], check=True
        )
        listed.append((path, text))
    return listed


def nameless(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the paths of this machine."""
    return [{**answer, "file": Path(answer["file"]).name} for answer in answers]


def listen(model: Path, commands: Path, listed: list[Listed], threshold: float) -> list[dict[str, Any]]:
    """What `glassformer listen` says to each recording."""
    command = [*GLASSFORMER, "listen", str(model), "--commands", str(commands), "--threshold", str(threshold), "--json"]
    done = subprocess.run([*command, *(str(path) for path, _ in listed)], capture_output=True, text=True)
    if done.returncode:
        stop(f"Listening failed: {done.stderr[-1000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


if __name__ == "__main__":
    main()
