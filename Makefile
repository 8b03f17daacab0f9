# Cairn: every chore has a target here, and `make help` lists them.
# A fresh machine needs Python 3.11 or newer and nothing else: targets make `.venv` and install into it.

PYTHON ?= python3
# Test processes (they wait for browsers and services, so three keep two cores busy), extra options for pytest, and the
# benchmark to run: `make test WORKERS=1`.
WORKERS ?= 3
PYTEST_ARGS ?=
BENCH ?= sampler
PIECES ?=
SECONDS ?= 3600
# Rounds of `make test-repeat`.
N ?= 10
# The digest of the base image, for releases: `make image BASE_DIGEST=sha256:...`.
BASE_DIGEST ?=

VENV := .venv
BIN := $(VENV)/bin
NODE := $(BIN)/node
SERVER_READY := $(VENV)/.server-ready
TEST_READY := $(VENV)/.test-ready
NODE_READY := node_modules/.package-lock.json
SBOM_READY := $(VENV)-sbom/.ready
CYCLONEDX := 7.5.0
VERSION := $(shell sed -n 's/^version = "\([^"]*\)".*/\1/p' pyproject.toml)

# One BLAS thread per test process: several processes on two cores should not become twice as many threads.
ONE_BLAS_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
# pytest, watched: a test process that is lost fails the run and names its test, and so does one that hangs.
PYTEST := $(ONE_BLAS_THREAD) $(BIN)/python -m tests.support.run
DISTRIBUTED := -n $(WORKERS) --dist loadscope --max-worker-restart 0
EVERYTHING := --both-databases -m "not audit and not chaos and not containers"
HANGING := -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true

# Tests start many processes: where a machine asks for no bytecode, each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

# An index of packages, or the way to it, may be slow.
export PIP_DEFAULT_TIMEOUT ?= 180
export PIP_RETRIES ?= 10

# Run a command and print how long it took.
timed = @echo "$(1)"; begun=$$(date +%s); $(1) && echo "    $$(($$(date +%s) - begun)) s"

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install browser run test test-all test-repeat test-upload lint format check coverage audit chaos soak fuzz bench docs screenshots kernels dist image image-test requirements sbom clean

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

install: $(TEST_READY) ## Make .venv and install Cairn with everything that tests and benchmarks need

browser: $(TEST_READY) ## Find a browser for the console's tests, or install one
	$(BIN)/python -m tests.support.browser

run: $(SERVER_READY) ## Start a service with a demo dataset on this machine and print its address and keys
	$(BIN)/cairn-server demo

test: lint check ## Set up (a browser too), then run what each change must pass: style, types, contracts, tests

lint: $(TEST_READY) $(NODE_READY) ## Check style (ruff, biome), spelling, types (mypy --strict, tsc) and import contracts
	$(call timed,$(BIN)/ruff check .)
	$(call timed,$(BIN)/ruff format --check .)
	$(call timed,$(BIN)/codespell)
	$(call timed,$(BIN)/mypy)
	$(call timed,$(BIN)/lint-imports)
	$(call timed,$(NODE) node_modules/.bin/biome ci --error-on-warnings)
	$(call timed,$(NODE) node_modules/.bin/tsc)

format: $(TEST_READY) $(NODE_READY) ## Rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(NODE) node_modules/.bin/biome check --write

test-all: ALL := $(EVERYTHING)
test-all: lint check ## As `make test`, and long tests, wheels on every Python here, both databases for all tests

check: browser $(NODE_READY) ## Run the tests alone; PYTEST_ARGS="-k budget" narrows them
	$(PYTEST) $(DISTRIBUTED) $(HANGING) $(ALL) $(PYTEST_ARGS)

test-repeat: browser ## Repeat N times, under load, the tests that chance can change; stopped, it goes on where it was
	$(ONE_BLAS_THREAD) $(BIN)/python -m tests.support.repeat --rounds $(N) --workers $(WORKERS)

coverage: browser ## Run the tests and report the line coverage of core and service (htmlcov/index.html)
	$(PYTEST) $(DISTRIBUTED) --cov --cov-report=term --cov-report=html $(PYTEST_ARGS)

audit: $(TEST_READY) ## Run the long privacy audits, and every property test on many fresh examples
	$(ONE_BLAS_THREAD) $(BIN)/python -m assurance audit
	HYPOTHESIS_PROFILE=audit $(PYTEST) $(DISTRIBUTED) -m "audit or hypothesis" $(PYTEST_ARGS)

chaos: $(TEST_READY) ## Race and crash real processes for an hour; PIECES="outages cuts" runs some of it
	$(ONE_BLAS_THREAD) $(BIN)/python -m assurance chaos $(PIECES)
	$(PYTEST) -m chaos $(PYTEST_ARGS)
	$(MAKE) fuzz

soak: $(TEST_READY) ## Use a service with eight clients for an hour, or SECONDS, and print what grew
	$(ONE_BLAS_THREAD) $(BIN)/python -m assurance soak $(SECONDS) $(ATTACKED)

fuzz: $(TEST_READY) ## Send 20,000 hostile requests in every role, half of them on each database, and count faults
	$(ONE_BLAS_THREAD) $(BIN)/python -m assurance fuzz

