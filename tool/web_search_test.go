package tool_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/synapse-agents/synapse/tool"
)

// searchService plays the API of one kind, as its documentation shows it.
func searchService(t *testing.T, kind tool.WebSearchKind, key string) string {
	return web(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		query := r.URL.Query().Get("q")
		n := r.URL.Query().Get("count")
		sent := r.Header.Get("X-Subscription-Token")
		switch kind {
		case tool.WebSearchSearXNG:
			if r.Method != "GET" || r.URL.Path != "/sub/search" || r.URL.Query().Get("format") != "json" {
				t.Errorf("searxng was asked %s %s", r.Method, r.URL)
			}
			sent, n = key, "0"
		case tool.WebSearchBrave:
			if r.Method != "GET" || r.URL.Path != "/res/v1/web/search" {
				t.Errorf("brave was asked %s %s", r.Method, r.URL)
			}
		case tool.WebSearchTavily:
			var in struct {
				Query      string `json:"query"`
				MaxResults int    `json:"max_results"`
			}
			if err := json.Unmarshal(body, &in); err != nil || r.Method != "POST" || r.URL.Path != "/search" || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("tavily was asked %s %s %s", r.Method, r.URL, body)
			}
			query, n = in.Query, fmt.Sprint(in.MaxResults)
			sent = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case sent != key:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":"the key %s is not known"}`, sent)
			return
		case query == "busy":
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		case query == "down":
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, "<html><h1>Bad</h1> gateway</html>")
			return
		case query == "bad":
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		case query == "page":
			fmt.Fprint(w, "<html>login</html>")
			return
		case query == "other":
			fmt.Fprint(w, `{"hits":[]}`)
			return
		case query == "moved":
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return
		}
		var results []map[string]any
		text := map[bool]string{true: "description", false: "content"}[kind == tool.WebSearchBrave]
		if query != "nothing" {
			results = []map[string]any{
				{"title": "The <strong>first</strong> &amp; best", "url": "https://a.example/x?y=1", text: "Some <strong>words</strong>\n  and more " + strings.Repeat("long ", 200), "extra": 1},
				{"title": "A script", "url": "javascript:alert(1)", text: "x"},
				{"title": "", "url": "http://b.example/", text: ""},
				{"title": "count " + n, "url": "https://c.example/", text: "third\x1b[31m"},
			}
		}
		var reply any = map[string]any{"query": query, "results": append([]map[string]any{}, results...)}
		if kind == tool.WebSearchBrave {
			reply = map[string]any{"query": map[string]any{"original": query}}
			if results != nil {
				reply.(map[string]any)["web"] = map[string]any{"results": results}
			}
		}
		if err := json.NewEncoder(w).Encode(reply); err != nil {
			t.Error(err)
		}
	})
}

