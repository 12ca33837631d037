package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/script"
	"github.com/synapse-agents/synapse/run"
)

// TestEnds runs a child into each kind of end and looks at what the parent is
// told, how the run is marked, and that the parent goes on.
func TestEnds(t *testing.T) {
	tests := []struct {
		name   string
		limits synapse.Limits
		turns  []script.Turn
		want   synapse.Outcome // status, limit, text
		first  string          // of the tool result
		body   string
	}{
		{
			name:  "completed",
			turns: []script.Turn{{Text: "the answer"}},
			want:  synapse.Outcome{Status: synapse.StatusCompleted, Text: "the answer"},
			first: `Agent "worker" completed.`, body: "the answer",
		},
		{
			name:   "the turn limit gives a last turn without tools, and is partial",
			limits: synapse.Limits{Turns: 2},
			turns: []script.Turn{
				{Text: "working", Calls: []synapse.ToolCall{read("a")}},
				{Text: "so far: a", Check: noTools},
			},
			want:  synapse.Outcome{Status: synapse.StatusPartial, Limit: "turns", Text: "so far: a"},
			first: `Agent "worker" stopped after 2 turns (partial).`, body: "so far: a",
		},
		{
			name:   "a model that calls a tool in its last turn gets no tool",
			limits: synapse.Limits{Turns: 2},
			turns: []script.Turn{
				{Text: "working", Calls: []synapse.ToolCall{read("a")}},
				{Calls: []synapse.ToolCall{read("forged")}},
			},
			want:  synapse.Outcome{Status: synapse.StatusPartial, Limit: "turns", Text: "working"},
			first: `Agent "worker" stopped after 2 turns (partial).`, body: "working",
		},
		{
			name:   "the token limit",
			limits: synapse.Limits{Tokens: 15},
			turns:  []script.Turn{{Text: "half", Calls: []synapse.ToolCall{read("a")}}, {Text: "never"}},
			want:   synapse.Outcome{Status: synapse.StatusPartial, Limit: "tokens", Text: "half"},
			first:  `Agent "worker" stopped: tokens reached (partial).`, body: "half",
		},
		{
			name:   "the cost limit",
			limits: synapse.Limits{CostUSD: 0.5},
			turns: []script.Turn{
				{Text: "half", Calls: []synapse.ToolCall{read("a")}, Usage: synapse.Usage{InputTokens: 1, CostUSD: ptr(0.5)}},
				{Text: "never"},
			},
			want:  synapse.Outcome{Status: synapse.StatusPartial, Limit: "cost_usd", Text: "half"},
			first: `Agent "worker" stopped: cost_usd reached (partial).`, body: "half",
		},
		{
			name:   "a cost limit that can't be kept stops too",
			limits: synapse.Limits{CostUSD: 100},
			turns: []script.Turn{
				{Text: "half", Calls: []synapse.ToolCall{read("a")}, Usage: synapse.Usage{InputTokens: 1}},
				{Text: "never"},
			},
			want:  synapse.Outcome{Status: synapse.StatusPartial, Limit: "cost_usd", Text: "half"},
			first: `Agent "worker" stopped: cost_usd reached (partial).`, body: "half",
		},
		{
			name:   "the tool call limit gives a last turn",
			limits: synapse.Limits{ToolCalls: 1},
			turns: []script.Turn{
				{Calls: []synapse.ToolCall{read("a")}},
				{Text: "that was one", Check: noTools},
			},
			want:  synapse.Outcome{Status: synapse.StatusPartial, Limit: "tool_calls", Text: "that was one"},
			first: `Agent "worker" stopped: tool_calls reached (partial).`, body: "that was one",
		},
		{
			name:   "more calls in one message than are left",
			limits: synapse.Limits{ToolCalls: 1},
			turns: []script.Turn{
				{Calls: []synapse.ToolCall{read("a"), read("b"), read("c")}},
				{Text: "that was one", Check: noTools},
			},
			want:  synapse.Outcome{Status: synapse.StatusPartial, Limit: "tool_calls", Text: "that was one"},
			first: `Agent "worker" stopped: tool_calls reached (partial).`, body: "that was one",
		},
		{
			name:   "time",
			limits: synapse.Limits{Time: synapse.Duration(50 * time.Second)},
			turns:  []script.Turn{{Text: "half", Calls: []synapse.ToolCall{read("a")}}, {Delay: time.Hour, Text: "never"}},
			want:   synapse.Outcome{Status: synapse.StatusTimedOut, Limit: "time", Text: "half"},
			first:  `Agent "worker" timed out (partial).`, body: "half",
		},
		{
			name:  "a provider's failure is no success, and what there is comes back",
			turns: []script.Turn{{Text: "half", Calls: []synapse.ToolCall{read("a")}}, {Err: &synapse.ProviderError{Provider: "p", Kind: synapse.ErrorAuth, Message: "no key"}}},
			want:  synapse.Outcome{Status: synapse.StatusFailed, Text: "half", ErrorKind: synapse.ErrorAuth},
			first: `Agent "worker" failed: p: auth: no key.`, body: "half",
		},
		{
			name:  "nothing said at all is an error with a cause",
			turns: []script.Turn{{}},
			want:  synapse.Outcome{Status: synapse.StatusFailed},
			first: `Agent "worker" failed: the model ended its reply without saying anything.`, body: "(it said nothing)",
		},
		{
			name:  "an empty last message after a text is the text",
			turns: []script.Turn{{Text: "found it", Calls: []synapse.ToolCall{read("a")}}, {}},
			want:  synapse.Outcome{Status: synapse.StatusCompleted, Text: "found it"},
			first: `Agent "worker" completed.`, body: "found it",
		},
		{
			name:  "a failed tool call before the answer doesn't fail the child",
			turns: []script.Turn{{Text: "answered", Calls: []synapse.ToolCall{script.Call("write", map[string]any{"text": "x"})}}, {}},
			want:  synapse.Outcome{Status: synapse.StatusCompleted, Text: "answered"},
			first: `Agent "worker" completed.`, body: "answered",
		},
		{
			name:  "cut off by the output limit",
			turns: []script.Turn{{Text: "once upon a", Stop: synapse.StopLength}},
			want:  synapse.Outcome{Status: synapse.StatusPartial, Limit: "output_tokens", Text: "once upon a"},
			first: `Agent "worker" stopped: output_tokens reached (partial).`, body: "once upon a",
		},
		{
			name:  "the provider's filter",
			turns: []script.Turn{{Stop: synapse.StopFilter}},
			want:  synapse.Outcome{Status: synapse.StatusFailed},
			first: `Agent "worker" failed: the provider's filter refused the reply.`, body: "(it said nothing)",
		},
		{
			name:  "reasoning alone is nothing said",
			turns: []script.Turn{{Reasoning: "hm"}},
			want:  synapse.Outcome{Status: synapse.StatusFailed},
			first: `Agent "worker" failed: the model ended its reply without saying anything.`, body: "(it said nothing)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, byAgent(map[string][]script.Turn{
					"main":   {{Calls: []synapse.ToolCall{task("worker", "do it")}}, {Text: "told"}},
					"worker": tt.turns,
				}))
				b.child("worker", "read").Limits = tt.limits
				r := b.run(t.Context(), "go")
				out := r.outcome("worker")
				if out.Status != tt.want.Status || out.Limit != tt.want.Limit || out.Text != tt.want.Text || out.ErrorKind != tt.want.ErrorKind {
					t.Errorf("outcome = %+v, want %+v", out, tt.want)
				}
				if out.Status != synapse.StatusCompleted && out.Cause == "" {
					t.Error("an end that is not completed has no cause")
				}
				first, body := split(r.results("main")[0])
				if first != tt.first || body != tt.body {
					t.Errorf("the parent reads %q / %q, want %q / %q", first, body, tt.first, tt.body)
				}
				if got := r.outcome("main"); got.Status != synapse.StatusCompleted || got.Text != "told" {
					t.Errorf("the parent ended as %+v", got)
				}
			})
		})
	}
}

