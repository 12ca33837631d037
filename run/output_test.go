package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/script"
)

var number = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)

// TestStructuredOutputWaitsForBackground: an agent whose answer has a schema
// doesn't end before its children have either.
func TestStructuredOutputWaitsForBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, byAgent(map[string][]script.Turn{
			"main": {
				{Calls: []synapse.ToolCall{background("slow", "1")}},
				{Text: `{"n":1}`},
				{Text: `{"n":2}`, Check: func(req *synapse.Request) error {
					if last := req.Messages[len(req.Messages)-1].Text(); !strings.Contains(last, "two it is") {
						return fmt.Errorf("the model was told %q", last)
					}
					return nil
				}},
			},
			"slow": {{Delay: 30 * time.Second, Text: "two it is"}},
		}))
		b.child("slow")
		b.graph.Specs[0].Output = number
		r := b.run(t.Context(), "go")
		if out := r.outcome("main"); out.Status != synapse.StatusCompleted || out.Text != `{"n":2}` {
			t.Errorf("main ended as %+v", out)
		}
		if out := r.outcome("slow"); out.Status != synapse.StatusCompleted {
			t.Errorf("slow ended as %+v", out)
		}
	})
}

// TestForgedCallsWithoutTools: a model that was offered no tools calls some. The
// calls are refused, the run comes to an end that says what happened.
func TestForgedCallsWithoutTools(t *testing.T) {
	forged := script.Turn{Text: "hm", Calls: []synapse.ToolCall{read("x")}}
	tests := []struct {
		name   string
		limits synapse.Limits
		output json.RawMessage
		turns  []script.Turn
		want   synapse.Outcome
		told   string // part of what the last request's last message says
	}{
		{"it comes to its senses", synapse.Limits{}, nil, []script.Turn{forged, {Text: "fine"}},
			synapse.Outcome{Status: synapse.StatusCompleted, Text: "fine"}, "permission denied: read: "},
		{"until the turn limit", synapse.Limits{Turns: 3}, nil, []script.Turn{forged, forged, forged},
			synapse.Outcome{Status: synapse.StatusPartial, Limit: "turns", Text: "hm"}, "permission denied: read: "},
		{"instead of the JSON", synapse.Limits{}, number, []script.Turn{forged, {Text: `{"n":1}`}},
			synapse.Outcome{Status: synapse.StatusCompleted, Text: `{"n":1}`}, "does not fit the output schema"},
		{"instead of the JSON, always", synapse.Limits{}, number, []script.Turn{forged, forged, forged, forged},
			synapse.Outcome{Status: synapse.StatusFailed, Text: "hm"}, "does not fit the output schema"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := script.New(tt.turns...)
			b := newBench(t, m)
			spec := &b.graph.Specs[0]
			spec.Policy.Allow, spec.Output, spec.Limits = nil, tt.output, tt.limits
			r := b.run(t.Context(), "go")
			out := r.outcome("main")
			if out.Status != tt.want.Status || out.Limit != tt.want.Limit || out.Text != tt.want.Text {
				t.Errorf("outcome = %+v, want %+v", out, tt.want)
			}
			if len(bodies[*synapse.ToolStarted](r, "")) > 0 {
				t.Error("a tool was started")
			}
			reqs := m.Requests()
			last := reqs[len(reqs)-1]
			told := last.Messages[len(last.Messages)-1].Text() + script.Results(last)
			if !strings.Contains(told, tt.told) || tt.output == nil && strings.Contains(told, "JSON") {
				t.Errorf("the model was told %q, want …%s…", told, tt.told)
			}
		})
	}
}

// TestCallIDsOfAConversation: some models name the first call of every reply
// alike, and some name one as we name those without a name.
func TestCallIDsOfAConversation(t *testing.T) {
	one := func(id string) synapse.ToolCall { return synapse.ToolCall{ID: id, Name: "read", Args: `{"text":"a"}`} }
	turns := []script.Turn{
		{Calls: []synapse.ToolCall{one("call_0"), one("call_1_2"), one("call_0")}},
		{Calls: []synapse.ToolCall{one("call_0"), one("call_0")}},
		{Text: "ok"},
		{Calls: []synapse.ToolCall{one("call_0"), one("call_1_1")}},
		{Text: "ok"},
	}
	m := script.New(turns...)
	b := newBench(t, script.Play(func(n int, req *synapse.Request) script.Turn {
		switch {
		case strings.Contains(req.System, "main") && n == 0:
			return script.Turn{Calls: []synapse.ToolCall{task("worker", "1")}}
		case strings.Contains(req.System, "main") && n == 1:
			return script.Turn{Calls: []synapse.ToolCall{again(idIn(script.Results(req)))}}
		}
		return script.Turn{Text: "told"}
	}))
	scripted, _ := b.local.Model(synapse.ModelRef{})
	b.local.Model = func(ref synapse.ModelRef) (synapse.Model, error) {
		if ref.Name == "worker" {
			return m, nil
		}
		return scripted, nil
	}
	b.child("worker", "read").Model.Name = "worker"
	r := b.run(t.Context(), "go")
	if out := r.outcome("worker"); out.Text != "ok" {
		t.Fatalf("worker ended as %+v", out)
	}
	reqs := m.Requests()
	seen := map[string]bool{}
	results := 0
	for _, msg := range reqs[len(reqs)-1].Messages {
		for _, call := range msg.Calls() {
			if seen[call.ID] {
				t.Errorf("two calls of the conversation are %q", call.ID)
			}
			seen[call.ID] = true
		}
		for _, p := range msg.Parts {
			if p.Result != nil {
				results++
				if !seen[p.Result.CallID] {
					t.Errorf("%q is no call before its result", p.Result.CallID)
				}
			}
		}
	}
	if results != 7 {
		t.Errorf("%d results of 7 calls", results)
	}
}

