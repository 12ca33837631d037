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
	parts := []synapse.Part{
		{Kind: synapse.PartReasoning, Text: "Signed.", Opaque: json.RawMessage(`{"anthropic":{"type":"anthropic.reasoning_metadata","data":{"signature":"QW50aHJvcGlj"}}}`)},
		{Kind: synapse.PartReasoning, Opaque: json.RawMessage(`{"anthropic":{"type":"anthropic.reasoning_metadata","data":{"redacted_data":"UmVkYWN0ZWQ="}}}`)},
		{Kind: synapse.PartReasoning, Text: "Summed up.", Opaque: json.RawMessage(`{"openai":{"type":"openai.responses.reasoning_metadata","data":{"item_id":"rs_1","summary":["Summed up."],"encrypted_content":"T3BlbkFJ"}}}`)},
		{Kind: synapse.PartReasoning, Text: "Routed.", Opaque: json.RawMessage(`{"openrouter":[{"type":"reasoning.text","index":0,"text":"Routed.","signature":"T3BlblJvdXRlcg=="}]}`)},
	}
	for _, p := range reply.Parts {
		if p.Call != nil && p.Call.ID == "call_a" {
			parts = append(parts, synapse.Part{Kind: synapse.PartReasoning, Opaque: json.RawMessage(`{"google":{"type":"google.reasoning_metadata","data":{"signature":"R2VtaW5p","tool_id":"call_a"}}}`)})
		}
		parts = append(parts, p)
	}
	reply.Parts = parts
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
		{"gemini-full", remote.Config{Provider: "gemini", APIKey: "k"}, asked("gemini-3.1-pro-preview", synapse.EffortHigh)},
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
		out[i] = strings.ReplaceAll(out[i], `"cache_control":{"type":"ephemeral"},`, "")
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

