// Package tracetest is the suite that every journal passes, and makes events
// for tests that need some.
package tracetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/trace"
)

// TestJournal runs the suite. Open returns an empty journal for one test; where
// it needs closing, open registers that with t.Cleanup.
func TestJournal(t *testing.T, open func(t *testing.T) trace.Journal) {
	for _, tt := range []struct {
		name string
		test func(t *testing.T, j trace.Journal)
	}{
		{"empty", testEmpty},
		{"round trip", testRoundTrip},
		{"order", testOrder},
		{"filters", testFilters},
		{"subtree", testSubtree},
		{"no trace named", testAnyTrace},
		{"unstored kinds", testUnstored},
		{"duplicates", testDuplicates},
		{"bad events", testBadEvents},
		{"strange text", testStrangeText},
		{"huge bodies", testHuge},
		{"shared spec", testSharedSpec},
		{"many events", testMany},
		{"concurrent appends", testConcurrent},
		{"read while writing", testReadWhileWriting},
		{"append inside the loop", testAppendInside},
		{"break", testBreak},
		{"cancellation", testCancel},
		{"caller's slice", testCallersSlice},
		{"summaries", testSummaries},
		{"summary of an open trace", testOpenSummary},
		{"summary after a resume", testResumedSummary},
		{"list of traces", testTraces},
		{"sessions", testSessions},
		{"names", testNames},
		{"deletion", testDelete},
		{"mail", testMail},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, open(t)) })
	}
}

// equal compares events by what they say: no body and an empty one, or a time
// in another zone, are the same.
var equal = cmp.Options{cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(0)}

func appendAll(t *testing.T, j trace.Journal, events ...*synapse.Event) {
	t.Helper()
	if err := j.Append(t.Context(), events...); err != nil {
		t.Fatalf("append: %v", err)
	}
}

func read(t *testing.T, j trace.Journal, q trace.Query) []*synapse.Event {
	t.Helper()
	events, err := trace.Collect(j.Events(t.Context(), q))
	if err != nil {
		t.Fatalf("read %+v: %v", q, err)
	}
	return events
}

func seqs(events []*synapse.Event) []int64 {
	var all []int64
	for _, e := range events {
		all = append(all, e.Seq)
	}
	return all
}

func list(t *testing.T, j trace.Journal, q trace.TraceQuery) []*trace.Summary {
	t.Helper()
	var all []*trace.Summary
	for s, err := range j.Traces(t.Context(), q) {
		if err != nil {
			t.Fatalf("list %+v: %v", q, err)
		}
		all = append(all, s)
	}
	return all
}

func testEmpty(t *testing.T, j trace.Journal) {
	if got := read(t, j, trace.Query{}); len(got) != 0 {
		t.Errorf("an empty journal yields %d events", len(got))
	}
	if got := read(t, j, trace.Query{Trace: "none", Run: "none", Subtree: true}); len(got) != 0 {
		t.Errorf("an unknown trace yields %d events", len(got))
	}
	if got := list(t, j, trace.TraceQuery{}); len(got) != 0 {
		t.Errorf("an empty journal lists %d traces", len(got))
	}
	appendAll(t, j) // nothing is fine too
}

func testRoundTrip(t *testing.T, j trace.Journal) {
	want := Every("t")
	appendAll(t, j, want...)
	if diff := cmp.Diff(want, read(t, j, trace.Query{Trace: "t"}), equal); diff != "" {
		t.Errorf("what comes back differs (-want +got):\n%s", diff)
	}
}

