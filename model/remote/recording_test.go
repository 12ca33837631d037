package remote_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	synapse "github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/remote"
)

// cassette is a recording of real traffic.
type cassette struct {
	Interactions []struct {
		Request struct {
			URL  string `yaml:"url"`
			Body string `yaml:"body"`
		} `yaml:"request"`
		Response struct {
			Body    string              `yaml:"body"`
			Headers map[string][]string `yaml:"headers"`
			Code    int                 `yaml:"code"`
		} `yaml:"response"`
	} `yaml:"interactions"`
}

// said is what a reply comes to, whoever decoded it.
type said struct {
	Text, Reasoning string
	Calls           []synapse.ToolCall
	Stop            synapse.StopReason
	Model           string
	Input, Output   int64
	Cached, Thought int64
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

func str(v any) string { s, _ := v.(string); return s }
func num(v any) int64  { f, _ := v.(float64); return int64(f) }

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
			s.Thought = num(obj(u, "completion_tokens_details")["reasoning_tokens"])
		}
		choices, _ := m["choices"].([]any)
		for _, c := range choices {
			choice := obj(c)
			if f := str(choice["finish_reason"]); f != "" {
				finish = f
			}
			d := obj(choice, "delta")
			s.Text += str(d["content"])
			s.Reasoning += str(d["reasoning_content"])
			calls, _ := d["tool_calls"].([]any)
			for _, tc := range calls {
				call := obj(tc)
				i := int(num(call["index"]))
				for len(s.Calls) <= i {
					s.Calls = append(s.Calls, synapse.ToolCall{})
				}
				s.Calls[i].ID += str(call["id"])
				s.Calls[i].Name += str(obj(call, "function")["name"])
				s.Calls[i].Args += str(obj(call, "function")["arguments"])
			}
		}
	}
	s.Stop = map[string]synapse.StopReason{"stop": synapse.StopEnd, "length": synapse.StopLength, "tool_calls": synapse.StopCalls, "": synapse.StopUnknown}[finish]
	if finish == "" && len(s.Calls) > 0 { // gpt-audio says nothing but [DONE]
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
		case "response.output_item.done":
			if item := obj(m, "item"); item["type"] == "function_call" {
				s.Calls = append(s.Calls, synapse.ToolCall{ID: str(item["call_id"]), Name: str(item["name"]), Args: str(item["arguments"])})
				s.Stop = synapse.StopCalls
			}
		case "response.completed", "response.incomplete":
			r := obj(m, "response")
			s.Model = str(r["model"])
			u := obj(r, "usage")
			s.Input, s.Output = num(u["input_tokens"]), num(u["output_tokens"])
			s.Cached = num(obj(u, "input_tokens_details")["cached_tokens"])
			s.Thought = num(obj(u, "output_tokens_details")["reasoning_tokens"])
			if obj(r, "incomplete_details")["reason"] == "max_output_tokens" {
				s.Stop = synapse.StopLength
			}
		}
	}
	return s
}

func flat(r *synapse.Reply) said {
	s := said{Stop: r.Stop, Model: r.Model, Input: r.Usage.InputTokens, Output: r.Usage.OutputTokens,
		Cached: r.Usage.CacheReadTokens, Thought: r.Usage.ReasoningTokens}
	for _, p := range r.Message.Parts {
		switch p.Kind {
		case synapse.PartText:
			s.Text += p.Text
		case synapse.PartReasoning:
			s.Reasoning += p.Text
		case synapse.PartCall:
			s.Calls = append(s.Calls, *p.Call)
		}
	}
	return s
}

// Real traffic, played back over loopback in pieces, decodes to what it says.
func TestRecordings(t *testing.T) {
	root := shared(t, "wire/genai")
	providers := []struct {
		dir, path string
		wire      remote.Wire
		plain     func(*testing.T, string) said
		least     int // recordings that must be found: none would test nothing
	}{
		{"openaichat", "/chat/completions", remote.WireChat, plainChat, 10},
		{"deepseek", "/chat/completions", remote.WireChat, plainChat, 15},
		{"llamacpp", "/chat/completions", remote.WireChat, plainChat, 15},
		{"openairesponses", "/responses", remote.WireResponses, plainResponses, 10},
	}
	for _, p := range providers {
		t.Run(p.dir, func(t *testing.T) {
			played, withCalls, withReasoning := 0, 0, 0
			err := filepath.WalkDir(filepath.Join(root, p.dir), func(file string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || filepath.Ext(file) != ".yaml" {
					return err
				}
				data, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				var c cassette
				if err := yaml.Unmarshal(data, &c); err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
				for i, in := range c.Interactions {
					if !strings.HasSuffix(in.Request.URL, p.path) || !strings.Contains(in.Request.Body, `"stream":true`) {
						continue
					}
					name, _ := filepath.Rel(filepath.Join(root, p.dir), file)
					t.Run(fmt.Sprintf("%s#%d", name, i), func(t *testing.T) {
						header := map[string]string{"Content-Type": "text/event-stream; charset=utf-8"}
						if in.Response.Code != 200 {
							header["Content-Type"] = "application/json"
						}
						s := serve(t, always(answer{status: in.Response.Code, header: header, body: in.Response.Body, pieces: 61}))
						got, err := collect(t, s.open(remote.Config{Wire: p.wire}), hello())
						played++
						if in.Response.Code != 200 {
							kinds := map[int]synapse.ErrorKind{400: synapse.ErrorRequest, 401: synapse.ErrorAuth, 404: synapse.ErrorRequest}
							wantKind(t, err, kinds[in.Response.Code])
							return
						}
						for _, m := range dataLines(t, in.Response.Body) {
							if e := obj(m, "error"); e != nil {
								var typed *synapse.ProviderError
								if !errors.As(err, &typed) || typed.Message != e["message"] {
									t.Errorf("error %v: the recording says %q", err, e["message"])
								}
								return
							}
						}
						if err != nil {
							t.Fatal(err)
						}
						want, have := p.plain(t, in.Response.Body), flat(got)
						if p.wire == remote.WireResponses {
							// Summaries of reasoning are put together with
							// line breaks of the decoder's own.
							have.Reasoning = ""
						}
						if want.Text == "" && want.Reasoning == "" && want.Calls == nil && want.Output == 0 {
							t.Fatalf("the recording says nothing:\n%s", in.Response.Body)
						}
						if len(want.Calls) > 0 {
							withCalls++
						}
						if want.Reasoning != "" {
							withReasoning++
						}
						if diff := cmp.Diff(want, have); diff != "" {
							t.Errorf("decoded (-recording +adapter):\n%s", diff)
						}
					})
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if played < p.least || withCalls == 0 {
				t.Errorf("%d recordings played, %d with calls: want at least %d, some with calls", played, withCalls, p.least)
			}
			if slices.Contains([]string{"deepseek", "llamacpp"}, p.dir) && withReasoning == 0 {
				t.Error("no recording had reasoning")
			}
		})
	}
}