// What each wire and each cloud is asked for, by effort.
func TestEffortOfEveryProvider(t *testing.T) {
	all := []synapse.Effort{"", synapse.EffortInherit, synapse.EffortOff, synapse.EffortMinimal, synapse.EffortLow, synapse.EffortMedium, synapse.EffortHigh, synapse.EffortMax}
	adaptive := func(word string) string {
		return `{"type":"adaptive","display":"summarized"}{"effort":"` + word + `"}`
	}
	budget := func(n string) string { return `{"budget_tokens":` + n + `,"type":"enabled"}` }
	level := func(word string) string { return `{"includeThoughts":true,"thinkingLevel":"` + word + `"}` }
	tokens := func(n string) string { return `{"includeThoughts":true,"thinkingBudget":` + n + `}` }
	const disabled, none = `{"type":"disabled"}`, `{"includeThoughts":false,"thinkingBudget":0}`
	tests := []struct {
		provider, model string
		want            []string // for all, "" for nothing
	}{
		{"anthropic", "claude-opus-5", []string{"", "", disabled, adaptive("low"), adaptive("low"), adaptive("medium"), adaptive("high"), adaptive("max")}},
		{"anthropic", "claude-mythos-preview", []string{`{"type":"adaptive","display":"summarized"}`, `{"type":"adaptive","display":"summarized"}`, disabled, adaptive("low"), adaptive("low"), adaptive("medium"), adaptive("high"), adaptive("max")}},
		{"anthropic", "claude-sonnet-4-6", []string{"", "", disabled, `{"type":"adaptive"}{"effort":"low"}`, `{"type":"adaptive"}{"effort":"low"}`, `{"type":"adaptive"}{"effort":"medium"}`, `{"type":"adaptive"}{"effort":"high"}`, `{"type":"adaptive"}{"effort":"max"}`}},
		{"anthropic", "claude-haiku-4-5-20251001", []string{"", "", disabled, budget("1024"), budget("4096"), budget("10000"), budget("16000"), budget("32768")}},
		{"anthropic", "claude-opus-4-20250514", []string{"", "", disabled, budget("1024"), budget("4096"), budget("10000"), budget("16000"), budget("30976")}},
		{"anthropic", "claude-3-7-sonnet-latest", []string{"", "", disabled, budget("1024"), budget("4096"), budget("10000"), budget("16000"), budget("32768")}},
		{"anthropic", "claude-3-5-haiku-20241022", []string{"", "", "", "", "", "", "", ""}},
		{"bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", []string{"", "", disabled, budget("1024"), budget("4096"), budget("10000"), budget("16000"), budget("32768")}},
		{"vertex", "claude-opus-4-6@20260205", []string{"", "", disabled, `{"type":"adaptive"}{"effort":"low"}`, `{"type":"adaptive"}{"effort":"low"}`, `{"type":"adaptive"}{"effort":"medium"}`, `{"type":"adaptive"}{"effort":"high"}`, `{"type":"adaptive"}{"effort":"max"}`}},
		{"vertex", "gemini-2.5-flash", []string{"", "", none, tokens("512"), tokens("1024"), tokens("8192"), tokens("24576"), tokens("24576")}},
		{"gemini", "gemini-2.5-pro", []string{"", "", none, tokens("512"), tokens("1024"), tokens("8192"), tokens("24576"), tokens("32768")}},
		{"gemini", "gemini-flash-latest", []string{"", "", none, tokens("512"), tokens("1024"), tokens("8192"), tokens("24576"), tokens("24576")}},
		{"gemini", "gemini-3-flash-preview", []string{"", "", none, level("minimal"), level("low"), level("medium"), level("high"), level("high")}},
		{"gemini", "gemini-3-pro-preview", []string{"", "", none, level("low"), level("low"), level("high"), level("high"), level("high")}},
		{"gemini", "gemini-3.1-pro-preview", []string{"", "", none, level("low"), level("low"), level("medium"), level("high"), level("high")}},
		{"gemini", "gemini-2.0-flash", []string{"", "", "", "", "", "", "", ""}},
		{"openrouter", "z-ai/glm-5", []string{"", "", `{"effort":"none"}`, `{"effort":"minimal"}`, `{"effort":"low"}`, `{"effort":"medium"}`, `{"effort":"high"}`, `{"effort":"xhigh"}`}},
		{"deepseek", "deepseek-v4-pro", []string{"", "", disabled, `"low"{"type":"enabled"}`, `"low"{"type":"enabled"}`, `"high"{"type":"enabled"}`, `"high"{"type":"enabled"}`, `"max"{"type":"enabled"}`}},
		{"groq", "openai/gpt-oss-120b", []string{"", "", `"none"`, `"low"`, `"low"`, `"medium"`, `"high"`, `"high"`}},
		{"groq", "qwen/qwen3-32b", []string{"", "", `"none"`, `"default"`, `"default"`, `"default"`, `"default"`, `"default"`}},
		{"groq", "llama-3.3-70b-versatile", []string{"", "", "", "", "", "", "", ""}},
		{"mistral", "mistral-large-latest", []string{"", "", "", "", "", "", "", ""}},
		{"xai", "grok-4.5", []string{"", "", `"none"`, `"low"`, `"low"`, `"medium"`, `"high"`, `"high"`}},
		{"xai", "grok-3-mini", []string{"", "", `"none"`, `"low"`, `"low"`, `"high"`, `"high"`, `"high"`}},
		{"xai", "grok-4.20-non-reasoning", []string{"", "", "", "", "", "", "", ""}},
		{"xai", "grok-4", []string{"", "", `"none"`, "", "", "", "", ""}},
		{"azure", "gpt-5-mini", []string{"", "", `"none"`, `"minimal"`, `"low"`, `"medium"`, `"high"`, `"high"`}},
		{"azure", "gpt-4o-prod", []string{"", "", "", "", "", "", "", ""}},
	}
	for _, tt := range tests {
		t.Run(tt.provider+" "+tt.model, func(t *testing.T) {
			var got []string
			for _, e := range all {
				req := hello()
				req.Model, req.Effort = tt.model, e
				cfg := remote.Config{Provider: tt.provider, APIKey: "k", Cloud: remote.Cloud{Region: "us-east-1", Project: "p"}}
				if tt.provider == "azure" {
					cfg.BaseURL = "https://res.openai.azure.com"
				}
				var body struct {
					Effort   json.RawMessage `json:"reasoning_effort"`
					Thinking json.RawMessage `json:"thinking"`
					Output   json.RawMessage `json:"output_config"`
					Reason   json.RawMessage `json:"reasoning"`
					Config   struct {
						Thinking json.RawMessage `json:"thinkingConfig"`
					} `json:"generationConfig"`
				}
				if err := json.Unmarshal([]byte(own(t, cfg, req).body), &body); err != nil {
					t.Fatal(err)
				}
				got = append(got, string(body.Effort)+string(body.Thinking)+string(body.Output)+string(body.Reason)+string(body.Config.Thinking))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("efforts (-want +got):\n%s", diff)
			}
		})
	}
}