// split takes the first line of a report and what follows its blank line.
func split(report string) (first, body string) {
	first, rest, _ := strings.Cut(report, "\n")
	_, body, _ = strings.Cut(rest, "\n\n")
	return first, body
}

func noTools(req *synapse.Request) error {
	if len(req.Tools) > 0 {
		return fmt.Errorf("the last turn offers %d tools", len(req.Tools))
	}
	if last := req.Messages[len(req.Messages)-1]; last.Role != synapse.RoleUser || !strings.Contains(last.Text(), "last turn") {
		return errors.New("the model was not told that this is its last turn")
	}
	return nil
}

func ptr(f float64) *float64 { return &f }

func TestRetries(t *testing.T) {
	fail := func(kind synapse.ErrorKind, after time.Duration) script.Turn {
		return script.Turn{Err: &synapse.ProviderError{Provider: "test", Kind: kind, RetryAfter: after, Message: "no"}}
	}
	tests := []struct {
		name     string
		turns    []script.Turn
		want     synapse.Status
		retries  int
		min, max time.Duration
	}{
		{"a rate limit honours Retry-After", []script.Turn{fail(synapse.ErrorRateLimit, 90*time.Second), {Text: "ok"}}, synapse.StatusCompleted, 1, 90 * time.Second, 92 * time.Second},
		{"several passing failures", []script.Turn{fail(synapse.ErrorOverloaded, 0), fail(synapse.ErrorServer, 0), fail(synapse.ErrorNetwork, 0), fail(synapse.ErrorMalformed, 0), {Text: "ok"}}, synapse.StatusCompleted, 4, time.Second, 15 * time.Second},
		{"a stream that breaks after some text", []script.Turn{{Text: "par", Err: &synapse.ProviderError{Kind: synapse.ErrorStream}}, {Text: "ok"}}, synapse.StatusCompleted, 1, 0, 2 * time.Second},
		{"a silent stream is broken, then tried again", []script.Turn{{Text: "par", Hang: true}, {Text: "ok"}}, synapse.StatusCompleted, 1, time.Minute, 63 * time.Second},
		{"a stalled provider fails in the end", []script.Turn{{Hang: true}, {Hang: true}, {Hang: true}, {Hang: true}, {Hang: true}, {Hang: true}}, synapse.StatusFailed, 5, 6 * time.Minute, 8 * time.Minute},
		{"a refused request is not tried again", []script.Turn{fail(synapse.ErrorRequest, 0)}, synapse.StatusFailed, 0, 0, 0},
		{"nor a wrong key", []script.Turn{fail(synapse.ErrorAuth, 0)}, synapse.StatusFailed, 0, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, script.New(tt.turns...))
				start := time.Now()
				r := b.run(t.Context(), "go")
				if out := r.outcome("main"); out.Status != tt.want || tt.want == synapse.StatusCompleted && out.Text != "ok" {
					t.Errorf("outcome = %+v", out)
				}
				if got := len(bodies[*synapse.Retry](r, "")); got != tt.retries {
					t.Errorf("%d retries, want %d", got, tt.retries)
				}
				if took := time.Since(start); took < tt.min || took > tt.max {
					t.Errorf("took %s, want %s to %s", took, tt.min, tt.max)
				}
			})
		})
	}
}

