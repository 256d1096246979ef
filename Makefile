# make run | make test | make ui: see README.md.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

ENGINE ?=
WORKLOAD ?=
QUERIES ?=
CLUSTER ?=
RUN ?=
REASON ?=
EXPIRES ?=
LINK ?=
ID ?=
OUT ?=
FORMAT ?= parquet
PROFILE ?= default
NIGHTS ?=
SEED ?=
DATE ?=
FROM ?=
TO ?=
REPROCESS ?= none
AIRFLOW ?=
CAUSE ?=
GOOD ?=
BAD ?=
BUILDS ?=
QUERY ?=
METRIC ?=
BUILD ?=
AGAINST ?=
REPETITIONS ?=
PAIRS ?=
MORE ?=
# Values from the command line reach the shell as quoted environment variables only.
export ENGINE WORKLOAD QUERIES CLUSTER RUN REASON PROFILE NIGHTS SEED EXPIRES LINK OUT FORMAT ID \
	DATE BUILD AGAINST REPETITIONS PAIRS FROM TO REPROCESS GOOD BAD BUILDS QUERY METRIC AIRFLOW CAUSE MORE

.PHONY: help env env-dev run build backfill bisect ui accept withdraw acks history export test test-long test-cluster faults lint lock bench-generator bench-queries bench-sampler bench-canary bench-flight-recorder bench-gate bench-detection bench-bisect bench-web screenshots replay check-cluster cluster-up cluster-down clean

help: ## This list
	@grep -hE '^[a-z-]+:.*## ' Makefile | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

env: .venv/.run ## Create .venv with what a run needs

.venv/bin/uv: requirements-bootstrap.lock
	@$(PYTHON) plugins/nexmark/engines/prerequisites.py
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bootstrap.lock
	@touch $@

# Where the development tools are installed, they stay.
.venv/.run: .venv/bin/uv requirements.lock pyproject.toml
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes $(if $(wildcard .venv/.dev),requirements-dev.lock,requirements.lock)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

.venv/.dev: .venv/bin/uv requirements-dev.lock pyproject.toml
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements-dev.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch .venv/.run $@

env-dev: .venv/.dev ## Create .venv with the test and lint tools as well

run: .venv/.run ## Run a night: make run QUERIES=q1,q5 WORKLOAD=small ENGINE=spark-3.5.9
	@$(BIN)/python -m nexmark.run --engine "$$ENGINE" --workload "$$WORKLOAD" --queries "$$QUERIES" --cluster "$$CLUSTER" --date "$$DATE" $${REPETITIONS:+--repetitions "$$REPETITIONS"}

build: .venv/.run ## Test any Spark build: make build BUILD=pypi:4.3.0 AGAINST=pypi:4.2.1 QUERIES=q5
	@$(BIN)/python -m nexmark.build --build "$$BUILD" --against "$$AGAINST" --engine "$$ENGINE" --workload "$$WORKLOAD" --queries "$$QUERIES" --cluster "$$CLUSTER" $${REPETITIONS:+--repetitions "$$REPETITIONS"}

backfill: .venv/.run ## Nights of past dates: make backfill ENGINE=... FROM=2026-11-01 TO=2026-11-07
	@$(BIN)/python -m nexmark.backfill --engine "$$ENGINE" --from "$$FROM" --to "$$TO" --workload "$$WORKLOAD" --queries "$$QUERIES" --cluster "$$CLUSTER" --reprocess "$$REPROCESS"

bisect: .venv/.run ## Which build was it: make bisect GOOD=... BAD=... BUILDS=file-or-a,b,c QUERY=q5
	@$(BIN)/python -m nexmark.bisect --good "$$GOOD" --bad "$$BAD" --builds "$$BUILDS" --query "$$QUERY" --engine "$$ENGINE" --workload "$$WORKLOAD" --cluster "$$CLUSTER" --airflow "$$AIRFLOW" $${REPETITIONS:+--repetitions "$$REPETITIONS"}

ui: .venv/.run ## Start Airflow with these DAGs on 127.0.0.1 (Ctrl-C ends it)
	@$(BIN)/python -m nexmark.ui

accept: .venv/.run ## Make a run the baseline: make accept RUN=... REASON=... QUERIES=q5 EXPIRES=30d LINK=...
	@$(BIN)/python -m nexmark.store accept --run "$$RUN" --reason "$$REASON" $${QUERIES:+--query "$$QUERIES"} $${EXPIRES:+--expires "$$EXPIRES"} $${LINK:+--link "$$LINK"}

withdraw: .venv/.run ## Take an acceptance back: make withdraw ID=7 REASON=...
	@$(BIN)/python -m nexmark.store withdraw --id "$$ID" --reason "$$REASON"

acks: .venv/.run ## What was accepted, and what of it counts
	@$(BIN)/python -m nexmark.store acks

