package remote_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	synapse "github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/remote"
)

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
	budget := func(n string) string { return `{"type":"enabled","budget_tokens":` + n + `}` }
	level := func(word string) string { return `{"includeThoughts":true,"thinkingLevel":"` + word + `"}` }
	tokens := func(n string) string { return `{"includeThoughts":true,"thinkingBudget":` + n + `}` }
	const disabled, none = `{"type":"disabled"}`, `{"includeThoughts":false,"thinkingBudget":0}`
	tests := []struct {
		provider, model string
		want            []string // for all, "" for nothing
	}{
		{"anthropic", "claude-opus-5", []string{"", "", disabled, adaptive("low"), adaptive("low"), adaptive("medium"), adaptive("high"), adaptive("max")}},
		{"anthropic", "claude-mythos-preview", []string{"", "", disabled, adaptive("low"), adaptive("low"), adaptive("medium"), adaptive("high"), adaptive("max")}},
		{"anthropic", "claude-sonnet-4-6", []string{"", "", disabled, `{"type":"adaptive"}{"effort":"low"}`, `{"type":"adaptive"}{"effort":"low"}`, `{"type":"adaptive"}{"effort":"medium"}`, `{"type":"adaptive"}{"effort":"high"}`, `{"type":"adaptive"}{"effort":"max"}`}},
		{"anthropic", "claude-haiku-4-5-20251001", []string{"", "", disabled, budget("1024"), budget("4096"), budget("10000"), budget("16000"), budget("30976")}},
		{"anthropic", "claude-opus-4-20250514", []string{"", "", disabled, budget("1024"), budget("4096"), budget("10000"), budget("16000"), budget("30976")}},
		{"anthropic", "claude-3-7-sonnet-latest", []string{"", "", disabled, budget("1024"), budget("4096"), budget("7168"), budget("7168"), budget("7168")}},
		{"anthropic", "claude-3-5-haiku-20241022", []string{"", "", "", "", "", "", "", ""}},
		{"bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", []string{"", "", disabled, budget("1024"), budget("4096"), budget("10000"), budget("16000"), budget("30976")}},
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
		{"openrouter", "openai/gpt-5", "", `0.3 0.9`},
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
	cfg := remote.Config{Provider: "anthropic", APIKey: "k", MaxOutput: func(model string) int64 { return 64000 }}
	req := hello()
	req.Model, req.Effort = "claude-sonnet-4-5", synapse.EffortMax
	if body := own(t, cfg, req).body; !strings.Contains(body, `"max_tokens":64000,"thinking":{"type":"enabled","budget_tokens":32768}`) {
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
