PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS := 0

help: ## show this help
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("irkit needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install -q -e '.[test]'
	@touch $@

setup: $(VENV)/.ready ## create .venv with everything that demo and tests need

test: setup lint ## lint, type-check and run all tests
	$(BIN)/python -m pytest -n 2

lint: setup ## ruff and pyright
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

cross-check: setup ## verify all test modules with MLIR's own mlir-opt (Debian: mlir-22-tools)
	IRKIT_NEEDS_MLIR_OPT=1 $(BIN)/python -m pytest tests/unit/test_cross_check.py

demo: setup ## compile, train, compare and report small models
	$(BIN)/python examples/demo.py

format: setup ## apply ruff's formatting and import order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: help setup test lint cross-check demo format
