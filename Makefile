# The commands of this repository. `make check` is what has to pass.

GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: build check compile test kill vet staticcheck format docs size bench fuzz clean

build: ## the program, ./synapse
	$(GO) build -trimpath -ldflags="-s -w" -o synapse ./cmd/synapse

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

size: build ## the binary's size and its ten heaviest dependencies
	@ls -l synapse | awk '{printf "synapse: %.1f MB stripped\n", $$5/1e6}'
	@$(GO) list -deps ./cmd/synapse | wc -l | awk '{print $$1 " packages"}'
	@$(GO) build -o synapse.sym ./cmd/synapse && $(GO) tool nm -size -sort size synapse.sym | \
		awk '{ n=$$4; sub(/^type:/, "", n); sub(/[^a-zA-Z0-9_.\/-].*/, "", n); split(n, p, "/"); k = p[1]; if (p[1] ~ /\./ && p[2] != "") k = p[1] "/" p[2]; if (p[1] ~ /^github.com$$|^golang.org$$|^go.yaml.in$$/ && p[3] != "") { sub(/\..*/, "", p[3]); k = k "/" p[3] } else sub(/\.[A-Z(].*/, "", k); s[k] += $$2 } END { for (k in s) printf "%8.2f MB  %s\n", s[k]/1e6, k }' | sort -rn | head -10; rm -f synapse.sym

bench: ## benchmarks, once each
	$(GO) test -run '^$$' -bench . -benchtime 1x ./...

fuzz: ## every fuzz target for ten seconds
	@for p in $$($(GO) list ./...); do \
		for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
			echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime 10s $$p || exit 1; \
		done; \
	done

clean:
	rm -f synapse synapse.sym
