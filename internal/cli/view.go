package cli

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/internal/display"
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
	ask     *asker // nil when nobody can be asked
	tty     *tty

	mu     sync.Mutex
	runs   map[string]*runView
	places map[string]int // of sub-agents among those that were called for
	order  []*runView     // as they started
	screen screen
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
	order                   []string        // of calls, as they began
	children                map[string]bool // that run while it waits for them
	nodes                   []string        // of a workflow, that run
	step                    string          // of a workflow
	asking                  int
	asked                   time.Time     // since when a question is open
	waited                  time.Duration // for answers: that is not work
	turns                   int
	tokens                  int64
	begun, ended            time.Time
}

func (a *app) newView() *view {
	v := &view{
		out: a.p.Stderr, color: a.colors(a.p.Stderr), verbose: a.flags.verbose, tty: a.tty, runs: map[string]*runView{}, places: map[string]int{},
		// The log of -v and events on the same screen would be drawn over, and a
		// job in the background has no screen.
		live: isTerminal(a.p.Stderr) && a.p.env("TERM") != "dumb" && !a.flags.plain && !a.flags.verbose && a.flags.format != formatStream && onScreen(a.p.Stderr),
	}
	if a.tty != nil && isTerminal(a.p.Stderr) {
		v.ask = &asker{view: v, in: a.p.Stdin, grant: map[string]bool{}}
	}
	return v
}

