package synapse_test

import (
	"encoding/json"
	"errors"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse"
)

// deltas yields them, then err unless that is nil.
func deltas(err error, ds ...*synapse.Delta) iter.Seq2[*synapse.Delta, error] {
	return func(yield func(*synapse.Delta, error) bool) {
		for _, d := range ds {
			if !yield(d, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

func TestCollect(t *testing.T) {
	text := func(s string) *synapse.Delta { return &synapse.Delta{Kind: synapse.DeltaText, Text: s} }
	think := func(s string) *synapse.Delta { return &synapse.Delta{Kind: synapse.DeltaReasoning, Text: s} }
	sign := func(s, opaque string) *synapse.Delta {
		return &synapse.Delta{Kind: synapse.DeltaReasoning, Text: s, Opaque: json.RawMessage(opaque)}
	}
	call := func(id string) *synapse.Delta {
		return &synapse.Delta{Kind: synapse.DeltaCall, Call: &synapse.ToolCall{ID: id, Name: "read"}, Opaque: json.RawMessage(`1`)}
	}
	end := &synapse.Delta{Kind: synapse.DeltaEnd, Stop: synapse.StopEnd, Usage: synapse.Usage{Requests: 1, InputTokens: 2}, Model: "m"}
	part := func(kind synapse.PartKind, text string) synapse.Part { return synapse.Part{Kind: kind, Text: text} }
	called := func(id string) synapse.Part {
		return synapse.Part{Kind: synapse.PartCall, Call: &synapse.ToolCall{ID: id, Name: "read"}, Opaque: json.RawMessage(`1`)}
	}
	tests := []struct {
		name string
		in   []*synapse.Delta
		want []synapse.Part
	}{
		{"nothing", []*synapse.Delta{end}, nil},
		{"one piece", []*synapse.Delta{text("a"), end}, []synapse.Part{part(synapse.PartText, "a")}},
		{"pieces join", []*synapse.Delta{text("a"), text(""), text("b"), text("c"), end}, []synapse.Part{part(synapse.PartText, "abc")}},
		{"empty pieces are nothing", []*synapse.Delta{text(""), think(""), text(""), end}, nil},
		{"kinds don't join", []*synapse.Delta{think("a"), think("b"), text("c"), think("d"), end},
			[]synapse.Part{part(synapse.PartReasoning, "ab"), part(synapse.PartText, "c"), part(synapse.PartReasoning, "d")}},
		{"an empty piece parts too", []*synapse.Delta{think("a"), text(""), think("b"), end},
			[]synapse.Part{part(synapse.PartReasoning, "a"), part(synapse.PartReasoning, "b")}},
		{"a signature closes a block", []*synapse.Delta{think("a"), sign("b", `"s"`), think("c"), sign("", `"t"`), sign("", `"u"`), text("d"), sign("", `"v"`), end},
			[]synapse.Part{
				{Kind: synapse.PartReasoning, Text: "ab", Opaque: json.RawMessage(`"s"`)},
				{Kind: synapse.PartReasoning, Text: "c", Opaque: json.RawMessage(`"t"`)},
				{Kind: synapse.PartReasoning, Opaque: json.RawMessage(`"u"`)},
				part(synapse.PartText, "d"),
				{Kind: synapse.PartReasoning, Opaque: json.RawMessage(`"v"`)},
			}},
		{"calls keep their place", []*synapse.Delta{text("a"), call("1"), call("2"), text("b"), text("c"), call("3"), end},
			[]synapse.Part{part(synapse.PartText, "a"), called("1"), called("2"), part(synapse.PartText, "bc"), called("3")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			seen := 0
			got, err := synapse.Collect(deltas(nil, tt.in...), func(*synapse.Delta) { seen++ })
			if err != nil {
				t.Fatal(err)
			}
			want := &synapse.Reply{Message: synapse.Message{Role: synapse.RoleAssistant, Parts: tt.want}, Stop: end.Stop, Usage: end.Usage, Model: "m"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
			if seen != len(tt.in) {
				t.Errorf("%d of %d deltas were shown", seen, len(tt.in))
			}
		})
	}

	broken := errors.New("broken")
	if _, err := synapse.Collect(deltas(broken, text("a")), nil); !errors.Is(err, broken) {
		t.Errorf("error = %v", err)
	}
	var provider *synapse.ProviderError
	if _, err := synapse.Collect(deltas(nil, text("a")), nil); !errors.As(err, &provider) || provider.Kind != synapse.ErrorStream {
		t.Errorf("a stream without an end: error = %v", err)
	}
}

// TestKnownKinds: what can be decoded is what is known.
func TestKnownKinds(t *testing.T) {
	for _, kind := range []synapse.EventKind{
		synapse.KindRunStarted, synapse.KindModelRequested, synapse.KindText, synapse.KindReasoning, synapse.KindModelReplied,
		synapse.KindToolStarted, synapse.KindToolOutput, synapse.KindToolFinished, synapse.KindApprovalAsked, synapse.KindApprovalAnswered,
		synapse.KindChildStarted, synapse.KindChildFinished, synapse.KindWarning, synapse.KindRetry, synapse.KindConclusion, synapse.KindRunFinished,
		"", "node_started", "unheard of",
	} {
		body := synapse.NewBody(kind)
		if kind.Known() != (body != nil) {
			t.Errorf("%q: known is %v, its body %T", kind, kind.Known(), body)
		}
		if body != nil && body.Kind() != kind {
			t.Errorf("the body of %q says it is %q", kind, body.Kind())
		}
	}
}
