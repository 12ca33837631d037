package trace_test

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/trace"
	"github.com/synapse-agents/synapse/trace/tracetest"
)

func jsonl(t testing.TB, events ...*synapse.Event) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := trace.WriteJSONL(&out, trace.Of(events...)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestJSONL(t *testing.T) {
	want := append(tracetest.Every("t"), tracetest.Conversation("u")...)
	want = append(want, tracetest.Run{Trace: "t", ID: "r"}.Event(99, &synapse.Text{Text: "<b>\x00\u2028日本\n"}))
	out := jsonl(t, want...)
	if n := bytes.Count(out, []byte("\n")); n != len(want) {
		t.Errorf("%d lines for %d events", n, len(want))
	}
	got, err := trace.Collect(trace.ReadJSONL(iotest.OneByteReader(bytes.NewReader(out))))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, equal); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	golden(t, "every.jsonl", jsonl(t, tracetest.Every("t")...))
}

func TestReadJSONL(t *testing.T) {
	good := strings.TrimSpace(string(jsonl(t, tracetest.Conversation("t")[1])))
	for _, tt := range []struct {
		name, text string
		events     int
		want       string // in the error
	}{
		{"nothing", "", 0, ""},
		{"no newline at the end", good + "\n" + good, 2, ""},
		{"CRLF and blank lines", "\r\n" + good + "\r\n\r\n \t\n" + good + "\r\n\n", 2, ""},
		{"not JSON", good + "\nhello\n" + good, 1, "line 2: invalid character"},
		{"two on a line", good + good + "\n", 0, "line 1: "},
		{"cut off", good + "\n" + good[:len(good)/2], 1, "line 2: unexpected end of JSON input"},
		{"blank lines count", "\n\n{}\n", 0, "line 3: "},
		{"unknown kind", strings.Replace(good, "model_requested", "teleported", 1), 0, `line 1: event 2: unknown kind "teleported"`},
		{"newer version", strings.Replace(good, `"v":1`, `"v":2`, 1), 0, "line 1: event 2: version 2 is newer"},
		{"no body", `{"v":1,"seq":1,"kind":"warning"}`, 0, "line 1: event 1 (warning)"},
		{"an array", "[]", 0, "line 1: "},
		{"null", "null", 0, "line 1: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			events, err := trace.Collect(trace.ReadJSONL(strings.NewReader(tt.text)))
			if len(events) != tt.events {
				t.Errorf("%d events, want %d", len(events), tt.events)
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got error %v, want %q in it", err, tt.want)
			}
		})
	}
	broken := errors.New("disk gone")
	if events, err := trace.Collect(trace.ReadJSONL(io.MultiReader(strings.NewReader(good+"\n"), iotest.ErrReader(broken)))); len(events) != 1 || !errors.Is(err, broken) {
		t.Errorf("a reader that breaks: %d events, error %v", len(events), err)
	}
}

func TestWriteJSONLErrors(t *testing.T) {
	broken := errors.New("disk gone")
	var out bytes.Buffer
	first := tracetest.Conversation("t")[0]
	events := func(yield func(*synapse.Event, error) bool) {
		if yield(first, nil) {
			yield(nil, broken)
		}
	}
	if err := trace.WriteJSONL(&out, events); !errors.Is(err, broken) {
		t.Errorf("events that break: got error %v", err)
	}
	if !bytes.Equal(out.Bytes(), jsonl(t, first)) {
		t.Errorf("what came before the error is lost: %s", &out)
	}
	if err := trace.WriteJSONL(brokenWriter{broken}, trace.Of(first)); !errors.Is(err, broken) {
		t.Errorf("a writer that breaks: got error %v", err)
	}
	if err := trace.WriteJSON(brokenWriter{broken}, new(trace.Tree)); !errors.Is(err, broken) {
		t.Errorf("a writer that breaks: got error %v", err)
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

// FuzzReadJSONL reads anything as events. What it accepts can be written,
// read again as the same, folded and checked.
func FuzzReadJSONL(f *testing.F) {
	for _, e := range tracetest.Every("t")[1:] { // small seeds: large ones are minimized forever
		f.Add(jsonl(f, e))
	}
	conversation := tracetest.Conversation("t")
	f.Add(jsonl(f, conversation[0], conversation[2], conversation[4], conversation[3]))
	f.Add([]byte("{\"v\":1,\"seq\":-1,\"kind\":\"tool_finished\",\"body\":{\"result\":{\"details\": [1 , 2]}}}\r\n\n"))
	f.Add([]byte(`{"v":1,"kind":"child_started","run_id":"a","parent_run_id":"a","body":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		events, err := trace.Collect(trace.ReadJSONL(bytes.NewReader(data)))
		if err != nil && !strings.Contains(err.Error(), "line ") {
			t.Errorf("the error names no line: %v", err)
		}
		var out bytes.Buffer
		if err := trace.WriteJSONL(&out, trace.Of(events...)); err != nil {
			return // a body may hold what JSON reads and a program would not write
		}
		again, err := trace.Collect(trace.ReadJSONL(bytes.NewReader(out.Bytes())))
		if err != nil {
			t.Fatalf("what was written can't be read: %v\n%s", err, &out)
		}
		if second := jsonl(t, again...); !bytes.Equal(out.Bytes(), second) {
			t.Errorf("written twice, it differs:\n%s\n%s", &out, second)
		}
		trace.Verify(trace.Of(events...))
		if tree, err := trace.Build(trace.Of(events...)); err == nil {
			runs := 0
			for _, r := range tree.Runs {
				r.Walk(func(*trace.Run, int) { runs++ })
			}
			ids := map[string]bool{}
			for _, e := range events {
				ids[e.Run] = true
			}
			if runs != len(ids) {
				t.Errorf("of %d runs the tree has %d", len(ids), runs)
			}
			if err := trace.WriteJSON(io.Discard, tree); err != nil {
				t.Error(err)
			}
		}
		_, stop := iter.Pull2(trace.ReadJSONL(bytes.NewReader(data)))
		stop()
	})
}
