# Every target sets up what it needs; `make` alone lists the targets.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$p; break; fi; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.set-up
SITE_VENV := .venv-docs
SITE_STAMP := $(SITE_VENV)/.set-up

.DEFAULT_GOAL := help
ROUNDS ?= 4

# Brokers and Spark wait more than they compute: three files at a time keep two cores busy.
SHARED = -n 3 --dist loadfile --no-loadscope-reorder

# What needs no broker. Unit tests wait for sockets half of their time; compiled once, their collection takes a third.
# Tests that play a broker over sockets, simulated hours, and comparisons with recorded answers of Java: half of the
# time of all.
LONGER = tests/unit/kafka tests/unit/executor tests/unit/connect tests/unit/cli/test_log_budget.py tests/golden tests/properties
UNIT = tests/architecture tests/unit --ignore tests/unit/kafka --ignore tests/unit/executor --ignore tests/unit/connect --ignore tests/unit/cli/test_log_budget.py
ALONE = -m "not broker and not spark" --dist worksteal
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo monitoring monitoring-tools test slow check lint unit bench chaos soak exactness fuzz fuzz-rest fmt docs reference site clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Create the virtual environment, compile the kernels, fetch Kafka's jars

demo: $(STAMP) ## Replicate 100 records, stop the source cluster, continue on the target: no record lost or read twice
	@$(BIN)/heliograph demo

monitoring: $(STAMP) monitoring-tools ## Start a demo flow with real Prometheus and Alertmanager, until Ctrl-C
	@$(BIN)/python -m tests.support.monitoring.demo

monitoring-tools: $(STAMP)
	@$(BIN)/python -m tests.support.monitoring.tools

test: $(STAMP) monitoring-tools ## Run all checks and tests except slow ones, on real Kafka and real Spark
	@$(MAKE) --no-print-directory check
	@$(BIN)/python -m pytest -q -p no:cacheprovider $(LONGER) $(ALONE) -n 4
	@$(BIN)/python -m pytest -q -p no:cacheprovider tests -m "(broker or spark) and not slow" $(SHARED) --durations 15

slow: $(STAMP) ## Run the tests that take minutes: chaos, more comparisons with Java, fifty connectors
	@$(BIN)/python -m pytest -q -p no:cacheprovider tests -m slow

check: $(STAMP) ## Format, lint, types, layers, quick unit tests: under a minute
	@$(MAKE) --no-print-directory -j 2 --output-sync lint unit

lint: $(STAMP)
	@$(BIN)/ruff format --check -q src tests bench docs deploy
	@$(BIN)/ruff check -q src tests bench docs deploy
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-cache > $(VENV)/layers.log 2>&1 || { cat $(VENV)/layers.log; exit 1; }

unit: $(STAMP)
	@$(BIN)/python -m pytest -q -p no:cacheprovider $(UNIT) $(ALONE) -n 6

bench: $(STAMP) ## Measure Java MirrorMaker 2 and Heliograph in one run on the same clusters
	@$(BIN)/python bench/run.py $(ARGS)

chaos: $(STAMP) ## Kill, stop and cut off brokers, workers and the process at random: ROUNDS=4 SEED=1
	@$(BIN)/python -m tests.chaos.run --rounds $(ROUNDS) $(if $(SEED),--seed $(SEED)) $(ARGS)

soak: $(STAMP) ## Replicate both ways under load for ten minutes: MINUTES=10
	@$(BIN)/python -m tests.soak.run $(or $(MINUTES),10)

exactness: $(STAMP) ## Translate 1,000 groups over a million records with gaps, compared with Java MirrorMaker 2
	@$(BIN)/python -m tests.interop.exactness $(or $(RECORDS),1000000)

fuzz: $(STAMP) ## Test every property with new examples, including hostile bytes: EXAMPLES=5000
	@EXAMPLES=$(or $(EXAMPLES),5000) $(BIN)/python -m pytest -q -p no:cacheprovider --timeout 0 --hypothesis-profile fuzz \
		-n 2 -m "hypothesis and not broker and not spark" tests
	@NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q -p no:cacheprovider -p tests.support.brokers.strict_arrays -n 2 --timeout 0 tests/properties

fuzz-rest: $(STAMP) ## Send hostile requests to a running worker and watch /health and its memory: MINUTES=30 SEED=1
	@$(BIN)/python -m tests.fuzz.run --minutes $(or $(MINUTES),30) $(if $(SEED),--seed $(SEED)) $(ARGS)

fmt: $(STAMP) ## Format and sort imports
	@$(BIN)/ruff format -q src tests bench docs deploy
	@$(BIN)/ruff check -q --fix --select I src tests bench docs deploy

docs: reference ## Write the generated reference pages, then build the site into build/site
	@$(MAKE) --no-print-directory site

reference: $(STAMP)
	@$(BIN)/python docs/reference_pages.py
	@$(BIN)/python deploy/monitoring/grafana/make_dashboard.py
	@$(BIN)/python -m tests.conformance docs/reference/conformance.md

# Needs no network once its environment exists; a broken link fails the build.
site: $(SITE_STAMP)
	@$(SITE_VENV)/bin/python docs/site_pages.py build/pages
	@NO_MKDOCS_2_WARNING=1 $(SITE_VENV)/bin/python -m mkdocs build --strict
	@! grep -rlE '<(script|img|link)[^>]*(src|href)="https?:' build/site --include='*.html' || { echo "error: these pages load from other hosts" >&2; exit 1; }
	@echo "Open build/site/index.html; for its search: python3 -m http.server --directory build/site"

clean: ## Remove the virtual environments and caches of this folder
	rm -rf $(VENV) $(SITE_VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .kernel_cache dist build

$(STAMP): requirements.txt requirements-dev.txt requirements-build.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "error: Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11." >&2; exit 1; }
	@echo "Setting up $(VENV) with $(PYTHON) (once) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-build.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes --no-build-isolation -r requirements-dev.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -c "from heliograph.wire.batches.forward import warm_up; warm_up()"
	@$(BIN)/heliograph kafka fetch --tools
	@touch $@

$(SITE_STAMP): requirements-docs.txt
	@test -n "$(PYTHON)" || { echo "error: Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11." >&2; exit 1; }
	@echo "Setting up $(SITE_VENV) with $(PYTHON) (once) ..."
	@$(PYTHON) -m venv $(SITE_VENV)
	@$(SITE_VENV)/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-docs.txt
	@touch $@
