package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/synapse-agents/synapse"
)

// frameTime is how often a live view is drawn again.
const frameTime = 100 * time.Millisecond

// view shows on standard error what a request does: a live tree of its runs on a
// terminal, else a line for each start and end. Its methods may be called from
// several goroutines.
type view struct {
	out     io.Writer
	live    bool
	color   bool
	verbose bool
	ask     *asker

	mu     sync.Mutex
	runs   map[string]*runView
	order  []*runView // as they started
	begun  time.Time
	drawn  int // lines on the screen that belong to the tree
	frame  int
	paused bool
	done   chan struct{}
	idle   sync.WaitGroup
}

// runView is one run as it is shown.
type runView struct {
	id, parent, agent, what string
	status                  synapse.Status // empty while it runs
	now                     string         // what it is doing
	calls                   map[string]string
	children                int // that run in front of it
	asking                  int
	turns                   int
	tokens                  int64
	begun, ended            time.Time
}

func (a *app) newView() *view {
	live := isTerminal(a.p.Stderr) && a.p.env("TERM") != "dumb"
	v := &view{out: a.p.Stderr, live: live, color: a.colors(a.p.Stderr), verbose: a.flags.verbose, runs: map[string]*runView{}}
	if isTerminal(a.p.Stdin) && live {
		v.ask = newAsker(a.p.Stdin, v)
	}
	return v
}

// start begins to draw.
func (v *view) start() {
	v.begun = time.Now()
	v.done = make(chan struct{})
	if !v.live {
		return
	}
	v.idle.Go(func() {
		ticker := time.NewTicker(frameTime)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				v.mu.Lock()
				v.frame++
				v.draw()
				v.mu.Unlock()
			case <-v.done:
				return
			}
		}
	})
}

// stop draws the last state and leaves it there. It may be called twice.
func (v *view) stop() {
	select {
	case <-v.done:
		return
	default:
	}
	close(v.done)
	v.idle.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.draw()
	v.drawn = 0
	v.runs, v.order = map[string]*runView{}, nil
}

// show takes an event in.
func (v *view) show(e *synapse.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := v.runs[e.Run]
	switch b := e.Body.(type) {
	case *synapse.RunStarted:
		if r == nil {
			r = &runView{id: e.Run, parent: e.ParentRun, agent: e.Agent, begun: e.Time, calls: map[string]string{}}
			v.runs[e.Run] = r
			v.order = append(v.order, r)
		}
		r.what, r.status, r.now = cleanLine(b.Description), "", "starting"
		v.line(r, "▸", "started"+quoted(r.what))
		return
	case *synapse.Retry:
		if r != nil {
			r.now = "waiting to try again"
		}
		v.line(r, "↻", fmt.Sprintf("attempt %d failed: %s; next is %s in %s", b.Attempt, cleanLine(b.Error), b.Model, time.Duration(b.After).Round(time.Second)))
		return
	case *synapse.Warning:
		v.line(r, "!", cleanLine(b.Message))
		return
	}
	if r == nil {
		return
	}
	switch b := e.Body.(type) {
	case *synapse.ModelRequested:
		r.turns, r.now = b.Turn, "thinking"
	case *synapse.ModelReplied:
		r.tokens += b.Usage.Tokens()
	case *synapse.ToolStarted:
		what := b.Call.Name
		if b.Intent != "" {
			what += ": " + cleanLine(b.Intent)
		}
		r.calls[b.Call.ID] = what
		r.now = what
		if v.verbose {
			v.line(r, "·", what)
		}
	case *synapse.ToolFinished:
		delete(r.calls, b.Result.CallID)
		for _, other := range r.calls {
			r.now = other
		}
		if b.Denied != "" {
			v.line(r, "✗", "denied "+cleanLine(b.Result.Name)+": "+cleanLine(b.Denied))
		}
	case *synapse.ChildStarted:
		if !b.Background {
			r.children++
		}
	case *synapse.ChildFinished:
		r.children = max(0, r.children-1)
	case *synapse.ApprovalAsked:
		r.asking++
	case *synapse.ApprovalAnswered:
		r.asking--
	case *synapse.RunFinished:
		r.status, r.ended, r.turns = b.Status, e.Time, b.Turns
		text := ending(b.Outcome) + " · " + r.figures(e.Time)
		v.line(r, mark(b.Status), text)
	}
}

// line prints a line where there is no live tree. The main agent's start and end
// are left to its answer.
func (v *view) line(r *runView, sign, text string) {
	if v.live || r == nil || r.parent == "" && !v.verbose && (sign == "▸" || sign == "✓") {
		return
	}
	fmt.Fprintf(v.out, "%s %s %s\n", sign, cleanLine(r.agent), text)
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}

