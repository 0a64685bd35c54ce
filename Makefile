# Every target sets itself up: Python 3.11 or later and make are all a fresh machine needs.
PYTHON ?= python3
EXTRAS ?= test,docs
ITEMS ?=
BIN := .venv/bin
comma := ,
INSTALLED := .venv/installed-$(subst $(comma),-,$(EXTRAS))

.PHONY: install test pages howto dist release-tests reproduce check lint types docs reference figures landings bench adversarial crafted-files stress clean

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[$(EXTRAS)]"
	touch $@

test: install
	$(BIN)/pytest --numprocesses auto --dist loadfile

# The how-to pages whose packages are installed, and the command line's. Warnings of other packages
# are no errors there.
PAGES := docs/howto tests/test_command_line_page.py -m "release or not release" -o filterwarnings=default
pages: install
	$(BIN)/pytest --numprocesses auto --dist loadfile $(PAGES)

# All of them, with all packages, and the tests of environments of others.
howto:
	$(PYTHON) -m venv .venv-howto
	.venv-howto/bin/python -m pip install --quiet --constraint constraints.txt --editable ".[howto]"
	XLA_FLAGS= MELLOWMAX_REQUIRE_PAGES=1 .venv-howto/bin/pytest $(PAGES) tests/environments/test_gymnax.py \
	    tests/environments/test_adapters.py \
	    tests/deep/play/test_vector_environment.py tests/games/test_gambit.py

# The files of a release, built and checked: what is in them, and what they do in empty environments.
dist:
	$(MAKE) install EXTRAS=$(EXTRAS),dist
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/pytest tests/test_dist.py -m release

# Before a release: all tests as users run the code (fully optimised), the long statistical ones with
# them, and every item of the reproduction.
release-tests: install dist howto docs reproduce
	XLA_FLAGS= $(BIN)/pytest --numprocesses auto --dist loadfile -m "release or not release" \
	    --ignore tests/test_dist.py

reproduce: install
	$(BIN)/mellowmax reproduce $(ITEMS) --scale quick --out reproduction

check: lint types test pages docs

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: install
	$(BIN)/mypy

# The examples of the pages outside docs/howto, and the site with the lessons.
docs: install
	$(BIN)/pytest --quiet docs/*.md
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The table of public names, from their docstrings.
reference: install
	$(BIN)/python docs/public_names.py

figures: install
	$(BIN)/python docs/figures.py

# A pilot is trained for some minutes; its flights go into the explorer and the README.
landings: install
	$(BIN)/python docs/landings.py

bench: install
	$(BIN)/python benchmarks/policies.py
	$(BIN)/python benchmarks/pytorch.py
	$(BIN)/python benchmarks/planning.py
	$(BIN)/python benchmarks/horizon.py
	$(BIN)/python benchmarks/devices.py
	$(BIN)/python benchmarks/games.py
	$(BIN)/python benchmarks/inverse.py
	$(BIN)/python benchmarks/sweep.py
	$(BIN)/python benchmarks/learning.py
	$(BIN)/python benchmarks/deep.py
	$(BIN)/python benchmarks/dqn.py
	$(BIN)/python benchmarks/ppo.py
	$(BIN)/python benchmarks/lunar_lander_speed.py
	$(BIN)/python benchmarks/explorer.py

adversarial: install
	PYTHONPATH=tests $(BIN)/python -m helpers.adversarial

# 10,000 files through everything that reads one; it takes most of an hour.
crafted-files: install
	PYTHONPATH=tests $(BIN)/python -m helpers.crafted_files

stress: install
	$(BIN)/python benchmarks/stress.py

clean:
	rm -rf .venv .venv-howto build site dist reproduction .pytest_cache .hypothesis .mypy_cache .ruff_cache