// TestRetryNeverRepeatsATool: a failing request after a batch is repeated alone.
func TestRetryNeverRepeatsATool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int32
		b := newBench(t, script.New(
			script.Turn{Calls: []synapse.ToolCall{script.Call("count", nil)}},
			script.Turn{Err: &synapse.ProviderError{Kind: synapse.ErrorServer}},
			script.Turn{Text: "par", Err: &synapse.ProviderError{Kind: synapse.ErrorStream}},
			script.Turn{Text: "ok"},
		))
		b.tools = append(b.tools, synapse.Tool{Name: "count", Run: func(context.Context, *synapse.Invocation) (*synapse.ToolResult, error) {
			ran.Add(1)
			return nil, errors.New("the tool itself fails")
		}})
		b.graph.Specs[0].Policy.Allow = []string{"count"}
		r := b.run(t.Context(), "go")
		if ran.Load() != 1 {
			t.Errorf("the tool ran %d times", ran.Load())
		}
		if out := r.outcome("main"); out.Text != "ok" || out.Turns != 2 {
			t.Errorf("outcome = %+v", out)
		}
	})
}

func TestFallbackModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := script.Play(func(int, *synapse.Request) script.Turn {
			return script.Turn{Err: &synapse.ProviderError{Provider: "a", Kind: synapse.ErrorOverloaded, Status: 529}}
		})
		up := script.New(script.Turn{Text: "ok"})
		b := newBench(t, nil)
		b.local.Model = func(ref synapse.ModelRef) (synapse.Model, error) {
			if ref.Provider == "a" {
				return down, nil
			}
			return up, nil
		}
		spec := &b.graph.Specs[0]
		spec.Model = synapse.ModelRef{Provider: "a", Name: "big"}
		spec.Fallback = []synapse.ModelRef{{Provider: "a", Name: "small"}, {Provider: "b", Name: "other"}}
		r := b.run(t.Context(), "go")
		if out := r.outcome("main"); out.Status != synapse.StatusCompleted || out.Model != "b:other" {
			t.Errorf("outcome = %+v", out)
		}
		var switched []string
		for _, e := range bodies[*synapse.Retry](r, "") {
			if e.After == 0 {
				switched = append(switched, e.Model.String())
			}
		}
		if want := []string{"a:small", "b:other"}; !slices.Equal(switched, want) {
			t.Errorf("switched to %v, want %v", switched, want)
		}
	})
}

