package otlp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/trace"
	"github.com/synapse-agents/synapse/trace/otlp"
	"github.com/synapse-agents/synapse/trace/tracetest"
)

// decode reads a request with the decoder of OpenTelemetry's collector.
func decode(t *testing.T, body []byte) []ptrace.Span {
	t.Helper()
	var u ptrace.JSONUnmarshaler
	traces, err := u.UnmarshalTraces(body)
	if err != nil {
		t.Fatalf("the collector can't read it: %v\n%s", err, body)
	}
	var spans []ptrace.Span
	for _, rs := range traces.ResourceSpans().All() {
		if v, _ := rs.Resource().Attributes().Get("service.name"); v.Str() != "synapse" {
			t.Errorf("service.name is %q", v.Str())
		}
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				spans = append(spans, s)
			}
		}
	}
	return spans
}

func encode(t *testing.T, events []*synapse.Event, opt otlp.Options) (body []byte, spans []ptrace.Span) {
	t.Helper()
	list, err := otlp.Spans(trace.Of(events...), opt)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := otlp.Encode(&b, list, opt); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), decode(t, b.Bytes())
}

// draw writes spans as a tree: name, kind, seconds from the trace's start, error.
func draw(spans []ptrace.Span) string {
	var b strings.Builder
	kids := map[pcommon.SpanID][]ptrace.Span{}
	for _, s := range spans {
		kids[s.ParentSpanID()] = append(kids[s.ParentSpanID()], s)
	}
	var walk func(pcommon.SpanID, string)
	walk = func(id pcommon.SpanID, indent string) {
		for _, s := range kids[id] {
			at := func(ts pcommon.Timestamp) int { return int(ts.AsTime().Sub(tracetest.Start).Seconds()) }
			fmt.Fprintf(&b, "%s%s %s %d-%d", indent, s.Name(), strings.ToLower(s.Kind().String()), at(s.StartTimestamp()), at(s.EndTimestamp()))
			if v, ok := s.Attributes().Get("error.type"); ok {
				fmt.Fprintf(&b, " %s=%s", strings.ToLower(s.Status().Code().String()), v.Str())
			}
			if v, ok := s.Attributes().Get("synapse.open"); ok && v.Bool() {
				b.WriteString(" open")
			}
			b.WriteByte('\n')
			walk(s.SpanID(), indent+"  ")
		}
	}
	walk(pcommon.SpanID{}, "")
	return b.String()
}

func TestConversation(t *testing.T) {
	_, spans := encode(t, tracetest.Conversation("T"), otlp.Options{Version: "v1"})
	want := `invoke_agent main internal 1-24
  chat small client 2-3
  execute_tool task internal 4-15
    invoke_agent explore internal 6-13
      chat small client 7-8
      execute_tool grep internal 9-10
      chat small client 11-12
  execute_tool execute internal 18-19
  execute_tool write_file internal 20-20 error=denied
  chat small client 21-22
`
	if diff := cmp.Diff(want, draw(spans)); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	attributes := spans[0].Attributes().AsRaw()
	for key, want := range map[string]any{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "main", "gen_ai.provider.name": "script", "gen_ai.request.model": "small",
		"gen_ai.usage.input_tokens": int64(200), "gen_ai.usage.output_tokens": int64(20), "synapse.cost_usd": 0.5,
		"synapse.total.input_tokens": int64(400), "synapse.run.status": "completed", "synapse.run.id": "T-main",
	} {
		if attributes[key] != want {
			t.Errorf("%s is %v, want %v", key, attributes[key], want)
		}
	}
	chat := spans[1].Attributes().AsRaw()
	if diff := cmp.Diff([]any{"tool_call"}, chat["gen_ai.response.finish_reasons"]); diff != "" || chat["gen_ai.response.model"] != "large" {
		t.Errorf("chat span: %v", chat)
	}
	if n := spans[0].Events().Len(); n != 2 || spans[0].Events().At(0).Name() != "approval_asked" {
		t.Errorf("%d events, want the question and its answer", n)
	}
}

