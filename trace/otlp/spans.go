package otlp

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/synapse-agents/synapse"
)

// Spans makes spans of the events of one trace, in their order. A run that was
// continued has a span for each of its starts, with a link to the one before, so
// that no span lasts through a pause. What has not ended ends with the last event
// of its run, and says so with synapse.open. Its errors are those of the events,
// and events of several traces.
func Spans(events iter.Seq2[*synapse.Event, error], opt Options) ([]*Span, error) {
	f := folder{opt: opt, runs: map[string]*runFold{}}
	for e, err := range events {
		if err != nil {
			return nil, fmt.Errorf("export spans: %w", err)
		}
		if f.trace == "" {
			f.trace = e.Trace
			sum := sha256.Sum256([]byte("trace/" + e.Trace))
			copy(f.id[:], sum[:])
		} else if e.Trace != f.trace {
			return nil, fmt.Errorf("export spans: events of two traces, %q and %q", f.trace, e.Trace)
		}
		f.add(e)
	}
	for _, id := range f.order {
		f.runs[id].cutOff()
	}
	return f.spans, nil
}

// folder makes spans while it reads.
type folder struct {
	opt   Options
	trace string
	id    [16]byte
	spans []*Span
	runs  map[string]*runFold
	order []string
}

// runFold is one run as it stands: the spans of it that are open.
type runFold struct {
	f      *folder
	id     string
	starts int
	spec   *synapse.Spec
	span   *Span // of the start that is open
	past   *Span // the one before
	chat   *Span
	model  synapse.ModelRef // asked by the chat span
	turn   int
	tried  int                  // attempts of this turn
	added  []synapse.Message    // what the next request adds to the conversation
	calls  map[string]*Span     // open, by the call's id
	byCall map[string]*Span     // of this start, ended or not
	result []synapse.ToolResult // since the last request
	last   time.Time
}

func (f *folder) add(e *synapse.Event) {
	r := f.runs[e.Run]
	if r == nil {
		r = &runFold{f: f, id: e.Run}
		f.runs[e.Run] = r
		f.order = append(f.order, e.Run)
	}
	if b, ok := e.Body.(*synapse.RunStarted); ok {
		r.start(e, b)
	}
	if r.span != nil {
		r.add(e)
	}
	r.last = e.Time
}

// key places a span within its trace.
func (r *runFold) key(place string) string { return r.id + "/s" + strconv.Itoa(r.starts) + place }

func (f *folder) span(key, name string, kind Kind, start time.Time, parent *Span) *Span {
	s := &Span{Trace: f.id, ID: f.spanID(key), Name: name, Kind: kind, Start: start, End: start}
	if parent != nil {
		s.Parent = parent.ID
	}
	f.spans = append(f.spans, s)
	return s
}

func (f *folder) spanID(key string) (id [8]byte) {
	sum := sha256.Sum256([]byte("span/" + f.trace + "/" + key))
	copy(id[:], sum[:])
	return id
}

func (s *Span) set(key string, value any) { s.Attributes = append(s.Attributes, Attribute{key, value}) }

// setCount leaves out what was not counted.
func (s *Span) setCount(key string, n int64) {
	if n != 0 {
		s.set(key, n)
	}
}

func (s *Span) setText(key, text string) {
	if text != "" {
		s.set(key, text)
	}
}

func (s *Span) setUsage(u synapse.Usage) {
	s.set("gen_ai.usage.input_tokens", u.InputTokens)
	s.set("gen_ai.usage.output_tokens", u.OutputTokens)
	s.setCount("gen_ai.usage.cache_read.input_tokens", u.CacheReadTokens)
	s.setCount("gen_ai.usage.cache_creation.input_tokens", u.CacheWriteTokens)
	s.setCount("gen_ai.usage.reasoning.output_tokens", u.ReasoningTokens)
	if u.CostUSD != nil {
		s.set("synapse.cost_usd", *u.CostUSD)
	}
}

