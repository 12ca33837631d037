package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
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

// hangTool ignores its context until release is closed.
func hangTool(release <-chan struct{}) synapse.Tool {
	return synapse.Tool{Name: "hang", Parallel: true, Run: func(context.Context, *synapse.Invocation) (*synapse.ToolResult, error) {
		<-release
		return synapse.TextResult("too late"), nil
	}}
}

// TestHungGrandchild: a tool that can't be stopped is given up by the run that
// made the call. The runs above that one wait for its end and don't invent one.
func TestHungGrandchild(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			defer close(release)
			ctx, cancel := context.WithCancel(t.Context())
			b := newBench(t, byAgent(map[string][]script.Turn{
				"main":   {{Calls: []synapse.ToolCall{task("middle", "1")}}},
				"middle": {{Text: "asking", Calls: []synapse.ToolCall{task("leaf", "3")}}},
				"leaf":   {{Text: "trying", Calls: []synapse.ToolCall{script.Call("hang", nil)}}},
			}))
			b.tools = append(b.tools, hangTool(release))
			b.child("middle", "task")
			b.edge("middle", "leaf", "leaf")
			b.spec("leaf", "hang")
			time.AfterFunc(time.Minute, cancel)
			start := time.Now()
			r := b.run(ctx, "go")
			if took := time.Since(start); took != 65*time.Second {
				t.Errorf("took %s, want the cancel after a minute and five seconds of grace", took)
			}
			for _, agent := range []string{"leaf", "middle", "main"} {
				for _, end := range bodies[*synapse.RunFinished](r, agent) {
					if end.Status != synapse.StatusCancelled {
						t.Errorf("%s ended as %+v", agent, end.Outcome)
					}
				}
			}
			if out := r.outcome("main"); out.Total.Requests != 3 {
				t.Errorf("total = %+v", out.Total)
			}
		})
	}
}

// TestOwnClock: a program that brings a clock of its own, years away from the
// machine's, gets the same limits.
func TestOwnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, byAgent(map[string][]script.Turn{
			"main":   {{Calls: []synapse.ToolCall{task("worker", "1")}}, {Text: "told"}},
			"worker": {{Text: "half", Calls: []synapse.ToolCall{read("x")}}, {Hang: true}},
		}))
		b.local.IdleTimeout = time.Hour
		b.child("worker", "read").Limits.Time = synapse.Duration(10 * time.Second)
		b.graph.Specs[0].Limits.Time = synapse.Duration(time.Minute)
		b.local.Now = func() time.Time { return time.Now().AddDate(-30, 0, 0) }
		start := time.Now()
		r := b.run(t.Context(), "go")
		if out := r.outcome("worker"); out.Status != synapse.StatusTimedOut || out.Text != "half" {
			t.Errorf("worker ended as %+v", out)
		}
		if out := r.outcome("main"); out.Status != synapse.StatusCompleted || time.Since(start) != 10*time.Second {
			t.Errorf("main ended as %+v after %s", out, time.Since(start))
		}
	})
}

// TestToolThatEndsItsGoroutine: what testing.T.FailNow does in a tool.
func TestToolThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, script.New(script.Turn{Calls: []synapse.ToolCall{script.Call("gone", nil)}}, script.Turn{Text: "went on"}))
		b.tools = append(b.tools, synapse.Tool{Name: "gone", Run: func(context.Context, *synapse.Invocation) (*synapse.ToolResult, error) {
			runtime.Goexit()
			return nil, nil
		}})
		b.graph.Specs[0].Policy.Allow = []string{"gone"}
		r := b.run(t.Context(), "go")
		if got := r.results("main"); len(got) != 1 || !strings.Contains(got[0], "gone failed: ") {
			t.Errorf("results = %q", got)
		}
		if out := r.outcome("main"); out.Text != "went on" {
			t.Errorf("outcome = %+v", out)
		}
	})
}

