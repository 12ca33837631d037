package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse/model/remote"
)

// local is a model server's answers by path, as JSON text.
func local(t *testing.T, answers map[string]string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

// ollama serves models, each with its capabilities.
func ollama(t *testing.T, capabilities map[string][]string, slow string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "GET /api/tags":
			var tags struct {
				Models []map[string]string `json:"models"`
			}
			for name := range capabilities {
				tags.Models = append(tags.Models, map[string]string{"name": name})
			}
			_ = json.NewEncoder(w).Encode(tags)
		case "POST /api/show":
			var in struct{ Model string }
			if err := json.NewDecoder(r.Body).Decode(&in); err != nil || capabilities[in.Model] == nil {
				http.Error(w, "no such model", http.StatusNotFound)
				return
			}
			if in.Model == slow {
				<-r.Context().Done()
				return
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"capabilities": capabilities[in.Model]})
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

const lmstudio = `{"object":"list","data":[
	{"id":"b-tools","object":"model","type":"llm","state":"not-loaded","capabilities":["tool_use"]},
	{"id":"a-tools","object":"model","type":"llm","state":"not-loaded","capabilities":["tool_use"]},
	{"id":"z-loaded","object":"model","type":"llm","state":"loaded","capabilities":["tool_use"]},
	{"id":"plain","object":"model","type":"llm","state":"loaded"},
	{"id":"embed","object":"model","type":"embeddings","state":"loaded","capabilities":["tool_use"]}]}`

const llamaModels = `{"object":"list","data":[{"id":"qwen.gguf","object":"model"}]}`

func TestProbe(t *testing.T) {
	none := remote.ProbeOptions{Ollama: "-", LMStudio: "-", LlamaCpp: "-"}
	at := func(change func(*remote.ProbeOptions)) remote.ProbeOptions {
		o := none
		o.Budget = 2 * time.Second
		change(&o)
		return o
	}
	llama := func(props string) *httptest.Server {
		return local(t, map[string]string{"/props": props, "/v1/models": llamaModels})
	}
	tests := []struct {
		name   string
		server *httptest.Server
		kind   string
		want   []string
	}{
		{"ollama", ollama(t, map[string][]string{"qwen3:8b": {"completion", "tools", "thinking"}, "a:1b": {"completion", "tools"}, "gemma:2b": {"completion"}}, ""), "ollama", []string{"a:1b", "qwen3:8b"}},
		{"ollama without tools", ollama(t, map[string][]string{"gemma:2b": {"completion"}}, ""), "ollama", nil},
		{"ollama without models", ollama(t, nil, ""), "ollama", nil},
		{"lmstudio", local(t, map[string]string{"/api/v0/models": lmstudio}), "lmstudio", []string{"z-loaded", "a-tools", "b-tools"}},
		{"llama.cpp by its capabilities", llama(`{"chat_template":"x","chat_template_caps":{"supports_tools":true,"supports_tool_calls":true}}`), "llamacpp", []string{"qwen.gguf"}},
		{"llama.cpp that says no", llama(`{"chat_template":"{% if tools %}","chat_template_caps":{"supports_tools":false,"supports_tool_calls":false}}`), "llamacpp", nil},
		{"llama.cpp by its template", llama(`{"chat_template":"{%- if tools %}{{ tools }}{% endif %}"}`), "llamacpp", []string{"qwen.gguf"}},
		{"llama.cpp without tools", llama(`{"chat_template":"{{ messages }}"}`), "llamacpp", nil},
		{"something else on that port", local(t, map[string]string{"/": "<html>", "/props": "<html>hi</html>", "/v1/models": llamaModels}), "llamacpp", nil},
		{"not JSON", local(t, map[string]string{"/api/tags": "<html>"}), "ollama", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts := at(func(o *remote.ProbeOptions) {
				switch tt.kind {
				case "ollama":
					o.Ollama = tt.server.URL + "/"
				case "lmstudio":
					o.LMStudio = strings.TrimPrefix(tt.server.URL, "http://")
				case "llamacpp":
					o.LlamaCpp = tt.server.URL
				}
			})
			got, err := remote.Probe(t.Context(), nil, opts)
			if err != nil {
				t.Fatal(err)
			}
			var want []remote.Found
			if tt.want != nil {
				want = []remote.Found{{Provider: tt.kind, BaseURL: tt.server.URL + "/v1", Models: tt.want}}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}

// All are asked at once and come in a fixed order; what a provider's row calls
// it opens with New.
func TestProbeAll(t *testing.T) {
	got, err := remote.Probe(t.Context(), http.DefaultClient, remote.ProbeOptions{
		Ollama:   ollama(t, map[string][]string{"m": {"tools"}}, "").URL,
		LMStudio: local(t, map[string]string{"/api/v0/models": lmstudio}).URL,
		LlamaCpp: local(t, map[string]string{"/props": `{"chat_template":"tools"}`, "/v1/models": llamaModels}).URL,
		Budget:   2 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range got {
		names = append(names, f.Provider)
		if _, err := remote.New(remote.Config{Provider: f.Provider, BaseURL: f.BaseURL}); err != nil {
			t.Errorf("New(%+v): %v", f, err)
		}
	}
	if diff := cmp.Diff([]string{"ollama", "lmstudio", "llamacpp"}, names); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

// Servers that hang cost the budget, once, and what has answered by then counts.
func TestProbeBudget(t *testing.T) {
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hang.Close()
	const budget = time.Second // far above what an answer takes on a busy machine
	start := time.Now()
	got, err := remote.Probe(t.Context(), nil, remote.ProbeOptions{
		Ollama:   ollama(t, map[string][]string{"quick": {"tools"}, "slow": {"tools"}}, "slow").URL,
		LMStudio: hang.URL, LlamaCpp: hang.URL, Budget: budget,
	})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < budget || took > 30*budget {
		t.Errorf("took %v, the budget is %v", took, budget)
	}
	if len(got) != 1 || got[0].Provider != "ollama" || !cmp.Equal(got[0].Models, []string{"quick"}) {
		t.Errorf("found %+v: want ollama with the model that answered", got)
	}
}

// A server that redirects is not followed: what it points to is not local.
func TestProbeDoesNotFollow(t *testing.T) {
	var asked atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer elsewhere.Close()
	s := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer s.Close()
	got, err := remote.Probe(t.Context(), nil, remote.ProbeOptions{Ollama: s.URL, LMStudio: s.URL, LlamaCpp: s.URL})
	if err != nil || got != nil || asked.Load() != 0 {
		t.Errorf("found %+v, %v; %d requests elsewhere", got, err, asked.Load())
	}
}

func TestProbeCancel(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("stop")
	cancel(reason)
	if _, err := remote.Probe(ctx, nil, remote.ProbeOptions{}); !errors.Is(err, reason) {
		t.Errorf("error %v: want the cause", err)
	}
}

// The forms that OLLAMA_HOST takes.
func TestProbeAddress(t *testing.T) {
	var asked string
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		asked = r.URL.String()
		return nil, errors.New("nobody there")
	})}
	for address, want := range map[string]string{
		"":                              "http://127.0.0.1:11434/api/tags",
		":1234":                         "http://127.0.0.1:1234/api/tags",
		"localhost":                     "http://localhost:11434/api/tags",
		"10.0.0.7:80":                   "http://10.0.0.7:80/api/tags",
		"0.0.0.0":                       "http://127.0.0.1:11434/api/tags",
		"0.0.0.0:99":                    "http://127.0.0.1:99/api/tags",
		"[::]:99":                       "http://127.0.0.1:99/api/tags",
		"[::1]:99":                      "http://[::1]:99/api/tags",
		"::1":                           "http://[::1]:11434/api/tags",
		"HTTP://host:1/":                "http://host:1/api/tags",
		"https://models.example":        "https://models.example:443/api/tags",
		"https://models.example:8/deep": "https://models.example:8/deep/api/tags",
	} {
		asked = ""
		if _, err := remote.Probe(t.Context(), client, remote.ProbeOptions{Ollama: address, LMStudio: "-", LlamaCpp: "-"}); err != nil {
			t.Errorf("%q: %v", address, err)
		}
		if asked != want {
			t.Errorf("%q: asked %s, want %s", address, asked, want)
		}
	}
	for _, address := range []string{"ftp://host", "a b", "me@host", "http://host?x=1", "http://[::1", "host:1:2", "host:port"} {
		if _, err := remote.Probe(t.Context(), client, remote.ProbeOptions{Ollama: address, LMStudio: "-", LlamaCpp: "-"}); err == nil || !strings.Contains(err.Error(), address) {
			t.Errorf("%q: error %v, want one that names it", address, err)
		}
	}
}