func TestStructuredOutput(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	tests := []struct {
		name  string
		turns []script.Turn
		want  synapse.Status
		text  string
	}{
		{"fits", []script.Turn{{Text: `{"n": 1}`}}, synapse.StatusCompleted, `{"n":1}`},
		{"in a fence", []script.Turn{{Text: "```json\n{\"n\": 1}\n```"}}, synapse.StatusCompleted, `{"n":1}`},
		{"corrected without tools", []script.Turn{{Text: "n is 1"}, {Text: `{"n":"1"}`, Check: fixing}, {Text: `{"n":1}`, Check: fixing}}, synapse.StatusCompleted, `{"n":1}`},
		{"never fits", []script.Turn{{Text: "a"}, {Text: "b"}, {Text: "c"}, {Text: "d"}}, synapse.StatusFailed, "d"},
		{"after tools", []script.Turn{{Calls: []synapse.ToolCall{read("x")}}, {Text: `{"n":2}`}}, synapse.StatusCompleted, `{"n":2}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, script.New(tt.turns...))
			b.graph.Specs[0].Output = schema
			out := b.run(t.Context(), "go").outcome("main")
			if out.Status != tt.want || out.Text != tt.text {
				t.Errorf("outcome = %+v", out)
			}
		})
	}
}

func fixing(req *synapse.Request) error {
	if len(req.Tools) > 0 {
		return errors.New("a correction offers tools")
	}
	if last := req.Messages[len(req.Messages)-1].Text(); !strings.Contains(last, "does not fit the output schema") {
		return fmt.Errorf("the model was told %q", last)
	}
	return nil
}

// TestOutputSchemaIsNobodyElses: the schema of an agent's result changes neither
// the tools it is offered nor its siblings' results.
func TestOutputSchemaIsNobodyElses(t *testing.T) {
	b := newBench(t, byAgent(map[string][]script.Turn{
		"main":  {{Calls: []synapse.ToolCall{task("plain", "1"), task("count", "2"), task("count", "3")}}, {Text: "told"}},
		"plain": {{Text: "free text"}},
		"count": {{Calls: []synapse.ToolCall{read("x")}}, {Text: `{"n":7}`}, {Calls: []synapse.ToolCall{read("x")}}, {Text: `{"n":7}`}},
	}))
	b.child("plain", "read", "write")
	b.child("count", "read", "write").Output = number
	p := b.program()
	if diff := cmp.Diff(p.Offered("plain"), p.Offered("count")); diff != "" {
		t.Errorf("the schema changes the tools:\n%s", diff)
	}
	r := b.run(t.Context(), "go")
	if out := r.outcome("plain"); out.Text != "free text" {
		t.Errorf("plain ended as %+v", out)
	}
	for _, end := range bodies[*synapse.RunFinished](r, "count") {
		if end.Text != `{"n":7}` || end.Status != synapse.StatusCompleted {
			t.Errorf("count ended as %+v", end.Outcome)
		}
	}
}

// TestPartsThatAreNoText: pictures of a tool and signatures of a provider are
// sent on as they came.
func TestPartsThatAreNoText(t *testing.T) {
	picture := synapse.Media{Name: "a.png", Type: "image/png", Data: []byte{1, 2, 3}}
	m := modelFunc(func(_ context.Context, req *synapse.Request) iter.Seq2[*synapse.Delta, error] {
		return func(yield func(*synapse.Delta, error) bool) {
			if len(req.Messages) > 1 {
				reply, result := req.Messages[1], req.Messages[2].Parts[0].Result
				if len(reply.Parts) != 2 || string(reply.Parts[0].Opaque) != `"signed"` || reply.Parts[0].Text != "hm" || string(reply.Parts[1].Opaque) != `"mine"` {
					t.Errorf("the reply went back as %+v", reply)
				}
				if len(result.Media) != 1 || !cmp.Equal(result.Media[0], picture) || string(result.Details) != `{"w":1}` {
					t.Errorf("the result is %+v", result)
				}
				_ = yield(&synapse.Delta{Kind: synapse.DeltaText, Text: "ok"}, nil) && yield(&synapse.Delta{Kind: synapse.DeltaEnd, Stop: synapse.StopEnd}, nil)
				return
			}
			_ = yield(&synapse.Delta{Kind: synapse.DeltaReasoning, Text: "hm", Opaque: json.RawMessage(`"signed"`)}, nil) &&
				yield(&synapse.Delta{Kind: synapse.DeltaCall, Call: &synapse.ToolCall{ID: "c", Name: "look"}, Opaque: json.RawMessage(`"mine"`)}, nil) &&
				yield(&synapse.Delta{Kind: synapse.DeltaEnd, Stop: synapse.StopCalls}, nil)
		}
	})
	b := newBench(t, m)
	b.tools = append(b.tools, synapse.Tool{Name: "look", Run: func(context.Context, *synapse.Invocation) (*synapse.ToolResult, error) {
		return &synapse.ToolResult{Text: "a picture", Media: []synapse.Media{picture}, Details: json.RawMessage(`{"w":1}`)}, nil
	}})
	b.graph.Specs[0].Policy.Allow = []string{"look"}
	if out := b.run(t.Context(), "go").outcome("main"); out.Text != "ok" {
		t.Errorf("outcome = %+v", out)
	}
}