test-upload: $(TEST_READY) ## Upload 1,000,000 x 20 numbers to a real server and print what memory that takes
	UPLOAD_ROWS=1000000 $(PYTEST) -s tests/acceptance/test_upload.py -k little_memory $(PYTEST_ARGS)

bench: $(TEST_READY) ## Run a benchmark; BENCH="NAME --options" chooses it, BENCH=--help lists them
	$(BIN)/python -m benchmarks $(BENCH)

docs: $(TEST_READY) ## Build the documentation site in build/site, with every link checked
	$(BIN)/sphinx-build -q -W --keep-going -c docs . build/site
	@echo "Open build/site/docs/index.html in a browser."

screenshots: browser ## Draw the console's pictures in docs/images again, with the system's Chromium
	$(ONE_BLAS_THREAD) $(BIN)/python -m tests.console.pictures

kernels: $(TEST_READY) ## Compile the kernels again and install them; shows what the compiler says
	$(INSTALL) --verbose --no-deps --force-reinstall ./kernels

# An earlier build's folders go first: setuptools would pack modules that are only there.
dist: $(TEST_READY) ## Build the wheels of cairn-dp, cairn-client and, with a C compiler, cairn-dp-kernels into dist/
	rm -rf build client/build kernels/build dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist \
	  . ./client $(if $(COMPILER),./kernels)

image: ## Build the container image, tagged with its version; BASE_DIGEST=sha256:... pins its base
	docker build $(if $(BASE_DIGEST),--build-arg BASE_DIGEST=$(BASE_DIGEST)) --build-arg VERSION=$(VERSION) \
	  --build-arg REVISION=$(shell git rev-parse HEAD 2>/dev/null) -t cairn:$(VERSION) -t cairn:latest .

image-test: $(TEST_READY) ## Build the image and run docker-compose.yml on this machine's container engine, with faults
	@docker version >/dev/null 2>&1 && docker compose version >/dev/null 2>&1 || \
	  { echo "make image-test needs a running Docker engine with compose; none answers here, so nothing was tested."; exit 1; }
	$(MAKE) image
	$(PYTEST) -m containers tests/acceptance/test_deployment.py tests/acceptance/test_pods.py $(PYTEST_ARGS)

requirements: $(TEST_READY) ## Write deploy/requirements.txt again: the image's packages, each with its hashes
	$(BIN)/python deploy/pin.py > deploy/requirements.new
	mv deploy/requirements.new deploy/requirements.txt

sbom: $(SBOM_READY) ## Write dist/sbom.json, a list of the image's Python packages in CycloneDX format
	mkdir -p dist
	$(VENV)-sbom/bin/cyclonedx-py requirements --pyproject pyproject.toml --of JSON -o dist/sbom.json deploy/requirements.txt

clean: ## Remove .venv and every cache and build product
	rm -rf $(VENV) $(VENV)-sbom node_modules build client/build kernels/build dist *.egg-info client/*.egg-info kernels/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache htmlcov .coverage*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# `make run` and `make test` may set up one checkout at the same time: the second waits, and finds it done.
LOCK := $(PYTHON) -c "import fcntl, subprocess, sys; lock = open('.set-up.lock', 'w'); \
  fcntl.flock(lock, fcntl.LOCK_EX); sys.exit(subprocess.call(sys.argv[1:]))"
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Compiled kernels, where there is a C compiler: the same results in less time. Nothing needs them.
COMPILER := $(shell command -v $(CC))
KERNELS := $(wildcard kernels/*.py kernels/*.toml kernels/cairn_kernels/*.py kernels/cairn_kernels/*.c)
INSTALL_KERNELS = $(if $(COMPILER),@$(INSTALL) --no-deps --force-reinstall ./kernels >/dev/null 2>&1 || true)

ifndef LOCKED
$(SERVER_READY) $(TEST_READY): pyproject.toml client/pyproject.toml constraints.txt $(KERNELS)
	@$(LOCK) $(MAKE) -s LOCKED=1 $@
else
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Cairn needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(SERVER_READY): pyproject.toml client/pyproject.toml constraints.txt $(KERNELS) | $(BIN)/python
	@echo "Installing Cairn into $(VENV)"
	$(INSTALL) -e '.[server]' -e ./client
	$(INSTALL_KERNELS)
	@touch $@

$(TEST_READY): pyproject.toml client/pyproject.toml constraints.txt $(KERNELS) | $(BIN)/python
	@echo "Installing Cairn, with everything that its tests need, into $(VENV)"
	$(INSTALL) --no-compile -e '.[test]' -e ./client
	$(INSTALL_KERNELS)
	-@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib  # as pip would, on every core
	@touch $@ $(SERVER_READY)
endif

# The tools that check the console's JavaScript; node itself is a pinned package of Python.
$(NODE_READY): package.json package-lock.json | $(TEST_READY)
	@echo "Installing biome and TypeScript into node_modules"
	@$(BIN)/npm ci --ignore-scripts --no-audit --no-fund --loglevel=error

# A tool of its own, kept apart: nothing of Cairn needs it.
$(SBOM_READY):
	$(PYTHON) -m venv $(VENV)-sbom
	$(VENV)-sbom/bin/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom==$(CYCLONEDX)
	@touch $@
