package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/synapse-agents/synapse"
)

// A Keeper is a journal that also keeps what people add to it: names of
// conversations, and what they tell runs that go on. Both journals of this
// package are one. Its methods may be called from several goroutines, and from
// several processes.
type Keeper interface {
	// Name gives a session a name; an empty one takes it away. The error is
	// [ErrNameTaken] when another session has it.
	Name(ctx context.Context, session, name string) error
	// Names returns the names there are, by session.
	Names(ctx context.Context) (map[string]string, error)
	// Delete removes traces with all their events. Those that are not there are
	// passed over. Whoever deletes a trace that goes on breaks it.
	Delete(ctx context.Context, traces ...string) error
}

// A Mailbox is a journal through which one process tells the runs of another
// something. Both journals of this package are one.
type Mailbox interface {
	// Post leaves mail. The id is its alone.
	Post(ctx context.Context, m Mail) error
	// Mail returns what has been left for the runs of a trace, oldest first.
	Mail(ctx context.Context, trace string) ([]Mail, error)
	// Taken removes mail that has reached its run.
	Taken(ctx context.Context, ids ...string) error
}

// Mail is a signal on its way to a run.
type Mail struct {
	Trace, Run string
	Time       time.Time
	synapse.Signal
}

// ErrNameTaken says that another session has the name.
var ErrNameTaken = errors.New("another session has this name")

// A Session is a conversation: one request after the other, each a trace.
type Session struct {
	ID        string    `json:"session_id"`
	Name      string    `json:"name,omitempty"`
	Workspace string    `json:"workspace,omitempty"`
	Agent     string    `json:"agent"` // the main agent of the last request
	Model     string    `json:"model,omitempty"`
	Started   time.Time `json:"started"`
	// Updated is when the last request ended, for one without an end when it began.
	Updated time.Time `json:"updated"`
	Prompt  string    `json:"prompt"` // first line of the first request
	// Last is the trace of the last request, and Status how that ended.
	Last   string         `json:"last_trace_id"`
	Status synapse.Status `json:"status"`
	Traces []string       `json:"trace_ids"` // the requests, in order
	Usage  synapse.Usage  `json:"usage"`
}

// Sessions lists the conversations of a journal, the one spoken in last first.
// Requests that belong to none are left out.
func Sessions(ctx context.Context, j Journal) ([]*Session, error) {
	names := map[string]string{}
	if k, ok := j.(Keeper); ok {
		var err error
		if names, err = k.Names(ctx); err != nil {
			return nil, err
		}
	}
	byID := map[string]*Session{}
	var all []*Session
	for s, err := range j.Traces(ctx, TraceQuery{}) { // the latest first
		if err != nil {
			return nil, err
		}
		if s.Session == "" {
			continue
		}
		session := byID[s.Session]
		if session == nil {
			session = &Session{
				ID: s.Session, Name: names[s.Session], Workspace: s.Workspace, Agent: s.Agent, Model: s.Model,
				Updated: s.Started, Last: s.Trace, Status: s.Status,
			}
			if !s.Ended.IsZero() {
				session.Updated = s.Ended
			}
			byID[s.Session] = session
			all = append(all, session)
		}
		session.Started, session.Prompt = s.Started, s.Prompt
		session.Traces = append(session.Traces, s.Trace)
		session.Usage = session.Usage.Add(s.Usage)
	}
	for _, s := range all {
		slices.Reverse(s.Traces)
	}
	slices.SortStableFunc(all, func(a, b *Session) int { return b.Updated.Compare(a.Updated) })
	return all, nil
}

// Name implements [Keeper].
func (m *Memory) Name(ctx context.Context, session, name string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("journal: name a session: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, n := range m.names {
		if name != "" && n == name && id != session {
			return fmt.Errorf("journal: name a session: %q: %w", name, ErrNameTaken)
		}
	}
	if m.names == nil {
		m.names = map[string]string{}
	}
	if m.names[session] = name; name == "" {
		delete(m.names, session)
	}
	return nil
}

// Names implements [Keeper].
func (m *Memory) Names(ctx context.Context) (map[string]string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	all := make(map[string]string, len(m.names))
	for id, name := range m.names {
		all[id] = name
	}
	return all, ctx.Err()
}

// Delete implements [Keeper].
func (m *Memory) Delete(ctx context.Context, traces ...string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("journal: delete: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range traces {
		delete(m.traces, name)
		m.mail = slices.DeleteFunc(m.mail, func(mail Mail) bool { return mail.Trace == name })
	}
	return nil
}

// Post implements [Mailbox].
func (m *Memory) Post(ctx context.Context, mail Mail) error {
	if err := cmp.Or(ctx.Err(), checkMail(mail)); err != nil {
		return fmt.Errorf("journal: post: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.ContainsFunc(m.mail, func(other Mail) bool { return other.ID == mail.ID }) {
		return fmt.Errorf("journal: post: there is mail with the id %q", mail.ID)
	}
	m.mail = append(m.mail, mail)
	return nil
}

// Mail implements [Mailbox].
func (m *Memory) Mail(ctx context.Context, trace string) ([]Mail, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var all []Mail
	for _, mail := range m.mail {
		if mail.Trace == trace {
			all = append(all, mail)
		}
	}
	return all, ctx.Err()
}

// Taken implements [Mailbox].
func (m *Memory) Taken(ctx context.Context, ids ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mail = slices.DeleteFunc(m.mail, func(mail Mail) bool { return slices.Contains(ids, mail.ID) })
	return ctx.Err()
}

// checkMail refuses mail that no run could get.
func checkMail(m Mail) error {
	switch m.Kind {
	case synapse.SignalSend, synapse.SignalPause, synapse.SignalContinue, synapse.SignalStop:
	default:
		return fmt.Errorf("there is no signal %q", m.Kind)
	}
	if m.ID == "" || m.Trace == "" || m.Run == "" {
		return errors.New("mail needs an id, a trace and a run")
	}
	return nil
}