func TestWebSearch(t *testing.T) {
	for _, test := range []struct {
		kind tool.WebSearchKind
		path string
		n    string // results the service was asked for, of those it can be
	}{
		{tool.WebSearchSearXNG, "/sub", "0"},
		{tool.WebSearchSearXNG, "/sub/search", "0"},
		{tool.WebSearchBrave, "/res/v1/web/search", "3"},
		{tool.WebSearchTavily, "/search", "3"},
	} {
		t.Run(string(test.kind)+test.path, func(t *testing.T) {
			const key = "k3y-1234"
			base := searchService(t, test.kind, key)
			b := open(t, tool.Options{WebSearch: tool.WebSearch{Kind: test.kind, Endpoint: base + test.path, APIKey: key}}, nil)
			got := b.ok("web_search", args{"query": " some words ", "count": 3})
			want := "1. The first & best\n   https://a.example/x?y=1\n   Some words and more " + strings.Repeat("long ", 75)
			if !strings.HasPrefix(got, want) {
				t.Errorf("%q\ndoes not begin with\n%q", got, want)
			}
			if _, rest, _ := strings.Cut(got, "\n2."); rest != " [no title]\n   http://b.example/\n3. count "+test.n+"\n   https://c.example/\n   third" {
				t.Errorf("rest %q", rest)
			}
			if got := b.ok("web_search", args{"query": "x", "count": 1}); strings.Contains(got, "2.") {
				t.Errorf("count 1: %q", got)
			}
			if got := b.ok("web_search", args{"query": "nothing"}); got != `[nothing was found for "nothing"]` {
				t.Errorf("nothing: %q", got)
			}
			for query, want := range map[string]struct{ text, details string }{
				"busy":  {"web_search: " + string(test.kind) + ": rate_limit (HTTP 429); try again in 7s", `{"service":"` + string(test.kind) + `","error":"rate_limit","status":429,"retry_after_ms":7000}`},
				"down":  {"web_search: " + string(test.kind) + ": unavailable (HTTP 502): Bad gateway", `{"service":"` + string(test.kind) + `","error":"unavailable","status":502}`},
				"bad":   {"web_search: " + string(test.kind) + ": request (HTTP 422)", `{"service":"` + string(test.kind) + `","error":"request","status":422}`},
				"page":  {"web_search: " + string(test.kind) + ": malformed (HTTP 200): the reply is no JSON", `{"service":"` + string(test.kind) + `","error":"malformed","status":200}`},
				"other": {"web_search: " + string(test.kind) + ": malformed (HTTP 200): the reply holds no results", `{"service":"` + string(test.kind) + `","error":"malformed","status":200}`},
				"moved": {"web_search: " + string(test.kind) + ": unavailable: redirected to " + base + "/elsewhere; set that as the endpoint", `{"service":"` + string(test.kind) + `","error":"unavailable"}`},
			} {
				r := b.run("web_search", args{"query": query})
				if !r.IsError || !strings.HasPrefix(r.Text, want.text) {
					t.Errorf("%s: %v %q, want %q", query, r.IsError, r.Text, want.text)
				}
				if diff := cmp.Diff(want.details, string(r.Details)); diff != "" {
					t.Errorf("%s: details (-want +got):\n%s", query, diff)
				}
			}
			b.fails("web_search", args{"query": "  "}, "the query is empty")
			b.fails("web_search", args{"query": strings.Repeat("x", 2000)}, "at most 1000")
		})
	}
}

// A service that repeats the key it was sent doesn't get it into the
// conversation.
func TestWebSearchHidesItsKey(t *testing.T) {
	const wrong = "secret-wrong-key"
	base := searchService(t, tool.WebSearchBrave, "right")
	b := open(t, tool.Options{WebSearch: tool.WebSearch{Kind: tool.WebSearchBrave, Endpoint: base + "/res/v1/web/search", APIKey: wrong}}, nil)
	got := b.fails("web_search", args{"query": "x"}, "brave: auth (HTTP 401)")
	if strings.Contains(got, wrong) || !strings.Contains(got, "[key]") {
		t.Errorf("%q", got)
	}
}

func TestWebSearchIsOfferedWhenSet(t *testing.T) {
	for _, x := range open(t, tool.Options{}, nil).Tools() {
		if x.Name == "web_search" {
			t.Error("web_search is offered without a service")
		}
	}
	for _, bad := range []tool.WebSearch{{Kind: "google"}, {Kind: tool.WebSearchSearXNG}, {Kind: tool.WebSearchBrave, Endpoint: "ftp://x"}} {
		if w, err := tool.Open(t.TempDir(), tool.Options{WebSearch: bad}); err == nil {
			w.Close()
			t.Errorf("%+v: no error", bad)
		}
	}
	b := open(t, tool.Options{WebSearch: tool.WebSearch{Kind: tool.WebSearchTavily, Endpoint: "http://127.0.0.1:1", APIKey: "k"}}, nil)
	b.fails("web_search", args{"query": "x"}, "tavily: unavailable")
}