func testOrder(t *testing.T, j trace.Journal) {
	run := Run{Trace: "t", ID: "r"}
	for _, seq := range []int64{5, 1, 9, 3, 1 << 40, 2} {
		appendAll(t, j, run.Event(seq, &synapse.Warning{Code: fmt.Sprint(seq)}))
	}
	appendAll(t, j, run.Event(8, &synapse.Warning{}), run.Event(4, &synapse.Warning{}))
	if diff := cmp.Diff([]int64{1, 2, 3, 4, 5, 8, 9, 1 << 40}, seqs(read(t, j, trace.Query{Trace: "t"}))); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func testFilters(t *testing.T, j trace.Journal) {
	a, b := Run{Trace: "t", ID: "a"}, Run{Trace: "t", ID: "b", Parent: "a"}
	appendAll(t, j,
		a.Event(1, &synapse.Warning{}), a.Event(2, &synapse.Retry{}), b.Event(3, &synapse.Warning{}),
		b.Event(4, &synapse.Conclusion{}), a.Event(6, &synapse.Warning{}),
		Run{Trace: "u", ID: "a"}.Event(1, &synapse.Warning{}))
	for _, tt := range []struct {
		q    trace.Query
		want []int64
	}{
		{trace.Query{Trace: "t"}, []int64{1, 2, 3, 4, 6}},
		{trace.Query{Trace: "t", Run: "b"}, []int64{3, 4}},
		{trace.Query{Trace: "t", AfterSeq: 3}, []int64{4, 6}},
		{trace.Query{Trace: "t", AfterSeq: 4}, []int64{6}},
		{trace.Query{Trace: "t", AfterSeq: 5}, []int64{6}},
		{trace.Query{Trace: "t", AfterSeq: 6}, nil},
		{trace.Query{Trace: "t", Kinds: []synapse.EventKind{synapse.KindWarning}}, []int64{1, 3, 6}},
		{trace.Query{Trace: "t", Kinds: []synapse.EventKind{synapse.KindRetry, synapse.KindConclusion}}, []int64{2, 4}},
		{trace.Query{Trace: "t", Kinds: []synapse.EventKind{synapse.KindText}}, nil},
		{trace.Query{Trace: "t", Run: "a", AfterSeq: 1, Kinds: []synapse.EventKind{synapse.KindWarning}}, []int64{6}},
		{trace.Query{Trace: "u"}, []int64{1}},
		{trace.Query{Trace: "T"}, nil},
		{trace.Query{Trace: "t", Run: "c"}, nil},
	} {
		if diff := cmp.Diff(tt.want, seqs(read(t, j, tt.q))); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.q, diff)
		}
	}
}

func testSubtree(t *testing.T, j trace.Journal) {
	// main ─ a ─ a1 ─ a11, main ─ b; and another trace that uses the same ids
	// the other way round.
	parents := []struct{ run, parent string }{{"main", ""}, {"a", "main"}, {"b", "main"}, {"a1", "a"}, {"a11", "a1"}}
	for i, p := range parents {
		run := Run{Trace: "t", ID: p.run, Parent: p.parent}
		appendAll(t, j, run.Event(int64(i+1), &synapse.Warning{}), run.Event(int64(i+11), &synapse.Retry{}))
	}
	appendAll(t, j, Run{Trace: "u", ID: "b"}.Event(1, &synapse.Warning{}), Run{Trace: "u", ID: "a", Parent: "b"}.Event(2, &synapse.Warning{}))
	for _, tt := range []struct {
		q    trace.Query
		want []int64
	}{
		{trace.Query{Trace: "t", Run: "main", Subtree: true}, []int64{1, 2, 3, 4, 5, 11, 12, 13, 14, 15}},
		{trace.Query{Trace: "t", Run: "a", Subtree: true}, []int64{2, 4, 5, 12, 14, 15}},
		{trace.Query{Trace: "t", Run: "a", Subtree: true, AfterSeq: 5}, []int64{12, 14, 15}},
		{trace.Query{Trace: "t", Run: "a", Subtree: true, Kinds: []synapse.EventKind{synapse.KindRetry}}, []int64{12, 14, 15}},
		{trace.Query{Trace: "t", Run: "a1", Subtree: true}, []int64{4, 5, 14, 15}},
		{trace.Query{Trace: "t", Run: "b", Subtree: true}, []int64{3, 13}},
		{trace.Query{Trace: "u", Run: "b", Subtree: true}, []int64{1, 2}},
		{trace.Query{Trace: "t", Run: "none", Subtree: true}, nil},
		{trace.Query{Trace: "u", Subtree: true}, []int64{1, 2}},
	} {
		if diff := cmp.Diff(tt.want, seqs(read(t, j, tt.q))); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.q, diff)
		}
	}
}

