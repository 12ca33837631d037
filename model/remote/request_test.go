package remote_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	synapse "github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/remote"
)

var update = flag.Bool("update", false, "write the golden files anew")

var okStream = events(text("ok"), finish("stop"), done)

// okFor is a reply in the wire's own format.
func okFor(w remote.Wire) answer {
	if w == remote.WireResponses {
		return answer{body: events(`{"type":"response.created","response":{"id":"r"}}`, `{"type":"response.completed","response":{"id":"r"}}`)}
	}
	return answer{body: okStream}
}

// sent returns the body of a request as the server got it.
func sent(t *testing.T, cfg remote.Config, req *synapse.Request) string {
	t.Helper()
	s := serve(t, always(okFor(cfg.Wire)))
	if _, err := collect(t, s.open(cfg), req); err != nil {
		t.Fatal(err)
	}
	_, bodies := s.seen()
	s.Close()
	return bodies[0]
}

func conversation() *synapse.Request {
	temperature, topP := 0.0, 0.9
	return &synapse.Request{
		Model:  "m1",
		System: "You are brief.\n\n## Scope limits\n<none> & \"more\"",
		Messages: []synapse.Message{
			{Role: synapse.RoleUser, Parts: []synapse.Part{
				{Kind: synapse.PartText, Text: "Look at these."},
				{Kind: synapse.PartMedia, Media: &synapse.Media{Name: "dot.png", Type: "image/png", Data: []byte{0x89, 'P', 'N', 'G'}}},
				{Kind: synapse.PartMedia, Media: &synapse.Media{Name: "notes.txt", Type: "text/plain; charset=utf-8", Data: []byte("one\ntwo")}},
				{Kind: synapse.PartMedia, Media: &synapse.Media{Name: "a.pdf", Type: "application/pdf", Data: []byte("%PDF-")}},
				{Kind: synapse.PartMedia, Media: &synapse.Media{Name: "film.mp4", Type: "video/mp4", Data: []byte("film")}},
			}},
			{Role: synapse.RoleAssistant, Parts: []synapse.Part{
				thought("First "), textPart("Reading"), thought("then"), textPart("two files."),
				callPart("call_a", "read_file", `{"path": "a"}`), callPart("call_b", "read_file", `{"path": tru`),
			}},
			{Role: synapse.RoleTool, Parts: []synapse.Part{
				{Kind: synapse.PartResult, Result: &synapse.ToolResult{CallID: "call_a", Name: "read_file", Media: []synapse.Media{{Name: "a.png", Type: "image/png", Data: []byte("PNG")}}}},
			}},
			{Role: synapse.RoleTool, Parts: []synapse.Part{
				{Kind: synapse.PartResult, Result: &synapse.ToolResult{CallID: "call_b", Name: "read_file", IsError: true, Text: "the arguments are not JSON", Details: json.RawMessage(`{"never":"sent"}`)}},
			}},
			synapse.AssistantText("Sorry."),
			synapse.UserText("Go on."),
		},
		Tools: []synapse.ToolDef{
			{Name: "read_file", Description: "Reads a file.", Schema: json.RawMessage(`{"type":"object","properties":{"zebra":{"type":"string"},"apple":{"type":"integer","maximum":9007199254740993}},"required":["zebra"],"additionalProperties":false}`)},
			{Name: "now", Description: "The time."},
		},
		Temperature: &temperature, TopP: &topP, MaxTokens: 1000, Effort: synapse.EffortHigh,
	}
}