// Nothing that was said leaves the machine unless that is asked for.
func TestContentOnlyWhenAsked(t *testing.T) {
	const secret = "only-between-us"
	said := func(text string) string { return text + " " + secret }
	run := tracetest.Run{Trace: "T", ID: "r", Agent: "main"}
	start := run.Start(1, said("prompt"))
	body := start.Body.(*synapse.RunStarted)
	body.Spec.System, body.Description = said("system"), said("description")
	call := synapse.ToolCall{ID: "c", Name: "grep", Args: `{"x":"` + secret + `"}`}
	reply := &synapse.ModelReplied{Turn: 1}
	reply.Message = synapse.AssistantText(said("reply"))
	reply.Message.Parts = append(reply.Message.Parts, synapse.Part{Kind: synapse.PartCall, Call: &call})
	events := []*synapse.Event{
		start,
		run.Event(2, &synapse.ModelRequested{Turn: 1, Added: []synapse.Message{synapse.UserText(said("added"))}}),
		run.Event(3, &synapse.Retry{Turn: 1, Error: said("error"), ErrorKind: synapse.ErrorServer}),
		run.Event(4, reply),
		run.Event(5, &synapse.ToolStarted{Call: call, Intent: said("intent"), Key: "t1/tool/1"}),
		run.Event(6, &synapse.ApprovalAsked{Ask: synapse.Ask{ID: "q", Tool: "grep", Subject: secret, Reason: said("reason"), Intent: secret, Args: tracetest.Raw(secret)}}),
		run.Event(7, &synapse.ApprovalAnswered{ID: "q", Answer: synapse.Answer{Reason: said("answer")}}),
		run.Event(8, &synapse.ToolFinished{Result: synapse.ToolResult{CallID: "c", Name: "grep", Text: said("result"), IsError: true}}),
		run.Event(9, &synapse.Warning{Code: "w", Message: said("warning")}),
		run.Event(10, &synapse.RunFinished{Outcome: synapse.Outcome{Status: synapse.StatusFailed, Text: said("text"), Cause: said("cause"), ErrorKind: synapse.ErrorAuth}}),
	}
	without, spans := encode(t, events, otlp.Options{})
	if bytes.Contains(without, []byte(secret)) {
		t.Errorf("content without being asked for:\n%s", without)
	}
	want := "invoke_agent main internal 1-10 error=auth\n  chat  client 2-3 error=server\n  chat  client 3-4\n  execute_tool grep internal 5-8 error=tool_error\n"
	if diff := cmp.Diff(want, draw(spans)); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	with, _ := encode(t, events, otlp.Options{Content: true})
	for _, what := range []string{"prompt", "system", "description", "reply", "added", "error", "intent", "result", "text", "cause"} {
		if !bytes.Contains(with, []byte(said(what))) {
			t.Errorf("with content, the %s is missing", what)
		}
	}
}

// The same trace has the same ids; every id is there once; pauses belong to no span.
func TestStartsAndCuts(t *testing.T) {
	run := tracetest.Run{Trace: "T", ID: "r", Agent: "main"}
	again := func(seq int64) *synapse.Event {
		e := run.Start(seq, "go on")
		e.Body.(*synapse.RunStarted).Resumed = true
		return e
	}
	call := synapse.ToolCall{ID: "c", Name: "execute"}
	events := []*synapse.Event{
		run.Start(1, "x"),
		run.Event(2, &synapse.ModelRequested{Turn: 1}),
		run.Event(3, &synapse.ModelReplied{Turn: 1}),
		run.Event(4, &synapse.ToolStarted{Call: call, Key: "t1/tool/1"}),
		again(100), // after a crash
		run.Event(101, &synapse.ToolStarted{Call: call, Key: "t1/tool/1"}),
		run.Event(102, &synapse.ToolFinished{Result: synapse.ToolResult{CallID: "c", Name: "execute"}}),
		run.End(103, synapse.StatusPartial),
		again(200),
		run.Event(201, &synapse.ModelRequested{Turn: 1}),
	}
	first, spans := encode(t, events, otlp.Options{})
	want := `invoke_agent main internal 1-4 open
  chat  client 2-3
  execute_tool execute internal 4-4 open
invoke_agent main internal 100-103
  execute_tool execute internal 101-102
invoke_agent main internal 200-201 open
  chat  client 201-201 open
`
	if diff := cmp.Diff(want, draw(spans)); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	second, _ := encode(t, events, otlp.Options{})
	if !bytes.Equal(first, second) {
		t.Error("two exports of one trace differ")
	}
	seen := map[pcommon.SpanID]bool{}
	for _, s := range spans {
		if seen[s.SpanID()] || s.SpanID().IsEmpty() || s.TraceID().IsEmpty() {
			t.Errorf("span %q: id %s", s.Name(), s.SpanID())
		}
		seen[s.SpanID()] = true
	}
	if links := spans[3].Links(); links.Len() != 1 || links.At(0).SpanID() != spans[0].SpanID() {
		t.Errorf("the second start has %d links", links.Len())
	}
	if _, err := otlp.Spans(trace.Of(run.Start(1, "x"), tracetest.Run{Trace: "U", ID: "u", Agent: "a"}.Start(1, "x")), otlp.Options{}); err == nil {
		t.Error("events of two traces make spans")
	}
}