history: .venv/.run ## One query over all nights: make history QUERY=q5 METRIC=wall_s ENGINE=... FORMAT=csv
	@$(BIN)/python -m nexmark.store history --query "$$QUERY" --engine "$$ENGINE" --workload "$$WORKLOAD" --cluster "$$CLUSTER" $${METRIC:+--metric "$$METRIC"} $(if $(filter csv,$(FORMAT)),--format csv)

export: .venv/.run ## Write all results as files: make export OUT=DIR FORMAT=csv
	@$(BIN)/python -m nexmark.store export --out "$$OUT" --format "$$FORMAT"

test: lint ## Everything but the tests on hosts and the long ones
	$(BIN)/python -m pytest -n 2 --no-loadscope-reorder --ignore=tests/cluster -m "not long"

test-long: .venv/.dev ## The tests that take minutes by themselves: a whole bisection, nights of history mode
	$(BIN)/python -m pytest -m long tests/story tests/dags

test-cluster: .venv/.dev ## The tests on three hosts in namespaces, faults and all (root)
	@NEXMARK_FAULT_MATRIX=1 $(BIN)/python -m pytest tests/cluster

faults: .venv/.dev ## Break a test cluster in every way and print what came of it (root)
	@NEXMARK_FAULT_MATRIX=1 $(BIN)/python -m pytest -m fault --durations=0 --durations-min=60 tests/cluster

lint: .venv/.dev ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lock: .venv/bin/uv ## Renew the three lock files
	$(BIN)/uv pip compile --quiet --no-header --generate-hashes --python-version 3.11 --upgrade pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --no-header --generate-hashes --python-version 3.11 --group dev -c requirements.lock pyproject.toml -o requirements-dev.lock
	echo uv | $(BIN)/uv pip compile --quiet --no-header --no-annotate --generate-hashes --python-version 3.11 -c requirements.lock - -o requirements-bootstrap.lock

bench-generator: .venv/.run ## Events per CPU-second of the generator
	@$(BIN)/python nexmark_jobs/bench_generator.py

bench-queries: .venv/.run ## Events per CPU-second of every query, beside nexmark-flink
	@$(BIN)/python nexmark_jobs/bench_queries.py --profile "$$PROFILE"

bench-sampler: .venv/.run ## CPU time of the sampler itself
	@$(BIN)/python -m nexmark.measure.sampler_cost

bench-canary: .venv/.run ## How steady the canary is on this host
	@$(BIN)/python -m nexmark.measure.canary_spread

bench-flight-recorder: .venv/.run ## CPU time of the JDK's flight recorder: make bench-flight-recorder PAIRS=10 QUERY=q5
	@$(BIN)/python -m nexmark.flames.overhead $${PAIRS:+--pairs "$$PAIRS"} $${QUERY:+--query "$$QUERY"} $${WORKLOAD:+--workload "$$WORKLOAD"} $${ENGINE:+--engine "$$ENGINE"}

bench-gate: .venv/.run ## What the gate finds and how often it is wrong: make bench-gate NIGHTS=10000 SEED=1
	@$(BIN)/python -m nexmark.verdict.simulation $${NIGHTS:+--nights "$$NIGHTS"} $${SEED:+--seed "$$SEED"}

bench-detection: .venv/.run ## Real regressions on real Spark, and what the gate says: make bench-detection CAUSE=sort,sleep
	@$(BIN)/python -m nexmark.detection $${CAUSE:+--cause "$$CAUSE"} $${QUERY:+--query "$$QUERY"} $${WORKLOAD:+--workload "$$WORKLOAD"} $${PAIRS:+--pairs "$$PAIRS"} $${NIGHTS:+--nights "$$NIGHTS"} $${MORE:+--more "$$MORE"}

bench-bisect: .venv/.run ## How often bisection names the right build, and its cost
	@$(BIN)/python -m nexmark.verdict.bisection_simulation

bench-web: .venv/.run ## Server time of every page at 400 nights
	@$(BIN)/python -m nexmark.web.bench

screenshots: .venv/.dev ## Pictures of the pages of the newest night for README (needs chromium)
	@$(BIN)/python -m nexmark.web.screenshots $${OUT:+--out "$$OUT"} $${QUERY:+--query "$$QUERY"}

replay: .venv/.run ## Judge stored nights again: make replay NIGHTS=nights.csv
	@$(BIN)/python -m nexmark.verdict --nights "$$NIGHTS"

check-cluster: .venv/.run ## Look at the hosts of a cluster: make check-cluster CLUSTER=nexmark
	@$(BIN)/python -m nexmark.cluster check "$${CLUSTER:-local}"

cluster-up: .venv/.run ## Three hosts to test with, as namespaces of this machine (root)
	@$(BIN)/python -m nexmark.cluster.namespaces up

cluster-down: .venv/.run ## Remove these hosts
	@$(BIN)/python -m nexmark.cluster.namespaces down

clean: ## Remove the environment, builds, runs and results
	rm -rf .venv .nexmark
