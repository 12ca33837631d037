package remote_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	synapse "github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/remote"
)

// said is what a reply comes to, whoever decoded it.
type said struct {
	Text, Reasoning string
	Calls           []synapse.ToolCall
	Signed          []string // what the provider wants back unchanged
	Stop            synapse.StopReason
	Model           string
	Input, Output   int64
	Cached, Written int64
	Thought         int64
	Cost            float64 // where the provider says it
}

// The decoders of the test read a recording in the plainest way: line by line
// into a map. They share nothing with the package.

func obj(v any, path ...string) map[string]any {
	for _, p := range path {
		m, _ := v.(map[string]any)
		v = m[p]
	}
	m, _ := v.(map[string]any)
	return m
}

func list(v any) []any   { l, _ := v.([]any); return l }
func str(v any) string   { s, _ := v.(string); return s }
func num(v any) int64    { f, _ := v.(float64); return int64(f) }
func real(v any) float64 { f, _ := v.(float64); return f }

func dataLines(t *testing.T, body string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			t.Fatalf("recording: %v in %s", err, data)
		}
		out = append(out, m)
	}
	return out
}

// unframe writes Amazon's binary frames as the events that they hold: total
// length, length of the headers, a checksum; headers; payload; a checksum.
func unframe(t *testing.T, body string) string {
	t.Helper()
	var out strings.Builder
	for rest := []byte(body); len(rest) > 0; {
		total, headers := binary.BigEndian.Uint32(rest), binary.BigEndian.Uint32(rest[4:])
		var payload struct {
			Bytes string `json:"bytes"`
		}
		if err := json.Unmarshal(rest[12+headers:total-4], &payload); err != nil {
			t.Fatalf("recording: frame: %v", err)
		}
		data, err := base64.StdEncoding.DecodeString(payload.Bytes)
		if err != nil {
			t.Fatalf("recording: frame: %v", err)
		}
		out.WriteString("data: " + string(data) + "\n\n")
		rest = rest[total:]
	}
	return out.String()
}

func plainChat(t *testing.T, body string) said {
	var s said
	finish := ""
	for _, m := range dataLines(t, body) {
		if v := str(m["model"]); v != "" {
			s.Model = v
		}
		if u := obj(m, "usage"); u != nil {
			s.Input, s.Output = num(u["prompt_tokens"]), num(u["completion_tokens"])
			s.Cached = num(obj(u, "prompt_tokens_details")["cached_tokens"])
			s.Written = num(obj(u, "prompt_tokens_details")["cache_write_tokens"])
			s.Thought = num(obj(u, "completion_tokens_details")["reasoning_tokens"])
			if s.Thought > 0 && num(u["total_tokens"]) == s.Input+s.Output+s.Thought {
				s.Output += s.Thought // xAI counts it beside the rest
			}
			s.Thought = min(s.Thought, s.Output) // it is a part of that, whatever is said
			s.Cost = real(u["cost"])
		}
		for _, c := range list(m["choices"]) {
			choice := obj(c)
			if f := str(choice["finish_reason"]); f != "" {
				finish = f
			}
			d := obj(choice, "delta")
			s.Text += str(d["content"])
			if r := str(d["reasoning_content"]); r != "" {
				s.Reasoning += r
			} else {
				s.Reasoning += str(d["reasoning"])
			}
			for _, detail := range list(d["reasoning_details"]) {
				for _, field := range []string{"signature", "data"} {
					if v := str(obj(detail)[field]); v != "" {
						s.Signed = append(s.Signed, v)
					}
				}
			}
			for _, tc := range list(d["tool_calls"]) {
				call := obj(tc)
				i := int(num(call["index"]))
				for len(s.Calls) <= i {
					s.Calls = append(s.Calls, synapse.ToolCall{})
				}
				if s.Calls[i].ID == "" {
					s.Calls[i].ID = str(call["id"])
				}
				s.Calls[i].Name += str(obj(call, "function")["name"])
				s.Calls[i].Args += str(obj(call, "function")["arguments"])
			}
		}
	}
	s.Stop = map[string]synapse.StopReason{"stop": synapse.StopEnd, "length": synapse.StopLength, "tool_calls": synapse.StopCalls, "": synapse.StopUnknown}[finish]
	if (finish == "" || finish == "stop") && len(s.Calls) > 0 { // gpt-audio says nothing but [DONE]
		s.Stop = synapse.StopCalls
	}
	return s
}

