# Everything runs in .venv, which each target sets up for itself. `make` alone lists the targets.

PYTHON ?= python3
ARGS ?=

py := .venv/bin/python
ready := .venv/.ready

# A run starts many interpreters. Without its bytecode each of them would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv demo test coverage lint format types signatures imports bench bench-concentrated walk recorded bench-ledger bench-local bench-models audit-peers bench-tables java chromium serve bench-spark bench-gateway bench-collect bench-peers soak papers docs clean
# The steps of `make test` report one after the other, also under `make -j`.
.NOTPARALLEL:

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

venv: $(ready)  ## set up .venv (again only when pyproject.toml or constraints.txt changed)

# Written last, so that an interrupted set-up is done again.
$(ready): pyproject.toml constraints.txt
	@command -v "$(PYTHON)" >/dev/null || { \
	    echo "No '$(PYTHON)' found. epsilons needs Python 3.11 or newer: make PYTHON=/path/to/python3 ..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "epsilons needs Python 3.11 or newer; '$(PYTHON)' is $$("$(PYTHON)" --version 2>&1)." >&2; \
	    echo "Choose another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import venv, ensurepip' || { \
	    echo "'$(PYTHON)' lacks the module venv or ensurepip, which makes virtual environments." >&2; \
	    echo "On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@# An environment that is half made, too old, or whose Python is gone starts afresh.
	@test -x $(py) && $(py) -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "Making .venv"; "$(PYTHON)" -m venv --clear .venv; }
	@echo "Installing epsilons and what its tests need into .venv (a minute or two the first time)"
	@# The variables pin the build tool as well: older releases of pip read the first, newer ones the second.
	@PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
	    $(py) -m pip install -qq --no-input -c constraints.txt -e '.[dev]' || { \
	    echo "The installation failed. All that pip has to say: $(py) -m pip install -c constraints.txt -e '.[dev]'" >&2; \
	    exit 1; }
	@touch $@

demo: $(ready)  ## show what the library does
	@$(py) -m epsilons.demo $(ARGS)

serve: $(ready)  ## a gateway with real wages: pages for an analyst, a person and a steward (ARGS="--port 0": any free port)
	@$(py) -m epsilons serve --demo $(ARGS)

test: lint types imports java chromium  ## lint, types, imports, then all tests but the long ones (ARGS=... goes to pytest)
	$(py) -m pytest -n 2 -q $(ARGS)

coverage: $(ready) java chromium  ## which lines and branches of src the tests run, child processes included
	@rm -rf build/coverage && mkdir -p build/coverage
	$(py) -m coverage run -m pytest -n 2 -q $(ARGS)
	@$(py) -m coverage combine -q
	$(py) -m coverage report

lint: $(ready)  ## ruff: rules and format
	$(py) -m ruff check .
	$(py) -m ruff format --check .

format: $(ready)  ## let ruff repair what it can
	$(py) -m ruff check --fix .
	$(py) -m ruff format .

types: $(ready)  ## mypy, strict
	$(py) -m mypy --strict src

signatures: $(ready)  ## write the stubs of the functions and methods that are made from the catalogue
	$(py) tools/signatures.py

imports: $(ready)  ## import-linter: imports between rooms only go down
	$(py) .venv/bin/lint-imports --no-logo

java:  ## install what the tests of Spark need, if it is missing and apt may be used
	@sh tests/support/install_package.sh openjdk-17-jre-headless 'java -version || "$$JAVA_HOME/bin/java" -version' Spark \
	    "JAVA IS MISSING and could not be installed: SPARK IS NOT TESTED."

chromium:  ## install what the tests of pages need, if it is missing and apt may be used
	@sh tests/support/install_package.sh chromium 'command -v chromium' pages \
	    "CHROMIUM IS MISSING and could not be installed: PAGES ARE NOT TESTED IN A BROWSER."

bench: $(ready)  ## run the benchmarks
	$(py) benchmarks/run.py $(ARGS)

bench-jointly: $(ready)  ## what calibrating sums together gains (ARGS=--write renews docs/theory.md)
	$(py) benchmarks/jointly.py $(ARGS)

bench-concentrated: $(ready)  ## what concentrated accounts gain (ARGS=--write renews docs/theory.md)
	$(py) benchmarks/concentrated.py $(ARGS)

walk: $(ready)  ## which way a question takes: files passed and hops between them, against their limits
	$(py) benchmarks/walk.py $(ARGS)

bench-ledger: $(ready)  ## run the ledger's benchmark (ten minutes, 20 GB of disk)
	$(py) benchmarks/ledger.py $(ARGS)

bench-local: $(ready)  ## the local model beside numpy and two packages of PyPI (ARGS=--write renews docs/local.md)
	$(py) benchmarks/local.py $(ARGS)

# diffprivlib needs an older scikit-learn than ours, hence an environment of its own; without it its column is empty.
build/diffprivlib/.ready: benchmarks/diffprivlib.txt
	@mkdir -p build && "$(PYTHON)" -m venv --clear build/diffprivlib
	@build/diffprivlib/bin/python -m pip install -qq --no-input -r benchmarks/diffprivlib.txt && touch $@ \
	    || { rm -rf build/diffprivlib; echo "diffprivlib cannot be installed here; the comparison goes without it." >&2; }

bench-models: $(ready) build/diffprivlib/.ready  ## time and accuracy of models, beside numpy, OpenDP and diffprivlib
	$(py) benchmarks/models.py $(ARGS)

audit-peers: $(ready) build/diffprivlib/.ready  ## audits of OpenDP and diffprivlib by eps.audit
	$(py) benchmarks/audits.py $(ARGS)

bench-tables: $(ready)  ## the benchmarks of tables (SIZE=1e8 for one size; several minutes)
	$(py) benchmarks/tables.py $(if $(SIZE),--size $(SIZE)) $(ARGS)

bench-spark: $(ready) java  ## Spark beside plain Spark (needs Java)
	$(py) benchmarks/spark.py $(ARGS)

bench-gateway: $(ready)  ## a gateway under load: 200 clients for a minute (ARGS=--write renews docs/gateway.md)
	$(py) benchmarks/gateway.py $(ARGS)

bench-collect: $(ready)  ## shares, proofs and HTTP of aggregators (ARGS=--write renews docs/aggregators.md)
	$(py) benchmarks/collect.py $(ARGS)

bench-peers: $(ready)  ## measure the peers beside epsilons, each in an environment of its own (half an hour or more)
	$(py) benchmarks/peers/run.py $(ARGS)

recorded: $(ready)  ## compare with the recorded answers (ARGS='--renew FINDING PATTERN' records a change that is meant)
	@PYTHONPATH=tests $(py) -m recorded.record $(ARGS)

soak: $(ready) java chromium  ## the long tests; writes docs/reliability.md (ARGS="-k figure_3" for one figure)
	$(py) -m pytest -m soak --hypothesis-profile=soak -q --figures=docs/reliability.md $(ARGS)

papers: $(ready)  ## measure the papers' figures again into results/; writes docs/claims.md and docs/corrections.md
	$(py) -m epsilons papers all --out results $(ARGS)
	$(py) tools/papers.py results

docs: $(ready)  ## build the documentation
	$(py) docs/build.py $(ARGS)

clean:  ## back to a fresh clone: remove .venv, caches and what was built
	rm -rf .venv .peers build dist docs/_site .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests -type d -name __pycache__ -prune -exec rm -rf {} +
