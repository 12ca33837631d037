package host

import (
	"context"
	"errors"
	"iter"
	"slices"
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
	h *Host

	mu       sync.Mutex
	messages []synapse.Message
	sent     int
	owner    string // the spec that answers; empty: the main agent's
}

// NewSession starts a conversation.
func (h *Host) NewSession() *Session { return &Session{h: h} }

// Messages returns the conversation so far.
func (s *Session) Messages() []synapse.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

// Send runs a request within the conversation and yields its events, as
// [Host.Run] does. Definitions and settings that have changed since the last
// request hold for this one.
func (s *Session) Send(ctx context.Context, prompt string) iter.Seq2[*synapse.Event, error] {
	return func(yield func(*synapse.Event, error) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.sent++; s.sent > 1 {
			if err := s.h.Refresh(ctx); err != nil {
				yield(nil, err)
				return
			}
		}
		var events []*synapse.Event
		main := ""
		defer func() {
			if st, err := run.Fold(trace.Of(events...), main); err == nil {
				s.messages, s.owner = st.Messages, st.Spec.ID
			}
		}()
		for e, err := range s.h.Run(ctx, Input{Prompt: prompt, Messages: s.messages, Spec: s.h.ownerOf(s.owner)}) {
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

// ownerOf returns the spec of a conversation's owner, empty for the main agent,
// also when the owner is no longer there.
func (h *Host) ownerOf(id string) string {
	for _, e := range h.Graph().Edges {
		if e.Kind == synapse.EdgeTransfer && e.To == id {
			return id
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
