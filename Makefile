# Two commands set everything up: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
# Threads that spin while they wait slow each other down on a busy machine.
export OMP_WAIT_POLICY := passive
export OPENBLAS_NUM_THREADS := 1
# Or every process that a test starts would compile all of the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test quick torture fuzz check bench bench-full bench-peers clean

demo: .venv/demo-ready
	$(BIN)/sle demo

# A file is looked into when it is its turn: nobody knows before how many tests there are.
PYTEST := $(BIN)/python -m pytest --file-by-file -o console_output_style=classic

# Three processes on two cores: Spark, Dask and browsers make theirs wait.
test: .venv/dev-ready
	$(PYTEST) -n 3

# The laws and units of arrays, methods, annotators, stores and readers; `SLOW` in tests/conftest.py
# says what else there is.
quick: .venv/dev-ready
	$(PYTEST) -n 2 -m "not slow" --ignore src/slencodings/torch

# What chance finds, not in CI: `make torture MINUTES=60`. Counts at the end; 1 if anything failed.
MINUTES ?= 10
torture: .venv/dev-ready
	PYTHONPATH=src:tests $(BIN)/python -m torture --minutes $(MINUTES)

# The fuzzer of `make torture` alone, until each format of files has had an hour in all; several at
# once take different readers.
fuzz: .venv/dev-ready
	PYTHONPATH=src:tests $(BIN)/python -m torture.fuzz --each 3600
	PYTHONPATH=src:tests $(BIN)/python -m torture.fuzz --pack

check: .venv/dev-ready
	scripts/check

# Minutes, anew every time; against those peers that are there.
bench: .venv/dev-ready
	$(BIN)/python -m benchmarks --again

# Less than an hour; what is interrupted goes on when it is called again.
bench-full: .venv/dev-ready bench-peers
	$(BIN)/python -m benchmarks --full --write

bench-peers: .venv/dev-ready
	$(BIN)/python -m benchmarks.peers

clean:
	rm -rf .venv

# On one core pip would compile every module that it installs, also thousands that nobody imports
# here: tests of packages, and other people's models. What is left is compiled on all cores; what is
# no Python, such as templates, is passed over.
PIP := $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt
COMPILE := $(BIN)/python -m compileall -qq -j 0 -x '/(tests?|transformers/models)/' .venv/lib || true

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/demo-ready: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable '.[demo]'
	$(COMPILE)
	touch $@

.venv/dev-ready: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable '.[dev]'
	$(COMPILE)
	touch $@ .venv/demo-ready
