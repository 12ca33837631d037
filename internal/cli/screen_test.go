package cli_test

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// A vt is as much of a terminal as the program needs: it shows what a user would
// see. Lines that have scrolled off the top are kept.
type vt struct {
	columns, rows int
	lines         [][]string // cells, from the first line ever; a wide character's second cell is ""
	top           int        // the line in the first row
	x, y          int        // y counts from the first line ever
	pending       string     // the beginning of a sequence or a character
	unknown       []string   // sequences it does not know
}

func newVT(columns, rows int) *vt { return &vt{columns: columns, rows: rows} }

func (t *vt) line(y int) []string {
	for len(t.lines) <= y {
		t.lines = append(t.lines, nil)
	}
	return t.lines[y]
}

func (t *vt) newline() {
	t.y++
	t.line(t.y)
	t.top = max(t.top, t.y-t.rows+1)
}

func (t *vt) put(s string) {
	w := ansi.StringWidth(s)
	if t.x+w > t.columns {
		t.x = 0
		t.newline()
	}
	l := t.line(t.y)
	for len(l) < t.x+w {
		l = append(l, " ")
	}
	l[t.x] = s
	for i := 1; i < w; i++ {
		l[t.x+i] = ""
	}
	t.lines[t.y] = l
	t.x += w
}

func (t *vt) write(data string) {
	data = t.pending + data
	t.pending = ""
	for data != "" {
		switch c := data[0]; {
		case c == '\x1b':
			end := sequenceEnd(data)
			if end < 0 {
				t.pending = data
				return
			}
			t.control(data[:end])
			data = data[end:]
		case c == '\n':
			t.newline()
			data = data[1:]
		case c == '\r':
			t.x = 0
			data = data[1:]
		case c < ' ':
			t.unknown = append(t.unknown, data[:1])
			data = data[1:]
		case !utf8.FullRuneInString(data):
			t.pending = data
			return
		default:
			r, n := utf8.DecodeRuneInString(data)
			t.put(string(r))
			data = data[n:]
		}
	}
}

// sequenceEnd returns where the control sequence that data begins with ends, -1
// when that is still to come.
func sequenceEnd(data string) int {
	if len(data) < 2 {
		return -1
	}
	if data[1] != '[' {
		return 2
	}
	for i := 2; i < len(data); i++ {
		if data[i] >= '@' && data[i] <= '~' {
			return i + 1
		}
	}
	return -1
}

func (t *vt) control(seq string) {
	n := 0
	for _, c := range seq[2 : len(seq)-1] {
		if c >= '0' && c <= '9' {
			n = n*10 + int(c-'0')
		}
	}
	switch {
	case strings.HasSuffix(seq, "A"):
		t.y = max(t.top, t.y-max(n, 1))
	case seq == "\x1b[K":
		t.cut()
	case seq == "\x1b[J":
		t.cut()
		t.lines = t.lines[:t.y+1]
	case strings.HasSuffix(seq, "m"):
	default:
		t.unknown = append(t.unknown, seq)
	}
}

// cut erases the line from the cursor on.
func (t *vt) cut() {
	if l := t.line(t.y); len(l) > t.x {
		t.lines[t.y] = l[:t.x]
	}
}

// text returns all lines there have been, without blanks at their ends.
func (t *vt) text() string {
	var b strings.Builder
	for _, l := range t.lines {
		b.WriteString(strings.TrimRight(strings.Join(l, ""), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// screen returns the rows that are to be seen.
func (t *vt) screen() string {
	lines := strings.SplitAfter(t.text(), "\n")
	return strings.Join(lines[min(t.top, len(lines)):], "")
}