// TestThrottle: a quota of four requests at once, and forty children, all of
// which answer.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inflight atomic.Int32
		m := &quotaModel{quota: 4, inflight: &inflight}
		b := newBench(t, m)
		b.child("worker", "read")
		b.local.Retry = run.Retry{Attempts: 20}
		r := b.run(t.Context(), "go")
		for _, e := range bodies[*synapse.ChildFinished](r, "main") {
			if e.Status != synapse.StatusCompleted {
				t.Errorf("child: %+v", e.Outcome)
			}
		}
		if got := len(bodies[*synapse.ChildFinished](r, "main")); got != 40 {
			t.Errorf("%d children ended", got)
		}
		if m.refused.Load() == 0 {
			t.Error("the quota was never met: the test shows nothing")
		}
		// Without the throttle every child would be refused again and again.
		if got := m.refused.Load(); got > 160 {
			t.Errorf("%d requests were refused: the throttle learns nothing", got)
		}
	})
}

// quotaModel answers after a second, and 429 while more than its quota are asked.
type quotaModel struct {
	quota    int32
	inflight *atomic.Int32
	refused  atomic.Int32
}

func (m *quotaModel) Generate(ctx context.Context, req *synapse.Request) iter.Seq2[*synapse.Delta, error] {
	return func(yield func(*synapse.Delta, error) bool) {
		if strings.Contains(req.System, "main") {
			var turn script.Turn
			if len(req.Messages) == 1 {
				for i := range 40 {
					turn.Calls = append(turn.Calls, task("worker", fmt.Sprint(i)))
				}
			} else {
				turn.Text = "done"
			}
			script.New(turn).Generate(ctx, req)(yield)
			return
		}
		defer m.inflight.Add(-1)
		if m.inflight.Add(1) > m.quota {
			m.refused.Add(1)
			yield(nil, &synapse.ProviderError{Kind: synapse.ErrorRateLimit, Status: 429})
			return
		}
		script.New(script.Turn{Delay: time.Second, Text: "ok"}).Generate(ctx, req)(yield)
	}
}

// TestCancelStartsNothing: children wait for their turn when the caller leaves;
// none of them starts a tool afterwards, and all of them end.
func TestCancelStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var after atomic.Int32
		m := script.Play(func(n int, req *synapse.Request) script.Turn {
			if strings.Contains(req.System, "main") {
				var turn script.Turn
				for i := range 50 {
					turn.Calls = append(turn.Calls, task("worker", fmt.Sprint(i)))
				}
				return turn
			}
			return script.Turn{Delay: time.Second, Calls: []synapse.ToolCall{read("x")}}
		})
		b := newBench(t, m)
		b.tools[0].Run = func(ctx context.Context, _ *synapse.Invocation) (*synapse.ToolResult, error) {
			if ctx.Err() != nil {
				after.Add(1)
			}
			return synapse.TextResult("ok"), nil
		}
		b.local.MaxParallel = 3
		b.child("worker", "read")
		go func() {
			time.Sleep(2500 * time.Millisecond)
			cancel()
		}()
		start := time.Now()
		r := b.run(ctx, "go")
		if took := time.Since(start); took != 2500*time.Millisecond {
			t.Errorf("the run ended %s after its start", took)
		}
		if after.Load() != 0 {
			t.Errorf("%d tools started after the cancel", after.Load())
		}
		if out := r.outcome("main"); out.Status != synapse.StatusCancelled {
			t.Errorf("outcome = %+v", out)
		}
		if got := bodies[*synapse.ChildFinished](r, "main"); len(got) != 50 {
			t.Errorf("%d of 50 children ended", len(got))
		}
	})
}

// TestBreakWaits: leaving the range cancels the trace, and the journal gets the
// ends of all runs.
func TestBreakWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, byAgent(map[string][]script.Turn{
			"main":   {{Calls: []synapse.ToolCall{task("worker", "1"), task("worker", "2")}}},
			"worker": {{Hang: true}, {Hang: true}},
		}))
		b.child("worker", "read")
		for e, err := range b.local.Run(t.Context(), b.program(), run.Input{Prompt: "go"}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == synapse.KindChildStarted {
				break
			}
		}
		r := &record{t: t, events: b.journal, gaps: true}
		r.verify()
		if out := r.outcome("main"); out.Status != synapse.StatusCancelled {
			t.Errorf("outcome = %+v", out)
		}
	})
}

