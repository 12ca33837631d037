# The commands of this repository. `make check` is what has to pass.

GO ?= go
# Google's library brings gRPC, whose debug pages call methods by names that are
# known at run time only. With them, the linker keeps every method of everything:
# 23 MB more to load at each start.
TAGS ?= grpcnotrace
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: build check compile test kill vet staticcheck format docs size bench fuzz clean

build: ## the program, ./synapse
	$(GO) build -trimpath -tags "$(TAGS)" -ldflags="-s -w" -o synapse ./cmd/synapse

check: format compile vet staticcheck test ## everything that has to pass

# Without the flags of a release, so that vet and the tests find what was compiled.
compile:
	$(GO) build ./...

test: ## all tests, with the race detector; the docs checks are among them
	$(GO) test -race ./...
	cd bench && $(GO) test ./chaos

kill: ## kills the program at 110 moments of a request and resumes it each time
	SYNAPSE_KILLS=110 $(GO) test -run '^TestKill$$' ./internal/cli

vet:
	$(GO) vet ./...

staticcheck:
	$(GO) run $(STATICCHECK) ./...

format: ## fails when a file is not gofmt-ed
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run gofmt -w on these files"; exit 1; }

docs: ## writes the generated parts of docs/ anew
	$(GO) test ./internal/docgen -update

size: ## what a build with an empty cache takes, the binary's size, and the ten heaviest modules
	@cd bench && $(GO) run ./size -tags "$(TAGS)"

bench: ## benchmarks, once each
	$(GO) test -run '^$$' -bench . -benchtime 1x ./...

fuzz: ## every fuzz target for ten seconds
	@for p in $$($(GO) list ./...); do \
		for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
			echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime 10s $$p || exit 1; \
		done; \
	done

clean:
	rm -f synapse
