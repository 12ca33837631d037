package tui

import (
	"context"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/synapse-agents/synapse"
)

// frame is how often what streams in gets to the screen. Between two frames the
// user's keys have the program to themselves.
const frame = 33 * time.Millisecond

// A pump takes events from where they come, as fast as they come, and hands them
// to the model a frame at a time. Pieces of one text are joined on the way; no
// event is ever dropped.
type pump struct {
	mu    sync.Mutex
	batch batch
	grown map[*synapse.Event]*strings.Builder // the texts that pieces were joined to
	ready chan struct{}
	last  time.Time
}

// A batch is what has come in since the last frame.
type batch struct {
	events []*synapse.Event
	ended  bool // the request is over
	err    error
}

func newPump() *pump { return &pump{ready: make(chan struct{}, 1)} }

// put takes an event.
func (p *pump) put(e *synapse.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.merge(e) {
		p.batch.events = append(p.batch.events, e)
	}
	p.signal()
}

// end says that the request is over.
func (p *pump) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.batch.ended, p.batch.err = true, err
	p.signal()
}

func (p *pump) signal() {
	select {
	case p.ready <- struct{}{}:
	default:
	}
}

// merge joins a piece of text to the one before it, if that is of the same kind
// and run. Events are shared with others, so that a copy grows.
func (p *pump) merge(e *synapse.Event) bool {
	n := len(p.batch.events)
	if n == 0 {
		return false
	}
	last := p.batch.events[n-1]
	if last.Run != e.Run || last.Kind != e.Kind {
		return false
	}
	var before, piece string
	switch b := e.Body.(type) {
	case *synapse.Text:
		before, piece = last.Body.(*synapse.Text).Text, b.Text
	case *synapse.Reasoning:
		before, piece = last.Body.(*synapse.Reasoning).Text, b.Text
	default:
		return false
	}
	text := p.grown[last]
	if text == nil {
		joined := *last
		text = &strings.Builder{}
		text.WriteString(before)
		p.batch.events[n-1] = &joined
		last = &joined
		if p.grown == nil {
			p.grown = map[*synapse.Event]*strings.Builder{}
		}
		p.grown[last] = text
	}
	text.WriteString(piece)
	if e.Kind == synapse.KindText {
		last.Body = &synapse.Text{Text: text.String()}
	} else {
		last.Body = &synapse.Reasoning{Text: text.String()}
	}
	return true
}

// wait is a command that brings the next batch, or nothing when the context ends.
func (p *pump) wait(ctx context.Context) tea.Cmd {
	return func() tea.Msg {
		select {
		case <-p.ready:
		case <-ctx.Done():
			return nil
		}
		p.mu.Lock()
		rest := frame - time.Since(p.last)
		p.mu.Unlock()
		if rest > 0 {
			time.Sleep(rest)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		b := p.batch
		p.batch, p.grown, p.last = batch{}, nil, time.Now()
		return b
	}
}
