# facet: what to run. `make` or `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

TOOLS := $(CURDIR)/assets/tools
GO ?= go
GOFLAGS_BUILD := -trimpath -tags hashicorpmetrics -ldflags '-s -w'
FUZZTIME ?= 20s
LINT_VERSION := v2.15.0
VERSITYGW_VERSION := v1.8.0

##@ First minutes
.PHONY: help setup build demo
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## fetch ONNX Runtime, the default models and the sample photos (once); PACK=dlib: a second pack, too
	@$(GO) run ./scripts/setup $(if $(PACK),-pack $(PACK))

build: ## build bin/facet
	@$(GO) build $(GOFLAGS_BUILD) -o bin/facet ./cmd/facet

demo: setup build ## a three-node cluster that matches real faces, told as a story
	@scripts/demo.sh

##@ Checks
.PHONY: test race lint fuzz bench venv s3
venv:
	@scripts/venv.sh node/sigv4/testdata/requirements.txt clients/python/requirements.txt

test: setup venv s3 build ## all tests: units, transcripts, outside signers, virtual-time and real clusters, clients
	@$(GO) test -tags hashicorpmetrics -timeout 20m ./...
	@cd client && $(GO) test -count=1 -timeout 5m ./...
	@cd clients/python && PYTHONDONTWRITEBYTECODE=1 ../../assets/venv/bin/python -m pytest -q

race: setup venv s3 build ## the tests under the race detector
	@$(GO) test -race -tags hashicorpmetrics -timeout 40m ./...
	@cd client && $(GO) test -race -count=1 -timeout 5m ./...

lint: $(TOOLS)/golangci-lint ## formatting, vet, golangci-lint, and the rules of internal/lint
	@$(TOOLS)/golangci-lint fmt --diff
	@$(TOOLS)/golangci-lint run ./...
	@cd client && $(TOOLS)/golangci-lint run --config ../.golangci.yml ./...
	@$(GO) test ./internal/lint

fuzz: setup ## each fuzz target for FUZZTIME (default 20s)
	@scripts/fuzz.sh $(FUZZTIME)

bench: setup ## benchmarks, each beside a named peer or limit of the same run
	@$(GO) test -tags hashicorpmetrics -run '^$$' -bench . -benchmem ./...

.PHONY: pictures
pictures: setup ## draw the pictures of docs/faces.md anew
	@$(GO) run ./scripts/pictures

.PHONY: bench-engine
bench-engine: setup build ## models, pipeline and HTTPS beside each other, with goals; the long run: ARGS='-parts memory'
	@$(GO) run ./scripts/bench-engine $(ARGS)

.PHONY: bench-search
bench-search: setup ## the search kernel beside FAISS, hnswlib, usearch and sgemm (40 minutes; ARGS=-quick: 5)
	@scripts/bench-search/run.sh $(ARGS)

##@ Rest
.PHONY: clean distclean
clean: ## remove what was built and what runs left
	@rm -rf bin dev demo-data cluster-data

distclean: clean ## remove what set-up fetched, too
	@rm -rf assets/lib assets/packs assets/photos assets/cache assets/venv assets/venv-bench assets/tools

# The linter is installed by the Go client at one version, apart from go.mod: its
# dependencies would be ten times ours.
$(TOOLS)/golangci-lint:
	@echo "lint: building golangci-lint $(LINT_VERSION) (once, about four minutes)"
	@GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

# A real S3 server for the tests, installed like the linter.
s3: $(TOOLS)/versitygw
$(TOOLS)/versitygw:
	@echo "s3: building versitygw $(VERSITYGW_VERSION) (once, about three minutes)"
	@GOBIN=$(TOOLS) $(GO) install github.com/versity/versitygw/cmd/versitygw@$(VERSITYGW_VERSION)
