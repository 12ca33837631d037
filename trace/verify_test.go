package trace_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/trace"
	"github.com/synapse-agents/synapse/trace/tracetest"
)

// find returns the index of the nth event, from 0, of that kind.
func find(t *testing.T, events []*synapse.Event, kind synapse.EventKind, n int) int {
	t.Helper()
	for i, e := range events {
		if e.Kind != kind {
			continue
		}
		if n == 0 {
			return i
		}
		n--
	}
	t.Fatalf("no such %s", kind)
	return -1
}

// renumber gives the events ascending seqs, so that only what a test changes
// on purpose is wrong.
func renumber(events []*synapse.Event) []*synapse.Event {
	var all []*synapse.Event
	for i, e := range events {
		c := *e
		c.Seq = int64(i + 1)
		all = append(all, &c)
	}
	return all
}

func TestVerify(t *testing.T) {
	drop := func(kind synapse.EventKind, n int) func(*testing.T, []*synapse.Event) []*synapse.Event {
		return func(t *testing.T, events []*synapse.Event) []*synapse.Event {
			i := find(t, events, kind, n)
			return renumber(slices.Delete(events, i, i+1))
		}
	}
	twice := func(kind synapse.EventKind, n int) func(*testing.T, []*synapse.Event) []*synapse.Event {
		return func(t *testing.T, events []*synapse.Event) []*synapse.Event {
			i := find(t, events, kind, n)
			return renumber(slices.Insert(events, i, events[i]))
		}
	}
	// change replaces the body of an event; the original is shared.
	change := func(kind synapse.EventKind, n int, with func(*synapse.Event)) func(*testing.T, []*synapse.Event) []*synapse.Event {
		return func(t *testing.T, events []*synapse.Event) []*synapse.Event {
			i := find(t, events, kind, n)
			c := *events[i]
			with(&c)
			events[i] = &c
			return events
		}
	}
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, events []*synapse.Event) []*synapse.Event
		want   []string // one for each problem, in order
	}{
		{"nothing", func(_ *testing.T, events []*synapse.Event) []*synapse.Event { return events }, nil},
		{"deltas between", func(_ *testing.T, events []*synapse.Event) []*synapse.Event {
			delta := *events[2]
			delta.Kind, delta.Body = synapse.KindText, &synapse.Text{Text: "on"}
			return renumber(slices.Insert(events, 2, &delta))
		}, nil},
		{"two traces", func(_ *testing.T, events []*synapse.Event) []*synapse.Event {
			return append(events, tracetest.Conversation("u")...)
		}, nil},
		{"no events", func(*testing.T, []*synapse.Event) []*synapse.Event { return nil }, nil},

		{"seq twice", change(synapse.KindModelReplied, 0, func(e *synapse.Event) { e.Seq-- }),
			[]string{"seq does not ascend: it follows 2"}},
		{"wrong kind", change(synapse.KindConclusion, 0, func(e *synapse.Event) { e.Kind = synapse.KindWarning }),
			[]string{"has the body of a conclusion"}},
		{"no body", change(synapse.KindConclusion, 0, func(e *synapse.Event) { e.Body = nil }), []string{"has no body"}},
		{"other parent", change(synapse.KindConclusion, 0, func(e *synapse.Event) { e.ParentRun = "x" }), []string{`its parent was "" and is now "x"`}},
		{"nil", func(_ *testing.T, events []*synapse.Event) []*synapse.Event { return append(events, nil) }, []string{"nil"}},

		{"main never ends", drop(synapse.KindRunFinished, 1), []string{"without run_finished"}},
		{"main ends twice", twice(synapse.KindRunFinished, 1), []string{"run_finished after run_finished"}},
		{"child ends twice", twice(synapse.KindRunFinished, 0), []string{"run_finished after run_finished"}},
		{"child never ends", drop(synapse.KindRunFinished, 0), []string{"has not finished", "without run_finished"}},
		{"child never starts", drop(synapse.KindRunStarted, 1), []string{
			"model_requested before run_started", "model_replied before", "tool_started before", "tool_finished before",
			"model_requested before", "model_replied before", "run_finished before", "which never started"}},
		{"starts twice", twice(synapse.KindRunStarted, 0), []string{"not as a resume"}},
		{"no spec", change(synapse.KindRunStarted, 0, func(e *synapse.Event) {
			b := *e.Body.(*synapse.RunStarted)
			b.Spec = nil
			e.Body = &b
		}), []string{"without a spec"}},
		{"depth", change(synapse.KindRunStarted, 1, func(e *synapse.Event) {
			b := *e.Body.(*synapse.RunStarted)
			b.Depth = 0
			e.Body = &b
		}), []string{`depth 0 with parent "t-main"`}},
		{"after the end", func(t *testing.T, events []*synapse.Event) []*synapse.Event {
			i := find(t, events, synapse.KindConclusion, 0)
			return renumber(append(slices.Delete(slices.Clone(events), i, i+1), events[i]))
		}, []string{"conclusion after run_finished"}},

		{"child not announced", drop(synapse.KindChildStarted, 0), []string{"without a child_started", "without child_started"}},
		{"child announced twice", twice(synapse.KindChildStarted, 0), []string{"child_started of \"t-child\" again"}},
		{"child's end not told", drop(synapse.KindChildFinished, 0), []string{"without child_finished"}},
		{"child's end told twice", twice(synapse.KindChildFinished, 0), []string{"child_finished of \"t-child\" (call \"c1\") again"}},
		{"child's status", change(synapse.KindChildFinished, 0, func(e *synapse.Event) {
			b := *e.Body.(*synapse.ChildFinished)
			b.Status = synapse.StatusFailed
			e.Body = &b
		}), []string{"is failed, its run_finished says completed"}},
		{"child's usage", change(synapse.KindChildFinished, 0, func(e *synapse.Event) {
			b := *e.Body.(*synapse.ChildFinished)
			b.Total.InputTokens--
			e.Body = &b
		}), []string{"used 219 tokens, its run_finished says 220"}},

		{"call never ends", drop(synapse.KindToolFinished, 2), []string{
			`model_requested while call "c2" (execute) has no result`, `run_finished while call "c2" has no tool_finished`}},
		{"call never begins", drop(synapse.KindToolStarted, 2), []string{`tool_finished of call "c2" (execute) without tool_started`}},
		{"call begins twice", twice(synapse.KindToolStarted, 2), []string{`tool_started of call "c2" again`}},
		{"call ends twice", twice(synapse.KindToolFinished, 2), []string{`tool_finished of call "c2" (execute) without tool_started`}},
		{"denied call without a result", drop(synapse.KindToolFinished, 3), []string{`model_requested while call "c3"`}},

		{"reply without request", drop(synapse.KindModelRequested, 0), []string{"model_replied of turn 1 without its request"}},
		{"reply twice", twice(synapse.KindModelReplied, 1), []string{"without its request", "its replies say 300 and 30"}},
		{"answer without question", drop(synapse.KindApprovalAsked, 0), []string{`approval_answered "q1" without a question`}},
		{"question without answer", drop(synapse.KindApprovalAnswered, 0), []string{`question "q1" has no answer`}},
		{"question twice", twice(synapse.KindApprovalAsked, 0), []string{`approval_asked "q1" again`}},
		{"concludes twice", twice(synapse.KindConclusion, 0), []string{"a second conclusion"}},
		{"child concludes", func(t *testing.T, events []*synapse.Event) []*synapse.Event {
			i := find(t, events, synapse.KindRunFinished, 0)
			c := *events[i]
			c.Kind, c.Body = synapse.KindConclusion, &synapse.Conclusion{}
			return renumber(slices.Insert(events, i, &c))
		}, []string{"a sub-agent's run concludes"}},
		{"unknown status", change(synapse.KindRunFinished, 1, func(e *synapse.Event) {
			b := *e.Body.(*synapse.RunFinished)
			b.Status = "done"
			e.Body = &b
		}), []string{`status "done"`}},
		{"inflated usage", change(synapse.KindRunFinished, 1, func(e *synapse.Event) {
			b := *e.Body.(*synapse.RunFinished)
			b.Usage.OutputTokens++
			b.Total.OutputTokens++
			e.Body = &b
		}), []string{"says 200 input and 21 output tokens, its replies say 200 and 20"}},
		{"total without children", change(synapse.KindRunFinished, 1, func(e *synapse.Event) {
			b := *e.Body.(*synapse.RunFinished)
			b.Total = b.Usage
			e.Body = &b
		}), []string{"says 220 tokens in total, with its children it used 440"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			problems := trace.Verify(trace.Of(tt.change(t, tracetest.Conversation("t"))...))
			for i, p := range problems {
				if i >= len(tt.want) || !strings.Contains(p.String(), tt.want[i]) {
					t.Errorf("problem %d: %s", i+1, p)
				}
			}
			if len(problems) != len(tt.want) {
				t.Errorf("%d problems, want %d", len(problems), len(tt.want))
			}
		})
	}
}