func testAnyTrace(t *testing.T, j trace.Journal) {
	// One run goes on in four traces, whose names are not in the order in
	// which they began; the first two begin at the same time.
	run := Run{ID: "r", Parent: "p"}
	for i, name := range []string{"ä", "c", "d", "b"} {
		run.Trace = name
		first := run.Event(int64(max(i, 1)), &synapse.Warning{})
		appendAll(t, j, first, run.Event(first.Seq+20, &synapse.Warning{}), Run{Trace: name, ID: "other"}.Event(first.Seq+21, &synapse.Warning{}))
	}
	appendAll(t, j, Run{Trace: "a", ID: "s"}.Event(50, &synapse.Warning{}))
	for _, tt := range []struct {
		q    trace.Query
		want string
	}{
		{trace.Query{}, "c1 c21 c22 ä1 ä21 ä22 d2 d22 d23 b3 b23 b24 a50"},
		{trace.Query{AfterSeq: 22}, "d23 b23 b24 a50"},
		{trace.Query{Run: "r"}, "c1 c21 ä1 ä21 d2 d22 b3 b23"},
		{trace.Query{Run: "r", AfterSeq: 21}, "d22 b23"},
		{trace.Query{Run: "p", Subtree: true}, "c1 c21 ä1 ä21 d2 d22 b3 b23"},
		{trace.Query{Run: "s"}, "a50"},
		{trace.Query{Run: "none"}, ""},
	} {
		var got []string
		for _, e := range read(t, j, tt.q) {
			got = append(got, fmt.Sprint(e.Trace, e.Seq))
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.q, diff)
		}
	}
}

func testUnstored(t *testing.T, j trace.Journal) {
	run := Run{Trace: "t", ID: "r"}
	batch := []*synapse.Event{
		run.Event(1, &synapse.Text{Text: "a"}),
		run.Event(2, &synapse.Warning{}),
		run.Event(3, &synapse.Reasoning{Text: "b"}),
		run.Event(4, &synapse.ToolOutput{Text: "c"}),
		run.Event(5, &synapse.Warning{}),
	}
	appendAll(t, j, batch...)
	appendAll(t, j, batch[0])
	appendAll(t, j, batch[0]) // not stored, so no duplicate
	if diff := cmp.Diff([]int64{2, 5}, seqs(read(t, j, trace.Query{}))); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if got := read(t, j, trace.Query{Trace: "t"}); len(batch) != 5 || batch[2].Kind != synapse.KindReasoning || got[1].Seq != 5 {
		t.Error("the caller's slice was changed")
	}
}

