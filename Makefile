# The commands a newcomer needs; `make` alone lists them.

.DEFAULT_GOAL := help
.PHONY: help demo test bench report lint doc pictures install deb static

# The committed Cargo.lock is part of what is tested.
CARGO_FLAGS ?= --locked

# Continuous integration has installed everything: a test that says "skipped" fails there.
export COURSER_NO_SKIPS ?= $(if $(CI),1)

# There nothing is built twice: what speeds up a second build would only fill the disk.
ifdef CI
export CARGO_INCREMENTAL ?= 0
endif

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{ printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## build it, serve a page over TLS on a free port, show what is negotiated and how fast it is
	@scripts/demo.sh

test: install lint ## install what the tests judge with, lint, run all tests
	cargo test $(CARGO_FLAGS) --workspace --no-fail-fast

bench: install ## processor time per connection next to nginx, HAProxy, hitch, stunnel; ARGS="--case 1 --rounds 1"
	cargo bench $(CARGO_FLAGS) -p courser --bench cpu_per_connection -- $(ARGS)

report: install ## the quick variant of every suite on this machine: a page, and its path (half an hour; OUT, SUITES, ARGS)
	@scripts/report.sh

lint: ## format check, clippy without warnings, dependency rules if cargo-deny is installed
	cargo fmt --all --check
	cargo clippy $(CARGO_FLAGS) --workspace --all-targets -- -D warnings
	@if command -v python3 >/dev/null; then scripts/pictures.py --check; else echo "skipped: python3 is not installed"; fi
	@if command -v cargo-deny >/dev/null; then cargo deny check bans licenses sources; else echo "skipped: cargo-deny is not installed"; fi

doc: ## build the documentation of all crates
	RUSTDOCFLAGS="-D warnings" cargo doc $(CARGO_FLAGS) --workspace --no-deps

pictures: ## draw docs/pictures/*.svg anew from the text beside them
	@scripts/pictures.py

install: ## install clients and rivals from the distribution (needs root), or name what is missing
	@scripts/install.sh

deb: ## build the packages courser and courser-bench for this distribution (into target/deb)
	cargo build $(CARGO_FLAGS) --release -p courser -p courser-bench
	scripts/deb.sh target/release target/deb

static: ## build courser as one program without any library (musl, into target/static), and what packaging/Dockerfile takes
	rustup target add $(STATIC)
	cargo build $(CARGO_FLAGS) --release --target $(STATIC) -p courser
	install -D -m 755 target/$(STATIC)/release/courser target/static/courser
	install -m 644 /etc/ssl/certs/ca-certificates.crt target/static/ca-certificates.crt

# The C parts (cryptography, allocator) take a compiler for it: musl-gcc, of the package musl-tools.
STATIC := $(shell uname -m)-unknown-linux-musl