func mark(s synapse.Status) string {
	switch s {
	case synapse.StatusCompleted:
		return "✓"
	case synapse.StatusPartial, synapse.StatusTimedOut:
		return "◐"
	case synapse.StatusCancelled:
		return "■"
	default:
		return "✗"
	}
}

func ending(out synapse.Outcome) string {
	text := strings.ReplaceAll(string(out.Status), "_", " ")
	if out.Cause != "" {
		text += ": " + cleanLine(out.Cause)
	}
	return text
}

// figures says how much a run has taken.
func (r *runView) figures(now time.Time) string {
	end := r.ended
	if end.IsZero() {
		end = now
	}
	return fmt.Sprintf("%s · %s · %s", count(int64(r.turns), "turn"), count(r.tokens, "token"), seconds(end.Sub(r.begun)))
}

func count(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return number(n) + " " + what
}

// number writes a count that is not negative, with commas.
func number(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func seconds(d time.Duration) string {
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}

// draw writes the tree over the one that is on the screen.
func (v *view) draw() {
	if !v.live || v.paused {
		return
	}
	columns, rows := size(v.out)
	lines := v.lines(rows - 2)
	var b strings.Builder
	if v.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", v.drawn)
	}
	for _, l := range lines {
		b.WriteString("\x1b[2K" + ansi.Truncate(l, columns-1, "…") + "\r\n")
	}
	for range v.drawn - len(lines) {
		b.WriteString("\x1b[2K\r\n")
	}
	if extra := v.drawn - len(lines); extra > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", extra)
	}
	v.drawn = len(lines)
	io.WriteString(v.out, b.String())
}

// erase takes the tree off the screen, for something else to be written.
func (v *view) erase() {
	if v.live && v.drawn > 0 {
		fmt.Fprintf(v.out, "\x1b[%dA\x1b[J", v.drawn)
		v.drawn = 0
	}
}

// lines returns the tree, at most n lines of it. What is still going on comes
// before what is over.
func (v *view) lines(n int) []string {
	now := time.Now()
	kids := map[string][]*runView{}
	for _, r := range v.order {
		kids[r.parent] = append(kids[r.parent], r)
	}
	var out []string
	var walk func(r *runView, head, tail string)
	walk = func(r *runView, head, tail string) {
		out = append(out, head+v.row(r, now))
		for i, k := range kids[r.id] {
			if i == len(kids[r.id])-1 {
				walk(k, tail+"└─ ", tail+"   ")
			} else {
				walk(k, tail+"├─ ", tail+"│  ")
			}
		}
	}
	for _, r := range kids[""] {
		walk(r, "", "")
	}
	if len(out) <= n || n < 3 {
		return out
	}
	var kept []string
	left := 0
	room := n - 2
	for i, r := range v.order {
		if i == 0 || r.status == "" && len(kept) < room {
			kept = append(kept, strings.Repeat("  ", min(i, 1))+v.row(r, now))
		} else {
			left++
		}
	}
	return append(kept, fmt.Sprintf("  … %s", count(int64(left), "more run")))
}

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// row is one run's line.
func (v *view) row(r *runView, now time.Time) string {
	sign, style := spinner[v.frame%len(spinner)], ansi.NewStyle().ForegroundColor(ansi.Cyan)
	text := r.now
	switch {
	case r.status == synapse.StatusCompleted:
		sign, style, text = mark(r.status), ansi.NewStyle().ForegroundColor(ansi.Green), ""
	case r.status == synapse.StatusFailed:
		sign, style, text = mark(r.status), ansi.NewStyle().ForegroundColor(ansi.Red), "failed"
	case r.status != "":
		sign, style, text = mark(r.status), ansi.NewStyle().ForegroundColor(ansi.Yellow), strings.ReplaceAll(string(r.status), "_", " ")
	case r.asking > 0:
		sign, style, text = "?", ansi.NewStyle().ForegroundColor(ansi.Yellow), "asks for permission"
	case r.children > 0:
		text = "waiting for " + count(int64(r.children), "sub-agent")
	}
	name, dim := cleanLine(r.agent), r.figures(now)
	if v.color {
		sign, name, dim = style.Styled(sign), ansi.NewStyle().Bold().Styled(name), ansi.NewStyle().Faint().Styled(dim)
	}
	parts := []string{sign + " " + name}
	if r.what != "" {
		parts = append(parts, r.what)
	}
	if text != "" {
		parts = append(parts, text)
	}
	return strings.Join(append(parts, dim), " · ")
}
