package remote_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	synapse "github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/remote"
)

// shared returns a folder of the material that SYNAPSE_SHARED points to. It is
// no part of the project: without the variable the test is skipped, with a
// variable that leads nowhere it fails.
func shared(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("SYNAPSE_SHARED")
	if root == "" {
		t.Skip("SYNAPSE_SHARED is not set: it names the folder that holds " + name)
	}
	dir := filepath.Join(root, name)
	if _, err := os.ReadDir(dir); err != nil {
		t.Fatalf("SYNAPSE_SHARED: %v", err)
	}
	return dir
}

// startMock builds the model server that is written independently of this
// project, and starts it. It returns its address.
func startMock(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "mockllm")
	build := exec.Command("go", "build", "-o", bin, ".")
	build.Dir = shared(t, "mockllm")
	build.Env = append(os.Environ(), "GOFLAGS=-mod=readonly -buildvcs=false", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build mockllm: %v\n%s", err, out)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, bin, "-addr", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("mockllm said nothing: %v", err)
	}
	_, address, ok := strings.Cut(strings.TrimSpace(line), "listening on ")
	if !ok {
		t.Fatalf("mockllm said %q", line)
	}
	return address
}

func mockRequest(scenario string) *synapse.Request {
	return &synapse.Request{
		Model: "mock-1", System: "You read files.",
		Messages: []synapse.Message{synapse.UserText("Do it. [[mock:" + scenario + "]]")},
		Tools: []synapse.ToolDef{{Name: "read_file", Description: "Reads a file.",
			Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)}},
	}
}

// converse answers every call until the model is done, and returns the replies.
func converse(t *testing.T, m synapse.Model, req *synapse.Request) []*synapse.Reply {
	t.Helper()
	var replies []*synapse.Reply
	for range 20 {
		r, err := collect(t, m, req)
		if err != nil {
			t.Fatalf("reply %d: %v", len(replies)+1, err)
		}
		replies = append(replies, r)
		calls := r.Message.Calls()
		if len(calls) == 0 {
			return replies
		}
		results := synapse.Message{Role: synapse.RoleTool}
		for _, c := range calls {
			result := synapse.TextResult("contents of " + c.Args)
			if !json.Valid([]byte(c.Args)) {
				result = synapse.ErrorResult("the arguments are not JSON")
			}
			result.CallID, result.Name = c.ID, c.Name
			results.Parts = append(results.Parts, synapse.Part{Kind: synapse.PartResult, Result: result})
		}
		req.Messages = append(req.Messages, r.Message, results)
	}
	t.Fatal("no end after 20 replies")
	return nil
}

