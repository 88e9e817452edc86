# Every target builds its own virtual environment first: a fresh machine needs Python 3.11+ with venv, and make.
PYTHON ?= python3
VENV ?= .venv

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test check lint requirements docs bench coverage constraints clean

demo: $(STAMP)
	$(BIN)/python -m broker.demo

test: $(STAMP)
	$(BIN)/python -m pytest

check: lint test

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

requirements: $(STAMP)
	$(BIN)/python -m tests.requirements_report

docs: $(STAMP)
	$(BIN)/python -m tests.generated_docs

bench: $(STAMP)
	$(BIN)/python tests/bench/layers.py
	$(BIN)/python tests/bench/revocation.py

coverage: $(STAMP)
	$(BIN)/python -m coverage run -m pytest
	$(BIN)/python -m coverage report

# Pins what pyproject.toml allows; for newer pins remove constraints.txt first. The file names no host, so any index
# serves it. Not built on the stamp: pins that no longer fit must not be in the way of their own repair.
constraints:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.13.9,<1'
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra dev \
		--no-header --no-annotate --no-emit-index-url --no-emit-find-links \
		--output-file constraints.txt pyproject.toml

clean:
	rm -rf .venv dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@
