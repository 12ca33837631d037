package tui

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// An editor holds text of several lines that the user writes. It knows nothing
// of keys or of where it stands on the screen. Positions count grapheme clusters,
// which is what a user takes for a character.
type editor struct {
	cells  []string // grapheme clusters; "\n" ends a line
	at     int      // the cursor, before cells[at]
	undo   []edit
	redo   []edit
	goal   int               // the column that moving up and down aims at, -1 for the cursor's
	pasted map[string]string // what long pastes stand for
	scroll int               // the first row that is shown
	killed string            // what was cut out last
}

// edit is a state to come back to.
type edit struct {
	cells []string
	at    int
}

// Pastes longer than this are shown as one word until they are sent.
const (
	pasteLines = 8
	pasteBytes = 1500
)

func newEditor() *editor { return &editor{goal: -1} }

func graphemes(s string) []string {
	var out []string
	for s != "" {
		g, _ := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
		if g == "" {
			break
		}
		out = append(out, g)
		s = s[len(g):]
	}
	return out
}

// text is what stands there, as it is shown.
func (e *editor) text() string { return strings.Join(e.cells, "") }

// value is what is sent: pastes stand in it whole.
func (e *editor) value() string {
	text := e.text()
	for mark, whole := range e.pasted {
		text = strings.ReplaceAll(text, mark, whole)
	}
	return text
}

// set replaces everything and puts the cursor at the end.
func (e *editor) set(text string) {
	e.remember()
	e.cells = graphemes(foreign(text))
	e.at, e.goal = len(e.cells), -1
}

func (e *editor) empty() bool { return len(e.cells) == 0 }

// remember makes the present state one to come back to.
func (e *editor) remember() {
	const most = 200
	e.undo = append(e.undo, edit{append([]string{}, e.cells...), e.at})
	if len(e.undo) > most {
		e.undo = e.undo[1:]
	}
	e.redo = nil
}

func (e *editor) back(from, to *[]edit) {
	if len(*from) == 0 {
		return
	}
	last := (*from)[len(*from)-1]
	*from = (*from)[:len(*from)-1]
	*to = append(*to, edit{e.cells, e.at})
	e.cells, e.at, e.goal = last.cells, last.at, -1
}

func (e *editor) unDo() { e.back(&e.undo, &e.redo) }
func (e *editor) reDo() { e.back(&e.redo, &e.undo) }

// insert writes text at the cursor.
func (e *editor) insert(text string) {
	text = foreign(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text))
	if text == "" {
		return
	}
	if len(text) > 1 || unicode.IsSpace(rune(text[0])) || len(e.undo) == 0 {
		e.remember()
	}
	// What is typed may join the character before it: an accent, a second half of
	// an emoji.
	from := e.at
	if from > 0 && e.cells[from-1] != "\n" && text[0] >= 0x80 {
		from--
	}
	fresh := graphemes(strings.Join(e.cells[from:e.at], "") + text)
	e.cells = append(e.cells[:from:from], append(fresh, e.cells[e.at:]...)...)
	e.at, e.goal = from+len(fresh), -1
}

// paste writes what was pasted. A long text is shown as a word in its place.
func (e *editor) paste(text string) {
	text = foreign(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text))
	if lines := strings.Count(text, "\n") + 1; lines > pasteLines || len(text) > pasteBytes {
		if e.pasted == nil {
			e.pasted = map[string]string{}
		}
		mark := fmt.Sprintf("[pasted #%d: %d lines]", len(e.pasted)+1, lines)
		e.pasted[mark] = text
		text = mark
	}
	e.insert(text)
}

// cut takes out what lies between two places.
func (e *editor) cut(from, to int) {
	from, to = max(0, min(from, to)), min(len(e.cells), max(from, to))
	if from == to {
		return
	}
	e.remember()
	e.cells = append(e.cells[:from:from], e.cells[to:]...)
	e.at, e.goal = from, -1
}

func (e *editor) kill(from, to int) {
	from, to = max(0, min(from, to)), min(len(e.cells), max(from, to))
	if from < to {
		e.killed = strings.Join(e.cells[from:to], "")
		e.cut(from, to)
	}
}

// backspace takes out the character before the cursor, a paste whole.
func (e *editor) backspace() {
	before := strings.Join(e.cells[:e.at], "")
	for mark := range e.pasted {
		if strings.HasSuffix(before, mark) {
			e.cut(e.at-len(graphemes(mark)), e.at)
			return
		}
	}
	e.cut(e.at-1, e.at)
}

func (e *editor) to(at int) { e.at, e.goal = min(max(at, 0), len(e.cells)), -1 }

// lineStart and lineEnd are where the cursor's line begins and ends.
func (e *editor) lineStart() int {
	i := e.at
	for i > 0 && e.cells[i-1] != "\n" {
		i--
	}
	return i
}

func (e *editor) lineEnd() int {
	i := e.at
	for i < len(e.cells) && e.cells[i] != "\n" {
		i++
	}
	return i
}

