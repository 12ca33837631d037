package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/run"
)

// A Player answers the requests of one trace from a recording. It may be used
// from several goroutines.
type Player struct {
	rec    *Recording
	normal *normal
	stop   func()

	mu    sync.Mutex
	turns map[string]map[int]*Turn
	asked map[*Turn]bool
	first *Difference
}

// NewPlayer returns a player of a recording. Stop, unless it is nil, is called at
// the first difference: what comes after it says nothing more.
func NewPlayer(rec *Recording, opt Options, stop func()) *Player {
	p := &Player{rec: rec, normal: newNormal(opt), stop: stop, turns: map[string]map[int]*Turn{}, asked: map[*Turn]bool{}}
	for _, t := range rec.Turns {
		if p.turns[t.Run] == nil {
			p.turns[t.Run] = map[int]*Turn{}
		}
		p.turns[t.Run][t.Turn] = t
	}
	return p
}

// A Difference is where a replay is not what was recorded.
type Difference struct {
	Run  string // the path of the run
	Turn int
	Part string // of the request: model, system prompt, tools, messages and so on
	Diff string // lines, with - for what was recorded and + for what is asked now
}

// Error says where, and shows the difference below.
func (d *Difference) Error() string {
	text := "the replay differs from the recording"
	if d.Run != "" {
		text += ": " + d.Run
	}
	if d.Turn > 0 {
		text += fmt.Sprintf(", turn %d", d.Turn)
	}
	return text + ": " + d.Part + "\n" + strings.TrimRight(d.Diff, "\n")
}

// Intercept answers a request from the recording, after comparing the two. Ask is
// never called.
func (p *Player) Intercept(ctx context.Context, req *run.ModelRequest, _ run.AskModel) (*synapse.Reply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, d := p.find(req)
	if d == nil {
		var err error
		if d, err = p.compare(t, req); err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
	}
	if d != nil {
		if p.first == nil {
			p.first = d
			if p.stop != nil {
				p.stop()
			}
		}
		return nil, fmt.Errorf("%s, turn %d: the replay differs from the recording: %s", d.Run, d.Turn, d.Part)
	}
	p.asked[t] = true
	if t.Failure != nil {
		return nil, t.Failure.err()
	}
	return p.normal.given(t.Reply)
}

// Finish returns the first difference of a request that has ended, what was
// recorded and never asked included; nil when there is none.
func (p *Player) Finish() *Difference {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first != nil {
		return p.first
	}
	var left []string
	for _, t := range p.rec.Turns {
		if !p.asked[t] {
			left = append(left, fmt.Sprintf("- %s, turn %d", t.Run, t.Turn))
		}
	}
	if len(left) == 0 {
		return nil
	}
	slices.SortFunc(left, natural)
	part := fmt.Sprintf("%d of the %d recorded requests were not made", len(left), len(p.rec.Turns))
	return &Difference{Part: part, Diff: strings.Join(clip(left, maxLines), "\n")}
}

// find returns the recorded turn of a request.
func (p *Player) find(req *run.ModelRequest) (*Turn, *Difference) {
	turns, ok := p.turns[req.Path]
	if t := turns[req.Turn]; t != nil {
		return t, nil
	}
	d := &Difference{Run: req.Path, Turn: req.Turn}
	if ok {
		d.Part = "it was not asked so often"
		d.Diff = fmt.Sprintf("- %d\n+ %d", len(turns), req.Turn)
		return nil, d
	}
	d.Part = "there was no such run"
	var lines []string
	for path := range p.turns {
		lines = append(lines, "- "+path)
	}
	slices.SortFunc(lines, natural)
	d.Diff = strings.Join(append(clip(lines, maxLines), "+ "+req.Path), "\n")
	return nil, d
}