// start opens the span of a start.
func (r *runFold) start(e *synapse.Event, b *synapse.RunStarted) {
	r.cutOff()
	r.starts++
	r.past, r.spec = r.span, b.Spec
	r.turn, r.added = 0, b.Input
	r.calls, r.byCall = map[string]*Span{}, map[string]*Span{}
	var parent *Span
	if p := r.f.runs[e.ParentRun]; p != nil && p != r {
		if parent = p.byCall[e.SpawnedBy]; parent == nil {
			parent = p.span
		}
	}
	s := r.f.span(r.key(""), "invoke_agent "+e.Agent, KindInternal, e.Time, parent)
	r.span = s
	s.set("gen_ai.operation.name", "invoke_agent")
	s.set("gen_ai.agent.name", e.Agent)
	s.set("gen_ai.conversation.id", e.Run)
	if b.Spec != nil {
		s.setText("gen_ai.agent.description", b.Spec.Description)
		s.setText("gen_ai.provider.name", provider(b.Spec.Model))
		s.setText("gen_ai.request.model", b.Spec.Model.Name)
		s.setText("synapse.agent.origin", b.Spec.Origin)
		if len(b.Spec.Output) > 0 {
			s.set("gen_ai.output.type", "json")
		}
	}
	s.set("synapse.trace_id", e.Trace)
	s.set("synapse.run.id", e.Run)
	s.set("synapse.run.start", int64(r.starts))
	s.set("synapse.run.depth", int64(b.Depth))
	if b.Background {
		s.set("synapse.run.background", true)
	}
	if r.past != nil {
		s.Links = append(s.Links, r.past.ID)
	}
	if r.f.opt.Content {
		s.setText("synapse.run.description", b.Description)
		if b.Spec != nil {
			s.setText("gen_ai.system_instructions", instructions(b.Spec.System))
		}
		s.setText("gen_ai.input.messages", messages(b.Input))
	}
}

func (r *runFold) add(e *synapse.Event) {
	switch b := e.Body.(type) {
	case *synapse.ModelRequested:
		r.turn, r.tried = b.Turn, 0
		r.added = append(r.added[:len(r.added):len(r.added)], resultsMessage(r.result)...)
		r.added = append(r.added, b.Added...)
		r.result = nil
		r.ask(e.Time, b.Model)
	case *synapse.Retry:
		r.endChat(e.Time, string(b.ErrorKind), b.Error)
		r.ask(e.Time.Add(time.Duration(b.After)), b.Model)
	case *synapse.ModelReplied:
		r.reply(e.Time, b)
	case *synapse.ToolStarted:
		if r.calls[b.Call.ID] == nil {
			r.call(e.Time, &b.Call, b.Intent, b.Key)
		}
	case *synapse.ToolFinished:
		r.finish(e.Time, b)
	case *synapse.ApprovalAsked:
		r.event("approval_asked", e.Time, Attribute{"gen_ai.tool.name", b.Ask.Tool}, Attribute{"synapse.approval.id", b.Ask.ID})
	case *synapse.ApprovalAnswered:
		r.event("approval_answered", e.Time, Attribute{"synapse.approval.id", b.ID}, Attribute{"synapse.approval.allowed", b.Answer.Allow})
	case *synapse.Warning:
		r.event("warning", e.Time, Attribute{"synapse.warning.code", b.Code})
	case *synapse.RunFinished:
		r.end(e.Time, &b.Outcome)
	}
}

func (r *runFold) event(name string, at time.Time, attributes ...Attribute) {
	r.span.Events = append(r.span.Events, SpanEvent{name, at, attributes})
}

// ask opens the span of an attempt to get a reply.
func (r *runFold) ask(at time.Time, model synapse.ModelRef) {
	r.tried++
	r.model = model
	s := r.f.span(r.key(fmt.Sprintf("/t%d/model/%d", r.turn, r.tried)), "chat "+model.Name, KindClient, at, r.span)
	r.chat = s
	s.set("gen_ai.operation.name", "chat")
	s.setText("gen_ai.provider.name", provider(model))
	s.set("gen_ai.request.model", model.Name)
	s.set("gen_ai.conversation.id", r.id)
	s.set("synapse.turn", int64(r.turn))
	if r.tried > 1 {
		s.set("synapse.attempt", int64(r.tried))
	}
	if r.spec != nil {
		s.set("gen_ai.agent.name", r.spec.Agent)
		if t := r.spec.Temperature; t != nil {
			s.set("gen_ai.request.temperature", *t)
		}
		if p := r.spec.TopP; p != nil {
			s.set("gen_ai.request.top_p", *p)
		}
		s.setText("synapse.request.reasoning_effort", string(r.spec.Effort))
	}
	if r.f.opt.Content {
		s.setText("gen_ai.input.messages", messages(r.added))
	}
}

