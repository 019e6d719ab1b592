# What users install, all of it made from one static binary. Nothing here publishes: packaging/github/release.yml does, for maintainers.
# tests/packages/run installs each of these into a root and runs it there.

VERSION := $(shell sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
ARCH := $(shell uname -m)
STATIC := $(TARGET)/dist
STATIC_BINARY := $(STATIC)/bursar-$(ARCH)-linux
PACKAGES := $(TARGET)/packages
# Proc macros are loaded by the compiler and cannot be static: the target is named, so that flags are for it alone.
STATIC_TARGET := $(ARCH)-unknown-linux-gnu
# Packed relocations are 0.7 MiB less. The start code of static programs applies them since glibc 2.36.
PACKED := $(shell printf '%s\n' 'glibc 2.36' "$$(getconf GNU_LIBC_VERSION 2>&1)" | sort -CV && echo ',"-C","link-arg=-Wl,-z,pack-relative-relocs"')
STATIC_FLAGS := target.$(STATIC_TARGET).rustflags=["-C","target-feature=+crt-static"$(PACKED)]
# Files of packages have the time of the last commit, so that equal sources make equal packages.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || date +%s)

.PHONY: static deb rpm wheel image packages

static: deps ## One static binary in target/dist, with libbpf, libelf, zlib, SQLite, the BPF programs and the runtime inside
	@scripts/install-packages binutils llvm
	$(CARGO) build --profile static --locked -p bursar --target $(STATIC_TARGET) --config '$(STATIC_FLAGS)'
	@mkdir -p $(STATIC)
	objcopy --only-keep-debug --compress-debug-sections $(TARGET)/$(STATIC_TARGET)/static/bursar $(STATIC_BINARY).debug
	objcopy --strip-all $(TARGET)/$(STATIC_TARGET)/static/bursar $(STATIC_BINARY)
	cd $(STATIC) && objcopy --add-gnu-debuglink=$(notdir $(STATIC_BINARY)).debug $(notdir $(STATIC_BINARY))
	@scripts/pages $(STATIC_BINARY) $(STATIC)
	@ls -l $(STATIC_BINARY)

deb: static ## bursar and bursar-slurm for Debian and Ubuntu, in target/packages
	@scripts/install-packages dpkg-dev debhelper libslurm-dev
	@packaging/debian/build $(STATIC_BINARY) $(STATIC) $(VERSION) $(PACKAGES)

rpm: static ## bursar for Fedora, RHEL and SUSE, in target/packages
	@scripts/install-packages rpm
	@packaging/rpm/build $(STATIC_BINARY) $(STATIC) $(VERSION) $(PACKAGES)

wheel: static ## The command and the Python package bursar as one wheel, in target/packages
	@scripts/install-packages python3
	@packaging/python/build $(STATIC_BINARY) $(VERSION) $(PACKAGES)

image: static ## A container image (an OCI layout in a tar file), in target/packages
	@scripts/install-packages umoci
	@packaging/oci/build $(STATIC_BINARY) $(VERSION) $(PACKAGES)

packages: deb rpm wheel image ## All of these
	cd $(PACKAGES) && sha256sum *.deb *.rpm *.whl *.tar >SHA256SUMS