// TestHungToolDoesNotWithholdTheOthers: a tool that ignores its context is given
// up when its run's time is over.
func TestHungToolDoesNotWithholdTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		b := newBench(t, byAgent(map[string][]script.Turn{
			"main":  {{Calls: []synapse.ToolCall{task("stuck", "1"), task("quick", "2")}}, {Text: "told"}},
			"stuck": {{Text: "trying", Calls: []synapse.ToolCall{script.Call("hang", nil)}}},
			"quick": {{Text: "here"}},
		}))
		b.tools = append(b.tools, synapse.Tool{Name: "hang", Run: func(context.Context, *synapse.Invocation) (*synapse.ToolResult, error) {
			<-release
			return synapse.TextResult("too late"), nil
		}})
		b.child("stuck", "hang").Limits.Time = synapse.Duration(time.Minute)
		b.child("quick", "read")
		r := b.run(t.Context(), "go")
		close(release)
		if out := r.outcome("stuck"); out.Status != synapse.StatusTimedOut || out.Text != "trying" {
			t.Errorf("stuck ended as %+v", out)
		}
		if out := r.outcome("quick"); out.Text != "here" {
			t.Errorf("quick ended as %+v", out)
		}
		if out := r.outcome("main"); out.Text != "told" || out.Failed != 1 {
			t.Errorf("main ended as %+v", out)
		}
	})
}

func TestPanicsAreErrors(t *testing.T) {
	b := newBench(t, script.New(
		script.Turn{Calls: []synapse.ToolCall{script.Call("boom", nil)}},
		script.Turn{Text: "went on"},
	))
	b.tools = append(b.tools, synapse.Tool{Name: "boom", Run: func(context.Context, *synapse.Invocation) (*synapse.ToolResult, error) { panic("boom") }})
	b.graph.Specs[0].Policy.Allow = []string{"boom"}
	r := b.run(t.Context(), "go")
	if got := r.results("main")[0]; got != "boom failed: panic: boom" {
		t.Errorf("result = %q", got)
	}
	if out := r.outcome("main"); out.Text != "went on" {
		t.Errorf("outcome = %+v", out)
	}
	b = newBench(t, script.Play(func(int, *synapse.Request) script.Turn { panic("model") }))
	if out := b.run(t.Context(), "go").outcome("main"); out.Status != synapse.StatusFailed || !strings.Contains(out.Cause, "panic: model") {
		t.Errorf("outcome = %+v", out)
	}
}

// TestJournalFailure: when nothing can be written, no effect begins.
func TestJournalFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Bool
		b := newBench(t, script.New(script.Turn{Calls: []synapse.ToolCall{script.Call("write", map[string]any{"text": "x"})}}))
		b.tools[1].Run = func(context.Context, *synapse.Invocation) (*synapse.ToolResult, error) {
			ran.Store(true)
			return synapse.TextResult("ok"), nil
		}
		b.local.Append = func(_ context.Context, events []*synapse.Event) error {
			for _, e := range events {
				if e.Kind == synapse.KindToolStarted {
					return errors.New("disk full")
				}
			}
			return nil
		}
		var got error
		for _, err := range b.local.Run(t.Context(), b.program(), run.Input{Prompt: "go"}) {
			got = err
		}
		if got == nil || !strings.Contains(got.Error(), "disk full") {
			t.Errorf("error = %v", got)
		}
		if ran.Load() {
			t.Error("the tool ran though its start could not be written")
		}
	})
}

// TestWriteAhead: when a tool with an effect runs, the journal and the range
// body have seen its start.
func TestWriteAhead(t *testing.T) {
	b := newBench(t, script.New(
		script.Turn{Calls: []synapse.ToolCall{script.Call("write", map[string]any{"text": "x"})}},
		script.Turn{Text: "ok"},
	))
	var seen atomic.Bool
	b.tools[1].Run = func(context.Context, *synapse.Invocation) (*synapse.ToolResult, error) {
		if !seen.Load() {
			t.Error("the tool ran before the reader had seen its start")
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if !slices.ContainsFunc(b.journal, func(e *synapse.Event) bool { return e.Kind == synapse.KindToolStarted }) {
			t.Error("the tool ran before its start was in the journal")
		}
		return synapse.TextResult("ok"), nil
	}
	for e, err := range b.local.Run(t.Context(), b.program(), run.Input{Prompt: "go"}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == synapse.KindToolStarted {
			time.Sleep(10 * time.Millisecond)
			seen.Store(true)
		}
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
