# Every target does its own set-up: Python 3.11, pip, git and make are all a machine needs.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet

.PHONY: help up check test test-scenarios test-e2e bench clean

help:
	@echo 'make up              a cluster with a simulated cloud on this machine, until Ctrl-C (UP="--nodes 5" for options)'
	@echo 'make test            the test suite'
	@echo 'make test-scenarios  only the acceptance scenarios'
	@echo 'make check           ruff, mypy --strict, import-linter'
	@echo 'make test-e2e        tests that need servers'
	@echo 'make bench           measurements, as a table and JSON'
	@echo 'make clean           remove what the others made'

# One stamp a set of packages, redone when what is asked for changes. `up` needs the runtime only.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Plimsoll needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; say make PYTHON=python3.11")'
	@echo 'creating $(VENV)'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: $(BIN)/python pyproject.toml constraints.txt
	@echo 'installing plimsoll'
	@$(PIP) -e '.[fast,plots]' && touch $@

$(VENV)/.dev: $(VENV)/.runtime
	@echo 'installing the tools for tests and checks'
	@$(PIP) -e '.[fast,plots,dev]'
	@echo 'compiling the kernels of the planner, once'
	@$(BIN)/python -m plimsoll.solver.kernels && touch $@

up: $(VENV)/.runtime
	@$(BIN)/plimsoll up $(UP)

check: $(VENV)/.dev
	@passed=0; \
	for tool in 'ruff check .' 'ruff format --check .' 'mypy' 'lint-imports --config .importlinter'; do \
		$(BIN)/$$tool || { echo "$$tool failed"; exit 1; }; \
		passed=$$((passed + 1)); \
	done; \
	echo "$$passed passed, 0 failed"

test: $(VENV)/.dev
	@$(BIN)/python -m pytest --ignore=tests/e2e -n 2

test-scenarios: $(VENV)/.dev
	@$(BIN)/python -m pytest tests/scenarios

test-e2e: $(VENV)/.dev
	@$(BIN)/python -m pytest tests/e2e

bench: $(VENV)/.dev
	@$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .plimsoll .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