func plainResponses(t *testing.T, body string) said {
	s := said{Stop: synapse.StopEnd}
	for _, m := range dataLines(t, body) {
		switch m["type"] {
		case "response.output_text.delta":
			s.Text += str(m["delta"])
		case "response.reasoning_summary_text.delta":
			s.Reasoning += str(m["delta"])
		case "response.output_item.done":
			switch item := obj(m, "item"); item["type"] {
			case "function_call":
				s.Calls = append(s.Calls, synapse.ToolCall{ID: str(item["call_id"]), Name: str(item["name"]), Args: str(item["arguments"])})
				s.Stop = synapse.StopCalls
			case "reasoning":
				if v := str(item["encrypted_content"]); v != "" {
					s.Signed = append(s.Signed, v)
				}
			}
		case "response.completed", "response.incomplete":
			r := obj(m, "response")
			s.Model = str(r["model"])
			u := obj(r, "usage")
			s.Input, s.Output = num(u["input_tokens"]), num(u["output_tokens"])
			s.Cached = num(obj(u, "input_tokens_details")["cached_tokens"])
			s.Written = num(obj(u, "input_tokens_details")["cache_write_tokens"])
			s.Thought = num(obj(u, "output_tokens_details")["reasoning_tokens"])
			if obj(r, "incomplete_details")["reason"] == "max_output_tokens" {
				s.Stop = synapse.StopLength
			}
		}
	}
	return s
}

func plainAnthropic(t *testing.T, body string) said {
	var s said
	reason := ""
	calls := map[int64]int{}
	var fresh, read, written int64
	usage := func(u map[string]any) {
		for name, to := range map[string]*int64{"input_tokens": &fresh, "cache_read_input_tokens": &read, "cache_creation_input_tokens": &written, "output_tokens": &s.Output} {
			if v, ok := u[name].(float64); ok {
				*to = int64(v)
			}
		}
		if v, ok := obj(u, "output_tokens_details")["thinking_tokens"].(float64); ok {
			s.Thought = int64(v)
		}
	}
	for _, m := range dataLines(t, body) {
		switch m["type"] {
		case "message_start":
			s.Model = str(obj(m, "message")["model"])
			usage(obj(m, "message", "usage"))
		case "content_block_start":
			switch b := obj(m, "content_block"); b["type"] {
			case "tool_use":
				calls[num(m["index"])] = len(s.Calls)
				s.Calls = append(s.Calls, synapse.ToolCall{ID: str(b["id"]), Name: str(b["name"])})
			case "redacted_thinking":
				s.Signed = append(s.Signed, str(b["data"]))
			}
		case "content_block_delta":
			switch d := obj(m, "delta"); d["type"] {
			case "text_delta":
				s.Text += str(d["text"])
			case "thinking_delta":
				s.Reasoning += str(d["thinking"])
			case "signature_delta":
				s.Signed = append(s.Signed, str(d["signature"]))
			case "input_json_delta":
				if i, ok := calls[num(m["index"])]; ok {
					s.Calls[i].Args += str(d["partial_json"])
				}
			}
		case "message_delta":
			if r := str(obj(m, "delta")["stop_reason"]); r != "" {
				reason = r
			}
			usage(obj(m, "usage"))
		}
	}
	for i := range s.Calls {
		if s.Calls[i].Args == "" {
			s.Calls[i].Args = "{}"
		}
	}
	s.Input, s.Cached, s.Written = fresh+read+written, read, written
	s.Stop = map[string]synapse.StopReason{"end_turn": synapse.StopEnd, "stop_sequence": synapse.StopEnd, "tool_use": synapse.StopCalls,
		"max_tokens": synapse.StopLength, "pause_turn": synapse.StopUnknown, "refusal": synapse.StopFilter}[reason]
	return s
}

func plainGemini(t *testing.T, body string) said {
	var s said
	finish := ""
	for _, m := range dataLines(t, body) {
		if v := str(m["modelVersion"]); v != "" {
			s.Model = v
		}
		if u := obj(m, "usageMetadata"); u != nil {
			s.Input = num(u["promptTokenCount"]) + num(u["toolUsePromptTokenCount"])
			s.Thought = num(u["thoughtsTokenCount"])
			s.Output = num(u["candidatesTokenCount"]) + s.Thought
			s.Cached = num(u["cachedContentTokenCount"])
		}
		for _, c := range list(m["candidates"]) {
			if f := str(obj(c)["finishReason"]); f != "" {
				finish = f
			}
			for _, p := range list(obj(c, "content")["parts"]) {
				part := obj(p)
				if v := str(part["thoughtSignature"]); v != "" {
					s.Signed = append(s.Signed, v)
				}
				if call := obj(part, "functionCall"); call != nil {
					args, err := json.Marshal(call["args"])
					if err != nil {
						t.Fatal(err)
					}
					s.Calls = append(s.Calls, synapse.ToolCall{ID: str(call["id"]), Name: str(call["name"]), Args: string(args)})
				} else if part["thought"] == true {
					s.Reasoning += str(part["text"])
				} else {
					s.Text += str(part["text"])
				}
			}
		}
	}
	s.Stop = map[string]synapse.StopReason{"STOP": synapse.StopEnd, "MAX_TOKENS": synapse.StopLength}[finish]
	if len(s.Calls) > 0 && s.Stop == synapse.StopEnd {
		s.Stop = synapse.StopCalls
	}
	return s
}