func testDuplicates(t *testing.T, j trace.Journal) {
	run := Run{Trace: "t", ID: "r"}
	first := run.Event(3, &synapse.Warning{Message: "first"})
	appendAll(t, j, run.Event(1, &synapse.Warning{}), first)
	for name, batch := range map[string][]*synapse.Event{
		"again":               {first},
		"other content":       {run.Event(3, &synapse.Conclusion{Content: "second"})},
		"in a batch, last":    {run.Event(4, &synapse.Warning{}), run.Event(5, &synapse.Warning{}), run.Event(3, &synapse.Warning{})},
		"in a batch, first":   {run.Event(1, &synapse.Warning{}), run.Event(6, &synapse.Warning{})},
		"twice in a batch":    {run.Event(7, &synapse.Warning{}), run.Event(8, &synapse.Warning{}), run.Event(7, &synapse.Warning{})},
		"of another run":      {Run{Trace: "t", ID: "other"}.Event(3, &synapse.Warning{})},
		"with another trace":  {Run{Trace: "u", ID: "r"}.Event(3, &synapse.Warning{}), run.Event(3, &synapse.Warning{})},
		"between older seqs":  {run.Event(2, &synapse.Warning{}), run.Event(1, &synapse.Warning{})},
		"with a started run":  {Run{Trace: "t", ID: "new"}.Start(9, "x"), run.Event(3, &synapse.Warning{})},
		"in a started trace":  {Run{Trace: "v", ID: "new"}.Start(1, "x"), Run{Trace: "v", ID: "new"}.Event(1, &synapse.Warning{})},
		"and with other kind": {run.Event(3, &synapse.Retry{})},
	} {
		if err := j.Append(t.Context(), batch...); !errors.Is(err, trace.ErrDuplicate) {
			t.Errorf("%s: got error %v, want one that is ErrDuplicate", name, err)
		}
	}
	got := read(t, j, trace.Query{})
	if diff := cmp.Diff([]int64{1, 3}, seqs(got)); diff != "" {
		t.Errorf("a refused batch left something (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(first, got[1], equal); diff != "" {
		t.Errorf("the stored event changed (-want +got):\n%s", diff)
	}
	if sums := list(t, j, trace.TraceQuery{}); len(sums) != 1 || sums[0].Runs != 1 {
		t.Errorf("a refused batch left a run or a trace: %d traces", len(sums))
	}
	appendAll(t, j, Run{Trace: "t", ID: "new"}.Start(9, "x"), run.Event(10, &synapse.Warning{})) // and the journal goes on
	if got := seqs(read(t, j, trace.Query{})); len(got) != 4 {
		t.Errorf("after refused batches, the journal holds %v", got)
	}
}

// strange is a body of a kind that no reader knows.
type strange struct{}

func (strange) Kind() synapse.EventKind { return "strange" }

func testBadEvents(t *testing.T, j trace.Journal) {
	good := Run{Trace: "t", ID: "r"}.Event(1, &synapse.Warning{})
	for _, tt := range []struct {
		name, want string
		change     func(e *synapse.Event)
	}{
		{"no trace", "names no trace", func(e *synapse.Event) { e.Trace = "" }},
		{"no run", "names no run", func(e *synapse.Event) { e.Run = "" }},
		{"seq 0", "counts from 1", func(e *synapse.Event) { e.Seq = 0 }},
		{"negative seq", "counts from 1", func(e *synapse.Event) { e.Seq = -1 }},
		{"no version", "version 0", func(e *synapse.Event) { e.V = 0 }},
		{"newer version", "version", func(e *synapse.Event) { e.V = synapse.EventVersion + 1 }},
		{"no body", "no body", func(e *synapse.Event) { e.Body = nil }},
		{"wrong body", "body of a retry", func(e *synapse.Event) { e.Body = &synapse.Retry{} }},
		{"unknown kind", `unknown kind "strange"`, func(e *synapse.Event) { e.Kind, e.Body = "strange", strange{} }},
		{"no kind", "unknown kind", func(e *synapse.Event) { e.Kind = "" }},
		{"far time", "out of range", func(e *synapse.Event) { e.Time = time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC) }},
	} {
		bad := *good
		bad.Seq = 2
		tt.change(&bad)
		err := j.Append(t.Context(), good, &bad)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want one with %q", tt.name, err, tt.want)
		}
	}
	if err := j.Append(t.Context(), good, nil); err == nil {
		t.Error("a nil event is taken")
	}
	if got := read(t, j, trace.Query{}); len(got) != 0 {
		t.Errorf("refused batches left %d events", len(got))
	}
}

