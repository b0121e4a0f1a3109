# poolferry, from a fresh checkout on Debian 12 or 13. `make` alone lists what there is.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
BIN := .venv/bin
CORES := $(shell nproc 2>/dev/null || echo 2)
# Twice as many as cores, as half of a test is waiting; of those with machines three, for each is a gigabyte of memory or two.
WORKERS := $(shell expr $(CORES) '*' 2)
# Set, it would have every module and every test compiled anew at each start.
unexport PYTHONDONTWRITEBYTECODE
FAST := not slow and not root and not lab and not long and not bench

# What runs need, and what only the tests need. python3 is asked for separately: any Python 3.11 with venv will do.
RUNTIME_PACKAGES := rsync openssh-client mbuffer perl-base sqlite3 acl attr util-linux
TEST_SERVERS := openssh-server nginx prometheus prometheus-node-exporter nut-server nut-client postgresql postgresql-common
# A machine's own mail system stays what it is; where there is none, Debian's default one is tested.
TEST_SERVERS += $(if $(wildcard /usr/sbin/sendmail),,exim4-base exim4-daemon-light)
TEST_PACKAGES := $(TEST_SERVERS) openssl e2fsprogs xfsprogs btrfs-progs iproute2 shellcheck groff-base chromium libatomic1
# What builds and runs the virtual machines of tests/lab; LAB=no leaves these tests out.
LAB_PACKAGES := qemu-system-x86 qemu-utils mmdebstrap e2fsprogs openssh-client xz-utils zstd

# $(call scripts,INTERPRETER): the executables that are no modules and run under it, by their first line.
scripts = $(shell find hooks .ci orchestrator systemd tests/lab/guest -type f ! -name '*.py' ! -name '*.md' -exec grep -lEm1 '^\#!.*[/ ]$(1)( |$$)' {} + 2>/dev/null)