// Temperature and top_p go where a model takes them: an agent that asks for one
// must not be refused for it.
func TestSampling(t *testing.T) {
	for _, tt := range []struct {
		provider, model string
		effort          synapse.Effort
		want            string
	}{
		{"anthropic", "claude-opus-4-20250514", "", `0.3 0.9`},
		{"anthropic", "claude-sonnet-4-5-20250929", "", `0.3 `},
		{"anthropic", "claude-sonnet-4-5-20250929", synapse.EffortOff, `0.3 `},
		{"anthropic", "claude-sonnet-4-5-20250929", synapse.EffortLow, ` `},
		{"anthropic", "claude-opus-4-7", "", ` `},
		{"anthropic", "claude-opus-5", synapse.EffortOff, ` `},
		{"openai", "gpt-5.6-sol", "", ` `},
		{"openai", "gpt-4.1", "", `0.3 0.9`},
		{"openrouter", "z-ai/glm-5", "", `0.3 0.9`},
	} {
		temperature, topP := 0.3, 0.9
		req := hello()
		req.Model, req.Effort, req.Temperature, req.TopP, req.MaxTokens = tt.model, tt.effort, &temperature, &topP, 8000
		var body struct {
			Temperature json.RawMessage `json:"temperature"`
			TopP        json.RawMessage `json:"top_p"`
		}
		if err := json.Unmarshal([]byte(own(t, remote.Config{Provider: tt.provider, APIKey: "k"}, req).body), &body); err != nil {
			t.Fatal(err)
		}
		if got := string(body.Temperature) + " " + string(body.TopP); got != tt.want {
			t.Errorf("%s %s %s: %q, want %q", tt.provider, tt.model, tt.effort, got, tt.want)
		}
	}
}

// Thinking is a part of the limit on output. Where the limit leaves no room, or
// a reply that is under way began without a thought, there is none.
func TestThinkingFits(t *testing.T) {
	cfg := remote.Config{Provider: "anthropic", APIKey: "k"}
	req := hello()
	req.Model, req.Effort = "claude-sonnet-4-5", synapse.EffortMax
	if body := own(t, cfg, req).body; !strings.Contains(body, `"max_tokens":64000`) || !strings.Contains(body, `"thinking":{"budget_tokens":32768,"type":"enabled"}`) {
		t.Errorf("body %s", body)
	}
	req.MaxTokens = 1500
	if body := own(t, cfg, req).body; !strings.Contains(body, `"max_tokens":1500,`) || strings.Contains(body, "budget") {
		t.Errorf("body %s", body)
	}
	req = asked("claude-sonnet-4-5", synapse.EffortMax)
	req.MaxTokens = 0
	req.Messages = req.Messages[:4]
	if body := own(t, cfg, req).body; !strings.Contains(body, "budget") {
		t.Errorf("signed: body %s", body)
	}
	req.Messages[1].Parts = req.Messages[1].Parts[2:]
	if body := own(t, cfg, req).body; strings.Contains(body, "budget") {
		t.Errorf("unsigned: body %s", body)
	}
}

// A call that another model made has no signature, which Gemini 3 wants of the
// first one of a reply.
func TestGeminiForeignCalls(t *testing.T) {
	req := asked("gemini-3-pro-preview", "")
	for i := range req.Messages[1].Parts {
		req.Messages[1].Parts[i].Opaque = nil
	}
	if body := own(t, remote.Config{Provider: "gemini", APIKey: "k"}, req).body; strings.Count(body, `"thoughtSignature":"skip_thought_signature_validator"`) != 1 {
		t.Errorf("body %s", body)
	}
	req.Model = "gemini-2.5-pro"
	if body := own(t, remote.Config{Provider: "gemini", APIKey: "k"}, req).body; strings.Contains(body, "thoughtSignature") {
		t.Errorf("body %s", body)
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

// Off must never be dropped in silence: it is asked for by name, and where it
// can't even be asked for, the request fails before it is sent.
func TestEffortOffIsNotDropped(t *testing.T) {
	req := hello()
	req.Model, req.Effort = "future-1", synapse.EffortOff
	if body := sent(t, remote.Config{Provider: "openai", Wire: remote.WireResponses}, req); !strings.Contains(body, `"reasoning":{"effort":"none"}`) {
		t.Errorf("body %s: want effort none", body)
	}
	s := serve(t, always(okFor(remote.WireChat)))
	m := s.open(remote.Config{Provider: "mistral"})
	req.Model = "magistral-medium"
	_, err := collect(t, m, req)
	wantKind(t, err, synapse.ErrorUnsupported)
	if requests, _ := s.seen(); len(requests) != 0 {
		t.Errorf("%d requests went out", len(requests))
	}
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