func (r *runFold) endChat(at time.Time, class, words string) {
	if r.chat != nil {
		r.chat.End = at
		r.fail(r.chat, class, words)
		r.chat = nil
	}
}

// fail marks a span as failed. The words may quote a model or a tool.
func (r *runFold) fail(s *Span, class, words string) {
	if s.Error = class; class == "" {
		s.Error = "_OTHER"
	}
	if r.f.opt.Content {
		s.Message = words
	}
}

func (r *runFold) reply(at time.Time, b *synapse.ModelReplied) {
	s := r.chat
	r.chat, r.added = nil, nil
	if s == nil { // its request is not among the events
		return
	}
	s.End = at
	s.setUsage(b.Usage)
	if b.Model != "" {
		name := b.Model
		if ref, err := synapse.ParseModelRef(b.Model); err == nil && ref.Provider == r.model.Provider {
			name = ref.Name
		}
		s.set("gen_ai.response.model", name)
	}
	if b.Stop != "" {
		s.set("gen_ai.response.finish_reasons", []string{finishReason(b.Stop)})
	}
	if r.f.opt.Content {
		s.setText("gen_ai.output.messages", output(b.Message, b.Stop))
	}
}

func (r *runFold) call(at time.Time, c *synapse.ToolCall, intent, key string) *Span {
	place := key
	if place == "" { // refused before it had a place
		place = fmt.Sprintf("t%d/call/%s", r.turn, c.ID)
	}
	s := r.f.span(r.key("/"+place), "execute_tool "+c.Name, KindInternal, at, r.span)
	s.set("gen_ai.operation.name", "execute_tool")
	s.set("gen_ai.tool.name", c.Name)
	s.set("gen_ai.tool.type", "function")
	s.setText("gen_ai.tool.call.id", c.ID)
	s.setText("synapse.call.key", key)
	if r.spec != nil {
		s.set("gen_ai.agent.name", r.spec.Agent)
	}
	if r.f.opt.Content {
		s.setText("synapse.call.intent", intent)
		s.setText("gen_ai.tool.call.arguments", c.Args)
	}
	r.calls[c.ID], r.byCall[c.ID] = s, s
	return s
}

func (r *runFold) finish(at time.Time, b *synapse.ToolFinished) {
	s := r.calls[b.Result.CallID]
	if s == nil { // refused before it began
		s = r.call(at, &synapse.ToolCall{ID: b.Result.CallID, Name: b.Result.Name}, "", "")
	}
	delete(r.calls, b.Result.CallID)
	s.End = at
	switch {
	case b.Denied != "":
		r.fail(s, "denied", b.Denied)
	case b.Result.IsError:
		r.fail(s, "tool_error", b.Result.Text)
	}
	if r.f.opt.Content {
		s.setText("gen_ai.tool.call.result", b.Result.Text)
		r.result = append(r.result, b.Result)
	}
}

func (r *runFold) end(at time.Time, out *synapse.Outcome) {
	if r.chat != nil {
		class := string(out.ErrorKind)
		if class == "" {
			class = string(out.Status)
		}
		r.endChat(at, class, out.Cause)
	}
	for _, s := range r.calls {
		s.End = at
		s.set("synapse.open", true)
	}
	s := r.span
	s.End = at
	s.set("synapse.run.status", string(out.Status))
	s.set("synapse.run.turns", int64(out.Turns))
	s.setText("synapse.run.limit", out.Limit)
	s.setCount("synapse.run.failed_children", int64(out.Failed))
	s.setUsage(out.Usage)
	s.set("synapse.total.input_tokens", out.Total.InputTokens)
	s.set("synapse.total.output_tokens", out.Total.OutputTokens)
	if out.Total.CostUSD != nil {
		s.set("synapse.total.cost_usd", *out.Total.CostUSD)
	}
	switch out.Status {
	case synapse.StatusCompleted, synapse.StatusPartial:
	default:
		class := string(out.ErrorKind)
		if class == "" {
			class = string(out.Status)
		}
		r.fail(s, class, out.Cause)
	}
	if r.f.opt.Content && out.Text != "" {
		s.set("gen_ai.output.messages", output(synapse.AssistantText(out.Text), synapse.StopEnd))
	}
	r.chat, r.calls = nil, map[string]*Span{}
	r.past, r.span = r.span, nil
}

