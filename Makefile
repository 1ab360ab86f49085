# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Every target does all of its own set-up on a machine that has only Swift, make and apt; `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

DESTDIR ?=
PREFIX ?= /usr/local
BINARY ?=
CHECK ?=
QUICK ?=
ONLY ?=
SECONDS_EACH ?=
RUNS ?=
WRITE ?=
HOURS ?= 1
TARGETS ?=
JOBS ?=
IDS ?=
SCENARIO ?=
PART ?=
FAULTS ?=
LASTING ?=
SWIFT ?= swift
export SWIFT DESTDIR PREFIX BINARY

# Nothing here can run beside itself: SwiftPM locks its build folder.
.NOTPARALLEL:
.PHONY: demo unit test applications verify nightly sanitize simulation fuzz grammar mutants torture check build install uninstall deb release bench soak conformance clean help

demo: ## build, and try it: a protected upstream and the proxy before it (CHECK=1: assert each answer and exit)
	@Tests/Scripts/setup build
	@$(SWIFT) build --product countersign
	@"$$($(SWIFT) build --show-bin-path)/countersign" demo $(if $(CHECK),--check)

unit: ## the tests of values and machines: no Debian package, no server, no root; a minute after its own build
	@Tests/Scripts/test --part unit

test: ## all tests but those of `make nightly`, once: values, machines, real servers, a real systemd; 10 to 20 minutes on a new machine with 2 cores
	@Tests/Scripts/parts test

check: ## format, house rules, shell scripts, warnings as errors, example configurations, units
	@Tests/Scripts/parts check

verify: ## beside them, for each change: what the RFCs demand, asked from outside; the examples; the cost of a request; thread sanitizer; simulation
	@Tests/Scripts/parts $(or $(PART),verify)

nightly: ## all the rest: fuzzers, grammars, address sanitizer, torture, code blocks, web applications and browsers, mutants (PART=torture: that one)
	@Tests/Scripts/parts --keep-going $(or $(PART),nightly)

applications: ## install real applications from Debian and PyPI and log in to each (ONLY=django,dokuwiki: these; WRITE=1: docs/applications.md)
	@Tests/Scripts/setup build
	@Tests/Scripts/debug build --product countersign
	@Tests/Applications/run --binary "$$(Tests/Scripts/debug build --show-bin-path)/countersign" $(if $(WRITE),--write) $(if $(ONLY),ONLY=$(ONLY))

sanitize: ## the tests under thread sanitizer and under address sanitizer (ONLY=thread, ONLY=address)
	@Tests/Scripts/setup build test
	@Tests/Sanitizers/run $(ONLY)

simulation: ## the whole daemon among simulated callers, servers and disks, one seed after the other (SECONDS=600, FROM=1)
	@Tests/Scripts/setup build
	@Tests/Simulation/run --seconds $(or $(SECONDS),600) --from $(or $(FROM),1)

fuzz: ## run each fuzzer for a minute (SECONDS_EACH=600, RUNS=1000000, TARGETS="chunks settings", JOBS=2, ADDRESS=0)
	@Tests/Scripts/setup build
	@SECONDS_EACH="$(SECONDS_EACH)" RUNS="$(RUNS)" JOBS="$(JOBS)" ADDRESS="$(ADDRESS)" Tests/Fuzz/run $(TARGETS)

grammar: ## say sentences whose meaning is known to each reader, half a minute each (SECONDS_EACH=600, COUNT=1000000, TARGETS="chunks json", JOBS=2, ADDRESS=1)
	@Tests/Scripts/setup build
	@SECONDS_EACH="$(SECONDS_EACH)" COUNT="$(COUNT)" JOBS="$(JOBS)" ADDRESS="$(ADDRESS)" Tests/Fuzz/grammar $(TARGETS)

mutants: ## break each rule on purpose, in one build, and see that a test notices: a quarter of an hour (IDS="301 302": these)
	@Tests/Scripts/setup build test
	@Tests/Mutants/run $(IDS)

torture: ## make each call that can fail fail, one in each run (SCENARIO="start reload": these; FAULTS=20: at most that many of each; JOBS=2; LASTING=1; BINARY=)
	@Tests/Scripts/setup $(if $(BINARY),,build) torture
	@path="$(BINARY)"; if [ -z "$$path" ]; then Tests/Scripts/debug build --product countersign; path=$$(Tests/Scripts/debug build --show-bin-path)/countersign; fi; \
	    Tests/Torture/run $(addprefix --scenario ,$(SCENARIO)) $(if $(FAULTS),--faults $(FAULTS)) $(if $(JOBS),--jobs $(JOBS)) $(if $(LASTING),--lasting) "$$path"

build: ## release binary, with the libraries of Swift and C++ inside it
	@Tests/Scripts/setup build
	@path=$$(Tests/Scripts/release); echo "built: $$path"

install: ## put the built binary (or BINARY), units, examples, man pages, completions below DESTDIR and PREFIX
	@Tests/Scripts/setup install
	@Tests/Scripts/install

uninstall: ## remove what install put there, but no configuration and no state
	@Tests/Scripts/uninstall

deb: ## a Debian package in .build, of a release binary built now or of BINARY (DEBFULLNAME=, DEBEMAIL=: who answers for it)
	@Tests/Scripts/setup deb
ifeq ($(BINARY),)
	@Tests/Scripts/setup build
	@Tests/Scripts/release >/dev/null
endif
	@path=$$(Tests/Scripts/deb); echo "packed: $$path"

release: ## package, archive, container image, SBOM and checksums in .build/release-files, of a release binary built now or of BINARY
	@Tests/Scripts/setup deb release
ifeq ($(BINARY),)
	@Tests/Scripts/setup build
	@Tests/Scripts/release >/dev/null
endif
	@path=$$(Tests/Scripts/release-files); (cd "$$path" && ls -l -- *)

bench: ## beside nginx, HAProxy, Envoy, Caddy: a quarter of an hour, results in .build/bench/results (QUICK=1: two minutes)
	@Tests/Scripts/setup $(if $(BINARY),,build) bench
	@$(if $(QUICK),,Tests/Benchmarks/fetch)
	@path="$(BINARY)"; if [ -z "$$path" ]; then path=$$(Tests/Scripts/release); fi; \
	    Tests/Benchmarks/run "$$path" $(if $(QUICK),--quick); \
	    Tests/Benchmarks/guard --build release $(if $(QUICK),,--instructions) "$$path"
	@Tests/Benchmarks/micro

soak: ## the release daemon as it is used, with faults of all kinds, for HOURS=1: figures, findings and plots in .build/soak
	@$(if $(BINARY),,Tests/Scripts/setup build)
	@path="$(BINARY)"; if [ -z "$$path" ]; then path=$$(Tests/Scripts/release); fi; \
	    Tests/Soak/run "$$path" --hours "$(HOURS)"

conformance: ## ask nginx, HAProxy and us the same of RFC 9110 and RFC 9112, side by side
	@Tests/Scripts/setup build conformance
	@Tests/Scripts/debug build --product countersign
	@Tests/Conformance/run --summary --start nginx --start haproxy --start countersign "$$(Tests/Scripts/debug build --show-bin-path)/countersign"

clean: ## remove everything that was built
	@rm -rf .build

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
