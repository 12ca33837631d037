package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/internal/display"
)

// A screen knows which lines above the cursor are the view's own, by their
// widths.
type screen struct {
	widths  []int
	columns int // of the terminal when they were drawn
}

// above returns how many rows the lines take up now. A terminal that has become
// narrower has broken those that no longer fit.
func (s *screen) above(columns int) int {
	n := 0
	for _, w := range s.widths {
		n += max(1, (w+columns-1)/columns)
	}
	return n
}

// erase returns what takes the lines off the screen.
func (s *screen) erase(columns int) string {
	n := s.above(columns)
	s.widths = nil
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\r\x1b[J", n)
}

// replace returns what puts other lines in their place. Lines are written over,
// not erased first, so that nothing flickers; after a change of size there is
// nothing left to write over.
func (s *screen) replace(lines []string, columns int) string {
	var b strings.Builder
	switch n := s.above(columns); {
	case n == 0:
	case columns != s.columns:
		b.WriteString(s.erase(columns))
	default:
		fmt.Fprintf(&b, "\x1b[%dA\r", n)
	}
	s.widths, s.columns = s.widths[:0], columns
	for _, l := range lines {
		b.WriteString(l + "\x1b[K\r\n")
		s.widths = append(s.widths, ansi.StringWidth(l))
	}
	b.WriteString("\x1b[J")
	return b.String()
}

// draw writes the tree over the one that is on the screen.
func (v *view) draw() {
	if !v.live || v.paused {
		return
	}
	if !onScreen(v.out) { // moved to the background: the screen is the shell's
		v.screen = screen{}
		return
	}
	columns, rows := size(v.out)
	io.WriteString(v.out, v.screen.replace(v.lines(columns, rows, time.Now()), columns))
}

// tree returns a line for each run.
func (v *view) tree(columns int, now time.Time) []string {
	kids := map[string][]*runView{}
	for _, r := range v.order {
		parent := r.parent
		if v.runs[parent] == nil {
			parent = ""
		}
		kids[parent] = append(kids[parent], r)
	}
	// Siblings stand in the order in which they were called for, whichever
	// came to run first.
	for _, siblings := range kids {
		slices.SortStableFunc(siblings, func(a, b *runView) int { return v.places[a.id] - v.places[b.id] })
	}
	var out []string
	var walk func(r *runView, head, tail string)
	walk = func(r *runView, head, tail string) {
		out = append(out, v.row(r, head, columns, now))
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
	return out
}

// lines returns what is drawn while the request goes on: the tree, as long as
// that leaves a row of the screen free; else the main agent, as many as there is
// room for of the runs that go on, and how many there are beside these.
func (v *view) lines(columns, rows int, now time.Time) []string {
	room := max(1, rows-2)
	if len(v.order) <= room {
		return v.tree(columns, now)
	}
	kept := []string{v.row(v.order[0], "", columns, now)}
	running, over := 0, 0
	for _, r := range v.order[1:] {
		switch {
		case r.status != "":
			over++
		case len(kept) < room-1:
			kept = append(kept, v.row(r, "  ", columns, now))
		default:
			running++
		}
	}
	if room > 1 {
		kept = append(kept, ansi.Truncate(fmt.Sprintf("  … and %d that go on, %d that have ended", running, over), columns-1, "…"))
	}
	return kept
}

// row is one run's line. Where it would be too long, what the run is doing gives
// way to its figures.
func (v *view) row(r *runView, head string, columns int, now time.Time) string {
	sign, style := display.Spinner(v.frame), ansi.NewStyle().ForegroundColor(ansi.Cyan)
	text := r.now
	switch {
	case r.status == synapse.StatusCompleted:
		sign, style, text = mark(r.status), ansi.NewStyle().ForegroundColor(ansi.Green), ""
	case r.status == synapse.StatusFailed:
		sign, style, text = mark(r.status), ansi.NewStyle().ForegroundColor(ansi.Red), "failed"
	case r.status != "":
		sign, style, text = mark(r.status), ansi.NewStyle().ForegroundColor(ansi.Yellow), words(r.status)
	case r.asking > 0:
		sign, style, text = "?", ansi.NewStyle().ForegroundColor(ansi.Yellow), "asks for permission"
	case len(r.children) > 0:
		if r.step != "" {
			break // a workflow says which nodes wait
		}
		text = "waiting for " + count(int64(len(r.children)), "sub-agent")
	}
	name, middle, figures := r.agent, "", " · "+r.figures(now)
	for _, part := range []string{r.what, text} {
		if part != "" {
			middle += " · " + part
		}
	}
	room := columns - 1 - ansi.StringWidth(head) - ansi.StringWidth(sign) - 1
	name = ansi.Truncate(name, max(room, 1), "…")
	room -= ansi.StringWidth(name)
	if w := ansi.StringWidth(figures); w <= room {
		middle = ansi.Truncate(middle, room-w, "…")
	} else { // a narrow terminal: what it does, or nothing
		figures, middle = "", ansi.Truncate(middle, max(room, 0), "…")
	}
	if v.color {
		sign, name, figures = style.Styled(sign), ansi.NewStyle().Bold().Styled(name), ansi.NewStyle().Faint().Styled(figures)
	}
	return ansi.Truncate(head+sign+" "+name+middle+figures, max(columns-1, 1), "")
}
