package trace_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/trace"
	"github.com/synapse-agents/synapse/trace/tracetest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func build(t *testing.T, events ...*synapse.Event) *trace.Tree {
	t.Helper()
	tree, err := trace.Build(trace.Of(events...))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestBuild(t *testing.T) {
	events := tracetest.Conversation("t")
	for _, tt := range []struct {
		golden string
		events []*synapse.Event
	}{
		{"tree.json", events},
		{"tree-cut-off.json", events[:9]}, // the child's call is in flight
		{"tree-waiting.json", events[:find(t, events, synapse.KindApprovalAnswered, 0)]},
		{"tree-subtree.json", slices.DeleteFunc(slices.Clone(events), func(e *synapse.Event) bool { return e.Run == "t-main" })},
		{"tree-empty.json", nil},
	} {
		t.Run(tt.golden, func(t *testing.T) {
			var out bytes.Buffer
			if err := trace.WriteJSON(&out, build(t, tt.events...)); err != nil {
				t.Fatal(err)
			}
			golden(t, tt.golden, out.Bytes())
		})
	}
}

func TestBuildTimes(t *testing.T) {
	run := tracetest.Run{Trace: "t", ID: "r", Agent: "main"}
	ask := func(seq int64, id string) *synapse.Event {
		return run.Event(seq, &synapse.ApprovalAsked{Ask: synapse.Ask{ID: id}})
	}
	answer := func(seq int64, id string) *synapse.Event {
		return run.Event(seq, &synapse.ApprovalAnswered{ID: id})
	}
	resume := func(seq int64) *synapse.Event {
		e := run.Start(seq, "go on")
		e.Body.(*synapse.RunStarted).Resumed = true
		return e
	}
	end := func(seq int64) *synapse.Event { return run.End(seq, synapse.StatusCompleted) }
	for _, tt := range []struct {
		name             string
		events           []*synapse.Event
		elapsed, waiting int // seconds
		starts           int
	}{
		{"plain", []*synapse.Event{run.Start(1, "x"), end(11)}, 10, 0, 1},
		{"one question", []*synapse.Event{run.Start(1, "x"), ask(3, "a"), answer(8, "a"), end(11)}, 10, 5, 1},
		{"one after another", []*synapse.Event{run.Start(1, "x"), ask(2, "a"), answer(3, "a"), ask(5, "b"), answer(9, "b"), end(11)}, 10, 5, 1},
		{"two at once count once", []*synapse.Event{run.Start(1, "x"), ask(3, "a"), ask(4, "b"), answer(5, "a"), answer(9, "b"), end(11)}, 10, 6, 1},
		{"answered the other way round", []*synapse.Event{run.Start(1, "x"), ask(3, "a"), ask(4, "b"), answer(5, "b"), answer(9, "a"), end(11)}, 10, 6, 1},
		{"stopped while waiting", []*synapse.Event{run.Start(1, "x"), ask(3, "a"), end(11)}, 10, 8, 1},
		{"open", []*synapse.Event{run.Start(1, "x"), run.Event(5, &synapse.Warning{})}, 4, 0, 1},
		{"open and waiting", []*synapse.Event{run.Start(1, "x"), ask(3, "a"), run.Event(5, &synapse.Warning{})}, 4, 2, 1},
		{"a pause after the end is no time", []*synapse.Event{run.Start(1, "x"), end(3), resume(100), end(105)}, 7, 0, 2},
		{"nor is one after a crash", []*synapse.Event{run.Start(1, "x"), run.Event(4, &synapse.Warning{}), resume(100), end(105)}, 8, 0, 2},
		{"nor while a question was open", []*synapse.Event{run.Start(1, "x"), ask(2, "a"), run.Event(4, &synapse.Warning{}), resume(100), ask(101, "a"), answer(104, "a"), end(105)}, 8, 5, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := build(t, tt.events...).Runs[0]
			if got, want := time.Duration(r.Elapsed), time.Duration(tt.elapsed)*time.Second; got != want {
				t.Errorf("elapsed %v, want %v", got, want)
			}
			if got, want := time.Duration(r.Waiting), time.Duration(tt.waiting)*time.Second; got != want {
				t.Errorf("waiting %v, want %v", got, want)
			}
			if r.Starts != tt.starts {
				t.Errorf("%d starts, want %d", r.Starts, tt.starts)
			}
		})
	}
}

func TestBuildUsageOfUnknownPrice(t *testing.T) {
	run := tracetest.Run{Trace: "t", ID: "r"}
	child := tracetest.Run{Trace: "t", ID: "c", Parent: "r"}
	cost := 1.0
	known := synapse.Reply{Usage: synapse.Usage{InputTokens: 5, CostUSD: &cost}}
	tree := build(t, run.Start(1, "x"), run.Event(2, &synapse.ModelReplied{Reply: known}),
		child.Start(3, "y"), child.Event(4, &synapse.ModelReplied{Reply: synapse.Reply{Usage: synapse.Usage{InputTokens: 7}}}))
	r := tree.Runs[0]
	if r.Usage.CostUSD == nil || *r.Usage.CostUSD != 1 {
		t.Error("the run's own cost is known")
	}
	if r.Total.CostUSD != nil || tree.Usage.CostUSD != nil {
		t.Error("an unknown price is counted as nothing")
	}
	if tree.Usage.InputTokens != 12 || tree.Usage.Requests != 2 {
		t.Errorf("usage is %+v", tree.Usage)
	}
}

func TestBuildStrangeHistories(t *testing.T) {
	a, b := tracetest.Run{Trace: "t", ID: "a", Parent: "b"}, tracetest.Run{Trace: "t", ID: "b", Parent: "a"}
	tree := build(t, a.Start(1, "x"), b.Start(2, "y"), tracetest.Run{Trace: "t", ID: "c", Parent: "c"}.Start(3, "z"))
	if len(tree.Runs) != 3 || len(tree.Open()) != 3 {
		t.Errorf("of three runs that are their own ancestors, %d are shown", len(tree.Open()))
	}
	late := build(t, tracetest.Run{Trace: "t", ID: "child", Parent: "main"}.Start(1, "x"), tracetest.Run{Trace: "t", ID: "main"}.Start(2, "y"))
	if len(late.Runs) != 1 || len(late.Runs[0].Children) != 1 || late.Run("child") == nil || late.Run("none") != nil {
		t.Error("a child that comes before its parent is lost")
	}
	if _, err := trace.Build(trace.Of(a.Start(1, "x"), tracetest.Run{Trace: "u", ID: "a"}.Start(1, "x"))); err == nil {
		t.Error("events of two traces make one tree")
	}
	broken := errors.New("disk gone")
	if _, err := trace.Build(func(yield func(*synapse.Event, error) bool) { yield(nil, broken) }); !errors.Is(err, broken) {
		t.Errorf("got error %v", err)
	}
}
