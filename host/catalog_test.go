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

// counting answers in Chat Completions: a hundred tokens in, ten out.
func counting(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}]}`+"\n\n")
		fmt.Fprint(w, `data: {"id":"1","model":"m","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110}}`+"\n\n")
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s
}

func TestSize(t *testing.T) {
	p := newPlace(t, map[string]string{"home/.synapse/settings.json": `{"models": {"mine:m": {"window": 32000, "max_output": 4000}, "openai:gpt-5": {"max_output": 1234}}}`})
	h := p.open(func(o *host.Options) { o.Inspect = true })
	size := func(ref string) synapse.ModelSize {
		r, err := synapse.ParseModelRef(ref)
		if err != nil {
			t.Fatal(err)
		}
		return h.Size(r)
	}
	if got, want := size("mine:m"), (synapse.ModelSize{Window: 32000, MaxOutput: 4000}); got != want {
		t.Errorf("mine:m: %+v, want %+v", got, want)
	}
	if got := size("openai:gpt-5"); got.Window < 100_000 || got.MaxOutput != 1234 {
		t.Errorf("openai:gpt-5: %+v, want the catalogue's window and the setting's output", got)
	}
	if got := size("openai:gpt-5-2025-08-07"); got.Window < 100_000 {
		t.Errorf("a name with its date: %+v, want what is known of the model", got)
	}
	for _, unknown := range []string{"openai:nothing-like-it", "ollama:gpt-5", "nobody:m"} {
		if got := size(unknown); got != (synapse.ModelSize{}) {
			t.Errorf("%s: %+v, want nothing known", unknown, got)
		}
	}
}

// A cost is what the setting models says, and unknown where nobody says it: a
// server at an address of the user's own has no price by its name.
func TestCostOfSettings(t *testing.T) {
	s := counting(t)
	tests := []struct {
		name, facts, model string
		environ            []string
		want               string // of the cost, %v
	}{
		{"priced", `{"mine:m": {"input_price": 2, "output_price": 10}}`, "mine:m", nil, "0.0003"},
		{"free", `{"mine:m": {"input_price": 0, "output_price": 0}}`, "mine:m", nil, "0"},
		{"unknown", `{}`, "mine:m", nil, "unknown"},
		{"another address", `{}`, "openai:gpt-5", []string{"OPENAI_API_KEY=k", "OPENAI_BASE_URL=" + s.URL}, "unknown"},
		{"another address, priced", `{"openai:gpt-5": {"input_price": 2, "output_price": 10}}`, "openai:gpt-5", []string{"OPENAI_API_KEY=k", "OPENAI_BASE_URL=" + s.URL}, "0.0003"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t, map[string]string{"home/.synapse/settings.json": fmt.Sprintf(`{"model": %q, "models": %s, "providers": {"mine": {"base_url": %q}}}`, tt.model, tt.facts, s.URL)})
			p.opt.Environ = append(p.opt.Environ, tt.environ...)
			h := p.open(func(o *host.Options) { o.Settings = nil })
			out, _ := finish(t, h.Run(t.Context(), host.Input{Prompt: "Hi"}))
			got := "unknown"
			if out.Usage.CostUSD != nil {
				got = fmt.Sprint(*out.Usage.CostUSD)
			}
			if got != tt.want || out.Usage.InputTokens != 100 {
				t.Errorf("cost %s of %+v, want %s", got, out.Usage, tt.want)
			}
		})
	}
}

// A limit on cost that can't be kept is said before anything is spent.
func TestCostLimitWarning(t *testing.T) {
	for facts, warned := range map[string]bool{
		`{}`: true,
		`{"mine:m": {"input_price": 1, "output_price": 2}}`: false,
	} {
		p := newPlace(t, map[string]string{"home/.synapse/settings.json": `{"model": "mine:m", "limits": {"cost_usd": 0.5}, "models": ` + facts + `, "providers": {"mine": {"base_url": "http://127.0.0.1:9/v1"}}}`})
		h := p.open(func(o *host.Options) { o.Settings = nil })
		all := strings.Join(h.Warnings(), "\n")
		if got := strings.Contains(all, "$0.5 can't be kept for mine:m: its price is unknown"); got != warned {
			t.Errorf("models %s: warnings %q, want one of the limit: %v", facts, all, warned)
		}
	}
}

// A name that is nearly one of the catalogue's is asked about; one that is
// like none may be newer than the catalogue.
func TestModelNameWarning(t *testing.T) {
	for name, want := range map[string]string{
		"openai:gtp-5":             "did you mean openai:gpt-5?",
		"openai:gpt-5":             "",
		"openai:quite-another-one": "",
	} {
		p := newPlace(t, nil)
		p.opt.Environ = append(p.opt.Environ, "OPENAI_API_KEY=k")
		h := p.open(func(o *host.Options) { o.Settings[0].Value = name })
		all := strings.Join(h.Warnings(), "\n")
		if want == "" && strings.Contains(all, "did you mean") || !strings.Contains(all, want) {
			t.Errorf("%s: warnings %q, want %q", name, all, want)
		}
	}
}