// wordLeft and wordRight are where the word beside the cursor begins and ends.
func (e *editor) wordLeft() int {
	i := e.at
	for i > 0 && blank(e.cells[i-1]) {
		i--
	}
	for i > 0 && !blank(e.cells[i-1]) {
		i--
	}
	return i
}

func (e *editor) wordRight() int {
	i := e.at
	for i < len(e.cells) && blank(e.cells[i]) {
		i++
	}
	for i < len(e.cells) && !blank(e.cells[i]) {
		i++
	}
	return i
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// rowSpan is a row as it is shown: cells[from:to].
type rowSpan struct{ from, to int }

// rows breaks the text into rows of at most width columns. The cursor may stand
// behind the last character of a row only if the next begins a line of its own.
func (e *editor) rows(columns int) []rowSpan {
	columns = max(columns, 2)
	var out []rowSpan
	from, w, brk := 0, 0, -1
	for i := 0; i < len(e.cells); i++ {
		c := e.cells[i]
		if c == "\n" {
			out = append(out, rowSpan{from, i})
			from, w, brk = i+1, 0, -1
			continue
		}
		cw := width(c)
		if w+cw > columns-1 { // the last column is the cursor's
			next := i
			if brk > from {
				next = brk
			}
			out = append(out, rowSpan{from, next})
			from, brk = next, -1
			w = 0
			for _, c := range e.cells[from:i] {
				w += width(c)
			}
		}
		w += cw
		if c == " " {
			brk = i + 1
		}
	}
	return append(out, rowSpan{from, len(e.cells)})
}

// place is the cursor's row and column.
func (e *editor) place(rows []rowSpan) (row, column int) {
	for i, r := range rows {
		if e.at >= r.from && (e.at < r.to || e.at == r.to && (i == len(rows)-1 || rows[i+1].from > r.to)) {
			return i, width(strings.Join(e.cells[r.from:e.at], ""))
		}
	}
	return len(rows) - 1, 0
}

// move moves the cursor up or down by rows, and reports whether it could.
func (e *editor) move(by, columns int) bool {
	rows := e.rows(columns)
	y, x := e.place(rows)
	if e.goal < 0 {
		e.goal = x
	}
	y += by
	if y < 0 || y >= len(rows) {
		return false
	}
	at, w := rows[y].from, 0
	for at < rows[y].to {
		if w += width(e.cells[at]); w > e.goal {
			break
		}
		at++
	}
	if y < len(rows)-1 && at == rows[y].to && rows[y+1].from == at && at > rows[y].from {
		at-- // behind the end of a row is the beginning of the next
	}
	e.at = at
	return true
}

// view draws the text in at most most rows, and says where among them the cursor
// is.
func (e *editor) view(columns, most int, th *theme) (lines []string, x, y int) {
	rows := e.rows(columns)
	y, x = e.place(rows)
	e.scroll = min(max(e.scroll, y-most+1), y)
	e.scroll = max(0, min(e.scroll, len(rows)-most))
	for _, r := range rows[e.scroll:min(len(rows), e.scroll+most)] {
		lines = append(lines, e.marks(strings.Join(e.cells[r.from:r.to], ""), th))
	}
	return lines, x, y - e.scroll
}

// marks shows what stands for something else.
func (e *editor) marks(line string, th *theme) string {
	for mark := range e.pasted {
		line = strings.ReplaceAll(line, mark, th.accent.paint(mark))
	}
	return line
}

// word returns the word that ends at the cursor and begins with a mark, such as
// "@", at the beginning of the text or after a blank; start is -1 if there is
// none.
func (e *editor) word(mark string) (word string, start int) {
	i := e.at
	for i > 0 && !blank(e.cells[i-1]) {
		i--
	}
	if i == e.at || e.cells[i] != mark {
		return "", -1
	}
	return strings.Join(e.cells[i+1:e.at], ""), i
}

// replace puts text in the place of what lies between start and the cursor.
func (e *editor) replace(start int, text string) {
	e.cut(start, e.at)
	e.insert(text)
}

// A history is what has been sent before, to be called up again.
type history struct {
	entries []string
	at      int    // len(entries) is what is being written
	draft   string // that, while an entry is shown
}

// historySize bounds how much is remembered.
const historySize = 500

func (h *history) add(text string) {
	if n := len(h.entries); n == 0 || h.entries[n-1] != text {
		h.entries = append(h.entries, text)
	}
	if n := len(h.entries); n > historySize {
		h.entries = h.entries[n-historySize:]
	}
	h.at, h.draft = len(h.entries), ""
}

// move calls up an earlier or a later entry.
func (h *history) move(by int, present string) (string, bool) {
	to := h.at + by
	if to < 0 || to > len(h.entries) {
		return "", false
	}
	if h.at == len(h.entries) {
		h.draft = present
	}
	h.at = to
	if to == len(h.entries) {
		return h.draft, true
	}
	return h.entries[to], true
}