// cutOff closes what is open with the run's last event.
func (r *runFold) cutOff() {
	if r.span == nil {
		r.span = r.past // for the link of a later start
		return
	}
	open := []*Span{r.span}
	if r.chat != nil {
		open = append(open, r.chat)
	}
	for _, s := range r.calls {
		open = append(open, s)
	}
	for _, s := range open {
		if r.last.After(s.End) {
			s.End = r.last
		}
		s.set("synapse.open", true)
	}
	r.chat = nil
}

// provider is the conventions' name of a provider, our own where they have none.
func provider(ref synapse.ModelRef) string {
	switch ref.Provider {
	case "gemini":
		return "gcp.gemini"
	case "bedrock":
		return "aws.bedrock"
	case "vertex":
		return "gcp.vertex_ai"
	case "azure":
		return "azure.ai.openai"
	}
	return ref.Provider
}

func finishReason(s synapse.StopReason) string {
	switch s {
	case synapse.StopEnd:
		return "stop"
	case synapse.StopCalls:
		return "tool_call"
	case synapse.StopFilter:
		return "content_filter"
	}
	return string(s)
}

// A contentPart is a piece of a message as the conventions write it.
type contentPart struct {
	Type      string          `json:"type"`
	Content   string          `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Response  string          `json:"response,omitempty"`
	MIME      string          `json:"mime_type,omitempty"`
}

type contentMessage struct {
	Role   string        `json:"role"`
	Parts  []contentPart `json:"parts"`
	Finish string        `json:"finish_reason,omitempty"`
}

func instructions(system string) string {
	if system == "" {
		return ""
	}
	return marshal([]contentPart{{Type: "text", Content: system}})
}

func messages(list []synapse.Message) string {
	if len(list) == 0 {
		return ""
	}
	out := make([]contentMessage, len(list))
	for i, m := range list {
		out[i] = content(m)
	}
	return marshal(out)
}

func output(m synapse.Message, stop synapse.StopReason) string {
	c := content(m)
	c.Finish = finishReason(stop)
	return marshal([]contentMessage{c})
}

func content(m synapse.Message) contentMessage {
	out := contentMessage{Role: string(m.Role), Parts: []contentPart{}}
	for _, p := range m.Parts {
		switch {
		case p.Call != nil:
			args := json.RawMessage(p.Call.Args)
			if !json.Valid(args) {
				args, _ = json.Marshal(p.Call.Args) // a string always can be
			}
			out.Parts = append(out.Parts, contentPart{Type: "tool_call", ID: p.Call.ID, Name: p.Call.Name, Arguments: args})
		case p.Result != nil:
			out.Parts = append(out.Parts, contentPart{Type: "tool_call_response", ID: p.Result.CallID, Response: p.Result.Text})
		case p.Media != nil: // its bytes stay here
			out.Parts = append(out.Parts, contentPart{Type: "blob", Name: p.Media.Name, MIME: p.Media.Type})
		case p.Kind == synapse.PartReasoning:
			out.Parts = append(out.Parts, contentPart{Type: "reasoning", Content: p.Text})
		default:
			out.Parts = append(out.Parts, contentPart{Type: "text", Content: p.Text})
		}
	}
	return out
}

// resultsMessage is the message that the results of a batch make.
func resultsMessage(results []synapse.ToolResult) []synapse.Message {
	if len(results) == 0 {
		return nil
	}
	m := synapse.Message{Role: synapse.RoleTool}
	for i := range results {
		m.Parts = append(m.Parts, synapse.Part{Kind: synapse.PartResult, Result: &results[i]})
	}
	return []synapse.Message{m}
}

func marshal(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "" // texts and valid JSON: it can't fail
	}
	return string(data)
}