func TestRequestGolden(t *testing.T) {
	tests := []struct {
		name string
		cfg  remote.Config
		req  *synapse.Request
	}{
		{"chat-minimal", remote.Config{}, hello()},
		{"chat-full", remote.Config{}, conversation()},
		{"responses-minimal", remote.Config{Wire: remote.WireResponses}, hello()},
		{"responses-full", remote.Config{Provider: "openai", Wire: remote.WireResponses}, func() *synapse.Request {
			r := conversation()
			r.Model = "gpt-5.6-sol"
			return r
		}()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := sent(t, tt.cfg, tt.req)
			for range 20 { // map order would show by now
				if again := sent(t, tt.cfg, tt.req); again != body {
					t.Fatalf("the same request gave other bytes:\n%s\n%s", body, again)
				}
			}
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, []byte(body), "", "  "); err != nil {
				t.Fatalf("body is no JSON: %v", err)
			}
			pretty.WriteByte('\n')
			file := filepath.Join("testdata", tt.name+".json")
			if *update {
				if err := os.MkdirAll("testdata", 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, pretty.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v; write it with -update", err)
			}
			if diff := cmp.Diff(string(want), pretty.String()); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

// chatBody is what the tests look at in a Chat Completions request.
type chatBody struct {
	Messages []json.RawMessage `json:"messages"`
	Tools    json.RawMessage   `json:"tools"`
}

// A longer conversation starts with the bytes of the shorter one, so that the
// provider's prompt cache holds.
func TestRequestPrefix(t *testing.T) {
	full := conversation()
	var before chatBody
	for n := 1; n <= len(full.Messages); n++ {
		if n == 2 || n == 3 {
			continue // calls without all their results are no conversation
		}
		req := *full
		req.Messages = full.Messages[:n]
		var body chatBody
		if err := json.Unmarshal([]byte(sent(t, remote.Config{}, &req)), &body); err != nil {
			t.Fatal(err)
		}
		if before.Tools != nil && !bytes.Equal(before.Tools, body.Tools) {
			t.Errorf("%d messages: the tools changed", n)
		}
		if len(body.Messages) < len(before.Messages) {
			t.Fatalf("%d messages: fewer on the wire than before", n)
		}
		for i := range before.Messages {
			if !bytes.Equal(before.Messages[i], body.Messages[i]) {
				t.Errorf("%d messages: message %d changed from\n%s\nto\n%s", n, i, before.Messages[i], body.Messages[i])
			}
		}
		before = body
	}
}

// What text holds must arrive: a byte that is no UTF-8 must not break the
// request, nor control characters, nor what JSON for HTML escapes.
func TestRequestText(t *testing.T) {
	const odd = "<a href=\"x\">&amp;</a> \u2028 \x00\x1b[0m \xff\xfe 世界 🎉 \\u0041"
	req := hello()
	req.System = odd
	req.Messages = []synapse.Message{synapse.UserText(odd),
		{Role: synapse.RoleAssistant, Parts: []synapse.Part{callPart("a", "x", `{}`)}},
		{Role: synapse.RoleTool, Parts: []synapse.Part{{Kind: synapse.PartResult, Result: &synapse.ToolResult{CallID: "a", Name: "x", Text: odd}}}}}
	var body struct {
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal([]byte(sent(t, remote.Config{}, req)), &body); err != nil {
		t.Fatal(err)
	}
	want := strings.ToValidUTF8(strings.ReplaceAll(odd, "\xff\xfe", "\ufffd\ufffd"), "")
	seen := 0
	for _, m := range body.Messages {
		if m.Role == "assistant" {
			continue
		}
		seen++
		if m.Content != want {
			t.Errorf("%s got %q, want %q", m.Role, m.Content, want)
		}
	}
	if seen != 3 {
		t.Errorf("%d messages, want system, user and tool", seen)
	}
}

func TestEffort(t *testing.T) {
	all := []synapse.Effort{"", synapse.EffortInherit, synapse.EffortOff, synapse.EffortMinimal, synapse.EffortLow, synapse.EffortMedium, synapse.EffortHigh, synapse.EffortMax}
	tests := []struct {
		name, provider, model string
		wire                  remote.Wire
		want                  []string // for all, "" for nothing
	}{
		{"any endpoint", "acme", "m1", "", []string{"", "", "none", "minimal", "low", "medium", "high", "high"}},
		{"ollama", "ollama", "qwen3:8b", "", []string{"", "", "none", "low", "low", "medium", "high", "high"}},
		{"lmstudio", "lmstudio", "openai/gpt-oss-20b", "", []string{"", "", "none", "low", "low", "medium", "high", "high"}},
		{"openai elsewhere", "openai", "gpt-5.6-sol", "", []string{"", "", "none", "minimal", "low", "medium", "high", "xhigh"}},
		{"openai", "openai", "gpt-5.6-sol", remote.WireResponses, []string{"", "", "none", "minimal", "low", "medium", "high", "xhigh"}},
		{"older", "openai", "o3-mini", remote.WireResponses, []string{"", "", "none", "minimal", "low", "medium", "high", "high"}},
		{"first of its kind", "openai", "gpt-5-mini", remote.WireResponses, []string{"", "", "none", "minimal", "low", "medium", "high", "high"}},
		{"does not reason", "openai", "gpt-4.1", remote.WireResponses, []string{"", "", "", "", "", "", "", ""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, e := range all {
				req := hello()
				req.Model, req.Effort = tt.model, e
				var body struct {
					Effort    string `json:"reasoning_effort"`
					Reasoning struct {
						Effort string `json:"effort"`
					} `json:"reasoning"`
				}
				if err := json.Unmarshal([]byte(sent(t, remote.Config{Provider: tt.provider, Wire: tt.wire}, req)), &body); err != nil {
					t.Fatal(err)
				}
				got = append(got, body.Effort+body.Reasoning.Effort)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("efforts (-want +got):\n%s", diff)
			}
		})
	}
}

// llama.cpp leaves thinking to the chat template.
func TestEffortLlamaCpp(t *testing.T) {
	for effort, want := range map[synapse.Effort]string{
		"":                   `null`,
		synapse.EffortOff:    `{"enable_thinking":false}`,
		synapse.EffortMedium: `{"enable_thinking":true,"reasoning_effort":"medium"}`,
	} {
		req := hello()
		req.Effort = effort
		var body struct {
			Args json.RawMessage `json:"chat_template_kwargs"`
		}
		if err := json.Unmarshal([]byte(sent(t, remote.Config{Provider: "llamacpp"}, req)), &body); err != nil {
			t.Fatal(err)
		}
		if body.Args == nil {
			body.Args = json.RawMessage("null")
		}
		if string(body.Args) != want {
			t.Errorf("effort %q: %s, want %s", effort, body.Args, want)
		}
	}
}

// Off must never be dropped in silence: where it can't be asked for, the
// request fails.
func TestEffortOffIsNotDropped(t *testing.T) {
	s := serve(t, always(okFor(remote.WireResponses)))
	m := s.open(remote.Config{Provider: "openai", Wire: remote.WireResponses})
	req := hello()
	req.Model, req.Effort = "future-1", synapse.EffortOff
	_, err := collect(t, m, req)
	wantKind(t, err, synapse.ErrorUnsupported)
	req.Effort = synapse.EffortLow
	if _, err := collect(t, m, req); err != nil {
		t.Errorf("a level is a wish: %v", err)
	}
}

func TestWire(t *testing.T) {
	s := serve(t, always(answer{status: 418}))
	ask := func(cfg remote.Config, model string) string {
		t.Helper()
		req := hello()
		req.Model = model
		if _, err := collect(t, s.open(cfg), req); err == nil {
			t.Fatal("want an error")
		}
		requests, _ := s.seen()
		return requests[len(requests)-1].URL.Path
	}
	for _, tt := range []struct {
		cfg   remote.Config
		model string
		want  string
	}{
		{remote.Config{Provider: "openai"}, "gpt-5.6-sol", "/v1/chat/completions"}, // an address of one's own: the wire that everybody speaks
		{remote.Config{Provider: "openai", Wire: remote.WireResponses}, "gpt-5.6-sol", "/v1/responses"},
		{remote.Config{Provider: "ollama"}, "qwen3:8b", "/v1/chat/completions"},
		{remote.Config{Provider: "ollama", BaseURL: s.URL + "/deep/er/"}, "m", "/deep/er/chat/completions"},
		{remote.Config{Provider: "ollama", BaseURL: s.URL}, "m", "/chat/completions"},
	} {
		if got := ask(tt.cfg, tt.model); got != tt.want {
			t.Errorf("%+v %s: path %s, want %s", tt.cfg, tt.model, got, tt.want)
		}
	}
}

// roundTrip is a transport without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestWireOfOpenAIItself(t *testing.T) {
	for model, want := range map[string]string{
		"gpt-5.6-sol":           "https://api.openai.com/v1/responses",
		"gpt-4o":                "https://api.openai.com/v1/responses",
		"gpt-4o-search-preview": "https://api.openai.com/v1/chat/completions",
		"gpt-audio":             "https://api.openai.com/v1/chat/completions",
	} {
		var got string
		m, err := remote.New(remote.Config{Provider: "openai", APIKey: "k", HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			got = r.URL.String()
			return &http.Response{StatusCode: 418, Body: http.NoBody, Request: r}, nil
		})}})
		if err != nil {
			t.Fatal(err)
		}
		req := hello()
		req.Model = model
		_, err = collect(t, m, req)
		wantKind(t, err, synapse.ErrorRequest)
		if got != want {
			t.Errorf("%s: %s, want %s", model, got, want)
		}
	}
}

