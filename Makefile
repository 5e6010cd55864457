# Everything runs in .venv, which `make setup` makes; nothing here needs more than python3, make and apt.
.DEFAULT_GOAL := help
.PHONY: help setup setup-demo demo quick test test-all test-rest lint bench real-programs profile-study readers conformance test-kernel survey screens shell-files clean

PY := .venv/bin/python
# To select tests: make test PYTEST_FLAGS='-k walk'
# There are more workers than processors, because tests wait for debuggers, emulators and the disk.  With worksteal, an
# idle worker takes half of the tests that are left to another one; without it, the last worker ran 100 s alone.
PYTEST_FLAGS ?= -q -n $(shell expr $$(nproc) + 2) --dist worksteal
# Where it is set, as in many containers, each of some thousand processes would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE
# mypy refuses a path that does not exist.
TYPED := $(wildcard sframe_unwind gdb_plugin lldb_plugin tools tests lab bench hatch_build.py)

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

setup: ## make .venv and install the Debian packages that the tests use
	@python3 tools/setup.py --for test

# Set-up runs every time: it checks whether anything is missing, also after .venv was removed or the tree was moved.
setup-demo:
	@python3 tools/setup.py --for demo

demo: setup-demo ## GDB and LLDB on samples with and without DWARF CFI
	@$(PY) tools/demo.py

lint: setup ## ruff (rules and layout) and mypy
	@$(PY) -m ruff check --quiet .
	@$(PY) -m ruff format --check --quiet . || { echo "'ruff format' would change files (python -m ruff format --diff .)"; exit 1; }
	@$(PY) -m mypy --no-error-summary $(TYPED)

# Each tier contains the one before it; tests/tiers.py places the tests.
quick: setup ## the tests without a debugger
	@$(PY) -m pytest $(PYTEST_FLAGS) --tier quick

test: lint ## lint, then what each change runs: one of each kind of question, in the newest debuggers
	@$(PY) -m pytest $(PYTEST_FLAGS) --tier test

test-all: lint ## lint, then all tests: with older debuggers, all combinations, kernels and campaigns
	@$(PY) -m pytest $(PYTEST_FLAGS) --tier all

test-rest: setup ## what test-all has and test has not
	@$(PY) -m pytest $(PYTEST_FLAGS) --tier rest

bench: setup ## measure speed
	@$(PY) -m bench

real-programs: setup ## build lua, redis, sqlite, zlib and zstd with SFrame for three ABIs and verify them
	@$(PY) -m lab.real_programs

profile-study: setup ## record real programs, and unwind their samples by each method (docs/perf.md)
	@$(PY) -m lab.study

readers: setup ## run libsframe, glibc's reader, LLVM's and others on the same sections (docs/readers.md)
	@$(PY) -m lab.readers

conformance: setup ## make the test cases for decoders in conformance/ anew
	@$(PY) -m lab.readers.conformance

test-kernel: setup ## boot Linux kernels, one of them with SFrame, in QEMU under GDB and LLDB
	@$(PY) tools/kernel.py
	@$(PY) -m pytest -q tests/kernel/test_booted.py lab/kernel/booted.py lab/kernel/debian.py lab/kernel/debian_s390x.py

# Status 1 means that there are findings.
survey: setup ## survey Debian's base system for three machines, in some two minutes
	@$(PY) tools/survey_packages.py --count 0 > .cache/survey-packages
	@$(PY) -m sframe_unwind survey --store .cache/survey.db --html .cache/survey.html --convert \
		--against code --most-code 10000 $$(cat .cache/survey-packages) || test $$? = 1
	@echo "the page: .cache/survey.html"

screens: setup ## draw the pictures of the README and of docs/show.md anew
	@$(PY) -m tools.screen

shell-files: setup ## make the shells' completions and the manual page in build/
	@$(PY) -m tools.shell_files build

clean: ## remove what the other targets made
	@rm -rf .venv .cache build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
