# Every target sets up what it needs: `make demo` and `make test` work in a fresh clone.
# Needed beforehand: Python 3.11 or later with pip and venv, and make.
#
#   make PYTHON=python3.12 test     with another Python (.venv is made again when the Python changes)
#   make ARGS="-k zoo" test         more arguments for pytest, the demo or the benchmark

PYTHON ?= python3
WORKERS ?= auto
ARGS ?=

PY := .venv/bin/python
# At most eight test processes: beyond that, starting them costs more than they save. Each begins with neighbouring
# files, whose fixtures it makes once; one that has nothing left takes tests from the other processes.
# The tests that took longest are listed: one that has become slow is seen, and marked so or made quicker.
PYTEST := $(PY) -m pytest -q -n $(WORKERS) --maxprocesses 8 --dist worksteal --durations=15 --durations-min=2
# The slow tests too, and all of Hypothesis's examples instead of a quarter of them.
EVERYTHING := -m "" --hypothesis-profile=full

# Modules loaded on a cluster often set these; the locked environment must not see what they add.
unexport PYTHONPATH PYTHONHOME

.DEFAULT_GOAL := help
.PHONY: help setup browser docs demo test test-all lint format coverage bench dist lock clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup:  ## .venv with the versions of constraints.txt (only if something changed)
	@$(PYTHON) scripts/setup_venv.py

browser:  ## playwright-core and chromium, for the browser tests; without them these are skipped
	@$(PYTHON) scripts/setup_browser.py

demo: setup  ## the main job: the paper's Switch-Stay study; writes to out/switch-stay
	$(PY) -m ipe reproduce switch-stay --out out/switch-stay --overwrite $(ARGS)

# ruff and mypy work beside the tests, on a core that waits for the other otherwise; what they say comes at the end.
test: setup  ## ruff, mypy, pytest with doctests: every promise, in four minutes on two cores
	@mkdir -p build; $(MAKE) --no-print-directory lint > build/lint.log 2>&1 & lint=$$!; \
	$(PYTEST) $(ARGS); tests=$$?; wait $$lint; lint=$$?; cat build/lint.log; exit $$((tests | lint))

test-all: lint  ## ruff, mypy, and all tests with all of their examples
	$(PYTEST) $(EVERYTHING) $(ARGS)

coverage: setup  ## all tests, and then the lines and branches that none of them reached
	$(PYTEST) $(EVERYTHING) --cov --cov-report=term-missing:skip-covered $(ARGS)

lint: setup  ## ruff and mypy --strict
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

format: setup  ## let ruff rewrite what it can
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

docs: setup  ## the documentation as a site: build/docs/html (warnings are errors)
	$(PY) -m sphinx -W --keep-going -q -b html -d build/docs/doctrees docs build/docs/html

bench: setup  ## the table of benchmarks/exact.py (minutes)
	$(PY) benchmarks/exact.py $(ARGS)

dist: setup  ## the wheel and the source distribution of ipe-rl, in dist
	rm -rf dist
	$(PY) -m hatchling build -d dist

lock:  ## constraints.txt again from pyproject.toml (UPGRADE=1: newest versions)
	@PYTHON="$(PYTHON)" UPGRADE="$(UPGRADE)" scripts/lock.sh

clean:  ## remove .venv, caches and builds; results in out/ stay
	rm -rf .venv node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage .coverage.* build dist
	find ipe tests benchmarks examples scripts -name __pycache__ -type d -prune -exec rm -rf {} +
