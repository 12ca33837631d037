package host_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/host"
	"github.com/synapse-agents/synapse/model/script"
)

// TestWebSearchFromSettings: the tool is there when its settings are whole, is
// given the key that they name, and is missing with a reason otherwise.
func TestWebSearchFromSettings(t *testing.T) {
	keys := make(chan string, 10)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("X-Subscription-Token")
		fmt.Fprint(w, `{"query":{},"results":[{"title":"Found","url":"https://a.example/"}],"web":{"results":[{"title":"Found","url":"https://a.example/"}]}}`)
	}))
	t.Cleanup(service.Close)
	for _, test := range []struct {
		settings string
		environ  []string
		key      string // that the service is sent; "-": the tool is not offered
		warning  string
	}{
		{`{}`, nil, "-", ""},
		{`{"web_search": {"kind": "brave", "endpoint": "URL", "api_key_env": "MY_SEARCH"}}`, []string{"MY_SEARCH=k3y"}, "k3y", ""},
		{`{"web_search": {"endpoint": "URL"}}`, nil, "", ""},
		{`{}`, []string{"AGENT_WEB_SEARCH_ENDPOINT=URL", "AGENT_WEB_SEARCH_KIND=searxng"}, "", ""},
		{`{"web_search": {"kind": "searxng"}}`, nil, "-", "searxng needs web_search.endpoint"},
		{`{"web_search": {"kind": "brave"}}`, nil, "-", "brave needs web_search.api_key_env"},
		{`{"web_search": {"kind": "tavily", "api_key_env": "MY_SEARCH"}}`, nil, "-", "tavily needs a key, and MY_SEARCH is not set"},
	} {
		p := newPlace(t, map[string]string{"home/.synapse/settings.json": strings.ReplaceAll(test.settings, "URL", service.URL)})
		for _, kv := range test.environ {
			p.opt.Environ = append(p.opt.Environ, strings.ReplaceAll(kv, "URL", service.URL))
		}
		h := p.open(scripted(script.New(
			script.Turn{Calls: []synapse.ToolCall{
				script.Call("web_search", map[string]any{"query": "x"}),
				script.Call("execute", map[string]any{"command": "echo key=$MY_SEARCH"}),
			}},
			script.Turn{Text: "ok"},
		)))
		offered := slices.ContainsFunc(h.Offered(h.Graph().Entry), func(d synapse.ToolDef) bool { return d.Name == "web_search" })
		if offered != (test.key != "-") {
			t.Errorf("%s: offered %v", test.settings, offered)
		}
		if got := fmt.Sprint(h.Warnings()); test.warning != "" && !strings.Contains(got, test.warning) || test.warning == "" && strings.Contains(got, "web_search") {
			t.Errorf("%s: warnings %s, want %q", test.settings, got, test.warning)
		}
		if !offered {
			continue
		}
		_, events := finish(t, h.Run(t.Context(), host.Input{Prompt: "go"}))
		found := false
		for _, e := range events {
			if b, ok := e.Body.(*synapse.ToolFinished); ok {
				found = found || strings.Contains(b.Result.Text, "1. Found")
				if strings.Contains(b.Result.Text, "k3y") {
					t.Errorf("%s: a command saw the key: %s", test.settings, b.Result.Text)
				}
			}
		}
		if !found {
			t.Errorf("%s: no result", test.settings)
			continue
		}
		if got := <-keys; got != test.key {
			t.Errorf("%s: the service was sent the key %q", test.settings, got)
		}
	}
}