func testStrangeText(t *testing.T, j trace.Journal) {
	texts := []string{
		"", " ", "a\x00b", "\x00", "日本語 ☕ 👩‍👩‍👧 é", "\u2028\u2029\ufeff\ufffd", "\x1b[31mred\x1b[0m\r\n\t\b\x7f",
		`"quotes" \ and 'more' -- ; DROP TABLE events`, "<script>&amp;</script>", strings.Repeat("🦊", 1000), "%s %d ${HOME} `id`",
	}
	var want []*synapse.Event
	for i, text := range texts {
		run := Run{Trace: "t" + text, ID: "r" + text, Agent: text, Parent: text, SpawnedBy: text}
		want = append(want,
			run.Event(int64(2*i+1), &synapse.ToolFinished{Result: synapse.ToolResult{CallID: text, Name: text, Text: text, Details: Raw(text)}, Denied: text}),
			run.Event(int64(2*i+2), &synapse.RunStarted{Spec: &synapse.Spec{Agent: text, System: text}, Input: []synapse.Message{synapse.UserText(text)}}))
	}
	appendAll(t, j, want...)
	for i, text := range texts {
		got := read(t, j, trace.Query{Trace: "t" + text, Run: "r" + text})
		if diff := cmp.Diff(want[2*i:2*i+2], got, equal); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	if got := list(t, j, trace.TraceQuery{}); len(got) != len(texts) {
		t.Errorf("%d traces are listed, want %d", len(got), len(texts))
	}
}

func testHuge(t *testing.T, j trace.Journal) {
	run := Run{Trace: "t", ID: "r"}
	var want []*synapse.Event
	for i := range 5 {
		text := strings.Repeat(string(rune('a'+i)), 3<<20)
		want = append(want, run.Event(int64(i+1), &synapse.ToolFinished{Result: synapse.ToolResult{
			Text:  text,
			Media: []synapse.Media{{Type: "image/png", Data: bytes.Repeat([]byte{0, 0xff, byte(i)}, 1<<18)}},
		}}))
	}
	appendAll(t, j, want[:2]...)
	appendAll(t, j, want[2:]...)
	appendAll(t, j, run.Event(6, &synapse.Warning{}))
	got := read(t, j, trace.Query{Trace: "t"})
	if len(got) != 6 {
		t.Fatalf("%d events come back, want 6", len(got))
	}
	for i, e := range want { // go-cmp would take a minute for these
		a, b := e.Body.(*synapse.ToolFinished).Result, got[i].Body.(*synapse.ToolFinished).Result
		if a.Text != b.Text || len(b.Media) != 1 || !bytes.Equal(a.Media[0].Data, b.Media[0].Data) {
			t.Errorf("event %d comes back changed", e.Seq)
		}
	}
}

func testSharedSpec(t *testing.T, j trace.Journal) {
	one := &synapse.Spec{Agent: "one", System: strings.Repeat("be good. ", 2000)}
	two := &synapse.Spec{Agent: "two", System: one.System, Output: json.RawMessage(`{"type":"object"}`)}
	var want []*synapse.Event
	for i := range 40 {
		spec := one
		if i%3 == 0 {
			spec = two
		}
		run := Run{Trace: "t", ID: fmt.Sprint("run", i), Parent: "main"}
		want = append(want, run.Event(int64(i+1), &synapse.RunStarted{Spec: spec, Depth: 1, Input: []synapse.Message{synapse.UserText(fmt.Sprint(i))}}))
	}
	want = append(want, Run{Trace: "t", ID: "bare"}.Event(100, &synapse.RunStarted{}))
	appendAll(t, j, want...)
	if diff := cmp.Diff(want, read(t, j, trace.Query{Trace: "t"}), equal); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if one.System == "" || want[1].Body.(*synapse.RunStarted).Spec != one {
		t.Error("the caller's events were changed")
	}
}

func testMany(t *testing.T, j trace.Journal) {
	const n = 3000
	run := Run{Trace: "t", ID: "r"}
	var batch []*synapse.Event
	for i := range n {
		batch = append(batch, run.Event(int64(2*i+1), &synapse.Warning{Code: fmt.Sprint(i)}))
	}
	appendAll(t, j, batch...)
	i := 0
	for e, err := range j.Events(t.Context(), trace.Query{Trace: "t"}) {
		if err != nil {
			t.Fatal(err)
		}
		if want := int64(2*i + 1); e.Seq != want {
			t.Fatalf("event %d has seq %d, want %d", i, e.Seq, want)
		}
		i++
	}
	if i != n {
		t.Errorf("%d events come back, want %d", i, n)
	}
}
