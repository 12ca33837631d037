// Package traceview is a page that shows a trace while it grows: the tree of its
// runs, when each of them worked and for what it waited, and what it was told and
// said. It only reads the journal, so the work may be in another process.
package traceview

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/trace"
)

// pollTime is how often the journal is asked for more.
const pollTime = 300 * time.Millisecond

// maxPieces bounds what a run's line shows; the latest stay.
const maxPieces = 400

// A reader keeps the events of one trace, and what they add up to. Everybody who
// looks at the page shares it.
type reader struct {
	journal trace.Journal
	id      string

	mu      sync.Mutex
	events  []*synapse.Event
	seq     int64
	current *picture
}

// A picture is what the page shows of a trace at one moment. It is immutable.
type picture struct {
	seq   int64 // of the last event
	open  bool
	trace traceView
	runs  []*runView
}

// The values that the page gets. Times are milliseconds since 1970.
type (
	traceView struct {
		ID        string         `json:"id"`
		Prompt    string         `json:"prompt"`
		Status    synapse.Status `json:"status"`
		Start     float64        `json:"start"`
		End       float64        `json:"end"`
		TokensIn  int64          `json:"tokens_in"`
		TokensOut int64          `json:"tokens_out"`
		Cost      *float64       `json:"cost"`
	}
	runView struct {
		ID        string         `json:"id"`
		Parent    string         `json:"parent"`
		Place     int            `json:"place"` // among all runs, as they began
		Agent     string         `json:"agent"`
		What      string         `json:"what"`
		Status    synapse.Status `json:"status"`
		Cause     string         `json:"cause"`
		Model     string         `json:"model"`
		Effort    string         `json:"effort"`
		Turns     int            `json:"turns"`
		TokensIn  int64          `json:"tokens_in"`
		TokensOut int64          `json:"tokens_out"`
		Cost      *float64       `json:"cost"`
		TotalIn   int64          `json:"total_in"`
		TotalOut  int64          `json:"total_out"`
		TotalCost *float64       `json:"total_cost"`
		Elapsed   float64        `json:"elapsed"`
		Waiting   float64        `json:"waiting"`
		Retries   int            `json:"retries"`
		Pieces    []piece        `json:"pieces"`
	}
	// A piece is a stretch of a run's time.
	piece struct {
		Kind  string  `json:"kind"` // span, model, tool or wait
		Name  string  `json:"name"`
		Start float64 `json:"start"`
		End   float64 `json:"end"` // -1: it goes on
	}
)

func millis(t time.Time) float64 { return float64(t.UnixMicro()) / 1000 }

// read takes what the journal has more and returns the picture.
func (r *reader) read(ctx context.Context) (*picture, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.events)
	for e, err := range r.journal.Events(ctx, trace.Query{Trace: r.id, AfterSeq: r.seq}) {
		if err != nil {
			return r.current, fmt.Errorf("read the trace: %w", err)
		}
		r.events = append(r.events, e)
		r.seq = e.Seq
	}
	if r.current != nil && len(r.events) == before {
		return r.current, nil
	}
	p, err := r.draw()
	if err != nil {
		return r.current, err
	}
	r.current = p
	return p, nil
}

func (r *reader) draw() (*picture, error) {
	tree, err := trace.Build(trace.Of(r.events...))
	if err != nil {
		return nil, err
	}
	p := &picture{seq: r.seq, open: tree.Status == trace.StatusOpen, trace: traceView{
		ID: tree.Trace, Status: tree.Status, Start: millis(tree.Started), End: millis(tree.Ended),
		TokensIn: tree.Usage.InputTokens, TokensOut: tree.Usage.OutputTokens, Cost: tree.Usage.CostUSD,
	}}
	if len(tree.Runs) > 0 {
		p.trace.Prompt = tree.Runs[0].Prompt
	}
	pieces := timeline(r.events)
	for _, root := range tree.Runs {
		root.Walk(func(t *trace.Run, _ int) {
			v := &runView{
				ID: t.ID, Parent: t.Parent, Place: pieces[t.ID].place, Agent: t.Agent, What: t.Description, Status: t.Status, Model: t.Model, Effort: t.Effort,
				Turns: t.Turns, TokensIn: t.Usage.InputTokens, TokensOut: t.Usage.OutputTokens, Cost: t.Usage.CostUSD,
				TotalIn: t.Total.InputTokens, TotalOut: t.Total.OutputTokens, TotalCost: t.Total.CostUSD,
				Elapsed: time.Duration(t.Elapsed).Seconds() * 1000, Waiting: time.Duration(t.Waiting).Seconds() * 1000,
				Retries: t.Retries, Pieces: pieces[t.ID].pieces,
			}
			if v.What == "" {
				v.What = t.Prompt
			}
			if t.Outcome != nil {
				v.Cause = t.Outcome.Cause
			}
			p.runs = append(p.runs, v)
		})
	}
	return p, nil
}

