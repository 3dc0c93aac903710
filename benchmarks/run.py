"""`make bench`: the measurements that take minutes, one after the other; and what the long ones are.

.venv-peers/bin/python -m benchmarks.run
"""

import subprocess
import sys

from benchmarks.environment import ROOT, data_folder, need_peers

QUICK = {
    "training speed beside Hugging Face, OpenNMT-py, eole and a plain loop, about 20 minutes": [
        "benchmarks.train_speed",
        *("--rounds", "5", "--seconds", "30"),
    ],
    "translation speed beside CTranslate2 by hand and Hugging Face, about 25 minutes": [
        "benchmarks.translate_speed",
        *("--rounds", "5"),
    ],
}
LONG = {
    "python -m benchmarks.kill": "20 runs killed and resumed, about 10 minutes",
    "python -m benchmarks.multi30k --minutes 15": "cased BLEU after 15 minutes from raw files, about 17 minutes",
    "python -m benchmarks.multi30k --tiny --seeds 1 2": "the published shape and figure, up to 2 hours a seed",
}


def main() -> None:
    data_folder("translation/multi30k")
    need_peers("transformers", "onmt", "eole")
    failed = 0
    for what, command in QUICK.items():
        print(f"Now: {what}.", file=sys.stderr, flush=True)
        failed += subprocess.run([sys.executable, "-m", *command], cwd=ROOT).returncode != 0
    print("\nNot run here, because they are long:", file=sys.stderr)
    for command, what in LONG.items():
        print(f"  {command:<52}{what}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
