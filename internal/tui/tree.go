package tui

import (
	"fmt"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/internal/display"
)

// A tree is the panel of the sub-agents of the request that goes on.
type tree struct{ list list }

// A branch is a run with the lines that lead to it.
type branch struct {
	run  *run
	head string
}

// branches returns the runs below one, each after its parent.
func branches(root *run) []branch {
	var out []branch
	var walk func(r *run, tail string)
	walk = func(r *run, tail string) {
		for i, c := range r.children {
			mark, next := "├ ", "│ "
			if i == len(r.children)-1 {
				mark, next = "└ ", "  "
			}
			if r == root {
				mark, next = "", ""
			}
			out = append(out, branch{c, tail + mark})
			walk(c, tail+next)
		}
	}
	walk(root, "")
	return out
}

// draw draws the panel in at most rows lines. Where there are too many runs and
// the user does not look through them, those that go on come first. Once all have
// ended a line says how, unless the panel has a place of its own beside the
// conversation.
func (t *tree) draw(all []branch, columns, rows, frame int, now time.Time, focused, beside bool, th *theme) []string {
	if len(all) == 0 || rows < 1 {
		return nil
	}
	going := 0
	for _, b := range all {
		if !b.run.ended() {
			going++
		}
	}
	if !focused && (going == 0 && (!beside || len(all) > rows) || rows == 1) {
		return []string{cut(treeSummary(all, th), columns)}
	}
	if focused || len(all) <= rows {
		var out []string
		from, to := t.list.window(len(all), rows)
		for i := from; i < to; i++ {
			out = append(out, treeRow(all[i], columns, frame, now, focused && i == t.list.at, th))
		}
		return out
	}
	var out []string
	for _, b := range all {
		if !b.run.ended() && len(out) < rows-1 {
			b.head = ""
			out = append(out, treeRow(b, columns, frame, now, false, th))
		}
	}
	rest := fmt.Sprintf("  … %d have ended", len(all)-going)
	if more := going - len(out); more > 0 {
		rest = fmt.Sprintf("  … %d more go on, %d have ended", more, len(all)-going)
	}
	return append(out, th.faint.paint(cut(rest, columns)))
}

// treeSummary says in a line how the runs have come out.
func treeSummary(all []branch, th *theme) string {
	counts := map[synapse.Status]int{}
	going := 0
	for _, b := range all {
		if b.run.ended() {
			counts[b.run.status]++
		} else {
			going++
		}
	}
	s := display.Count(int64(len(all)), "sub-agent")
	if going > 0 {
		s += fmt.Sprintf(" · %d going on", going)
	}
	for _, st := range []synapse.Status{synapse.StatusCompleted, synapse.StatusPartial, synapse.StatusTimedOut, synapse.StatusCancelled, synapse.StatusFailed} {
		if n := counts[st]; n > 0 {
			s += fmt.Sprintf(" · %s %d %s", display.Mark(st), n, statusWord(st))
		}
	}
	return th.faint.paint(s)
}

// statusWord is a status for people.
func statusWord(s synapse.Status) string {
	switch s {
	case synapse.StatusCompleted:
		return "done"
	case synapse.StatusTimedOut:
		return "timed out"
	}
	return string(s)
}

// treeRow is one run's line. Where it would be too long, what the run is doing
// gives way to its figures, and these to its name.
func treeRow(b branch, columns, frame int, now time.Time, selected bool, th *theme) string {
	r := b.run
	sign, st := r.sign(frame, th)
	middle := ""
	for _, part := range []string{r.what, r.now()} {
		if part != "" {
			middle += " · " + part
		}
	}
	if r.background {
		middle = " (background)" + middle
	}
	figures := "  " + r.figures(now)
	room := columns - width(b.head) - 2
	name := cut(r.agent, max(room, 1))
	room -= width(name)
	if w := width(figures); w+12 <= room || w+width(middle) <= room {
		middle = fill(middle, room-w)
	} else {
		figures, middle = "", fill(middle, max(room, 0))
	}
	if selected {
		return th.selected.paint(fill(b.head+sign+" "+name+middle+figures, columns))
	}
	return th.border.paint(b.head) + st.paint(sign) + " " + th.agent.paint(name) + middle + th.faint.paint(figures)
}
