# `make demo` shows what bursar does; `make test` tests it. Both install what is missing first, and say what.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := build

CARGO ?= cargo
PREFIX ?= /usr/local
TARGET := $(or $(CARGO_TARGET_DIR),target)
# The Rust that scripts/install-rust unpacks where the distribution's is too old.
RUST := $(abspath $(TARGET))/rust
export PATH := $(RUST)/bin:$(PATH):$(HOME)/.cargo/bin

# For srun --bursar, where Slurm's headers are (libslurm-dev).
SPANK := $(if $(wildcard /usr/include/slurm/spank.h),$(TARGET)/built/spank_bursar.so)
# What `make` leaves beside the binary, for `make install`.
BUILT := $(TARGET)/built

# Alternatives are written a,b: the first that the distribution has.
BUILD_PACKAGES = gcc libc6-dev make pkg-config clang libbpf-dev libelf-dev zlib1g-dev
TEST_PACKAGES = clang-format time tmux sqlite3 python3 python3-jsonschema python3-yaml valgrind musl-tools chromium,chromium-browser chromium-driver,chromium-chromedriver \
	libjemalloc2 libtcmalloc-minimal4,libtcmalloc-minimal4t64 libmimalloc2.0,libmimalloc3 openmpi-bin libopenmpi-dev mpich libmpich-dev gfortran python3-mpi4py lammps gdb slurm-wlm munge libslurm-dev redis-server xz-utils \
	prometheus qemu-system-x86 busybox-static cpio iproute2 kmod e2fsprogs systemd dbus libpam-systemd

.PHONY: build book deps deps-test test test-slow test-all campaign fuzz test-vm test-kubernetes lint demo bench install uninstall clean

build: deps $(SPANK) ## The release binary with its man page and completions, and the SPANK plugin where Slurm's headers are
	$(CARGO) build --release --locked -p bursar
	@scripts/pages $(TARGET)/release/bursar $(BUILT)
	@echo "$(TARGET)/release/bursar"

$(TARGET)/built/spank_bursar.so: slurm/spank_bursar.c
	mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -Wall -Wextra -Werror -fPIC -shared -DBURSAR='"$(PREFIX)/bin/bursar"' $< -o $@

deps:
	@scripts/install-packages $(BUILD_PACKAGES)
	@scripts/install-rust $(RUST)

deps-test: deps
	@scripts/install-packages $(TEST_PACKAGES)

lint: deps-test ## Everything that is wrong without running it
	scripts/lint-rust
	scripts/lint-c
	bench/report --check

test: deps-test ## What a change needs: all tests but the slow ones and those in the virtual machine; ends with a count
	@scripts/test

test-slow: deps-test ## The tests that tests/slow lists, each with the reason why `make test` leaves it out
	@scripts/test --slow

test-vm: deps-test ## The tests on cgroup v2, systemd, two nodes and device-dax, with Debian's kernel in a virtual machine
	@# As `make test` builds it: other features would build everything once more.
	$(CARGO) test --workspace --locked --no-run
	@tests/vm/run

test-kubernetes: deps ## Whether Kubernetes itself takes the metrics and recommendations; six minutes at first
	@scripts/install-packages prometheus openssl python3 $(if $(shell command -v go),,golang-go)
	$(CARGO) test --workspace --locked --no-run
	@tests/kubernetes/run

FAULTS ?= 1000
campaign: build ## FAULTS faults (kills, errors of system calls, removals) in each command, the same for an equal SEED; see tests/campaign
	@scripts/install-packages python3
	tests/campaign/campaign $(TARGET)/release/bursar --count $(FAULTS) $(if $(SEED),--seed $(SEED))

test-all: ## All tests, here and in the virtual machine, as .ci/run runs them
	$(MAKE) test
	$(MAKE) test-slow
	$(MAKE) test-vm

demo: build ## A budget of a real program over real input, and its report
	@scripts/install-packages sqlite3
	@scripts/demo "$(TARGET)/release/bursar" "$(TARGET)/demo"

CASES ?= 1000000
fuzz: export FUZZ_CASES = $(CASES)
fuzz: export CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS = true
fuzz: deps ## Every parser of foreign input on CASES changed inputs each; see crates/fuzz
	$(CARGO) test --release --locked -p fuzz -- --nocapture fuzz_
	$(CARGO) test --release --locked -p serve -p provision -p qemu -p session -p slurm --lib -- --nocapture fuzz_

bench: build ## The measurements of the book: hours; see bench/
	bench/run

# mdBook 0.5 needs a newer Rust than this workspace. The default features serve pages over HTTP, which nobody needs here.
MDBOOK_VERSION = 0.4.52
MDBOOK = $(TARGET)/tools/bin/mdbook

$(MDBOOK):
	@scripts/install-packages gcc libc6-dev
	@scripts/install-rust $(RUST)
	@echo "Building mdBook $(MDBOOK_VERSION) into $(TARGET)/tools: some minutes"
	$(CARGO) install --locked --root $(TARGET)/tools --version $(MDBOOK_VERSION) --no-default-features --features search mdbook

book: $(MDBOOK) ## The pages of docs/ as a book with navigation and search, in target/book; fails if a link is broken
	@scripts/install-packages python3
	@scripts/book $(MDBOOK) $(TARGET)/book

# It only copies: `sudo make install` has neither the caller's Rust nor the caller's target folder to build in.
install: ## Copies what `make` has built to PREFIX (/usr/local), below DESTDIR if that is given
	@DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) scripts/install $(TARGET)/release/bursar $(BUILT)

uninstall: ## Removes what `make install` put there
	@DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) scripts/uninstall

include packaging/packages.mk

clean:
	$(CARGO) clean
