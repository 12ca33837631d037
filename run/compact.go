package run

import (
	"errors"
	"fmt"
	"reflect"
	"sort"
	"strings"

	"github.com/synapse-agents/synapse"
)

// The shares of a model's window at which a conversation is made smaller: first
// old results are folded, and when that is not enough, a summary takes the place
// of all but the task and the last turns. What is left is to be below compactTo,
// or the next turn would do it again.
const (
	foldAt    = 0.60
	summaryAt = 0.75
	foldGain  = 0.10 // what folding has to win: each time the provider's prompt cache is lost
	tailShare = 0.15 // of the window: what stays of the last turns, word for word
)

// minFolded is the size of a result from which folding is worth it, in bytes, and
// freshTurns are the last turns whose results stay whole.
const (
	minFolded  = 2 << 10
	freshTurns = 2
)

// bytesPerToken is how a size is guessed where no provider has counted.
const bytesPerToken = 4

const summaryPrompt = `The conversation is about to outgrow your context window. Write what you need to go on without it. State:
1. What was asked of you, with every condition.
2. What you have done and found: facts, file names with lines, decisions and why, in full detail where they matter later.
3. What failed, so that it is not tried again.
4. What is left to do, and the next step.
Write for yourself, in plain text. Call no tools.`

// compact makes the conversation smaller when it comes near the model's window,
// or when must is set because a provider has refused it. It reports whether it has
// changed anything.
func (l *loop) compact(must bool) (changed bool, err error) {
	window := l.in.Window
	if window == 0 && !must {
		return false, nil
	}
	tokens := l.tokens()
	if !must && float64(tokens) < foldAt*float64(window) {
		return false, nil
	}
	if ids, gain := foldable(l.st.Messages); gain > 0 && (must || float64(gain) >= foldGain*float64(window)) {
		l.shrunk(&synapse.Compacted{Before: tokens, Folded: ids})
		changed = true
		tokens = l.tokens()
	}
	if !must && float64(tokens) < summaryAt*float64(window) || must && changed {
		return changed, nil
	}
	e := l.split(window)
	if e == nil {
		return changed, nil
	}
	e.Before = tokens
	text, err := l.summary(e)
	if err != nil {
		return changed, err
	}
	e.Summary = text + l.standings()
	l.shrunk(e)
	return true, nil
}

// shrunk applies a compaction and tells of it.
func (l *loop) shrunk(e *synapse.Compacted) {
	size := func() (n int) {
		for _, m := range l.st.Messages {
			n += sizeOf(m)
		}
		return n
	}
	before := size()
	l.st.Messages = compacted(l.st.Messages, e)
	if e.Summary != "" {
		l.base = e.Head + 1
	}
	e.After = max(e.Before-(before-size())/bytesPerToken, 0)
	l.counted, l.countedAt = e.After, len(l.st.Messages)
	l.rt.Emit(e)
}

// tokens is about how much of the window the conversation takes: what the provider
// counted at the last reply, and a guess for what has come since.
func (l *loop) tokens() int {
	n := l.counted
	if l.countedAt == 0 {
		n = len(l.ps.spec.System) / bytesPerToken
		for _, def := range l.ps.defs {
			n += (len(def.Description) + len(def.Schema)) / bytesPerToken
		}
	}
	for _, m := range l.st.Messages[min(l.countedAt, len(l.st.Messages)):] {
		n += sizeOf(m) / bytesPerToken
	}
	return n
}

// sizeOf is about how large a message is, in bytes.
func sizeOf(m synapse.Message) int {
	n := 0
	for _, p := range m.Parts {
		n += len(p.Text) + len(p.Opaque)
		if p.Call != nil {
			n += len(p.Call.Name) + len(p.Call.Args)
		}
		if p.Result != nil {
			n += len(p.Result.Text)
		}
	}
	return n
}

// foldable returns the ids of the calls whose results are old and large, and about
// how many tokens that wins.
func foldable(messages []synapse.Message) (ids []string, gain int) {
	fresh := 0
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role != synapse.RoleTool {
			continue
		}
		if fresh++; fresh <= freshTurns {
			continue
		}
		for _, p := range messages[i].Parts {
			// A sub-agent's report is what the turns were for.
			if p.Result != nil && len(p.Result.Text) >= minFolded && !isDelegation(p.Result.Name) {
				ids = append(ids, p.Result.CallID)
				gain += len(p.Result.Text) / bytesPerToken
			}
		}
	}
	sort.Strings(ids)
	return ids, gain
}

// split says what a summary leaves: the preloaded skills, the prompt of this start
// and the last turns. Nil when nothing would be won.
func (l *loop) split(window int) *synapse.Compacted {
	msgs := l.st.Messages
	e := &synapse.Compacted{Prompt: l.base - 1}
	if n := len(l.ps.spec.Preload); n <= e.Prompt && reflect.DeepEqual(msgs[:n], l.ps.spec.Preload) {
		e.Head = n
	}
	room := int(tailShare * float64(window) * bytesPerToken)
	if window == 0 {
		room = 32 << 10
	}
	// The tail begins with a reply, so that no result is without its call.
	for i, size := len(msgs)-1, 0; i > e.Prompt; i-- {
		if size += sizeOf(msgs[i]); size > room {
			break
		}
		if msgs[i].Role == synapse.RoleAssistant {
			e.Tail = len(msgs) - i
		}
	}
	if len(msgs)-e.Tail-1-e.Head <= 1 {
		return nil
	}
	return e
}