// start begins to draw.
func (v *view) start() {
	v.done = make(chan struct{})
	if !v.live {
		return
	}
	v.tty.hush()
	v.idle.Go(func() {
		ticker := time.NewTicker(frameTime)
		defer ticker.Stop()
		continued := make(chan os.Signal, 1)
		notifyContinued(continued)
		defer signal.Stop(continued)
		for {
			select {
			case <-continued: // other programs have written to the screen meanwhile
				v.mu.Lock()
				v.screen = screen{}
				if !v.paused {
					v.tty.hush()
				}
				v.mu.Unlock()
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

// stop draws the whole tree as it has become and leaves it there. It may be
// called twice.
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
	if v.live {
		columns, _ := size(v.out)
		io.WriteString(v.out, v.screen.replace(v.tree(columns, time.Now()), columns))
		v.screen = screen{}
	}
	v.runs, v.order = map[string]*runView{}, nil
	v.tty.speak()
}

// show takes an event in.
func (v *view) show(e *synapse.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := v.runs[e.Run]
	switch b := e.Body.(type) {
	case *synapse.RunStarted:
		if r == nil {
			r = &runView{id: e.Run, parent: e.ParentRun, agent: cleanLine(e.Agent), begun: e.Time, calls: map[string]string{}, children: map[string]bool{}}
			v.runs[e.Run] = r
			v.order = append(v.order, r)
		}
		r.what, r.status, r.now = cleanLine(b.Description), "", "starting"
		if r.parent != "" || v.verbose {
			v.line(r, "▸", "started"+quoted(r.what))
		}
		return
	case *synapse.Retry:
		next := cleanLine(b.Model.String())
		if r != nil {
			r.now = "waiting to try " + next + " again"
		}
		v.line(r, "↻", fmt.Sprintf("attempt %d failed: %s; %s is next, in %s", b.Attempt, cleanLine(b.Error), next, seconds(time.Duration(b.After))))
		return
	case *synapse.Compacted:
		v.say(r, "!", fmt.Sprintf("the conversation was made smaller: about %s tokens, now %s", number(int64(b.Before)), number(int64(b.After))))
		return
	case *synapse.Warning:
		v.say(r, "!", cleanLine(b.Message))
		return
	}
	if r != nil {
		v.update(r, e)
	}
}

// update takes an event of a known run in.
func (v *view) update(r *runView, e *synapse.Event) {
	switch b := e.Body.(type) {
	case *synapse.ModelRequested:
		r.turns, r.now = b.Turn, "thinking"
	case *synapse.ModelReplied:
		r.tokens += b.Usage.Tokens()
	case *synapse.ToolStarted:
		what := cleanLine(b.Call.Name)
		if b.Intent != "" {
			what += ": " + cleanLine(b.Intent)
		}
		r.calls[b.Call.ID], r.now = what, what
		r.order = append(r.order, b.Call.ID)
		if v.verbose {
			v.line(r, "·", what)
		}
	case *synapse.ToolFinished:
		delete(r.calls, b.Result.CallID)
		r.order = slices.DeleteFunc(r.order, func(id string) bool { return id == b.Result.CallID })
		if n := len(r.order); n > 0 {
			r.now = r.calls[r.order[n-1]]
		}
		if b.Denied != "" {
			v.say(r, "✗", "denied "+cleanLine(b.Result.Name)+": "+cleanLine(b.Denied))
		}
	case *synapse.NodeStarted:
		r.enter(b)
		v.line(r, "▸", fmt.Sprintf("step %d: %s", b.Step, cleanLine(b.Node)))
	case *synapse.NodeFinished:
		if b.Item > 0 {
			break
		}
		r.nodes = slices.DeleteFunc(r.nodes, func(n string) bool { return n == b.Node })
		r.now = r.step
		text := words(b.Status)
		if b.Cause != "" {
			text += ": " + cleanLine(b.Cause)
		}
		v.line(r, mark(b.Status), cleanLine(b.Node)+" "+text)
	case *synapse.HandedOff:
		v.say(r, "⇄", "hands over to "+cleanLine(b.To)+quoted(cleanLine(b.Reason)))
		r.agent = cleanLine(b.To)
	case *synapse.ChildStarted:
		v.places[b.Task] = len(v.places)
		if !b.Background {
			r.children[b.Task] = true
		}
	case *synapse.ChildFinished:
		delete(r.children, b.Task)
	case *synapse.ApprovalAsked:
		if r.asking++; r.asking == 1 {
			r.asked = e.Time
		}
	case *synapse.ApprovalAnswered:
		if r.asking--; r.asking == 0 {
			r.waited += e.Time.Sub(r.asked)
		}
	case *synapse.RunFinished:
		r.status, r.ended, r.turns = b.Status, e.Time, b.Turns
		if r.parent != "" || v.verbose { // how the main agent ended is said with its answer
			v.line(r, mark(b.Status), ending(b.Outcome)+" · "+r.figures(e.Time))
		}
	}
}

// enter notes that a node of a workflow runs.
func (r *runView) enter(b *synapse.NodeStarted) {
	r.nodes = append(r.nodes, b.Node)
	r.step = fmt.Sprintf("step %d: %s", b.Step, cleanLine(strings.Join(r.nodes, ", ")))
	r.now, r.turns = r.step, b.Step
}

// line prints a line where there is no live tree.
func (v *view) line(r *runView, sign, text string) {
	if !v.live && r != nil {
		fmt.Fprintf(v.out, "%s %s %s\n", sign, r.agent, text)
	}
}

// say prints a line, above the tree where that is live.
func (v *view) say(r *runView, sign, text string) {
	if !v.live || v.paused {
		v.line(r, sign, text)
		return
	}
	if r != nil {
		text = r.agent + " " + text
	}
	columns, rows := size(v.out)
	io.WriteString(v.out, v.screen.erase(columns)+sign+" "+text+"\r\n"+v.screen.replace(v.lines(columns, rows, time.Now()), columns))
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}

func mark(s synapse.Status) string { return display.Mark(s) }

func ending(out synapse.Outcome) string {
	text := words(out.Status)
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
	worked := end.Sub(r.begun) - r.waited
	if r.asking > 0 {
		worked -= end.Sub(r.asked)
	}
	return fmt.Sprintf("%s · %s · %s", count(int64(r.turns), "turn"), count(r.tokens, "token"), seconds(max(0, worked)))
}

func count(n int64, what string) string { return display.Count(n, what) }

func number(n int64) string { return display.Number(n) }

func seconds(d time.Duration) string { return display.Seconds(d) }

// pause takes the tree off the screen and gives the terminal back, for a
// question.
func (v *view) pause() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.paused = true
	if v.live {
		columns, _ := size(v.out)
		io.WriteString(v.out, v.screen.erase(columns))
	}
	v.tty.speak()
}

// resume goes on after a pause.
func (v *view) resume() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.paused = false
	if v.live {
		v.tty.hush()
	}
}
