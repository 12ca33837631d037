package remote_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	switch w {
	case remote.WireResponses:
		return answer{body: events(`{"type":"response.created","response":{"id":"r"}}`, `{"type":"response.completed","response":{"id":"r"}}`)}
	case remote.WireAnthropic:
		return answer{body: events(`{"type":"message_start","message":{}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`)}
	case remote.WireGemini:
		return answer{body: events(`{"candidates":[{"content":{"parts":[{"text":"ok"}]},"finishReason":"STOP"}]}`)}
	}
	return answer{body: okStream}
}

// wireOf is the wire that a configuration comes to for a model.
func wireOf(cfg remote.Config, model string) remote.Wire {
	switch p, _ := remote.Lookup(cfg.Provider); {
	case cfg.Wire != "":
		return cfg.Wire
	case p.Name == "vertex" && strings.Contains(model, "claude"):
		return remote.WireAnthropic
	case p.Wire == remote.WireAnthropic, p.Wire == remote.WireGemini, p.Wire == remote.WireResponses && cfg.BaseURL == "":
		return p.Wire
	}
	return remote.WireChat
}

// request is what went out.
type request struct {
	url    string
	header http.Header
	body   string
}

// own returns what a provider would get at its own address. There is no network.
func own(t *testing.T, cfg remote.Config, req *synapse.Request) request {
	t.Helper()
	var got request
	cfg.HTTPClient = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if got.url != "" {
			t.Errorf("a second request, to %s", r.URL)
		}
		got = request{r.URL.String(), r.Header, string(body)}
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Request: r,
			Body: io.NopCloser(strings.NewReader(okFor(wireOf(cfg, req.Model)).body))}, nil
	})}
	m, err := remote.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := collect(t, m, req); err != nil {
		t.Fatal(err)
	}
	return got
}

