# make run | make test | make ui; everything else is .venv/bin/nexmark (see README.md).
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# A night is dozens of Python processes: without its cache each compiles everything again.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help env env-dev run ui check test test-spare test-long test-cluster mutants lint lock clean
# The first of these that is installed; python3.11 and python3.12 run the jobs of every Spark.
PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3.14 python3; do $$name -c '' 2>/dev/null && command -v $$name && break; done)
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
# What is given reaches the command as environment variables, in the very letters (make expands
# nothing in it), and only what is given: $${ENGINE+...} tells an empty ENGINE from none.
VARIABLES := ENGINE WORKLOAD QUERIES CLUSTER DATE REPETITIONS
$(foreach name,$(VARIABLES),$(if $(filter-out undefined,$(origin $(name))),$(eval override export $(name) := $$(value $(name)))))

help: ## This list
	@grep -hE '^[a-z-]+:.*## ' Makefile | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

env: .venv/.run ## Create .venv with what a run needs

.venv/bin/uv: requirements-bootstrap.lock
	@$(PYTHON) plugins/nexmark/engines/prerequisites.py
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bootstrap.lock
	@touch $@
# Where the development tools are installed, they stay.
.venv/.run .venv/.dev: .venv/bin/uv requirements.lock requirements-dev.lock pyproject.toml
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes $(if $(filter %.dev,$@)$(wildcard .venv/.dev),requirements-dev.lock,requirements.lock)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch .venv/.run $@
env-dev: .venv/.dev ## Create .venv with the test and lint tools as well

run: .venv/.run ## Run a night: make run QUERIES=q1,q5 WORKLOAD=small ENGINE=spark-3.5.9
	@$(BIN)/nexmark run $${ENGINE+--engine "$$ENGINE"} $${WORKLOAD+--workload "$$WORKLOAD"} $${QUERIES+--queries "$$QUERIES"} $${CLUSTER+--cluster "$$CLUSTER"} $${DATE+--date "$$DATE"} $${REPETITIONS+--repetitions "$$REPETITIONS"}
ui: .venv/.run ## Start Airflow with these DAGs on 127.0.0.1 (Ctrl-C ends it); EXAMPLE=yes: example nights
	@$(BIN)/nexmark ui $(if $(filter yes,$(EXAMPLE)),--example)

check: lint ## Lint, types, and the tests without Spark: minutes
	$(PYTEST) -n 2 -m "not spark and not slow and not long" tests/unit tests/docs

test: lint ## Every part; ALL=yes: whole nights of every kind and the tests on hosts, too (root)
	$(PYTEST) -n 3 --timeout 1800 --no-loadscope-reorder $(if $(filter yes,$(ALL)),-m "not long",--ignore=tests/cluster -m "not long and not extended")
test-spare: .venv/.dev ## Slower jobs of one's own in pairs, and running ones: CI, where its time allows
	$(PYTEST) -n 3 --timeout 1800 --no-loadscope-reorder -m spare
test-long: .venv/.dev ## The tests that take minutes by themselves: before a release
	$(PYTEST) -m long --ignore=tests/cluster tests
test-cluster: .venv/.dev ## The tests on three hosts in namespaces (root); FAULTS=all has every fault
	@NEXMARK_FAULT_MATRIX=1 NEXMARK_ALL_FAULTS=$(if $(filter all,$(FAULTS)),1) $(PYTEST) $(if $(filter all,$(FAULTS)),,-m "not long") tests/cluster
mutants: .venv/.dev ## Change one operator or bound at a time: does a test notice? ONLY=a file
	$(BIN)/python -m tests.changed_code $(ONLY)
lint: .venv/.dev ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
lock: PINNED := --generate-hashes --universal --python-version 3.11
lock: .venv/bin/uv ## Renew the three lock files: one set of pins for every supported Python
	$(BIN)/uv pip compile --quiet --no-header $(PINNED) --upgrade pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --no-header $(PINNED) --group dev -c requirements.lock pyproject.toml -o requirements-dev.lock
	echo uv | $(BIN)/uv pip compile --quiet --no-header --no-annotate $(PINNED) -c requirements.lock - -o requirements-bootstrap.lock
clean: ## Remove the environment, builds, runs and results
	rm -rf .venv .nexmark