// compare finds the first difference between a recorded request and this one.
func (p *Player) compare(t *Turn, req *run.ModelRequest) (*Difference, error) {
	was := p.rec.Specs[t.Spec]
	is, err := specOf(req, p.normal)
	if err != nil {
		return nil, err
	}
	differ := func(part, a, b string) *Difference {
		if a, b = p.normal.compared(a), p.normal.compared(b); a == b {
			return nil
		}
		return &Difference{Run: req.Path, Turn: req.Turn, Part: part, Diff: diff(a, b)}
	}
	for _, c := range []struct{ part, was, is string }{
		{"model", was.Model, is.Model},
		{"reasoning effort", string(was.Effort), string(is.Effort)},
		{"temperature", number(was.Temperature), number(is.Temperature)},
		{"top_p", number(was.TopP), number(is.TopP)},
		{"largest output", fmt.Sprint(was.MaxTokens), fmt.Sprint(is.MaxTokens)},
		{"system prompt", was.System, is.System},
		{"tools", toolNames(was.Tools), toolNames(is.Tools)},
	} {
		if d := differ(c.part, c.was, c.is); d != nil {
			return d, nil
		}
	}
	for i := range was.Tools {
		if d := differ("tool "+was.Tools[i].Name, toolText(was.Tools[i]), toolText(is.Tools[i])); d != nil {
			return d, nil
		}
	}
	return p.compareMessages(t, req, differ)
}

func (p *Player) compareMessages(t *Turn, req *run.ModelRequest, differ func(part, was, is string) *Difference) (*Difference, error) {
	was, err := p.conversation(t)
	if err != nil {
		return nil, err
	}
	for i := range max(len(was), len(req.Request.Messages)) {
		a, b, part := "", "", fmt.Sprintf("message %d", i+1)
		if i < len(was) {
			part += ", " + string(was[i].Role)
			a = p.messageText(was[i])
		}
		if i < len(req.Request.Messages) {
			m, err := p.normal.message(req.Request.Messages[i])
			if err != nil {
				return nil, err
			}
			if b = p.messageText(m); i >= len(was) {
				part += ", " + string(m.Role)
			}
		}
		if d := differ(part, a, b); d != nil {
			return d, nil
		}
	}
	return nil, nil
}

// conversation puts together what a recorded request had: what the turn before
// had, its reply, and what has come since.
func (p *Player) conversation(t *Turn) ([]synapse.Message, error) {
	if t.From == 0 {
		return t.Messages, nil
	}
	before := p.turns[t.Run][t.Turn-1]
	if before == nil || before.Reply == nil {
		return nil, fmt.Errorf("%s, turn %d goes on from a turn that is not there: %w", t.Run, t.Turn, ErrDamaged)
	}
	out, err := p.conversation(before)
	if err != nil {
		return nil, err
	}
	if out = append(out[:len(out):len(out)], before.Reply.Message); len(out) != t.From {
		return nil, fmt.Errorf("%s, turn %d goes on from message %d of %d: %w", t.Run, t.Turn, t.From, len(out), ErrDamaged)
	}
	return append(out, t.Messages...), nil
}

// messageText writes a message for people, so that two can be compared by lines.
func (p *Player) messageText(m synapse.Message) string {
	var b strings.Builder
	for _, part := range m.Parts {
		switch {
		case part.Call != nil:
			fmt.Fprintf(&b, "[call %s %s] %s\n", part.Call.Name, part.Call.ID, part.Call.Args)
		case part.Result != nil:
			kind := "result"
			if part.Result.IsError {
				kind = "error"
			}
			text := part.Result.Text
			if p.normal.ignore.Results {
				kind, text = "result", "$IGNORED"
			}
			fmt.Fprintf(&b, "[%s of %s %s]\n%s\n", kind, part.Result.Name, part.Result.CallID, text)
			for _, media := range part.Result.Media {
				fmt.Fprintf(&b, "[%s, %d bytes]\n", media.Type, len(media.Data))
			}
		case part.Media != nil:
			fmt.Fprintf(&b, "[%s %s, %d bytes]\n", part.Media.Type, part.Media.Name, len(part.Media.Data))
		case part.Kind == synapse.PartReasoning:
			fmt.Fprintf(&b, "[reasoning] %s\n", part.Text)
		default:
			b.WriteString(part.Text + "\n")
		}
	}
	return b.String()
}

func number(v *float64) string {
	if v == nil {
		return "unset"
	}
	return fmt.Sprint(*v)
}

func toolNames(tools []*synapse.ToolDef) string {
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
	}
	return strings.Join(names, "\n")
}

// toolText is a tool as a model reads it, with a line for each property.
func toolText(t *synapse.ToolDef) string {
	return t.Description + "\n" + strings.NewReplacer(`},"`, "},\n\"", `","`, "\",\n\"").Replace(string(t.Schema))
}
