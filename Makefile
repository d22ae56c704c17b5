# The commands of the README. `make` alone lists them.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.stamp
PYTEST := $(BIN)/pytest
# The resolver runs in a venv of its own that is thrown away: what it needs never enters the project's.
UV_VERSION := 0.13.9

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: venv
venv: $(STAMP) ## build .venv from the pinned requirements, with `bowsprit` in it

$(STAMP): pyproject.toml requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Bowsprit needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1)." >&2; \
	  echo "Name another one: make venv PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index -e .
	@touch $@

.PHONY: demo
demo: venv ## the whole story on a cluster made on this machine; KEEP=1 leaves it running
	$(BIN)/python -m e2e.demo $(if $(KEEP),--keep)

.PHONY: demo-stop
demo-stop: venv ## stop what `make demo KEEP=1` left running
	$(BIN)/python -m e2e.demo stop

.PHONY: test
test: lint check-generated ## lint, generated files, unit and integration tests; ARGS goes to pytest
	$(PYTEST) $(ARGS)

.PHONY: unit
unit: venv ## the tests that need no cluster; ARGS goes to pytest
	$(PYTEST) -m "not integration" $(ARGS)

.PHONY: integration
integration: venv ## the operator against a real control plane; ARGS goes to pytest
	$(PYTEST) -m integration $(ARGS)

.PHONY: flux
flux: venv ## the tests with real Flux, Git and Argo CD's comparison; builds them the first time; ARGS goes to pytest
	$(BIN)/python -m e2e.cluster build flux
	$(PYTEST) -m flux $(ARGS)

# A KUBECONFIG that merely stands in the environment is not meant: the tests install things.
OWN_CLUSTER := $(if $(filter command line,$(origin KUBECONFIG)),$(KUBECONFIG))

.PHONY: e2e
e2e: venv ## real vLLM in real containers on this machine (as root), or make e2e KUBECONFIG=… on a cluster of yours; KEEP=1, ARGS
	$(if $(OWN_CLUSTER),,$(BIN)/python -m e2e.local $(if $(KEEP),up,build))
	$(if $(OWN_CLUSTER),BOWSPRIT_E2E_KUBECONFIG=$(OWN_CLUSTER)) $(PYTEST) e2e/tests -m e2e $(ARGS)

.PHONY: e2e-stop
e2e-stop: venv ## stop what `make e2e KEEP=1` left running
	$(BIN)/python -m e2e.local down

.PHONY: lint
lint: venv ## ruff, formatting, mypy, and the layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: format
format: venv ## let ruff mend and format; ARGS names files (default: all)
	$(BIN)/ruff format $(or $(ARGS),.)
	$(BIN)/ruff check --fix $(or $(ARGS),.)

.PHONY: generate
generate: venv ## rewrite the generated files: CRDs, RBAC, reference pages
	$(BIN)/python -m docs.generate

.PHONY: check-generated
check-generated: venv ## fail when a generated file is stale
	$(BIN)/python -m docs.generate --check

.PHONY: compat
compat: venv ## the runtime with each vLLM that it promises to work in; ARGS="--engine 0.32.0" picks
	$(BIN)/python -m images.runtime.compat $(ARGS)

.PHONY: bench
bench: venv ## measure, each figure beside its reference; ARGS picks benches
	$(BIN)/python -m bench $(ARGS)

.PHONY: requirements
requirements: ## pin what pyproject.toml asks for, with hashes; UPGRADE=1 takes the newest
	@tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	$(PYTHON) -m venv "$$tmp"; \
	"$$tmp/bin/pip" install --quiet --disable-pip-version-check uv==$(UV_VERSION); \
	pin() { "$$tmp/bin/uv" pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-annotate --no-header $(if $(UPGRADE),--upgrade) "$$@"; }; \
	pin pyproject.toml --output-file requirements/runtime.txt; \
	pin pyproject.toml --group dev --constraint requirements/runtime.txt --output-file requirements/dev.txt; \
	$(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
	  | pin - --constraint requirements/dev.txt --output-file requirements/build.txt; \
	cd e2e/engine; pin requirements.in --override overrides.txt --no-universal \
	  --python-platform x86_64-manylinux_2_34 --only-binary :all: --output-file requirements.txt; \
	cd ../../images/runtime/compat; for engine in engine-*.in; do pin $$engine --override $${engine/engine/overrides} \
	  --no-universal --python-platform x86_64-manylinux_2_34 --only-binary :all: --output-file $${engine%.in}.txt; done
	@git diff --stat -- requirements e2e/engine images/runtime/compat

.PHONY: clean
clean: ## remove .venv, caches and build outputs
	rm -rf .venv .cache build dist operator/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