// flat writes a reply in the same form.
func flat(t *testing.T, r *synapse.Reply) said {
	t.Helper()
	s := said{Stop: r.Stop, Model: r.Model, Input: r.Usage.InputTokens, Output: r.Usage.OutputTokens,
		Cached: r.Usage.CacheReadTokens, Written: r.Usage.CacheWriteTokens, Thought: r.Usage.ReasoningTokens}
	if r.Usage.CostUSD != nil {
		s.Cost = *r.Usage.CostUSD
	}
	for _, p := range r.Message.Parts {
		switch p.Kind {
		case synapse.PartText:
			s.Text += p.Text
		case synapse.PartReasoning:
			s.Reasoning += p.Text
		case synapse.PartCall:
			s.Calls = append(s.Calls, *p.Call)
		}
		if len(p.Opaque) > 0 {
			var v any
			if err := json.Unmarshal(p.Opaque, &v); err != nil {
				t.Fatalf("opaque %s: %v", p.Opaque, err)
			}
			s.Signed = append(s.Signed, signatures(v)...)
		}
	}
	return s
}

// signatures finds what signs a thought, or stands for one, in a provider's data.
func signatures(v any) []string {
	var out []string
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			out = append(out, signatures(e)...)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if s := str(v[name]); s != "" && slices.Contains([]string{"signature", "redacted", "encrypted_content", "data"}, name) {
				out = append(out, s)
				continue
			}
			out = append(out, signatures(v[name])...)
		}
	}
	return out
}

// provider says how a recorded exchange is asked for again: who it was with,
// and how to decode it plainly. It reports false for what is not of these wires.
func provider(r recorded) (remote.Config, func(*testing.T, string) said, bool) {
	u, err := url.Parse(r.url)
	if err != nil {
		return remote.Config{}, nil, false
	}
	cloud := remote.Cloud{Region: "us-east-1", Project: "p"}
	host := map[string]string{
		"openrouter.ai": "openrouter", "api.x.ai": "xai", "api.groq.com": "groq", "api.deepseek.com": "deepseek",
		"api.anthropic.com": "anthropic", "generativelanguage.googleapis.com": "gemini", "api.openai.com": "openai",
	}[u.Host]
	cfg := remote.Config{Provider: host, APIKey: "k", Cloud: cloud}
	switch {
	case strings.HasSuffix(u.Host, ".openai.azure.com"):
		cfg.Provider = "azure"
	case strings.HasSuffix(u.Host, ".amazonaws.com"):
		cfg.Provider = "bedrock"
	case strings.HasSuffix(u.Host, "-aiplatform.googleapis.com"):
		cfg.Provider = "vertex"
	case host == "":
		cfg.Provider = "openaicompat"
	}
	switch path := u.Path; {
	case strings.HasSuffix(path, "/chat/completions"):
		cfg.Wire = remote.WireChat
		return cfg, plainChat, true
	case strings.HasSuffix(path, "/responses"):
		cfg.Wire = remote.WireResponses
		return cfg, plainResponses, true
	case strings.HasSuffix(path, "/messages"), strings.Contains(path, "awPredict"):
		cfg.Wire = remote.WireAnthropic
		return cfg, plainAnthropic, true
	case strings.Contains(path, "/invoke"):
		cfg.Wire = remote.WireAnthropic
		return cfg, func(t *testing.T, body string) said { return plainAnthropic(t, unframe(t, body)) }, true
	case strings.Contains(path, "enerateContent"):
		cfg.Wire = remote.WireGemini
		return cfg, plainGemini, true
	}
	return cfg, nil, false
}

// tally counts what was played, so that a test that found nothing fails.
type tally map[string]int