// TestSend posts to a receiver that reads requests as the collector does.
func TestSend(t *testing.T) {
	run := tracetest.Run{Trace: "T", ID: "r", Agent: "main"}
	events := []*synapse.Event{run.Start(1, "x")}
	for i := range int64(1200) {
		events = append(events, run.Event(2+i, &synapse.ModelRequested{Turn: int(i) + 1}))
	}
	spans, err := otlp.Spans(trace.Of(events...), otlp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name     string
		answer   func(n int, w http.ResponseWriter)
		received int
		err      string
	}{
		{"ok", func(n int, w http.ResponseWriter) { io.WriteString(w, `{"partialSuccess":{}}`) }, 1201, ""},
		{"busy once", func(n int, w http.ResponseWriter) {
			if n == 1 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(429)
			}
		}, 1201, ""},
		{"refused", func(n int, w http.ResponseWriter) { w.WriteHeader(401); io.WriteString(w, `{"message":"no key"}`) }, 0, "401 Unauthorized: no key"},
		{"partly", func(n int, w http.ResponseWriter) {
			io.WriteString(w, `{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}`)
		}, 512, "3 of them were rejected: too old"},
		{"sent elsewhere", func(n int, w http.ResponseWriter) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(307)
		}, 0, "307"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, received := 0, 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n++
				body, _ := io.ReadAll(r.Body)
				if r.URL.Path != "/otel/v1/traces" || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Authorization") != "Basic abc==" {
					t.Errorf("%s %v", r.URL, r.Header)
				}
				rec := httptest.NewRecorder()
				tt.answer(n, rec)
				if rec.Code == 200 {
					received += len(decode(t, body))
				}
				for k, v := range rec.Header() {
					w.Header()[k] = v
				}
				w.WriteHeader(rec.Code)
				w.Write(rec.Body.Bytes())
			}))
			defer server.Close()
			endpoint, err := otlp.TracesURL(server.URL + "/otel")
			if err != nil {
				t.Fatal(err)
			}
			headers, err := otlp.ParseHeaders("authorization=Basic%20abc==, x-b=1")
			if err != nil {
				t.Fatal(err)
			}
			_, err = (&otlp.Client{Endpoint: endpoint, Headers: headers, Timeout: 5 * time.Second}).Send(context.Background(), spans, otlp.Options{})
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if received != tt.received {
				t.Errorf("%d spans received, want %d", received, tt.received)
			}
		})
	}
}

func TestBadEndpointsAndHeaders(t *testing.T) {
	for _, base := range []string{"", "localhost:4318", "ftp://x", "http://", "::"} {
		if got, err := otlp.TracesURL(base); err == nil {
			t.Errorf("endpoint %q is %q", base, got)
		}
	}
	if got, err := otlp.TracesURL("https://h/v1/traces"); err != nil || got != "https://h/v1/traces" {
		t.Errorf("%q, %v", got, err)
	}
	for _, text := range []string{"novalue-secret", "=secret", "a b=secret", "a=%zzsecret", "a=x%0d%0asecret"} {
		if _, err := otlp.ParseHeaders(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("headers %q: %v", text, err)
		}
	}
}
