package remote_test

import (
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
	if os.Getenv("SYNAPSE_SHARED") == "" && os.Getenv("SYNAPSE_RECORDINGS") != "required" {
		// No module brings these, so that a public machine can't have them.
		t.Skip("no recordings: SYNAPSE_SHARED is not set, it names a folder that holds wire/genai (SYNAPSE_RECORDINGS=required makes this a failure)")
	} else if os.Getenv("SYNAPSE_SHARED") == "" {
		t.Fatal("no recordings: SYNAPSE_SHARED is not set, it names a folder that holds wire/genai")
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
