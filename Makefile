# On a fresh clone with Python 3.11+ and make: `make demo` and `make test` set up all they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests run in one process per core and one more, as some wait for clocks and networks; file by file, since the code blocks
# of a page build on each other; in the order of the files, since those with few tests are not the short ones. BLAS threads
# on top of that would only wait for each other, and every process would compile all tests if bytecode were not kept.
TESTING := OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
READY := $(VENV)/.ready

.PHONY: demo test test-all lint types arrows bench conservation golden pictures reproduction site clean

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "inca needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: $(READY)  ## twelve real processes over TLS on this machine, three of them killed: the mean and what leaked
	$(BIN)/inca demo

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

arrows: $(READY)
	$(BIN)/lint-imports

test: lint types arrows  ## everything that must hold at every commit
	$(TESTING) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m 'not slow'

test-all: lint types arrows  ## the same and the slow suites
	$(TESTING) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

bench: $(READY)  ## speed and memory, as ratios against named baselines in one run
	$(BIN)/python benchmarks/simulation.py
	$(BIN)/python benchmarks/privacy.py --largest
	$(BIN)/python benchmarks/conditions.py
	$(BIN)/python benchmarks/planner.py
	$(BIN)/python benchmarks/reproduction.py
	$(BIN)/python benchmarks/transport.py
	$(BIN)/python benchmarks/network.py grow
	$(BIN)/python benchmarks/dashboard.py
	$(BIN)/python benchmarks/learning.py

conservation: $(READY)  ## 10,000 simulated sessions with all faults together, the ledgers added up after every write
	$(BIN)/python benchmarks/conservation.py --sessions 10000

golden: $(READY)  ## write the golden vectors anew, in exact rational arithmetic
	$(BIN)/python tools/golden_vectors.py

pictures: $(READY)  ## draw the pictures of the README and the docs
	$(BIN)/python tools/pictures.py
	$(BIN)/python tools/pictures_accountant.py
	$(BIN)/python tools/screens.py
	$(BIN)/inca audit examples/consortium.json --picture docs/pictures/losses.png
	$(BIN)/inca compare --picture docs/pictures/compare.png
	$(BIN)/inca learn compare --data digits --epsilon 2 --epsilon 8 --epsilon 32 --seeds 20 --picture docs/pictures/learning.png

reproduction: $(READY)  ## the paper's figures at full size, for the docs: 35 minutes on two cores; goes on where it stopped
	$(BIN)/inca reproduce all --out docs/reproduction
	$(BIN)/python tools/verdicts.py

site: $(READY)  ## the documentation site, into build/site; python -m http.server -d build/site shows it
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) build src/*.egg-info
