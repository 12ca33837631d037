package run_test

import (
	"context"
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

// TestThrottledProviderHoldsNobodyElseUp: requests that wait for a small quota
// hold no slot, so another provider's go on.
func TestThrottledProviderHoldsNobodyElseUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused atomic.Bool
		m := script.Play(func(n int, req *synapse.Request) script.Turn {
			switch {
			case strings.Contains(req.System, "main") && n == 0:
				var calls []synapse.ToolCall
				for i := range 30 {
					calls = append(calls, task("slow", fmt.Sprint(i)))
				}
				return script.Turn{Calls: slices.Insert(calls, 15, task("free", "x"))}
			case strings.Contains(req.System, "main"):
				return script.Turn{Text: "told"}
			case strings.Contains(req.System, "free"):
				return script.Turn{Delay: time.Second, Text: "done"}
			case !refused.Swap(true):
				return script.Turn{Delay: time.Millisecond, Err: &synapse.ProviderError{Kind: synapse.ErrorRateLimit, RetryAfter: time.Second}}
			}
			return script.Turn{Delay: time.Hour, Text: "done"}
		})
		b := newBench(t, m)
		b.local.MaxParallel = 2 // one for the throttled provider after its 429, one for the other
		b.local.IdleTimeout = 24 * time.Hour
		b.child("slow").Model.Provider = "small"
		b.child("free").Model.Provider = "large"
		start := time.Now()
		for e, err := range b.local.Run(t.Context(), b.program(), run.Input{Prompt: "go"}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Agent == "free" && e.Kind == synapse.KindRunFinished {
				if took := time.Since(start); took > time.Minute {
					t.Errorf("the other provider's agent ended after %s", took)
				}
			}
		}
	})
}

// TestLongCause: a provider that answers with a page of HTML doesn't fill the
// parent's context with it.
func TestLongCause(t *testing.T) {
	b := newBench(t, byAgent(map[string][]script.Turn{
		"main":   {{Calls: []synapse.ToolCall{task("worker", "1")}}, {Text: "told"}},
		"worker": {{Err: &synapse.ProviderError{Provider: "p", Kind: synapse.ErrorRequest, Message: strings.Repeat("<p>\x1b[0m sorry\n", 10_000)}}},
	}))
	b.child("worker")
	first, _ := split(b.run(t.Context(), "go").results("main")[0])
	if len(first) > 1200 || !strings.HasPrefix(first, `Agent "worker" failed: p: request: <p>[0m sorry <p>`) {
		t.Errorf("%d bytes: %.100q", len(first), first)
	}
}

// TestRetryAfterPastTheDeadline: a provider that asks for more time than the run
// has, or than anybody has, is not waited for; what the run has comes back.
func TestRetryAfterPastTheDeadline(t *testing.T) {
	for _, limit := range []time.Duration{time.Minute, 0} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, script.New(
				script.Turn{Text: "half", Calls: []synapse.ToolCall{read("a")}},
				script.Turn{Err: &synapse.ProviderError{Provider: "p", Kind: synapse.ErrorRateLimit, RetryAfter: 5 * time.Hour, Message: "quota"}},
			))
			b.graph.Specs[0].Limits.Time = synapse.Duration(limit)
			start := time.Now()
			out := b.run(t.Context(), "go").outcome("main")
			if out.Status != synapse.StatusFailed || out.Text != "half" || out.ErrorKind != synapse.ErrorRateLimit || !strings.Contains(out.Cause, "5h0m0s") {
				t.Errorf("outcome = %+v", out)
			}
			if took := time.Since(start); took != 0 {
				t.Errorf("it was waited for: %s", took)
			}
		})
	}
}

// TestLongBackoff: delays that would overflow stay at their cap.
func TestLongBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, script.Play(func(n int, _ *synapse.Request) script.Turn {
			if n < 29 {
				return script.Turn{Err: &synapse.ProviderError{Kind: synapse.ErrorServer}}
			}
			return script.Turn{Text: "ok"}
		}))
		b.local.Retry = run.Retry{Attempts: 30, Base: 5 * time.Hour, Cap: 6 * time.Hour}
		start := time.Now()
		if out := b.run(t.Context(), "go").outcome("main"); out.Text != "ok" {
			t.Errorf("outcome = %+v", out)
		}
		if took := time.Since(start); took < 29*5*time.Hour/2 || took > 29*6*time.Hour {
			t.Errorf("took %s", took)
		}
	})
}

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