// TestLoopThatEndsItsGoroutine: the same where the loop asks a tool what a call is
// about. The run ends, and so does its parent's wait.
func TestLoopThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, byAgent(map[string][]script.Turn{
			"main":   {{Calls: []synapse.ToolCall{task("worker", "1")}}, {Text: "told"}},
			"worker": {{Calls: []synapse.ToolCall{script.Call("gone", map[string]any{"text": "x"})}}},
		}))
		gone := echoTool("gone")
		gone.Subjects = func(json.RawMessage) ([]string, error) { runtime.Goexit(); return nil, nil }
		b.tools = append(b.tools, gone)
		b.child("worker", "gone")
		r := &record{t: t}
		for e, err := range b.local.Run(t.Context(), b.program(), run.Input{Prompt: "go"}) {
			if err != nil {
				t.Fatal(err)
			}
			r.events = append(r.events, e)
		}
		if out := r.outcome("worker"); out.Status != synapse.StatusFailed || !strings.Contains(out.Cause, "it ended its goroutine") {
			t.Errorf("worker ended as %+v", out)
		}
		if out := r.outcome("main"); out.Text != "told" {
			t.Errorf("main ended as %+v", out)
		}
	})
}

// TestHungAlone: a call that nobody else runs beside is given up like any other,
// and what it still says when it comes back is not heard.
func TestHungAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		b := newBench(t, byAgent(map[string][]script.Turn{
			"main":   {{Calls: []synapse.ToolCall{task("worker", "1")}}, {Text: "told"}},
			"worker": {{Text: "half", Calls: []synapse.ToolCall{script.Call("hangs", nil)}}, {Text: "not asked"}},
		}))
		b.tools = append(b.tools, synapse.Tool{Name: "hangs", Run: func(_ context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
			<-free
			in.Output("too late")
			return synapse.TextResult("too late"), nil
		}})
		b.child("worker", "hangs").Limits.Time = synapse.Duration(time.Second)
		b.local.Grace = time.Second
		start := time.Now()
		r := b.run(t.Context(), "go")
		if out := r.outcome("worker"); out.Status != synapse.StatusTimedOut || out.Text != "half" {
			t.Errorf("worker ended as %+v", out)
		}
		if out := r.outcome("main"); out.Text != "told" || time.Since(start) != 2*time.Second {
			t.Errorf("main ended as %+v after %s", out, time.Since(start))
		}
		close(free)
		synctest.Wait()
	})
}

// TestToolsOwnSentinels: a tool that runs agents of its own may return their
// errors. They are about those, not about the run that called the tool.
func TestToolsOwnSentinels(t *testing.T) {
	for _, err := range []error{
		run.ErrCancelled, fmt.Errorf("inner: %w", run.ErrDeadline), &run.LimitError{Limit: "tokens", Agent: "inner", Cause: "inner is done"},
	} {
		b := newBench(t, script.New(
			script.Turn{Calls: []synapse.ToolCall{script.Call("nested", nil)}},
			script.Turn{Text: "went on", Check: func(req *synapse.Request) error {
				if len(req.Tools) == 0 {
					return errors.New("the tools are gone")
				}
				return nil
			}},
		))
		b.tools = append(b.tools, synapse.Tool{Name: "nested", Run: func(context.Context, *synapse.Invocation) (*synapse.ToolResult, error) {
			return nil, err
		}})
		b.graph.Specs[0].Policy.Allow = []string{"nested"}
		r := b.run(t.Context(), "go")
		if out := r.outcome("main"); out.Status != synapse.StatusCompleted || out.Text != "went on" {
			t.Errorf("%v: outcome = %+v", err, out)
		}
		if got := r.results("main")[0]; got != "nested failed: "+err.Error() {
			t.Errorf("result = %q", got)
		}
	}
	b := newBench(t, script.New(script.Turn{Err: run.ErrDeadline}))
	if out := b.run(t.Context(), "go").outcome("main"); out.Status != synapse.StatusFailed {
		t.Errorf("a model's own error ended the run as %+v", out)
	}
}

