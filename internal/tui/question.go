package tui

import (
	"context"
	"slices"
	"sync"

	tea "charm.land/bubbletea/v2"

	"github.com/synapse-agents/synapse"
)

// Grants keep what the user has allowed for good.
type Grants interface {
	Granted(ask synapse.Ask) bool
	Grant(ask synapse.Ask) error
}

// Questions put agents' questions to the user of the screen, and bring the
// answers back. Ask may be called from several goroutines, before there is a
// screen and after it is gone.
type Questions struct {
	grants Grants

	mu      sync.Mutex
	open    []*question
	session map[grant]bool
	ready   chan struct{}
	closed  bool
}

// A grant is what an answer that holds for longer is about.
type grant struct{ agent, tool, subject, args string }

// grantOf is what a yes to the question would allow from then on: the same
// agent's calls of the tool with the same subject, or, for a call that no rule's
// pattern describes, just the same call.
func grantOf(q synapse.Ask) grant {
	g := grant{agent: q.Agent, tool: q.Tool, subject: q.Subject}
	if q.Subject == "" {
		g.args = string(q.Args)
	}
	return g
}

// A question is open until it is answered or nobody waits any more.
type question struct {
	synapse.Ask
	reply chan synapse.Answer
}

// NewQuestions returns questions with what has been granted for good; nil
// offers no such answer.
func NewQuestions(g Grants) *Questions {
	return &Questions{grants: g, session: map[grant]bool{}, ready: make(chan struct{}, 1)}
}

// Ask waits for the user's answer. It has the form of host.Options.Ask.
func (k *Questions) Ask(ctx context.Context, ask synapse.Ask) (synapse.Answer, error) {
	q := &question{Ask: ask, reply: make(chan synapse.Answer, 1)}
	k.mu.Lock()
	switch {
	case k.session[grantOf(ask)] || k.grants != nil && k.grants.Granted(ask):
		k.mu.Unlock()
		return synapse.Answer{Allow: true}, nil
	case k.closed:
		k.mu.Unlock()
		return synapse.Answer{Reason: "nobody answered"}, nil
	}
	k.open = append(k.open, q)
	k.signal()
	k.mu.Unlock()
	select {
	case a := <-q.reply:
		return a, nil
	case <-ctx.Done():
		k.mu.Lock()
		defer k.mu.Unlock()
		k.open = slices.DeleteFunc(k.open, func(o *question) bool { return o == q })
		k.signal()
		return synapse.Answer{}, ctx.Err()
	}
}

func (k *Questions) signal() {
	select {
	case k.ready <- struct{}{}:
	default:
	}
}

// scope says for how long an answer holds.
type scope int

const (
	scopeOnce scope = iota
	scopeSession
	scopeProject
)

// answer answers a question, and every other open one that the answer covers.
func (k *Questions) answer(q *question, a synapse.Answer, s scope) error {
	var err error
	if a.Allow && s == scopeProject {
		err = k.grants.Grant(q.Ask)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if a.Allow && s != scopeOnce {
		k.session[grantOf(q.Ask)] = true
	}
	k.open = slices.DeleteFunc(k.open, func(o *question) bool {
		if o != q && !(a.Allow && s != scopeOnce && grantOf(o.Ask) == grantOf(q.Ask)) {
			return false
		}
		o.reply <- a
		return true
	})
	k.signal()
	return err
}

// close denies what is open, and what will be asked.
func (k *Questions) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	for _, q := range k.open {
		q.reply <- synapse.Answer{Reason: "nobody answered"}
	}
	k.open = nil
}

// asked is the message that brings the questions that are open.
type asked []*question

// wait is a command that brings the open questions when they have changed, or
// nothing when the context ends.
func (k *Questions) wait(ctx context.Context) tea.Cmd {
	if k == nil {
		return nil
	}
	return func() tea.Msg {
		select {
		case <-k.ready:
		case <-ctx.Done():
			return nil
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		return asked(slices.Clone(k.open))
	}
}