func TestMockLLM(t *testing.T) {
	address := startMock(t)
	for _, wire := range []remote.Wire{remote.WireChat, remote.WireResponses} {
		m, err := remote.New(remote.Config{Provider: "openai", BaseURL: address + "/v1", Wire: wire})
		if err != nil {
			t.Fatal(err)
		}
		t.Run(string(wire), func(t *testing.T) {
			t.Run("single", func(t *testing.T) {
				r := converse(t, m, mockRequest("single"))[0]
				if !strings.Contains(r.Message.Text(), "MOCK-DONE") || r.Stop != synapse.StopEnd || r.Model != "mock-1" {
					t.Errorf("reply %+v", r)
				}
				if r.Usage.InputTokens == 0 || r.Usage.OutputTokens == 0 || r.Usage.Requests != 1 {
					t.Errorf("usage %+v", r.Usage)
				}
			})
			for scenario, batches := range map[string][]int{"loop3": {1, 1, 1, 0}, "par4": {4, 0}, "loop2+pace1": {1, 1, 0}} {
				t.Run(scenario, func(t *testing.T) {
					var got []int
					for _, r := range converse(t, m, mockRequest(scenario)) {
						calls := r.Message.Calls()
						got = append(got, len(calls))
						for _, c := range calls {
							if c.Name != "read_file" || c.ID == "" || !json.Valid([]byte(c.Args)) {
								t.Errorf("call %+v", c)
							}
						}
						if want := map[bool]synapse.StopReason{true: synapse.StopCalls, false: synapse.StopEnd}[len(calls) > 0]; r.Stop != want {
							t.Errorf("stop %s with %d calls", r.Stop, len(calls))
						}
					}
					if fmt.Sprint(got) != fmt.Sprint(batches) {
						t.Errorf("calls %v, want %v", got, batches)
					}
				})
			}
			for kind, want := range map[string]synapse.ErrorKind{
				"429": synapse.ErrorRateLimit, "500": synapse.ErrorServer, "503": synapse.ErrorOverloaded, "529": synapse.ErrorOverloaded,
				"401": synapse.ErrorAuth, "400": synapse.ErrorRequest, "cut": synapse.ErrorStream, "drop": synapse.ErrorNetwork, "err": "",
			} {
				t.Run("flaky "+kind, func(t *testing.T) {
					req := mockRequest("single+flaky1:" + kind + " id=" + string(wire))
					_, err := collect(t, m, req)
					if want == "" { // an error event: what it says decides
						var typed *synapse.ProviderError
						if !errors.As(err, &typed) || !typed.Retryable() {
							t.Fatalf("error %v: want a retryable ProviderError", err)
						}
					} else {
						got := wantKind(t, err, want)
						if asks := kind == "429" || kind == "503" || kind == "529"; asks != (got.RetryAfter > 0) {
							t.Errorf("retry after %v", got.RetryAfter)
						}
					}
					if r, err := collect(t, m, req); err != nil || !strings.Contains(r.Message.Text(), "MOCK-DONE") {
						t.Errorf("the second time: %+v, %v", r, err)
					}
				})
			}
			t.Run("huge", func(t *testing.T) {
				if r := converse(t, m, mockRequest("huge"))[0]; len(r.Message.Text()) < 1<<20 {
					t.Errorf("%d bytes of text", len(r.Message.Text()))
				}
			})
			t.Run("hugeargs", func(t *testing.T) {
				r, err := collect(t, m, mockRequest("loop1+hugeargs"))
				if err != nil {
					t.Fatal(err)
				}
				calls := r.Message.Calls()
				if len(calls) != 1 || len(calls[0].Args) < 1<<20 || !json.Valid([]byte(calls[0].Args)) {
					t.Errorf("%d calls", len(calls))
				}
			})
			t.Run("badjson", func(t *testing.T) {
				replies := converse(t, m, mockRequest("loop3+badjson3"))
				bad := 0
				for _, r := range replies {
					for _, c := range r.Message.Calls() {
						if !json.Valid([]byte(c.Args)) {
							bad++
						}
					}
				}
				if bad == 0 || len(replies) < 4 {
					t.Errorf("%d malformed calls in %d replies", bad, len(replies))
				}
			})
			t.Run("think", func(t *testing.T) {
				var got strings.Builder
				_, err := synapse.Collect(m.Generate(within(t, 20*time.Second), mockRequest("think")), func(d *synapse.Delta) {
					if d.Kind == synapse.DeltaReasoning {
						got.WriteString(d.Text)
					}
				})
				if err != nil || got.Len() == 0 {
					t.Errorf("reasoning %q, %v", got.String(), err)
				}
			})
			t.Run("hang", func(t *testing.T) {
				before := clientsGone(t, address)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := synapse.Collect(m.Generate(ctx, mockRequest("hang")), nil)
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("error %v: want the deadline", err)
				}
				deadline := time.Now().Add(30 * time.Second)
				for clientsGone(t, address) == before {
					if time.Now().After(deadline) {
						t.Fatal("the server still waits for this client")
					}
					time.Sleep(10 * time.Millisecond)
				}
			})
		})
	}
}

func clientsGone(t *testing.T, address string) int {
	t.Helper()
	resp, err := http.Get(address + "/__stats")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var stats struct {
		Gone int `json:"client_gone"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&stats); err != nil {
		t.Fatal(err)
	}
	return stats.Gone
}