// TestResultsAreText: what a tool prints may be anything; what is kept and sent
// is text, so that a history that was read back is the history that was.
func TestResultsAreText(t *testing.T) {
	b := newBench(t, script.New(script.Turn{Calls: []synapse.ToolCall{script.Call("raw", nil)}}, script.Turn{Text: "ok"}))
	b.tools = append(b.tools, synapse.Tool{Name: "raw", Run: func(context.Context, *synapse.Invocation) (*synapse.ToolResult, error) {
		return synapse.TextResult("a\xff\xfeb"), nil
	}})
	b.graph.Specs[0].Policy.Allow = []string{"raw"}
	if got := b.run(t.Context(), "go").results("main")[0]; got != "a\ufffdb" {
		t.Errorf("result = %q", got)
	}
}

// TestLoopThatPanics: whatever panics inside the loop, here the program's own
// clock, its run ends as failed after its children have, and counts their tokens.
func TestLoopThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, byAgent(map[string][]script.Turn{
			"main":   {{Calls: []synapse.ToolCall{task("middle", "1")}}, {Text: "told"}},
			"middle": {{Calls: []synapse.ToolCall{background("leaf", "2"), read("x")}}},
			"leaf":   {{Calls: []synapse.ToolCall{read("y")}}, {Hang: true}},
		}))
		b.child("middle", "task", "read")
		b.edge("middle", "leaf", "leaf")
		b.spec("leaf", "read")
		var armed atomic.Bool
		read := b.tools[0].Run
		b.tools[0].Run = func(ctx context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
			if in.Agent == "middle" {
				time.Sleep(time.Second)
				armed.Store(true)
			}
			return read(ctx, in)
		}
		b.local.Now = func() time.Time {
			if armed.Swap(false) {
				panic("clock")
			}
			return time.Now()
		}
		r := &record{t: t}
		for e, err := range b.local.Run(t.Context(), b.program(), run.Input{Prompt: "go"}) {
			if err != nil {
				t.Fatal(err)
			}
			r.events = append(r.events, e)
		}
		if out := r.outcome("middle"); out.Status != synapse.StatusFailed || !strings.Contains(out.Cause, "clock") || out.Total.Requests != 2 {
			t.Errorf("middle ended as %+v", out)
		}
		if out := r.outcome("leaf"); out.Status != synapse.StatusCancelled {
			t.Errorf("leaf ended as %+v", out)
		}
		if out := r.outcome("main"); out.Text != "told" || out.Total.Requests != 4 {
			t.Errorf("main ended as %+v", out)
		}
		ends := map[string]int{}
		for i, e := range r.events {
			if e.Kind == synapse.KindRunFinished {
				ends[e.Agent] = i
			}
		}
		if ends["leaf"] > ends["middle"] || ends["middle"] > ends["main"] {
			t.Errorf("the runs ended in the order %v", ends)
		}
	})
}

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

// TestStoppedInATool: a tool with effects that its run's end cut short says that
// it may have done something; one that only reads has nothing to say.
func TestStoppedInATool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, script.New(script.Turn{Calls: []synapse.ToolCall{
			script.Call("wait", nil), script.Call("look", nil),
		}}))
		for _, name := range []string{"wait", "look"} {
			b.tools = append(b.tools, synapse.Tool{Name: name, ReadOnly: name == "look", Parallel: true, Run: func(ctx context.Context, _ *synapse.Invocation) (*synapse.ToolResult, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}})
		}
		b.graph.Specs[0].Policy.Allow = []string{"wait", "look"}
		b.graph.Specs[0].Limits.Time = synapse.Duration(time.Minute)
		got := b.run(t.Context(), "go").results("main")
		slices.Sort(got)
		want := []string{
			"look failed: time limit reached",
			"wait failed: time limit reached: check what it has done before you do it again",
		}
		if !slices.Equal(got, want) {
			t.Errorf("results = %q, want %q", got, want)
		}
	})
}