// Every header is one that was asked for. The SDK below reads variables of its
// own; a key found there must not reach a server that the user did not mean.
func TestHeaders(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-ambient")
	t.Setenv("OPENAI_ADMIN_KEY", "sk-ambient")
	t.Setenv("OPENAI_ORG_ID", "ambient")
	t.Setenv("OPENAI_PROJECT_ID", "ambient")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/ambient")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Ambient: ambient")
	tests := []struct {
		name string
		cfg  remote.Config
		want map[string]string // "" for absent
	}{
		{"without a key", remote.Config{}, map[string]string{"Authorization": "", "User-Agent": "synapse"}},
		{"with a key, pasted", remote.Config{APIKey: " sk-own\n"}, map[string]string{"Authorization": "Bearer sk-own"}},
		{"named", remote.Config{UserAgent: "mine/2"}, map[string]string{"User-Agent": "mine/2"}},
		{"of one's own", remote.Config{APIKey: "sk-own", Headers: map[string]string{"authorization": "Basic x", "X-Team": "red"}}, map[string]string{"Authorization": "Basic x", "X-Team": "red"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, always(answer{body: okStream}))
			if _, err := collect(t, s.open(tt.cfg), hello()); err != nil {
				t.Fatal(err)
			}
			requests, _ := s.seen()
			h := requests[0].Header
			for name, want := range tt.want {
				if got := h.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			for name, values := range h {
				if strings.Contains(strings.Join(values, " "), "ambient") || strings.HasPrefix(name, "X-Stainless") || strings.HasPrefix(strings.ToLower(name), "openai") {
					t.Errorf("header %s: %q was not asked for", name, values)
				}
			}
			if got := h.Get("Content-Type"); got != "application/json" {
				t.Errorf("content type %q", got)
			}
		})
	}
}