// sent returns the body of a request as the server got it.
func sent(t *testing.T, cfg remote.Config, req *synapse.Request) string {
	t.Helper()
	cfg.BaseURL = "elsewhere" // for wireOf: not the provider's own
	s := serve(t, always(okFor(wireOf(cfg, req.Model))))
	cfg.BaseURL = s.URL + "/v1"
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

// asked is the conversation asked of another model, with what each provider
// has signed in its place.
func asked(model string, effort synapse.Effort) *synapse.Request {
	r := conversation()
	r.Model, r.Effort = model, effort
	reply := &r.Messages[1]
	reply.Parts = append([]synapse.Part{
		{Kind: synapse.PartReasoning, Text: "Signed.", Opaque: json.RawMessage(`{"anthropic":{"signature":"QW50aHJvcGlj"}}`)},
		{Kind: synapse.PartReasoning, Opaque: json.RawMessage(`{"anthropic":{"redacted":"UmVkYWN0ZWQ="}}`)},
		{Kind: synapse.PartReasoning, Text: "Summed up.", Opaque: json.RawMessage(`{"openai":{"id":"rs_1","summary":[{"type":"summary_text","text":"Summed up."}],"encrypted_content":"T3BlbkFJ"}}`)},
		{Kind: synapse.PartReasoning, Text: "Routed.", Opaque: json.RawMessage(`{"openrouter":[{"type":"reasoning.text","index":0,"text":"Routed.","signature":"T3BlblJvdXRlcg=="}]}`)},
	}, reply.Parts...)
	for i := range reply.Parts {
		if c := reply.Parts[i].Call; c != nil && c.ID == "call_a" {
			reply.Parts[i].Opaque = json.RawMessage(`{"gemini":{"signature":"R2VtaW5p"}}`)
		}
	}
	return r
}

func TestRequestGolden(t *testing.T) {
	aws := remote.Cloud{Region: "us-east-1", AWS: remote.AWSKeys{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}}
	vertex := remote.Cloud{Project: "my-project", Region: "us-east5"}
	tests := []struct {
		name string
		cfg  remote.Config
		req  *synapse.Request
	}{
		{"chat-minimal", remote.Config{Provider: "openaicompat", BaseURL: "http://127.0.0.1:9/v1"}, hello()},
		{"chat-full", remote.Config{Provider: "openaicompat", BaseURL: "http://127.0.0.1:9/v1"}, conversation()},
		{"chat-openrouter", remote.Config{Provider: "openrouter", APIKey: "k"}, asked("anthropic/claude-sonnet-4.6", synapse.EffortHigh)},
		{"chat-azure", remote.Config{Provider: "azure", APIKey: "k", BaseURL: "https://res.openai.azure.com"}, asked("gpt-5-mini", synapse.EffortHigh)},
		{"chat-mistral", remote.Config{Provider: "mistral", APIKey: "k"}, asked("mistral-large-latest", synapse.EffortOff)},
		{"responses-minimal", remote.Config{Provider: "openaicompat", BaseURL: "http://127.0.0.1:9/v1", Wire: remote.WireResponses}, hello()},
		{"responses-full", remote.Config{Provider: "openai", BaseURL: "http://127.0.0.1:9/v1", Wire: remote.WireResponses}, func() *synapse.Request {
			r := conversation()
			r.Model = "gpt-5.6-sol"
			return r
		}()},
		{"responses-openai", remote.Config{Provider: "openai", APIKey: "k"}, asked("gpt-5.6-sol", synapse.EffortOff)},
		{"anthropic-minimal", remote.Config{Provider: "anthropic", APIKey: "k"}, hello()},
		{"anthropic-full", remote.Config{Provider: "anthropic", APIKey: "k"}, asked("claude-opus-5", synapse.EffortHigh)},
		{"anthropic-budget", remote.Config{Provider: "anthropic", APIKey: "k"}, func() *synapse.Request {
			r := asked("claude-sonnet-4-5-20250929", synapse.EffortMedium)
			r.MaxTokens = 0
			return r
		}()},
		{"anthropic-off", remote.Config{Provider: "anthropic", APIKey: "k"}, asked("claude-sonnet-4-6", synapse.EffortOff)},
		{"bedrock-full", remote.Config{Provider: "bedrock", Cloud: aws}, asked("us.anthropic.claude-opus-4-6-v1", synapse.EffortLow)},
		{"vertex-claude", remote.Config{Provider: "vertex", APIKey: "token", Cloud: vertex}, asked("claude-sonnet-4-5@20250929", "")},
		{"vertex-gemini", remote.Config{Provider: "vertex", APIKey: "token", Cloud: vertex}, asked("gemini-2.5-pro", synapse.EffortMax)},
		{"gemini-minimal", remote.Config{Provider: "gemini", APIKey: "k"}, hello()},
		{"gemini-full", remote.Config{Provider: "google", APIKey: "k"}, asked("gemini-3.1-pro-preview", synapse.EffortHigh)},
		{"gemini-off", remote.Config{Provider: "gemini", APIKey: "k"}, asked("gemini-2.5-flash", synapse.EffortOff)},
		{"gemini-gemma", remote.Config{Provider: "gemini", APIKey: "k"}, asked("gemma-4-31b-it", synapse.EffortHigh)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := own(t, tt.cfg, tt.req)
			for range 20 { // map order would show by now
				if again := own(t, tt.cfg, tt.req); again.body != got.body {
					t.Fatalf("the same request gave other bytes:\n%s\n%s", got.body, again.body)
				}
			}
			var pretty bytes.Buffer
			pretty.WriteString("POST " + got.url + "\n")
			if err := json.Indent(&pretty, []byte(got.body), "", "  "); err != nil {
				t.Fatalf("body is no JSON: %v", err)
			}
			pretty.WriteByte('\n')
			file := filepath.Join("testdata", tt.name+".golden")
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
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

// pieces returns what a request holds in the order in which a provider reads
// it, without the marks that say where to cache.
func pieces(t *testing.T, body string) []string {
	t.Helper()
	var fields struct {
		Tools, System, SystemInstruction, Messages, Input, Contents json.RawMessage
	}
	if err := json.Unmarshal([]byte(body), &fields); err != nil {
		t.Fatal(err)
	}
	out := []string{string(fields.Tools), string(fields.System), string(fields.SystemInstruction)}
	for _, list := range []json.RawMessage{fields.Messages, fields.Input, fields.Contents} {
		var messages []map[string]json.RawMessage
		if list != nil {
			if err := json.Unmarshal(list, &messages); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range messages {
			var parts []json.RawMessage
			blocks := m["content"]
			if blocks == nil {
				blocks = m["parts"]
			}
			if json.Unmarshal(blocks, &parts) != nil || parts == nil {
				out = append(out, fmt.Sprint(m))
				continue
			}
			for _, p := range parts { // a message may grow at its end
				out = append(out, string(m["role"])+string(p))
			}
		}
	}
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], `,"cache_control":{"type":"ephemeral"}`, "")
	}
	return out
}

// A longer conversation starts with what the shorter one sent, so that the
// provider's prompt cache holds.
func TestRequestPrefix(t *testing.T) {
	for name, cfg := range map[string]remote.Config{
		"chat":      {Provider: "openaicompat", BaseURL: "http://127.0.0.1:9/v1"},
		"responses": {Provider: "openai", APIKey: "k"},
		"anthropic": {Provider: "anthropic", APIKey: "k"},
		"gemini":    {Provider: "gemini", APIKey: "k"},
	} {
		full := asked(map[string]string{"anthropic": "claude-opus-5", "gemini": "gemini-3-pro"}[name]+"m1", synapse.EffortHigh)
		var before []string
		for n := 1; n <= len(full.Messages); n++ {
			if n == 2 || n == 3 {
				continue // calls without all their results are no conversation
			}
			req := *full
			req.Messages = full.Messages[:n]
			now := pieces(t, own(t, cfg, &req).body)
			if len(now) < len(before) || before != nil && !slices.Equal(before, now[:len(before)]) {
				t.Errorf("%s, %d messages (-before +now):\n%s", name, n, cmp.Diff(before, now))
			}
			before = now
		}
		if len(before) < 8 {
			t.Errorf("%s: %d pieces", name, len(before))
		}
	}
}

// Claude is told to keep the tools, the system prompt, the last message, and
// the last one of the request before.
func TestRequestCacheMarks(t *testing.T) {
	full := asked("claude-opus-5", "")
	for n, want := range map[int]int{1: 3, 4: 4, 6: 4} {
		req := *full
		req.Messages = full.Messages[:n]
		body := own(t, remote.Config{Provider: "anthropic", APIKey: "k"}, &req).body
		if got := strings.Count(body, "cache_control"); got != want {
			t.Errorf("%d messages: %d marks, want %d:\n%s", n, got, want, body)
		}
		tail := body[strings.LastIndex(body, `"cache_control"`):]
		if strings.Contains(tail, `"type":"text"`) || strings.Contains(tail, `"tool_result"`) {
			t.Errorf("%d messages: the last block is not marked: %s", n, tail)
		}
	}
}

// What text holds must arrive: a byte that is no UTF-8 must not break the
// request, nor control characters, nor what JSON for HTML escapes.
func TestRequestText(t *testing.T) {
	const odd = "<a href=\"x\">&amp;</a> \u2028 \x00\x1b[0m \xff\xfe 世界 🎉 \\u0041"
	want := strings.ReplaceAll(odd, "\xff\xfe", "\ufffd\ufffd")
	req := hello()
	req.System = odd
	req.Messages = []synapse.Message{synapse.UserText(odd),
		{Role: synapse.RoleAssistant, Parts: []synapse.Part{callPart("a", "x", `{}`)}},
		{Role: synapse.RoleTool, Parts: []synapse.Part{{Kind: synapse.PartResult, Result: &synapse.ToolResult{CallID: "a", Name: "x", Text: odd}}}}}
	for _, cfg := range []remote.Config{
		{Provider: "openaicompat", BaseURL: "http://127.0.0.1:9/v1"}, {Provider: "openai", APIKey: "k"}, {Provider: "anthropic", APIKey: "k"}, {Provider: "gemini", APIKey: "k"},
	} {
		var body any
		if err := json.Unmarshal([]byte(own(t, cfg, req).body), &body); err != nil {
			t.Fatal(err)
		}
		seen := 0
		var look func(v any)
		look = func(v any) {
			switch v := v.(type) {
			case string:
				if v == want {
					seen++
				}
			case []any:
				for _, e := range v {
					look(e)
				}
			case map[string]any:
				for _, e := range v {
					look(e)
				}
			}
		}
		if look(body); seen != 3 {
			t.Errorf("%s: the text arrived %d times, want in the system prompt, the message and the result", cfg.Provider, seen)
		}
	}
}

// Ids that another provider gave are written as this one takes them, the same
// for the call and its result.
func TestRequestForeignIDs(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg  remote.Config
		form string
	}{
		"anthropic": {remote.Config{Provider: "anthropic", APIKey: "k"}, `^[a-zA-Z0-9_-]+$`},
		"mistral":   {remote.Config{Provider: "mistral", APIKey: "k"}, `^[a-zA-Z0-9]{9}$`},
	} {
		ids := map[string]bool{}
		foreign := []string{"functions.read:0", "functions.read:1", "functions_read_0", "call_a", "", "ABCDEFGH1", "日本"}
		for _, id := range foreign {
			req := hello()
			req.Messages = append(req.Messages, synapse.Message{Role: synapse.RoleAssistant, Parts: []synapse.Part{callPart(id, "read", `{}`)}},
				synapse.Message{Role: synapse.RoleTool, Parts: []synapse.Part{{Kind: synapse.PartResult, Result: &synapse.ToolResult{CallID: id, Name: "read", Text: "x"}}}})
			found := regexp.MustCompile(`"(?:tool_use_id|tool_call_id|id)":"([^"]*)"`).FindAllStringSubmatch(own(t, tt.cfg, req).body, -1)
			if len(found) != 2 || found[0][1] != found[1][1] || !regexp.MustCompile(tt.form).MatchString(found[0][1]) {
				t.Errorf("%s: %q became %v", name, id, found)
				continue
			}
			ids[found[0][1]] = true
		}
		if len(ids) != len(foreign) {
			t.Errorf("%s: %d ids for %d", name, len(ids), len(foreign))
		}
		if name == "mistral" && !ids["ABCDEFGH1"] || name == "anthropic" && !ids["call_a"] {
			t.Errorf("%s: an id that fits was changed: %v", name, ids)
		}
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
