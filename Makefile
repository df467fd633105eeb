# Needs Python 3.11 or newer and make; everything else is fetched by hash into .venv.
#   make demo|run|test|check|fuzz|contention|simulate|bench|screenshots|accessibility [ARGS="…"]     ARGS is passed on to the command.

.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# The first of these that is new enough; override with `make PYTHON=/path/to/python …`.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)
ARGS ?=
# How many processes the tests run in: one more than the cores, as some tests wait more than they work.
JOBS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1 )))
VENV := .venv
BIN := $(VENV)/bin
MANAGE := $(BIN)/python manage.py

# A stamp is redone when its requirements change. The one for development holds the other.
LOCAL := $(VENV)/.local-stamp
DEV := $(VENV)/.dev-stamp

# Compiled code is kept, whatever the surroundings say: a stack and its tests start some hundred Python
# processes, and without it each of them compiles everything again (3 s of its 4.5).
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/'

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Reconcile needs Python 3.11 or newer, and no python3 on PATH is. Name one: make PYTHON=/path/to/python3.11 …" >&2; exit 1; }
	@echo "Making $(VENV) with $(PYTHON) …" >&2
	@$(PYTHON) -m venv $(VENV)

# uv installs in seconds what takes pip more than a minute. Where it can't be had, or doesn't know of
# an index that only pip was told of, pip does it.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes
INSTALL = echo "Installing $< into $(VENV) …" >&2; \
	{ $(PIP) -r requirements/installer.txt && \
	  $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r $<; } || \
	{ echo "… with pip, which takes a minute or two the first time …" >&2; $(PIP) -r $<; }

$(LOCAL): requirements/local.txt requirements/installer.txt | $(BIN)/python
	@$(INSTALL)
	@touch $@

$(DEV): requirements/dev.txt requirements/installer.txt | $(BIN)/python
	@$(INSTALL)
	@touch $@ $(LOCAL)

.PHONY: venv
venv: $(DEV) ## Build .venv with the development tools

.PHONY: demo
demo: $(LOCAL) ## Play the Northwind story on a local stack, until Ctrl-C
	@$(MANAGE) demo $(ARGS)

.PHONY: run
run: $(LOCAL) ## Run everything on this machine, until Ctrl-C (ARGS="--port 8001")
	@$(MANAGE) run_local $(ARGS)

.PHONY: test
test: $(DEV) chromium ## Run all tests (ARGS="-k word")
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadgroup $(ARGS)

.PHONY: simulate
simulate: $(DEV) ## Play simulated worlds against the engine (SEEDS=10000 ARGS="--first 5000")
	$(BIN)/python -m tests.simulation --seeds $(or $(SEEDS),2000) $(ARGS)

.PHONY: bench
bench: $(LOCAL) ## Measure against other tools, a JSON line each (ONLY=send ARGS="--rounds 9")
	@$(BIN)/python -m bench $(ONLY) $(ARGS)

.PHONY: screenshots
screenshots: $(DEV) chromium ## Take the pictures in the docs
	$(BIN)/python -m pytest tests/browser/pictures.py $(ARGS)

.PHONY: accessibility
accessibility: $(DEV) chromium ## Let axe look at every page in each theme and width
	EVERY_LOOK=1 $(BIN)/python -m pytest tests/browser/test_every_page.py $(ARGS)

.PHONY: fuzz
fuzz: $(DEV) ## Send the API and the pages what nobody would, 200 cases a route (EXAMPLES=1000)
	FUZZ_EXAMPLES=$(or $(EXAMPLES),200) HOSTILE_TURNS=10 $(BIN)/python -m pytest -s $(ARGS) \
		tests/integration/test_api_fuzzed.py tests/integration/console/test_console_hostile.py

.PHONY: contention
contention: $(DEV) ## Let twenty people decide at once on the same operations (ROUNDS=2000)
	CONTENTION_ROUNDS=$(or $(ROUNDS),500) $(BIN)/python -m pytest tests/integration/test_people_at_once.py -s $(ARGS)

.PHONY: chromium
chromium:
	@test -n "$$CHROMIUM" || command -v chromium >/dev/null || test -x /usr/bin/chromium || { \
	  if test "$$(id -u)" = 0 && command -v apt-get >/dev/null; then \
	    apt-get update -q && DEBIAN_FRONTEND=noninteractive \
	      apt-get install -qy --no-install-recommends chromium fonts-liberation; \
	  else \
	    echo "The browser tests need Chromium. Install it (Debian: sudo apt-get install chromium)," >&2; \
	    echo "or name one: make test CHROMIUM=/path/to/chromium" >&2; exit 1; \
	  fi; }

# Migrations are linted against a database of their own.
CHECK_ENV := RECONCILE_DATA_DIR=var/check RECONCILE_EMBEDDED_DURABLE=0 RECONCILE_INSECURE_LOCAL=1
# What a production deployment sets; the key is only there to be long enough.
DEPLOY_ENV := RECONCILE_DATA_DIR=var/check DJANGO_DEBUG=0 DJANGO_ALLOWED_HOSTS=reconcile.example \
	DJANGO_SECRET_KEY=only-for-this-check-4cZ0vYp9sTq2LmX7wBn5RkJ8dHfG3aEu

.PHONY: check
check: $(DEV) ## Run the linters, the type checker and Django's own checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	find templates -name '*.html' -exec $(BIN)/djade --check --target-version 5.2 {} +
	$(CHECK_ENV) DJANGO_SETTINGS_MODULE=reconcile.settings $(BIN)/python -m reconcile.catalogue --check
	$(CHECK_ENV) $(MANAGE) makemigrations --check --dry-run
	$(CHECK_ENV) DJANGO_SETTINGS_MODULE=reconcile.settings_check $(MANAGE) lintmigrations
	$(DEPLOY_ENV) $(MANAGE) check --deploy --fail-level WARNING
	$(BIN)/python -m reconcile.dependencies

.PHONY: messages
messages: $(DEV) ## Collect the texts anew for the translators, and compile their catalogues
	DJANGO_SETTINGS_MODULE=reconcile.settings $(BIN)/python -m reconcile.catalogue

.PHONY: lock
lock: $(DEV) ## Pin the dependencies in pyproject.toml anew (ARGS="--upgrade")
	$(COMPILE) --output-file requirements/base.txt
	$(subst pyproject.toml,,$(COMPILE)) --output-file requirements/installer.txt --group installer
	$(COMPILE) --output-file requirements/local.txt --group local
	$(COMPILE) --output-file requirements/dev.txt --group dev

# No addresses: which index serves them is for the machine that installs to say.
COMPILE = $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	--no-annotate --no-header --no-emit-index-url --no-emit-find-links $(ARGS)