// TestVerifyResume cuts a trace off after each of its events and resumes it by
// doing the rest as a resume would.
func TestVerifyResume(t *testing.T) {
	whole := tracetest.Conversation("t")
	for cut := 1; cut < len(whole); cut++ {
		events := whole[:cut:cut]
		if problems := trace.Verify(trace.Of(events...)); len(problems) == 0 {
			t.Errorf("cut off after event %d: no problem", cut)
		}
		open, err := trace.Build(trace.Of(events...))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range open.Open() {
			started := *whole[find(t, whole, synapse.KindRunStarted, r.Depth)]
			body := *started.Body.(*synapse.RunStarted)
			body.Resumed, body.Input = true, nil
			started.Body = &body
			events = append(events, &started)
		}
		rest := whole[cut:]
		if k := whole[cut].Kind; k == synapse.KindModelReplied { // its request goes out again
			events = append(events, whole[cut-1])
		} else if k == synapse.KindApprovalAnswered { // the question is asked again
			events = append(events, whole[cut-1])
		} else if k == synapse.KindToolFinished && whole[cut-1].Kind == synapse.KindToolStarted { // the call runs again
			events = append(events, whole[cut-1])
		}
		for _, p := range trace.Verify(trace.Of(renumber(append(events, rest...))...)) {
			t.Errorf("cut off after event %d (%s) and resumed: %s", cut, whole[cut-1].Kind, p)
		}
	}
}

func TestVerifyReportsTheStreamsError(t *testing.T) {
	broken := func(yield func(*synapse.Event, error) bool) { yield(nil, errors.New("disk gone")) }
	if got := trace.Verify(broken); len(got) != 1 || !strings.Contains(got[0].Message, "disk gone") {
		t.Errorf("got %v", got)
	}
}

func TestProblemString(t *testing.T) {
	for want, p := range map[string]trace.Problem{
		"trace t, event 3, run r: bad": {Trace: "t", Run: "r", Seq: 3, Message: "bad"},
		"trace t, at the end: bad":     {Trace: "t", Message: "bad"},
	} {
		if got := p.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
