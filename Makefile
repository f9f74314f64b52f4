# On a fresh clone with Python 3.11+ and make: `make demo` and `make test` set up all they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests run in one process per core and two more, as some wait for clocks and networks; file by file, since the code blocks
# of a page build on each other; in the order of the files, since those with few tests are not the short ones. BLAS threads
# on top of that would only wait for each other, and every process would compile all tests if bytecode were not kept.
TESTING := OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2)
PIP := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt
DEMO_READY := $(VENV)/.demo-ready
READY := $(VENV)/.ready
NODE_READY := node_modules/.ready

.PHONY: help demo check test test-all quick-tests lint types arrows javascript bench mutants conservation golden formats pictures reproduction site clean

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "inca needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(DEMO_READY): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing inca and what the demo needs into $(VENV) (about 500 MB)"
	$(PIP) --editable '.[network]'
	@touch $@

$(READY): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing inca and what its tests need into $(VENV) (about 1.2 GB)"
	$(PIP) --editable '.[dev]'
	@touch $@ $(DEMO_READY)

demo: $(DEMO_READY)  ## twelve real processes over TLS on this machine, three of them killed: the mean and what leaked
	$(BIN)/inca demo

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@if git rev-parse --git-dir > /dev/null 2>&1 && git grep -InE '^(<{7}|>{7})( |$$)'; then \
	echo 'These lines are marks of a merge that was not finished: choose one of the two versions and delete the marks.' >&2; \
	exit 1; fi

types: $(READY)
	$(BIN)/mypy

arrows: $(READY)
	$(BIN)/lint-imports

$(NODE_READY): package.json
	@echo "Installing what checks the JavaScript into node_modules (about 115 MB)"
	npm install --no-package-lock --no-audit --no-fund
	@touch $@

javascript:  ## lint, format and types of the dashboard's JavaScript and style sheets, where node is there
	@not_checked() { printf '\033[1;31mNOT CHECKED: the JavaScript, since %s\033[0m\n' "$$1"; }; \
	if ! command -v node > /dev/null || ! command -v npm > /dev/null; then not_checked 'there is no node or no npm here'; \
	elif ! $(MAKE) --no-print-directory $(NODE_READY); then not_checked 'npm could not install its tools'; \
	else npm run --silent check; fi

check: lint types arrows javascript  ## about a minute: lint, types, arrows, JavaScript, and the tests of what has changed
	$(TESTING) $(BIN)/python -m pytest -n $(WORKERS) -m 'not slow' $$($(BIN)/python tools/changed_tests.py)

# The other checks beside the tests, which begin first, as they take longest and some of them wait.
test: lint  ## everything that must hold at every commit
	$(MAKE) --no-print-directory --jobs=2 quick-tests arrows javascript types

quick-tests: $(READY)
	$(TESTING) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m 'not slow'

test-all: lint types arrows javascript  ## the same with the slow suites, and more random cases of every invariant
	$(TESTING) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --hypothesis-profile thorough

bench: $(READY)  ## speed and memory, as ratios against named baselines in one run
	$(BIN)/python benchmarks/simulation.py
	$(BIN)/python benchmarks/simulation.py --vectors 1000000
	$(BIN)/python benchmarks/privacy.py --largest
	$(BIN)/python benchmarks/conditions.py
	$(BIN)/python benchmarks/planner.py plans recipe
	$(BIN)/python benchmarks/growth.py plans end
	$(BIN)/python benchmarks/reproduction.py
	$(BIN)/python benchmarks/transport.py
	$(BIN)/python benchmarks/network.py grow
	$(BIN)/python benchmarks/dashboard.py
	$(BIN)/python benchmarks/dashboard_live.py
	$(BIN)/python benchmarks/learning.py

mutants: $(READY)  ## deliberate changes to what states, plans or guards a loss: do the tests notice? FILES="..." for some files
	$(BIN)/python tools/mutants.py $(FILES)

conservation: $(READY)  ## 10,000 simulated sessions with all faults together, the ledgers added up after every write
	$(BIN)/python benchmarks/conservation.py --sessions 10000

golden: $(READY)  ## write the golden vectors anew, in exact rational arithmetic
	$(BIN)/python tools/golden_vectors.py

formats: $(READY)  ## write the tables of docs/format.md and the JSON schemas from the code
	$(BIN)/python tools/formats.py

pictures: $(READY)  ## draw the pictures of the README and the docs
	$(BIN)/python tools/pictures.py
	$(BIN)/python tools/pictures_accountant.py
	$(BIN)/python tools/pictures_settlement.py
	$(BIN)/python tools/pictures_sealing.py
	$(BIN)/python tools/screens.py
	$(BIN)/inca audit examples/consortium.json --plot docs/pictures/losses.svg
	$(BIN)/inca compare --paper --plot docs/pictures/compare.png
	$(BIN)/inca learn compare --data digits --epsilon 2 --epsilon 8 --epsilon 32 --seeds 20 --plot docs/pictures/learning.png

reproduction: $(READY)  ## the paper's figures at full size, for the docs: 35 minutes on two cores; goes on where it stopped
	$(BIN)/inca reproduce all --out docs/reproduction
	$(BIN)/python tools/verdicts.py

site: $(READY)  ## the documentation site, into build/site: open index.html there, from the folder or from a web server
	$(BIN)/python tools/docsite/build.py build/site

clean:
	rm -rf $(VENV) node_modules build src/*.egg-info
