# What a user does with Echelon. `make run` and `make test` set up what is missing first.

SHELL := /bin/bash
PYTHON := /usr/bin/python3
VENV := .venv
BIN := $(VENV)/bin
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
PACKAGES := mininet iproute2 ethtool iputils-ping procps gcc libc6-dev python3-venv

.PHONY: run test test-slow setup p4 shell bench proto clean lint format
.DEFAULT_GOAL := run

## the main job: schedules real training traffic on P4 switches (TRACE=path: your own; ARGS="--policy echelon ...")
run: setup
	$(SUDO) $(BIN)/echelon $(if $(TRACE),replay $(TRACE),run) $(ARGS)

## the whole test suite (tests that need root are skipped by name without it)
test: setup
	$(BIN)/python -m pytest -m "not slow" $(ARGS)

## the tests that take longer than a minute
test-slow: setup
	$(BIN)/python -m pytest -m slow $(ARGS)

## Debian packages and the virtual environment; does nothing when they are there
setup: $(VENV)/.stamp

$(VENV)/.stamp: pyproject.toml constraints.txt
	@missing=$$(for package in $(PACKAGES); do \
	  dpkg-query -W -f '$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || echo $$package; done); \
	if [ -n "$$missing" ]; then \
	  echo "setup: installing Debian packages:" $$missing; \
	  $(SUDO) apt-get -qq update && \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $$missing >/dev/null; \
	fi
	@if [ ! -x $(BIN)/python ]; then \
	  echo "setup: making $(VENV) from $(PYTHON), which sees Debian's Mininet"; \
	  $(PYTHON) -m venv --system-site-packages $(VENV); \
	fi
	@echo "setup: installing the Python packages of pyproject.toml (versions: constraints.txt) into $(VENV)"
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[test]' --constraint constraints.txt
	@echo "setup: compiling the simulator's kernels"
	@$(BIN)/python -m controller.simulator.warm_up
	@touch $@

## p4c's output, p4/compiled/ (needs p4c on PATH)
p4:
	@command -v p4c-bm2-ss >/dev/null || { echo "make p4: p4c-bm2-ss is not on PATH; p4/compiled/ is committed, so only a change of p4/ needs it" >&2; exit 1; }
	cd p4 && p4c-bm2-ss --arch v1model --p4runtime-files compiled/echelon.p4info.txt -o compiled/echelon.json echelon.p4
	mv p4/compiled/echelon.p4info.txt p4/compiled/echelon.p4info.txtpb

## p4runtime-shell on a live switch: `make shell SWITCH=s1`; it needs old protobuf, hence its own environment
SWITCH := s1
shell: .venv-shell/.stamp
	@address=$$($(PYTHON) -m topologies.live $(SWITCH)) && .venv-shell/bin/python -m p4runtime_sh $$address

.venv-shell/.stamp:
	@echo "setup: installing p4runtime-shell into .venv-shell"
	@$(PYTHON) -m venv .venv-shell
	@.venv-shell/bin/pip install --quiet --disable-pip-version-check p4runtime-shell==0.0.6 'protobuf<3.21' setuptools
	@touch $@

## every benchmark: results/bench/*.json; or one part: bench-switch, bench-scheduling, bench-profiles
bench: bench-switch bench-scheduling bench-profiles

bench-%: setup
	$(BIN)/python -m bench.$* $(ARGS)

bench-switch: setup
	$(SUDO) $(BIN)/python -m bench.switch $(ARGS)

## the gRPC stubs of controller/api/
proto: setup
	$(BIN)/pip install --quiet --disable-pip-version-check grpcio-tools==1.81.1 --constraint constraints.txt
	$(BIN)/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. --grpc_python_out=. controller/api/*.proto

## removes exactly what a run made and left behind (after kill -9, say); keeps results/ and the environment
clean:
	$(SUDO) $(PYTHON) -m topologies.clean

## formatter, linter and strict types
lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
