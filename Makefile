# Two commands a newcomer needs: `make demo` and `make test`. Each does all its own set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Two cores are what CI has; one worker a core.
WORKERS ?= 2
# A sixth of compiling is allocating memory: with jemalloc, where it is installed, tests take that much less time.
JEMALLOC := $(firstword $(wildcard /usr/lib/*/libjemalloc.so.2 /usr/lib/libjemalloc.so.2))

.PHONY: setup demo quick reproduce docs test lint types tests bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	@# Python compiles what is used as it is used: a third of an installation's time is for what is not.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[dev]"
	@touch $(STAMP)

demo: setup
	$(BIN)/stickslip demo --out build/demo

quick: setup
	$(BIN)/stickslip reproduce --quick --out build/quick

reproduce: setup
	$(BIN)/stickslip reproduce --out build/reproduce

docs: setup
	$(BIN)/mkdocs build --strict
	@echo "page: build/site/index.html"

# Types are checked while tests begin.
test: lint
	$(MAKE) --no-print-directory -j2 types tests

lint: setup
	$(BIN)/ruff check src tests examples benchmarks docs
	$(BIN)/ruff format --check src tests examples benchmarks docs

types: setup
	$(BIN)/mypy

tests: setup
	$(if $(JEMALLOC),LD_PRELOAD=$(JEMALLOC)) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

bench: setup
	$(BIN)/python benchmarks/speed.py

clean:
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache
