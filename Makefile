# Two commands for a newcomer: `make demo` and `make test`. Both set everything up the first time.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test check slow bench peers format clean

demo: $(READY)
	$(BIN)/python demos/dates.py

# One thread for each of two workers: more would wait for each other.
test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

slow: $(READY)
	$(BIN)/python -m pytest -m slow

bench: peers
	.venv-peers/bin/python -m benchmarks.run

# The systems that we measure ourselves against, in an environment of their own.
peers: .venv-peers/.ready
.venv-peers/.ready: benchmarks/peers.sh benchmarks/peers-requirements.txt constraints.txt
	PYTHON=$(PYTHON) benchmarks/peers.sh
	touch $@

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# torch goes first and pinned: without the pin pip would fetch gigabytes for graphics cards.
$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache dist