// A line is the timeline of one run.
type line struct {
	place  int
	pieces []piece
	span   int            // where the open start is, -1 for none
	model  int            // and the open request
	tools  map[string]int // and the open calls
	asks   map[string]int
}

// timeline finds out when each run worked, and on what.
func timeline(events []*synapse.Event) map[string]*line {
	lines := map[string]*line{}
	for _, e := range events {
		l := lines[e.Run]
		if l == nil {
			l = &line{place: len(lines), span: -1, model: -1}
			lines[e.Run] = l
		}
		l.add(e)
	}
	for _, l := range lines {
		if n := len(l.pieces); n > maxPieces {
			l.pieces = append([]piece{l.pieces[0]}, l.pieces[n-maxPieces+1:]...)
		}
	}
	return lines
}

func (l *line) add(e *synapse.Event) {
	at := millis(e.Time)
	switch b := e.Body.(type) {
	case *synapse.RunStarted:
		l.end(at, l.span >= 0)
		l.tools, l.asks = map[string]int{}, map[string]int{}
		l.span = l.open("span", e.Agent, at)
	case *synapse.ModelRequested:
		l.close(&l.model, at)
		l.model = l.open("model", fmt.Sprintf("turn %d: %s", b.Turn, b.Model), at)
	case *synapse.Retry:
		l.close(&l.model, at)
		l.model = l.open("model", fmt.Sprintf("turn %d, again: %s", b.Turn, b.Model), at+time.Duration(b.After).Seconds()*1000)
	case *synapse.ModelReplied:
		l.close(&l.model, at)
	case *synapse.ToolStarted:
		if l.tools != nil {
			l.tools[b.Call.ID] = l.open("tool", b.Call.Name, at)
		}
	case *synapse.ChildStarted: // then the call is the child's work, not this run's
		if i, ok := l.tools[b.CallID]; ok {
			l.pieces[i].Kind = "child"
		}
	case *synapse.ToolFinished:
		if i, ok := l.tools[b.Result.CallID]; ok {
			l.pieces[i].End = at
			delete(l.tools, b.Result.CallID)
		}
	case *synapse.ApprovalAsked:
		if l.asks != nil {
			l.asks[b.Ask.ID] = l.open("wait", "asks for "+b.Ask.Tool, at)
		}
	case *synapse.ApprovalAnswered:
		if i, ok := l.asks[b.ID]; ok {
			l.pieces[i].End = at
			delete(l.asks, b.ID)
		}
	case *synapse.RunFinished:
		l.end(at, true)
	}
}

func (l *line) open(kind, name string, at float64) int {
	l.pieces = append(l.pieces, piece{Kind: kind, Name: name, Start: at, End: -1})
	return len(l.pieces) - 1
}

func (l *line) close(at *int, end float64) {
	if *at >= 0 {
		l.pieces[*at].End = max(end, l.pieces[*at].Start)
	}
	*at = -1
}

// end closes everything that is open.
func (l *line) end(at float64, open bool) {
	if !open {
		return
	}
	l.close(&l.span, at)
	l.close(&l.model, at)
	for _, i := range l.tools {
		l.pieces[i].End = at
	}
	for _, i := range l.asks {
		l.pieces[i].End = at
	}
	l.tools, l.asks = nil, nil
}
