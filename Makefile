# Each target sets up what it needs by itself; the second time it is quick.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint bench clean

demo: $(VENV)/.core
	$(BIN)/python -m transduce.demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip

# The library as a user gets it, with the runtime of the default encoder.
$(VENV)/.core: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable ".[onnx]"
	touch $@

# Everything the tests, the linters and the benchmarks need.
$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable ".[all]" --group dev
	touch $(VENV)/.core $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
