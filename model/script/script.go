// Package script plays a scripted model: a synapse.Model whose replies are
// written down beforehand. It is how Synapse tests its loop, and how people who
// build on Synapse can test theirs, without a provider.
package script

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/synapse-agents/synapse"
)

// A Turn is one scripted reply.
type Turn struct {
	Reasoning string
	Text      string
	Calls     []synapse.ToolCall // an empty ID is filled in
	Usage     synapse.Usage      // zero: 10 tokens in, 5 out, at no cost
	Stop      synapse.StopReason // empty: StopCalls with calls, else StopEnd
	// Err ends the stream instead of a reply, after Text has been streamed.
	Err error
	// Delay passes before the first delta. It ends early, with the context's
	// error, when the request is cancelled.
	Delay time.Duration
	// Hang never ends the reply: the stream stays open until it is cancelled.
	Hang bool
	// Check looks at the request before the turn is played; its error fails
	// the request.
	Check func(*synapse.Request) error
}

// A Player chooses the turn for the n-th request of a conversation (from 0). It
// must be safe for use by several goroutines.
type Player func(n int, req *synapse.Request) Turn

// A Model plays turns. Create it with [New] or [Play]. It keeps every request
// it has seen. It is safe for use by several goroutines.
type Model struct {
	play Player

	mu       sync.Mutex
	seen     map[string]int // requests so far, by conversation
	requests []*synapse.Request
	inflight int
	peak     int
}

// New returns a model that plays the turns in order, whatever is asked. Past the
// last one it fails the request.
func New(turns ...Turn) *Model {
	m := &Model{}
	var mu sync.Mutex
	n := 0
	m.play = func(int, *synapse.Request) Turn {
		mu.Lock()
		defer mu.Unlock()
		if n >= len(turns) {
			return Turn{Err: fmt.Errorf("script: the %d turns are used up", len(turns))}
		}
		n++
		return turns[n-1]
	}
	return m
}

// Play returns a model whose turns are chosen by play. Conversations are told
// apart by their system prompt and first user message.
func Play(play Player) *Model { return &Model{play: play} }

// Requests returns what the model has been asked so far.
func (m *Model) Requests() []*synapse.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]*synapse.Request(nil), m.requests...)
}

// Peak returns the largest number of requests that were in flight at once.
func (m *Model) Peak() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.peak
}

// Generate plays one turn.
func (m *Model) Generate(ctx context.Context, req *synapse.Request) iter.Seq2[*synapse.Delta, error] {
	return func(yield func(*synapse.Delta, error) bool) {
		n := m.begin(req)
		defer m.end()
		turn := m.play(n, req)
		if turn.Check != nil {
			if err := turn.Check(req); err != nil {
				yield(nil, err)
				return
			}
		}
		if turn.Delay > 0 {
			timer := time.NewTimer(turn.Delay)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(nil, context.Cause(ctx))
			return
		}
		if turn.Reasoning != "" && !yield(&synapse.Delta{Kind: synapse.DeltaReasoning, Text: turn.Reasoning}, nil) {
			return
		}
		if turn.Text != "" && !yield(&synapse.Delta{Kind: synapse.DeltaText, Text: turn.Text}, nil) {
			return
		}
		if turn.Hang {
			<-ctx.Done()
			yield(nil, context.Cause(ctx))
			return
		}
		if turn.Err != nil {
			yield(nil, turn.Err)
			return
		}
		for i := range turn.Calls {
			call := turn.Calls[i]
			if call.ID == "" {
				call.ID = fmt.Sprintf("call-%d-%d", n+1, i+1)
			}
			if !yield(&synapse.Delta{Kind: synapse.DeltaCall, Call: &call}, nil) {
				return
			}
		}
		yield(&synapse.Delta{Kind: synapse.DeltaEnd, Stop: turn.stop(), Usage: turn.usage(), Model: req.Model}, nil)
	}
}

func (t *Turn) stop() synapse.StopReason {
	switch {
	case t.Stop != "":
		return t.Stop
	case len(t.Calls) > 0:
		return synapse.StopCalls
	default:
		return synapse.StopEnd
	}
}

func (t *Turn) usage() synapse.Usage {
	u := t.Usage
	if u == (synapse.Usage{}) {
		u = synapse.Usage{InputTokens: 10, OutputTokens: 5, CostUSD: new(float64)}
	}
	u.Requests = 1
	return u
}

func (m *Model) begin(req *synapse.Request) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen == nil {
		m.seen = map[string]int{}
	}
	key := req.System + "\x00" + FirstUser(req)
	n := m.seen[key]
	m.seen[key]++
	m.requests = append(m.requests, req)
	m.inflight++
	m.peak = max(m.peak, m.inflight)
	return n
}

func (m *Model) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inflight--
}

// Call returns a tool call of that name; args are marshalled, and an intent is
// added when they have none.
func Call(name string, args map[string]any) synapse.ToolCall {
	all := map[string]any{"intent": "test"}
	for k, v := range args {
		all[k] = v
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(fmt.Sprintf("script: arguments of %s: %v", name, err))
	}
	return synapse.ToolCall{Name: name, Args: string(raw)}
}

// FirstUser returns the text of the request's first user message.
func FirstUser(req *synapse.Request) string {
	for _, m := range req.Messages {
		if m.Role == synapse.RoleUser {
			return m.Text()
		}
	}
	return ""
}

// Results returns the tool results of the request's last message, joined.
func Results(req *synapse.Request) string {
	if len(req.Messages) == 0 {
		return ""
	}
	var texts []string
	for _, p := range req.Messages[len(req.Messages)-1].Parts {
		if p.Result != nil {
			texts = append(texts, p.Result.Text)
		}
	}
	return strings.Join(texts, "\n")
}
