package tracetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/trace"
)

func testSummaries(t *testing.T, j trace.Journal) {
	events := Conversation("t")
	for _, e := range events { // one by one, as a writer does
		appendAll(t, j, e)
	}
	cost := 1.0
	want := []*trace.Summary{{
		Trace:   "t",
		Run:     "t-main",
		Started: events[0].Time,
		Ended:   events[len(events)-1].Time,
		Agent:   "main",
		Model:   "script:large",
		Prompt:  "Find the bug",
		Status:  synapse.StatusCompleted,
		Runs:    2,
		Usage:   synapse.Usage{Requests: 4, InputTokens: 400, OutputTokens: 40, CostUSD: &cost},
	}}
	if diff := cmp.Diff(want, list(t, j, trace.TraceQuery{}), equal); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func testOpenSummary(t *testing.T, j trace.Journal) {
	events := Conversation("t")
	appendAll(t, j, events[:len(events)-1]...)
	got := list(t, j, trace.TraceQuery{Open: true})
	if len(got) != 1 {
		t.Fatalf("%d open traces, want 1", len(got))
	}
	if s := got[0]; s.Status != trace.StatusOpen || !s.Ended.IsZero() || s.Usage.InputTokens != 400 {
		t.Errorf("status %q, ended %v, %d input tokens", s.Status, s.Ended, s.Usage.InputTokens)
	}
	appendAll(t, j, events[len(events)-1])
	if got := list(t, j, trace.TraceQuery{Open: true}); len(got) != 0 {
		t.Errorf("%d traces are open after the end", len(got))
	}
}

func testResumedSummary(t *testing.T, j trace.Journal) {
	run := Run{Trace: "t", ID: "main", Agent: "main"}
	long := "  \n\n" + strings.Repeat("日", 100) + "\r\nsecond line"
	appendAll(t, j, run.Start(1, long), run.End(2, synapse.StatusCancelled))
	got := list(t, j, trace.TraceQuery{})[0]
	if want := strings.Repeat("日", 65) + "…"; got.Prompt != want {
		t.Errorf("prompt is %q, want %q", got.Prompt, want)
	}
	if got.Status != synapse.StatusCancelled {
		t.Errorf("status is %q", got.Status)
	}
	resumed := run.Start(3, "go on")
	resumed.Body.(*synapse.RunStarted).Resumed = true
	appendAll(t, j, resumed)
	if again := list(t, j, trace.TraceQuery{})[0]; again.Status != trace.StatusOpen || !again.Ended.IsZero() || again.Runs != 1 || again.Prompt != got.Prompt {
		t.Errorf("resumed: status %q, ended %v, %d runs, prompt %q", again.Status, again.Ended, again.Runs, again.Prompt)
	}
	appendAll(t, j, run.End(4, synapse.StatusCompleted))
	if again := list(t, j, trace.TraceQuery{})[0]; again.Status != synapse.StatusCompleted || again.Ended.IsZero() {
		t.Errorf("ended again: status %q, ended %v", again.Status, again.Ended)
	}
}

func testTraces(t *testing.T, j trace.Journal) {
	for i, name := range []string{"c", "a", "b", "d"} {
		run := Run{Trace: name, ID: "run of " + name}
		appendAll(t, j, run.Start(int64(i+1), fmt.Sprint("prompt ", i))) // time follows seq
		if name != "b" {
			appendAll(t, j, run.End(int64(i+10), synapse.StatusFailed))
		}
	}
	for _, tt := range []struct {
		q    trace.TraceQuery
		want []string
	}{
		{trace.TraceQuery{}, []string{"d", "b", "a", "c"}},
		{trace.TraceQuery{Limit: 2}, []string{"d", "b"}},
		{trace.TraceQuery{Limit: 10}, []string{"d", "b", "a", "c"}},
		{trace.TraceQuery{Open: true}, []string{"b"}},
		{trace.TraceQuery{Trace: "a"}, []string{"a"}},
		{trace.TraceQuery{Trace: "a", Open: true}, nil},
		{trace.TraceQuery{Trace: "none"}, nil},
	} {
		var got []string
		for _, s := range list(t, j, tt.q) {
			got = append(got, s.Trace)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.q, diff)
		}
	}
}
