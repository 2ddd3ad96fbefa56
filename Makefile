# Each target sets up what it needs by itself; the second time it is quick.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

TOOLS := .venv-exports
.PHONY: demo test test-exports lint docs bench attack wheel-check clean browser

demo: $(VENV)/.core
	$(BIN)/transduce demo

test: $(VENV)/.dev browser
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

# Every export, opened by the tool it is for; the tools are large and have an environment of their own.
test-exports: $(VENV)/.dev $(TOOLS)/.ready
	TRANSDUCE_EXPORT_TOOLS=$(CURDIR)/$(TOOLS)/bin/python $(BIN)/python -m pytest tests/exports_in_tools

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, in build/site/index.html; strict: a dead link or an undocumented name fails.
docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "Look at build/site/index.html"

# 10,000 broken inputs and 1,000 kills, about half an hour; goes on where it was stopped. Writes results/attacks.md.
attack: $(VENV)/.dev
	$(BIN)/python -m tests.attacks.campaign

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

# The built wheel as a stranger meets it: an empty venv, pipx, uvx, twine; needs a package index.
wheel-check: $(VENV)/.dev
	PIP_CONSTRAINT= $(BIN)/python -m benchmarks.install --check

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip

# The library as a user gets it.
$(VENV)/.core: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable .
	touch $@

# Everything the tests, the linters and the benchmarks need.
$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable ".[all]" --group dev
	touch $(VENV)/.core $@

$(TOOLS)/.ready: pyproject.toml
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/pip install --quiet --upgrade pip
	PIP_CONSTRAINT= $(TOOLS)/bin/pip install --quiet --group exports
	touch $@

# A browser for the tests of the pages. Without one they are skipped, and say how to get it.
HAVE_BROWSER := command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
  command -v google-chrome >/dev/null || [ -n "$$CHROMIUM" ]
browser:
	@$(HAVE_BROWSER) || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || \
	{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	  apt-get install -qq -y --no-install-recommends chromium >/dev/null; } || true
	@$(HAVE_BROWSER) || echo "no browser, so the tests of the pages are skipped: apt-get install -y chromium"

clean:
	rm -rf $(VENV) $(TOOLS) .pytest_cache .mypy_cache .ruff_cache .hypothesis
