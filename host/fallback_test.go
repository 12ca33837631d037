package host_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/host"
)

// refusing answers everything with a status.
func refusing(t *testing.T, status int) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, `{"error":{"message":"scripted"}}`)
	}))
	t.Cleanup(s.Close)
	return s
}

// delegating answers the first request with a call of explore, and all others
// with a text, in Chat Completions.
func delegating(t *testing.T) *httptest.Server {
	t.Helper()
	first := make(chan bool, 1)
	first <- true
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		select {
		case <-first:
			fmt.Fprint(w, `data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"task","arguments":"{\"subagent_type\":\"explore\",\"description\":\"look\",\"prompt\":\"look\",\"intent\":\"look\"}"}}]},"finish_reason":"tool_calls"}]}`+"\n\n")
		default:
			fmt.Fprint(w, `data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}]}`+"\n\n")
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s
}

// A model that is out of service is replaced by the next of the chain, for the
// main agent and for a sub-agent; an alias names either. What would not pass by
// itself is no reason to ask another model.
func TestFallback(t *testing.T) {
	up := delegating(t)
	tests := []struct {
		name       string
		status     int
		main, sub  string
		wantMain   string
		wantSub    string
		wantStatus synapse.Status
	}{
		{"both out", 503, "broken", "broken", "spare:s", "spare:s", synapse.StatusCompleted},
		{"refused", 401, "broken", "broken", "", "", synapse.StatusFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			down := refusing(t, tt.status)
			p := newPlace(t, map[string]string{"home/.synapse/settings.json": fmt.Sprintf(`{
				"model": %q, "subagent_default_model": %q, "fallback_models": ["extra"],
				"model_aliases": {"broken": "down:d", "extra": "spare:s"},
				"providers": {"down": {"base_url": %q}, "spare": {"base_url": %q}}}`, tt.main, tt.sub, down.URL, up.URL)})
			h := p.open(func(o *host.Options) { o.Settings = nil })
			host.FastRetries(h)
			answered := map[string]string{}
			passed := map[string]bool{}
			var end *synapse.RunFinished
			for e, err := range h.Run(t.Context(), host.Input{Prompt: "Hi"}) {
				if err != nil {
					t.Fatal(err)
				}
				switch b := e.Body.(type) {
				case *synapse.Retry:
					if b.Model.String() == "spare:s" {
						passed[e.Agent] = true
					}
				case *synapse.RunFinished:
					if answered[e.Agent] = b.Model; e.ParentRun == "" {
						end = b
					}
				}
			}
			if end == nil || end.Status != tt.wantStatus {
				t.Fatalf("ended %+v, want %s", end, tt.wantStatus)
			}
			if tt.wantMain == "" {
				if len(passed) > 0 {
					t.Errorf("%v went on to the spare model after a refusal", passed)
				}
				return
			}
			if answered["main"] != tt.wantMain || answered["explore"] != tt.wantSub || !passed["main"] || !passed["explore"] {
				t.Errorf("answered %v, told of %v: want %s and %s, each told", answered, passed, tt.wantMain, tt.wantSub)
			}
		})
	}
}

// A model to fall back on can't be inherited, and the message doesn't say so.
func TestFallbackEntry(t *testing.T) {
	for _, bad := range []string{"inherit", ":m", ""} {
		p := newPlace(t, map[string]string{"home/.synapse/settings.json": fmt.Sprintf(`{"fallback_models": [%q]}`, bad)})
		_, err := p.try()
		if err == nil || !host.IsConfig(err) || !strings.Contains(err.Error(), "fallback_models[0]") {
			t.Errorf("%q: error %v: want one that names the entry", bad, err)
			continue
		}
		if _, takes, _ := strings.Cut(err.Error(), "found"); strings.Contains(strings.ReplaceAll(takes, `"inherit"`, ""), "inherit") {
			t.Errorf("%q: %v offers inherit", bad, err)
		}
	}
}
