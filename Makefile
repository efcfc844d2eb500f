# Every target does its own set-up: Python 3.11, pip, git and make are all a machine needs.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DURATIONS ?= 10
PYTEST := $(BIN)/python -m pytest --durations=$(DURATIONS)
PIP    := PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet

# Compiled modules are kept, whatever the shell says: the suites start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help up demo check format test test-scenarios test-e2e test-long test-false-answers test-fuzz bench bench-kafka kafka-story render test-helm test-image clean

help:
	@echo 'make up              a cluster with a simulated cloud on this machine, until Ctrl-C (UP="--nodes 5" for options)'
	@echo 'make demo            the guided story of plimsoll tour, with the console beside it (TOUR="--fast" for seconds)'
	@echo 'make test            the test suite, in less than five minutes'
	@echo 'make test-scenarios  only the acceptance scenarios'
	@echo 'make check           ruff, mypy --strict, import-linter, and the tests of the architecture'
	@echo 'make format          let ruff mend and format what it can'
	@echo 'make test-e2e        slow tests, and tests that start servers'
	@echo 'make test-false-answers  every read of every controller with every false answer, in one table (minutes)'
	@echo 'make test-fuzz       a million objects with extreme fields to a cluster with all controllers; resumes (hours)'
	@echo 'make test-long       every test with all its examples (hours of simulated time, thousands of clusters)'
	@echo 'make bench           measurements, as a table and JSON'
	@echo 'make bench-kafka     measurements on real Kafka brokers with 10,000 partitions (needs Java)'
	@echo 'make kafka-story     run docs/kafka-story.md on real Kafka brokers, and write it (needs Java and kubectl)'
	@echo 'make render          render the manifests in deploy/ and the dashboards from the chart (needs helm)'
	@echo 'make test-helm       install, upgrade, roll back and uninstall the chart with helm on a running cluster'
	@echo 'make test-image      build the image from Debian packages and run its controllers (root, mmdebstrap; minutes)'
	@echo 'make clean           remove what the others made'

# One stamp per set of packages, redone when the requirements change. `up` needs the runtime only; the tools bring it
# along, because every call of pip resolves all packages again.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Plimsoll needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; say make PYTHON=python3.11")'
	@echo 'creating $(VENV)'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: $(BIN)/python pyproject.toml constraints.txt
	@echo 'installing plimsoll'
	@$(PIP) -e '.[fast,plots]' && touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt
	@echo 'installing plimsoll, and the tools for tests and checks'
	@$(PIP) -e '.[fast,plots,dev]' && touch $(VENV)/.runtime
	@echo 'compiling the kernels of the planner, once'
	@$(BIN)/python -m plimsoll.solver.kernels && touch $@

# Busy ports are named before anything is installed.
.PHONY: free-ports
free-ports:
	@PYTHONPATH=src $(PYTHON) -m plimsoll.app.ports $(UP)

up: free-ports $(VENV)/.runtime
	@$(BIN)/plimsoll up $(UP)

demo: $(VENV)/.runtime
	@$(BIN)/plimsoll tour $(TOUR)

# The tests of the architecture only read the source: they run while mypy keeps one core busy.
check: $(VENV)/.dev
	@$(PYTEST) -q tests/architecture > $(VENV)/architecture.log 2>&1 & architecture=$$!; \
	passed=0; \
	for tool in 'ruff check .' 'ruff format --check .' 'mypy' 'lint-imports --config .importlinter'; do \
		$(BIN)/$$tool || { echo "$$tool failed"; exit 1; }; \
		passed=$$((passed + 1)); \
	done; \
	wait $$architecture || { cat $(VENV)/architecture.log; echo 'tests/architecture failed'; exit 1; }; \
	echo "$$((passed + 1)) passed, 0 failed"

# The driver of the tests in a browser. The browser itself is the system's (apt-get install chromium).
$(VENV)/.browser: $(VENV)/.dev
	@echo 'installing the driver of the browser tests'
	@$(PIP) -e '.[fast,plots,dev,browser]' && touch $@

format: $(VENV)/.dev
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

test: $(VENV)/.dev
	@$(PYTEST) --ignore=tests/e2e --ignore=tests/architecture -n 2 -m 'not slow'

test-scenarios: $(VENV)/.dev
	@$(PYTEST) tests/scenarios

# These tests wait more than they compute: four at a time keep two cores busy.
test-e2e: $(VENV)/.dev $(VENV)/.browser
	@$(PYTEST) -n 4 --dist loadfile --no-loadscope-reorder --ignore=tests/e2e/kafka -m '(e2e or slow) and not serial'
	@$(PYTEST) -n 2 --dist loadfile --no-loadscope-reorder tests/e2e/kafka -m 'not serial'
	@$(PYTEST) tests/e2e -m serial

test-false-answers: $(VENV)/.dev
	@$(BIN)/python -m tests.false_answers

# FUZZ="--processes 4 --first-seed 100000", for example.
test-fuzz: $(VENV)/.dev
	@$(BIN)/python -m tests.field_fuzz $(FUZZ)

test-long: $(VENV)/.dev
	@PLIMSOLL_TEST_LONG=1 $(PYTEST) -n 2 --dist loadfile --ignore=tests/e2e/kafka -m 'not serial'
	@PLIMSOLL_TEST_LONG=1 $(PYTEST) tests/e2e/kafka -m 'not serial'
	@PLIMSOLL_TEST_LONG=1 $(PYTEST) tests/e2e -m serial
	@$(BIN)/python -m tests.field_fuzz $(FUZZ)

bench: $(VENV)/.dev
	@$(BIN)/python -m benchmarks

bench-kafka: $(VENV)/.dev
	@$(BIN)/python -m benchmarks kafka_brokers

kafka-story: $(VENV)/.dev
	@$(BIN)/python -m tests.e2e.kafka.kafka_story

render: $(VENV)/.dev
	@$(BIN)/python -m tests.deploy.chart.rendered_manifests

test-helm: $(VENV)/.dev
	@$(PYTEST) tests/e2e/helm tests/deploy/chart/test_chart.py tests/deploy/watching/test_watching.py

# Builds both variants of the image; minutes. Needs root and mmdebstrap.
test-image: $(VENV)/.dev
	@PLIMSOLL_TEST_IMAGE=1 $(PYTEST) tests/e2e/image

clean:
	rm -rf $(VENV) .plimsoll .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks .field-fuzz build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
