package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/run"
	"github.com/synapse-agents/synapse/trace"
)

// A Session is a conversation: what one request said is before the next one.
// Requests of a session run one after the other; a Session may be handed from
// goroutine to goroutine.
type Session struct {
	h  *Host
	id string

	// OnChange, where set, is told what has changed in definitions and settings
	// since the last request, before the next one runs. It is set before the
	// first request.
	OnChange func(Change)

	mu     sync.Mutex
	before *run.State // nil before the first request
	last   string     // the trace of the last request; empty in a fork's beginning
	sent   int
}

// NewSession starts a conversation.
func (h *Host) NewSession() *Session { return &Session{h: h, id: newSessionID()} }

func newSessionID() string { return "s-" + strings.ToLower(rand.Text()[:12]) }

// OpenSession goes on with a conversation that is in the journal.
func (h *Host) OpenSession(ctx context.Context, id string) (*Session, error) {
	all, err := trace.Sessions(ctx, h.journal)
	if err != nil {
		return nil, err
	}
	for _, found := range all {
		if found.ID != id {
			continue
		}
		s := &Session{h: h, id: id, last: found.Last}
		if s.before, err = h.conversation(ctx, s.last); err != nil {
			return nil, err
		}
		return s, nil
	}
	return nil, fmt.Errorf("there is no session %q", id)
}

// Fork starts a conversation that begins with what has been said in this one.
func (s *Session) Fork() *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Session{h: s.h, id: newSessionID(), before: s.before}
}

// ID returns the session's id.
func (s *Session) ID() string { return s.id }

// Messages returns the conversation so far.
func (s *Session) Messages() []synapse.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.before == nil {
		return nil
	}
	return slices.Clone(s.before.Messages)
}

// CutOff returns the trace of the last request if that was cut off: [Session.Resume]
// takes it up. Otherwise it returns nothing.
func (s *Session) CutOff(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == "" {
		return "", nil
	}
	for sum, err := range s.h.journal.Traces(ctx, trace.TraceQuery{Trace: s.last, Open: true}) {
		if err != nil {
			return "", err
		}
		return sum.Trace, nil
	}
	return "", nil
}

// Resume goes on with the last request where it was cut off, as [Host.Resume] does.
func (s *Session) Resume(ctx context.Context) iter.Seq2[*synapse.Event, error] {
	return func(yield func(*synapse.Event, error) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		defer func() {
			if st, err := s.h.conversation(context.WithoutCancel(ctx), s.last); err == nil {
				s.before = st
			}
		}()
		s.h.Resume(ctx, s.last)(yield)
	}
}

// Send runs a request within the conversation and yields its events, as
// [Host.Run] does. Definitions and settings that have changed since the last
// request hold for this one.
func (s *Session) Send(ctx context.Context, prompt string) iter.Seq2[*synapse.Event, error] {
	return func(yield func(*synapse.Event, error) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.sent++; s.sent > 1 || s.h.current().read.changed(false) {
			change, err := s.h.Update(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			if s.OnChange != nil && !change.Empty() {
				s.OnChange(change)
			}
		}
		in := Input{Prompt: prompt, Session: s.id, Spec: s.owner()}
		switch {
		case s.before != nil && s.last != "":
			in.Before, in.After = s.before, s.last
		case s.before != nil: // a fork holds its beginning itself
			in.Messages = s.before.Messages
		}
		var events []*synapse.Event
		main := ""
		defer func() {
			if st, err := run.FoldAfter(in.Before, trace.Of(events...), main); err == nil {
				s.before, s.last = st, main
			}
		}()
		for e, err := range s.h.Run(ctx, in) {
			if err != nil {
				yield(nil, err)
				return
			}
			if e.ParentRun == "" {
				main = e.Run
				if e.Kind.Stored() {
					events = append(events, e)
				}
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// owner returns the spec of the agent that the conversation was handed to, empty
// for the main agent, also when the owner is no longer there.
func (s *Session) owner() string {
	if s.before == nil {
		return ""
	}
	for _, e := range s.h.Graph().Edges {
		if e.Kind == synapse.EdgeTransfer && e.To == s.before.Spec.ID {
			return e.To
		}
	}
	return ""
}

// Switch turns an agent on or off for this user, in every workspace, from the
// next request on. The name must be one that there is.
func (h *Host) Switch(ctx context.Context, name string, on bool) error {
	a := h.current()
	dir := a.settings.UserDir()
	if dir == "" {
		return errors.New("there is no home directory to keep the switch in")
	}
	def, ok := a.registry.Get(name)
	if !ok {
		return configErrorf("there is no agent %q", name)
	}
	if on && def.Disabled && !h.switchedOff(name) {
		return configErrorf("agent %q is off by its own definition (%s): set enabled: true there", name, def.Place())
	}
	file := disabledFile(dir)
	off, err := agents.ReadDisabled(file)
	if err != nil {
		return configErrorf("%w", err)
	}
	off = slices.DeleteFunc(off, func(n string) bool { return n == name })
	if !on {
		off = append(off, name)
	}
	if err := agents.WriteDisabled(file, off); err != nil {
		return err
	}
	return h.Refresh(ctx)
}

func (h *Host) switchedOff(name string) bool {
	off, err := agents.ReadDisabled(disabledFile(h.current().settings.UserDir()))
	return err == nil && slices.Contains(off, name)
}
