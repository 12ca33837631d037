package run

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/synapse-agents/synapse"
)

// transferPrefix begins the names of the tools that hand a conversation over.
const transferPrefix = "transfer_to_"

// DefaultMaxHandoffs is how often a conversation may change hands for one user
// message.
const DefaultMaxHandoffs = 10

var transferSchema = json.RawMessage(`{"type":"object","properties":{` +
	`"reason":{"type":"string","description":"why, and what the receiver must know"}},"required":["reason"]}`)

func isTransfer(name string) bool { return strings.HasPrefix(name, transferPrefix) }

// transferDef writes what a model reads about handing over to an agent.
func transferDef(name string, to *synapse.Spec) synapse.ToolDef {
	return synapse.ToolDef{Name: name, Schema: transferSchema, Description: fmt.Sprintf(
		"Hands the conversation over to %s, who then answers the user in your place. Call it alone, when the request is theirs: %s",
		oneLine(to.Agent), shorten(oneLine(to.Description), 400))}
}

// transfer takes note that the conversation is to change hands. That happens when
// the other calls of the reply have their results.
func (l *loop) transfer(s *step) error {
	to, ok := l.ps.transfers[s.call.Name]
	var args struct{ Reason string }
	switch err := json.Unmarshal(s.v.args, &args); {
	case err != nil:
		l.refuse(s, err.Error(), "")
	case !ok:
		l.refuse(s, "nobody answers to "+s.call.Name+" any more", "")
	case l.moving != nil:
		l.refuse(s, fmt.Sprintf("not done: the same reply hands over to %s already", l.moving.To), "")
	case len(l.handed) >= l.p.maxHandoffs():
		l.refuse(s, fmt.Sprintf("not done: this request has changed hands %d times, which is as often as it may: answer the user yourself", len(l.handed)), "")
	case l.circles(to.Agent):
		l.refuse(s, fmt.Sprintf("not done: you have handed this over to %s before, and it came back with nothing done in between: answer the user, or ask them", to.Agent), "")
	default:
		l.moving = &synapse.HandedOff{From: l.ps.spec.Agent, To: to.Agent, Reason: args.Reason, CallID: s.call.ID, Spec: to, Count: len(l.handed) + 1}
		l.finished(s, synapse.TextResult(fmt.Sprintf("The conversation is handed over to %s.", to.Agent)), "")
	}
	return nil
}

func (p *Program) maxHandoffs() int {
	if p.opt.MaxHandoffs > 0 {
		return p.opt.MaxHandoffs
	}
	return DefaultMaxHandoffs
}

// A handing is one change of hands, with how much had been done by then.
type handing struct {
	from, to string
	calls    int // of tools, and sub-agents
}

// circles reports whether the same hands have passed the conversation on before,
// with nothing done since.
func (l *loop) circles(to string) bool {
	for _, h := range l.handed {
		if h.from == l.ps.spec.Agent && h.to == to && h.calls == l.work() {
			return true
		}
	}
	return false
}

func (l *loop) work() int { return l.toolCalls + len(l.st.Children) }

// handOver makes the receiver the owner of the conversation. Its limits count
// from here, within those of the request.
func (l *loop) handOver() error {
	moved := l.moving
	l.moving = nil
	ps, err := l.p.prepared(moved.Spec)
	if err != nil {
		return err
	}
	l.handed = append(l.handed, handing{moved.From, moved.To, l.work()})
	moved.Messages = filtered(l.st.Messages, moved)
	if len(l.handed) == 1 {
		l.whole = l.in.Limits
	}
	own := moved.Spec.Limits
	if own.Turns > 0 {
		own.Turns += l.turn
	}
	if own.ToolCalls > 0 {
		own.ToolCalls += l.toolCalls
	}
	l.in.Limits = l.whole.Min(own)
	if own.Time > 0 {
		until := l.rt.Now().Add(time.Duration(own.Time))
		if l.in.Deadline.IsZero() || until.Before(l.in.Deadline) {
			l.in.Deadline = until
		}
	}
	l.rt.Emit(moved)
	l.st.handOver(moved)
	if moved.Messages != nil {
		l.base = len(l.st.Messages)
	}
	l.ps = ps
	return nil
}

// handOver takes a change of hands into the state.
func (st *State) handOver(b *synapse.HandedOff) {
	st.Spec = b.Spec
	if b.Messages != nil {
		st.Messages = append([]synapse.Message(nil), b.Messages...)
	}
}

// filtered returns what of the conversation the new owner sees; nil for all.
func filtered(messages []synapse.Message, moved *synapse.HandedOff) []synapse.Message {
	if moved.Spec.History == "" || moved.Spec.History == synapse.HistoryFull {
		return nil
	}
	last := len(messages) - 1
	for ; last > 0; last-- {
		if messages[last].Role == synapse.RoleUser {
			break
		}
	}
	note := fmt.Sprintf("%s has handed this conversation over to you: %s", moved.From, moved.Reason)
	if moved.Spec.History == synapse.HistorySummary {
		note += "\n\nWhat was said before:\n" + digestOf(messages[:max(last, 0)])
	}
	out := []synapse.Message{synapse.UserText(note)}
	if last >= 0 {
		out = append(out, messages[last])
	}
	return out
}

// maxDigest bounds the digest of a conversation, and of one message in it, in
// bytes.
const (
	maxDigest  = 8 << 10
	maxExcerpt = 600
)

// digestOf tells a conversation in excerpts, without what tools have said. It is
// not a model's summary: that would be a request that nobody has asked for.
func digestOf(messages []synapse.Message) string {
	var lines []string
	size := 0
	for i := len(messages) - 1; i >= 0; i-- {
		m := messages[i]
		text := oneLine(m.Text())
		if m.Role == synapse.RoleTool || text == "" {
			continue
		}
		line := string(m.Role) + ": " + shorten(text, maxExcerpt)
		if size += len(line) + 1; size > maxDigest {
			lines = append(lines, "…")
			break
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return "(nothing)"
	}
	for i, j := 0, len(lines)-1; i < j; i, j = i+1, j-1 {
		lines[i], lines[j] = lines[j], lines[i]
	}
	return strings.Join(lines, "\n")
}
