# Needs Python 3.11 or newer and make; everything else is fetched by hash into .venv.
#   make demo|run|test|check|screenshots [ARGS="…"]

.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# The first of these that is new enough; override with `make PYTHON=/path/to/python …`.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
MANAGE := $(BIN)/python manage.py

# A stamp is redone when its requirements change. The one for development holds the other.
LOCAL := $(VENV)/.local-stamp
DEV := $(VENV)/.dev-stamp

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/'

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Reconcile needs Python 3.11 or newer, and no python3 on PATH is. Name one: make PYTHON=/path/to/python3.11 …" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(LOCAL): requirements/local.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(DEV): requirements/dev.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@ $(LOCAL)

.PHONY: venv
venv: $(DEV) ## Build .venv with the development tools