// summary has the agent's own model write down what it needs of what goes. When it
// can't, what its replies said stands in for it: the run goes on either way.
func (l *loop) summary(e *synapse.Compacted) (string, error) {
	keep := len(l.st.Messages) - e.Tail
	messages := append(l.st.Messages[:keep:keep], synapse.UserText(summaryPrompt))
	in := l.modelInput(nil)
	in.Request.Messages = messages
	var reply *synapse.Reply
	err := l.rt.Call(l.at+"/summary", HandlerModel, in, l.options(synapse.EffectRead)).Get(&reply)
	var limit *LimitError
	switch {
	case isEnd(err), errors.As(err, &limit):
		return "", err
	case err == nil:
		e.Usage, e.Model = &reply.Usage, reply.Model
		l.usage, l.total = l.usage.Add(reply.Usage), l.total.Add(reply.Usage)
		if text := strings.TrimSpace(reply.Message.Text()); text != "" {
			return "What was said and done before, in your own words:\n\n" + text, nil
		}
	}
	var said strings.Builder
	said.WriteString("What came before was left out, since it did not fit. Of it, you had said:\n")
	for _, m := range l.st.Messages[e.Head:keep] {
		if text := m.Text(); m.Role == synapse.RoleAssistant && text != "" {
			fmt.Fprintf(&said, "- %s\n", shorten(oneLine(text), 300))
		}
	}
	return shorten(said.String(), 16<<10), nil
}

// standings tells of the sub-agents, whose calls may be among what goes.
func (l *loop) standings() string {
	if len(l.st.Children) == 0 {
		return ""
	}
	children := make([]*Child, 0, len(l.st.Children))
	for _, c := range l.st.Children {
		children = append(children, c)
	}
	sort.Slice(children, func(i, j int) bool { return children[i].Task < children[j].Task })
	var text strings.Builder
	text.WriteString("\n\nSub-agents so far:\n")
	for _, c := range children {
		state := "is still running"
		if c.Done {
			state = ending(c.Outcome) + ": " + shorten(oneLine(c.Outcome.Text), 500)
		}
		fmt.Fprintf(&text, "- %s, task %s (%s) %s\n", c.Agent, c.Task, oneLine(c.Description), state)
	}
	return text.String()
}

// compacted is a conversation after a compaction. The loop and the fold of events
// share it, so that both have the same.
func compacted(messages []synapse.Message, e *synapse.Compacted) []synapse.Message {
	if e.Summary != "" {
		out := append([]synapse.Message(nil), messages[:min(e.Head, len(messages))]...)
		if e.Prompt < len(messages) {
			out = append(out, messages[e.Prompt])
		}
		out = append(out, synapse.UserText(e.Summary))
		return append(out, messages[max(len(messages)-e.Tail, 0):]...)
	}
	folded := make(map[string]bool, len(e.Folded))
	for _, id := range e.Folded {
		folded[id] = true
	}
	out := append([]synapse.Message(nil), messages...)
	for i, m := range out {
		if m.Role != synapse.RoleTool {
			continue
		}
		parts := append([]synapse.Part(nil), m.Parts...)
		for j, p := range parts {
			if p.Result == nil || !folded[p.Result.CallID] || len(p.Result.Text) < minFolded {
				continue
			}
			r := *p.Result
			r.Text = fmt.Sprintf("%s\n[%d bytes of this old result were folded away; call the tool again if you need them]", shorten(firstLine(r.Text), 200), len(r.Text))
			r.Media, r.Details = nil, nil
			parts[j].Result = &r
		}
		out[i].Parts = parts
	}
	return out
}

// kept shortens a result that would fill much of the window: the whole of it is
// kept where read_file finds it.
func (l *loop) kept(s *step, r *synapse.ToolResult) {
	most := maxResult / 2
	if w := l.in.Window; w > 0 {
		most = min(most, max(w*bytesPerToken/8, 8<<10))
	}
	if len(r.Text) <= most || !l.ps.spec.Policy.Allows("read_file") || s.call.Name == "read_file" {
		return
	}
	name := strings.NewReplacer("/", "-").Replace(l.in.Run+"/"+s.key) + ".txt"
	path := ""
	if err := l.rt.Call(s.key+"/keep", HandlerKeep, &KeepInput{Name: name, Text: r.Text}, l.options(synapse.EffectKeyed)).Get(&path); err != nil {
		return // it is cut where every message is
	}
	head := shorten(r.Text, most*3/4)
	tail := r.Text[len(r.Text)-most/8:]
	if i := strings.IndexByte(tail, '\n'); i >= 0 {
		tail = tail[i+1:]
	}
	r.Text = fmt.Sprintf("%s\n[… %d bytes in all: the whole of it is in %s, for read_file …]\n%s", head, len(r.Text), path, strings.ToValidUTF8(tail, ""))
}
