# `make` alone lists the targets. Every target that needs Python installs first; when that is done already, it takes
# a fifth of a second.

PYTHON ?= python3
# how many test processes; each holds a torch of its own, some 500 MB
WORKERS ?= 2

BIN := .venv/bin
ROOT := $(shell id -u | grep -qx 0 && echo --allow-root)

# alembic, jupyter and git hooks are called by their bare names, and must be this environment's
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help install study test test-browser proof format stubs known lessons site bench train clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

install: ## make .venv with everything in it (PYTHON=python3.12 takes another Python)
	@command -v $(PYTHON) > /dev/null || { \
		echo "make: there is no $(PYTHON) here; install Python 3.11 or later, or name yours with PYTHON=" >&2; \
		exit 1; }
	@$(PYTHON) install.py

study: install ## make or refresh your workspace and open JupyterLab in it (NO_OPEN=1: do not open)
	@$(BIN)/python -m autograder study
ifndef NO_OPEN
	@cd workspace && course lab $(ROOT)
endif

test: install ## everything: ruff, mypy, all tests with the doctests of the solutions
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pytest -n $(WORKERS)

test-browser: install ## lessons done in JupyterLab in a browser; needs Chromium, CHROMIUM=/path/to/it names yours
	$(BIN)/pytest tests/browser

proof: install ## prove the checks on right and wrong answers; the table goes into CONTRIBUTING.md
	@$(BIN)/python -m autograder proof --write --judge

format: install ## let ruff format the code and mend what it can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

stubs: install ## cut course_lib's stubs from solutions/
	@$(BIN)/python -m autograder stubs

known: install ## cut what each known mistake answers into course_lib/checks/known/
	@$(BIN)/python -m autograder known

lessons: install ## build the notebooks from lessons/*.py and run them with the solutions
	@$(BIN)/python -m autograder lessons

site: install ## render all lessons as static pages with search, into site/
	@$(BIN)/python -m autograder site

bench: install ## measure decoding beside other libraries, grading beside stock nbgrader; TEXT=held_out.txt adds what int8 costs
	$(BIN)/pip install -q -c constraints.txt -e ".[bench]"
	@$(BIN)/pip install -q -c constraints.txt -e ".[bench-llama]" || \
		echo "make bench: llama-cpp-python did not build (it needs CMake and a C++ compiler); going on without" >&2
	$(BIN)/python -m tests.bench $(if $(TEXT),--text "$(TEXT)")
	$(BIN)/python -m tests.bench.grading
	$(BIN)/python -m tests.bench.scale
	$(BIN)/python -m tests.bench.formgrader
	COURSE_KILLS=20 $(BIN)/pytest -q tests/grading/test_kill.py

train: install ## train tokenizer and model: TEXT=stories.txt [VALIDATION=held_out.txt]
	@test -n "$(TEXT)" || { \
		echo "make train: name a file of stories, TEXT=stories.txt (models/README.md tells where to get one)" >&2; \
		exit 2; }
	$(BIN)/python -m models.train "$(TEXT)" $(if $(VALIDATION),--validation "$(VALIDATION)")

clean: ## remove .venv and all caches; your workspace stays
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -not -path './workspace/*' -prune -exec rm -rf {} +