# $(call installed,PACKAGES): installs with apt what dpkg does not know, or says what a person must install.
# A freshly installed server (ssh, mail, Prometheus, UPS) is neither started nor enabled: the tests run their own on loopback.
define installed
	@missing=(); \
	$(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || missing+=(python3 python3-venv); \
	if ! command -v dpkg-query >/dev/null; then \
	  [ $${#missing[@]} = 0 ] || { echo "Not Debian, and no Python 3.11 with venv: install it, and $(1)." >&2; exit 1; }; \
	  exit 0; fi; \
	for package in $(1); do \
	  dpkg-query -W -f '$${db:Status-Status}' $$package 2>/dev/null | grep -qx installed || missing+=($$package); done; \
	[ $${#missing[@]} -gt 0 ] || exit 0; \
	if [ "$$(id -u)" = 0 ]; then root=(); elif sudo -n true 2>/dev/null; then root=(sudo -n); else \
	  printf '%s\n' "These Debian packages are missing, and neither root nor a sudo without a password is there:" \
	    "  sudo apt-get install --no-install-recommends $${missing[*]}" "Then call make again." >&2; exit 1; fi; \
	echo "apt: installing $${missing[*]}"; \
	mkdir -p .venv; log=.venv/apt.log; policy=/usr/sbin/policy-rc.d; quiet=no; \
	servers=(); for package in $(TEST_SERVERS); do \
	  if [[ " $${missing[*]} " == *" $$package "* ]]; then servers+=($$package); quiet=yes; fi; done; \
	if [ $$quiet = yes ] && [ ! -e $$policy ]; then \
	  printf '#!/bin/sh\nexit 101\n' | $${root[@]+"$${root[@]}"} tee $$policy >/dev/null; \
	  $${root[@]+"$${root[@]}"} chmod 755 $$policy; \
	  trap '$${root[@]+"$${root[@]}"} rm -f '$$policy EXIT; fi; \
	apt=($${root[@]+"$${root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300); \
	{ "$${apt[@]}" update && "$${apt[@]}" install -y --no-install-recommends "$${missing[@]}"; } >$$log 2>&1 </dev/null \
	  || { cat $$log >&2; echo "apt could not install: $${missing[*]} (above, and in $$log, is why)" >&2; exit 1; }; \
	if [ $$quiet = yes ] && [ -d /run/systemd/system ]; then \
	  dpkg-query -L "$${servers[@]}" | sed -nE 's,.*/(systemd/system|init\.d)/([^/@]+)$$,\2,p' | sort -u | while read -r unit; do \
	    $${root[@]+"$${root[@]}"} systemctl disable -q $$unit 2>/dev/null || true; done; fi
endef

.NOTPARALLEL:
.PHONY: help demo demo-fleet pictures test test-long test-zfs lab check coverage format bench bench-zfs bench-fleet deb zipapp lock clean setup packages packages-test packages-fleet packages-lab

help:  ## this list
	@sed -nE 's/^([a-z][a-z-]*):.*## (.*)/make \1|\2/p' Makefile | while IFS='|' read -r target does; do \
	  printf '  %-14s %s\n' "$$target" "$$does"; done

demo-fleet: packages-fleet setup  ## a centre and three hosts for real, one of them silent, one late; and tells what it does
	@$(BIN)/python -m tests.demo_fleet

demo: setup  ## installs what is missing, then runs a real backup from copy to restore, and tells it
	@$(BIN)/python -m tests.demo

pictures: setup  ## makes the pictures of README.md and jobs/web.md anew, in a real browser
	@$(BIN)/python -m tests.web.pictures

# Two runs, so that no test waits for a core that machines have. Nothing chosen by ARGS in one of them is no failure.
test: packages-test $(if $(filter no,$(LAB)),,packages-lab) setup .venv/debian/stamp  ## the same set-up, then the tests, on real pools too (LAB=no: not those); half an hour or so on two cores
	@code=0; ended() { [ "$$1" = 5 ] && [ -n '$(subst ','\'',$(ARGS))' ] || code=$$1; }; \
	$(BIN)/python -m pytest -n $(WORKERS) -m 'not lab and not long' --dist worksteal --durations=15 $(ARGS) || ended $$?; \
	if [ "$(LAB)" != no ]; then \
	  $(BIN)/python -m tests.lab build || code=$$?; \
	  $(BIN)/python -m pytest -n 3 -m 'lab and not long' --dist worksteal --durations=25 $(or $(ARGS),tests/lab) || ended $$?; fi; \
	exit $$code

test-long: packages-test packages-lab setup .venv/debian/stamp  ## what takes longer: each variant of a test, 20,000 strange answers for each parser, the older OpenZFS, the peers, chaos of other seeds
	@code=0; ended() { [ "$$1" = 5 ] && [ -n '$(subst ','\'',$(ARGS))' ] || code=$$1; }; \
	$(BIN)/python -m pytest -n $(WORKERS) -m 'long and not lab' --dist worksteal --durations=15 $(ARGS) || ended $$?; \
	$(BIN)/python -m tests.lab build || code=$$?; \
	$(BIN)/python -m pytest -n 2 -m 'lab and long' --durations=15 $(or $(ARGS),tests/lab) || ended $$?; \
	exit $$code

test-zfs: packages-test setup .venv/debian/stamp  ## the lab's tests on this machine's own OpenZFS, as root, pools on files
	@POOLFERRY_LAB_NATIVE=1 $(BIN)/python -m pytest -m lab $(ARGS)

lab: packages-lab setup  ## builds the virtual machines: Debian 13 and 12 with OpenZFS, kept under ~/.cache
	@$(BIN)/python -m tests.lab build

# What reads the tree as a whole, and half of the tests, go on beside the others. Why no xdist: to hand over thousands of tests that take
# milliseconds costs it a third of the time.
HALF := tests/engines tests/planners tests/cli tests/config
check: packages-test setup .venv/debian/stamp  ## format, lint, types, spelling, shell, the fast tests; a minute or so
	@$(BIN)/python -m ruff format --check --quiet . $(call scripts,python3) || { echo "format: run make format" >&2; exit 1; }
	@$(BIN)/python -m ruff check --quiet . $(call scripts,python3)
	@for script in $$(find orchestrator -name '*.pl'); do perl -Mstrict -c $$script 2>&1 | { grep -v ' syntax OK$$' || :; } >&2; done
	@tests() { $(BIN)/python -m pytest -q -p no:xdist -m '$(FAST)' "$$@"; }; \
	read_all() { $(BIN)/python -m mypy --no-error-summary && $(BIN)/codespell && shellcheck $(call scripts,(ba|da)?sh) \
	  && $(BIN)/python -m pytest -q -p no:xdist tests/test_house.py tests/test_hints.py; }; \
	said=$$(mktemp -d); trap 'rm -rf $$said' EXIT; code=0; \
	read_all >$$said/read 2>&1 & reading=$$!; \
	tests $(or $(ARGS),$(HALF)) >$$said/half 2>&1 & half=$$!; \
	$(if $(ARGS),,tests $(addprefix --ignore=,$(HALF) tests/test_house.py tests/test_hints.py) || code=$$?;) \
	wait $$half || code=$$?; cat $$said/half; wait $$reading || code=$$?; cat $$said/read; exit $$code

# What decides must be seen deciding each way: the words, the planners, every engine's plan, and what reads programs' answers.
DECIDES := orchestrator/domain/*,orchestrator/gate/*,orchestrator/planners/*,orchestrator/engines/*/plan.py,orchestrator/engines/*/refusals.py,orchestrator/engines/*/plan/*,orchestrator/engines/*/parse.py,orchestrator/engines/zfs/survey/parse.py
coverage: packages-test setup .venv/debian/stamp  ## which lines and branches the fast tests reach; fails where what decides is not wholly reached
	@$(BIN)/python -m coverage erase
	@$(BIN)/python -m coverage run -m pytest -q -p no:xdist -m '$(FAST)' --ignore=tests/test_house.py --ignore=tests/test_hints.py
	@$(BIN)/python -m coverage report --include='$(DECIDES)' --fail-under=100
	@$(BIN)/python -m coverage report --omit='$(DECIDES)' --skip-covered | tail -n 3

format: setup  ## lays out the code as check wants it
	@$(BIN)/python -m ruff format --quiet . $(call scripts,python3)

bench: setup  ## measures; judges nothing
	@$(BIN)/python -m tests.bench $(ARGS)

bench-zfs: packages-lab setup  ## the same for datasets, in the virtual machines, next to syncoid, zfs-autobackup and bzfs
	@$(BIN)/python -m tests.bench.zfs $(ARGS)

bench-fleet: packages-fleet setup  ## a centre of many hosts by simulation: what it stores in a second, its pages, its size (ARGS="--hosts 10000")
	@$(BIN)/python -m tests.bench.fleet $(ARGS)

deb: setup  ## builds dist/poolferry_VERSION_ARCH.deb for Debian 12 and 13; the same commit makes the same bytes
	@$(BIN)/python systemd/debian/build_package.py dist

zipapp: setup  ## builds dist/poolferry.pyz, one file that runs where nothing may be installed; the same commit makes the same bytes
	@$(BIN)/python systemd/zipapp/build_zipapp.py dist

lock:  ## renews requirements.lock (UPGRADE=1: newest versions)
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m uv --version >/dev/null 2>&1 || $(BIN)/python -m pip install --quiet uv
	@$(BIN)/python -m uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-annotate --group dev --all-extras \
	  --custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade) pyproject.toml --output-file requirements.lock

clean:  ## removes the environment and everything made
	@rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

setup: packages .venv/stamp-project  ## the set-up alone

packages:
	$(call installed,$(RUNTIME_PACKAGES))

packages-test:
	$(call installed,$(RUNTIME_PACKAGES) $(TEST_PACKAGES))

packages-fleet:
	$(call installed,$(RUNTIME_PACKAGES) postgresql postgresql-common)

packages-lab:
	$(call installed,$(LAB_PACKAGES))

.venv/stamp-lock: requirements.lock | packages
	@echo "python: installing into .venv what requirements.lock names"
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install --quiet --no-input --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

.venv/stamp-project: .venv/stamp-lock pyproject.toml
	@$(BIN)/python -m pip install --quiet --no-input --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# Debian lets nobody install apcupsd beside NUT, and tests want the real words of both: this one is unpacked only.
.venv/debian/stamp: | .venv/stamp-project
	@command -v apt-get >/dev/null || exit 0; echo "apt: unpacking apcupsd into .venv/debian"; \
	if [ "$$(id -u)" = 0 ]; then root=(); else root=(sudo -n); fi; \
	mkdir -p .venv/debian; cd .venv/debian; \
	apt-get -qq download apcupsd 2>/dev/null || { $${root[@]+"$${root[@]}"} apt-get -qq update && apt-get -qq download apcupsd; } >apt.log 2>&1 \
	  || { cat apt.log >&2; echo "apt could not download apcupsd, which tests need" >&2; exit 1; }; \
	dpkg-deb -x apcupsd_*.deb . && rm -f apcupsd_*.deb && touch stamp