// play plays a recording over loopback, in pieces that fall everywhere, and
// compares what the adapter makes of it with what it plainly says. What was
// signed has to go back in the next request.
func play(t *testing.T, r recorded, got tally) {
	cfg, plain, ok := provider(r)
	if !ok || !r.streamed() && r.status == 200 {
		return
	}
	t.Run(r.name, func(t *testing.T) {
		header := map[string]string{"Content-Type": r.contentType}
		if r.contentType == "" {
			header["Content-Type"] = "text/event-stream"
		}
		for _, name := range []string{"Retry-After", "X-Amzn-Errortype"} {
			if v := r.header.Get(name); v != "" {
				header[name] = v
			}
		}
		pieces := []int{7, 61, 509}[len(r.body)%3]
		s := serve(t, always(answer{status: r.status, header: header, body: r.body, pieces: pieces}))
		cfg.BaseURL = s.URL
		model := s.open(cfg)
		req := hello()
		req.Model = modelOf(r)
		reply, err := collect(t, model, req)
		got["played"]++
		got[string(cfg.Wire)]++
		got[cfg.Provider]++
		if r.status != 200 {
			got["refused"]++
			checkRefusal(t, r, err)
			return
		}
		if message := failureIn(t, r); message != "" {
			var typed *synapse.ProviderError
			if !errors.As(err, &typed) || !strings.Contains(message, typed.Message) {
				t.Errorf("error %v: the recording says %q", err, message)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		want, have := plain(t, r.body), flat(t, reply)
		if cfg.Wire == remote.WireResponses { // parts of a summary are told apart by a blank line
			want.Reasoning, have.Reasoning = squeezed(want.Reasoning), squeezed(have.Reasoning)
		}
		if cfg.Wire == remote.WireGemini {
			normalise(t, &want, &have)
		}
		if cfg.Provider != "openrouter" {
			want.Cost = 0
		}
		if want.Text == "" && want.Reasoning == "" && want.Calls == nil && want.Output == 0 {
			t.Fatalf("the recording says nothing:\n%s", r.body)
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("decoded (-recording +adapter):\n%s", diff)
		}
		for name, is := range map[string]bool{"calls": want.Calls != nil, "reasoning": want.Reasoning != "", "signed": want.Signed != nil,
			"cached": want.Cached > 0, "cut": want.Stop == synapse.StopLength, "cost": want.Cost > 0} {
			if is {
				got[name]++
			}
		}
		again(t, s, model, req, reply, want, cfg)
	})
}

// again sends the reply back with results, and looks for what was signed.
func again(t *testing.T, s *server, model synapse.Model, req *synapse.Request, reply *synapse.Reply, want said, cfg remote.Config) {
	t.Helper()
	if want.Signed == nil || cfg.Wire == remote.WireChat && cfg.Provider != "openrouter" || cfg.Wire == remote.WireResponses && want.Text == "" && want.Calls == nil {
		return
	}
	req.Messages = append(req.Messages, reply.Message)
	results := synapse.Message{Role: synapse.RoleTool}
	for _, c := range reply.Message.Calls() {
		results.Parts = append(results.Parts, synapse.Part{Kind: synapse.PartResult, Result: &synapse.ToolResult{CallID: c.ID, Name: c.Name, Text: "42"}})
	}
	if results.Parts != nil {
		req.Messages = append(req.Messages, results)
	} else {
		req.Messages = append(req.Messages, synapse.UserText("Go on."))
	}
	if _, err := collect(t, model, req); err != nil {
		t.Fatal(err)
	}
	_, bodies := s.seen()
	for _, signed := range want.Signed {
		quoted, err := json.Marshal(signed)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(bodies[len(bodies)-1], strings.Trim(string(quoted), `"`)) {
			t.Errorf("signed data did not go back: %.40s…", signed)
		}
	}
}

func squeezed(s string) string { return strings.ReplaceAll(s, "\n", "") }

// normalise writes arguments in one form, and takes out ids that the provider
// did not give.
func normalise(t *testing.T, want, have *said) {
	t.Helper()
	for i := range have.Calls {
		var v any
		if err := json.Unmarshal([]byte(have.Calls[i].Args), &v); err != nil {
			t.Fatalf("arguments %q: %v", have.Calls[i].Args, err)
		}
		args, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		have.Calls[i].Args = string(args)
		if i < len(want.Calls) && want.Calls[i].ID == "" {
			have.Calls[i].ID = ""
		}
	}
}

// modelOf returns the model that was asked, where the body or the address says.
func modelOf(r recorded) string {
	var body struct {
		Model string `json:"model"`
	}
	if json.Unmarshal([]byte(r.request), &body) == nil && body.Model != "" {
		return body.Model
	}
	if _, rest, ok := strings.Cut(r.url, "/models/"); ok {
		name, _, _ := strings.Cut(rest, ":")
		return name
	}
	if strings.Contains(r.url, "amazonaws.com") {
		return "anthropic.claude"
	}
	return "m1"
}

// failureIn returns the failure that a stream of success reports within.
func failureIn(t *testing.T, r recorded) string {
	if strings.Contains(r.url, "amazonaws.com") {
		return ""
	}
	for _, m := range dataLines(t, r.body) {
		if e := obj(m, "error"); e != nil {
			return str(e["message"])
		}
		if m["type"] == "response.failed" {
			return str(obj(m, "response", "error")["message"])
		}
	}
	return ""
}

func checkRefusal(t *testing.T, r recorded, err error) {
	t.Helper()
	var typed *synapse.ProviderError
	if !errors.As(err, &typed) {
		t.Fatalf("error %v: want a ProviderError", err)
	}
	if typed.Status != r.status {
		t.Errorf("status %d, want %d", typed.Status, r.status)
	}
	lower := strings.ToLower(r.body)
	want := map[int][]synapse.ErrorKind{
		400: {synapse.ErrorRequest}, 401: {synapse.ErrorAuth}, 403: {synapse.ErrorAuth}, 404: {synapse.ErrorRequest},
		422: {synapse.ErrorRequest}, 429: {synapse.ErrorRateLimit}, 500: {synapse.ErrorServer}, 503: {synapse.ErrorOverloaded},
	}[r.status]
	switch {
	case strings.Contains(lower, "insufficient_quota"), strings.Contains(lower, "api key not valid"), strings.Contains(lower, "api_key_invalid"):
		want = []synapse.ErrorKind{synapse.ErrorAuth}
	case strings.Contains(lower, "context length"), strings.Contains(lower, "exceed_context_size"), strings.Contains(lower, "context size"):
		want = []synapse.ErrorKind{synapse.ErrorContext}
	}
	if !slices.Contains(want, typed.Kind) {
		t.Errorf("kind %s of status %d, want %v:\n%s", typed.Kind, r.status, want, r.body)
	}
	if v := r.header.Get("Retry-After"); v != "" {
		if d, err := time.ParseDuration(v + "s"); err == nil && typed.RetryAfter != d {
			t.Errorf("retry after %v, want %v", typed.RetryAfter, d)
		}
	}
	// What the provider said is in the message, or the message is the body.
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	var inner struct {
		Message string `json:"message"`
	}
	if json.Unmarshal([]byte(r.body), &body) == nil && json.Unmarshal(body.Error, &inner) == nil && inner.Message != "" {
		if head := strings.Fields(inner.Message)[0]; !strings.Contains(typed.Message, head) {
			t.Errorf("message %q: want %q", typed.Message, inner.Message)
		}
	}
}

// least fails a test that played too little.
func (got tally) least(t *testing.T, want tally) {
	t.Helper()
	t.Logf("played: %v", got)
	for name, n := range want {
		if got[name] < n {
			t.Errorf("%d recordings with %s: want at least %d", got[name], name, n)
		}
	}
}

func TestRecordingsOfGenai(t *testing.T) {
	if os.Getenv("SYNAPSE_SHARED") == "" {
		unavailable(t, "SYNAPSE_SHARED is not set: it names a folder that holds wire/genai")
	}
	got := tally{}
	for _, r := range cassettes(t, filepath.Join(shared(t, "wire/genai"))) {
		play(t, r, got)
	}
	got.least(t, tally{"played": 190, "chat": 85, "responses": 25, "anthropic": 30, "gemini": 35, "refused": 45, "calls": 40, "reasoning": 35, "signed": 35, "cached": 5, "cut": 15})
}

func TestRecordingsOfFantasy(t *testing.T) {
	dir := module(t, "charm.land/fantasy", "v0.41.2", "h1:ML6LCJwFHLaKb521rVY6jXOJNsf9koIJtcnY0O1GKsU=")
	got := tally{}
	for _, r := range cassettes(t, filepath.Join(dir, "providertests", "testdata")) {
		play(t, r, got)
	}
	got.least(t, tally{"played": 270, "chat": 150, "responses": 35, "anthropic": 30, "gemini": 30, "openrouter": 35, "bedrock": 10, "vertex": 15, "azure": 15, "groq": 5, "xai": 15,
		"calls": 100, "reasoning": 55, "signed": 45, "cached": 40, "cost": 35})
}

func TestRecordingsOfLangchain(t *testing.T) {
	dir := module(t, "github.com/tmc/langchaingo", "v0.1.14", "h1:o1qWBPigAIuFvrG6cjTFo0cZPFEZ47ZqpOYMjM15yZc=")
	got := tally{}
	for _, r := range transcripts(t, dir) {
		play(t, r, got)
	}
	got.least(t, tally{"played": 14, "refused": 7})
}
