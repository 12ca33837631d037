package tui

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/synapse-agents/synapse/internal/display"
)

// A span is a piece of text of one style, without control characters but for
// line ends.
type span struct {
	text  string
	style style
}

// A cell is one character as it is shown: a grapheme cluster and its columns.
type cell struct {
	text  string
	style style
	width int
}

// cells takes spans apart.
func cells(spans []span) []cell {
	n := 0
	for _, s := range spans {
		n += len(s.text)
	}
	out := make([]cell, 0, n)
	for _, s := range spans {
		for text := s.text; text != ""; {
			if c := text[0]; c < utf8.RuneSelf && (len(text) == 1 || text[1] < utf8.RuneSelf) {
				w := 1
				if c < ' ' {
					w = 0
				}
				out = append(out, cell{text[:1], s.style, w})
				text = text[1:]
				continue
			}
			g, w := ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
			out = append(out, cell{g, s.style, w})
			text = text[len(g):]
		}
	}
	return out
}

// join puts cells together to one line.
func join(line []cell) string {
	var b strings.Builder
	for i := 0; i < len(line); {
		st := line[i].style
		b.WriteString(string(st))
		for ; i < len(line) && line[i].style == st; i++ {
			b.WriteString(line[i].text)
		}
		if st != "" {
			b.WriteString(reset)
		}
	}
	return b.String()
}

// wrap breaks spans into lines of at most width columns: at line ends, after
// blanks, and between wide characters, which are written without blanks. A word
// that is too long for a line is cut. No line carries a style into the next.
func wrap(spans []span, width int) []string {
	width = max(width, 1)
	all := cells(spans)
	var out []string
	for start := 0; ; {
		i, w, brk := start, 0, -1
		for ; i < len(all) && all[i].text != "\n"; i++ {
			c := all[i]
			if c.width > 1 && i > start {
				brk = i
			}
			if w += c.width; w > width && i > start {
				if c.text == " " { // a blank that hangs over is not seen
					brk = i
				}
				break
			}
			if c.text == " " || c.width > 1 {
				brk = i + 1
			}
		}
		if i == len(all) || all[i].text == "\n" && w <= width {
			out = append(out, join(trimRight(all[start:i])))
			if i == len(all) {
				return out
			}
			start = i + 1
			continue
		}
		if brk <= start {
			brk = i
		}
		out = append(out, join(trimRight(all[start:brk])))
		for start = brk; start < len(all) && all[start].text == " "; start++ {
		}
		if start == len(all) {
			return out
		}
		if all[start].text == "\n" {
			start++
			if start == len(all) {
				return append(out, "")
			}
		}
	}
}

func trimRight(line []cell) []cell {
	for len(line) > 0 && line[len(line)-1].text == " " && line[len(line)-1].style == "" {
		line = line[:len(line)-1]
	}
	return line
}

// wrapText is wrap for a text of one style.
func wrapText(text string, st style, width int) []string {
	return wrap([]span{{text, st}}, width)
}

// width is the number of columns that a line takes.
func width(s string) int { return ansi.StringWidth(s) }

// cut shortens a line to the columns there are.
func cut(s string, columns int) string {
	if columns <= 0 {
		return ""
	}
	if len(s) <= columns {
		return s
	}
	return ansi.Truncate(s, columns, "…")
}

// fill makes a line exactly as wide as the columns there are.
func fill(s string, columns int) string {
	s = cut(s, columns)
	return s + strings.Repeat(" ", max(0, columns-width(s)))
}

// sides puts one text to the left and one to the right end of a line. Where
// there is no room for both, the left one is cut, and if that leaves nothing of
// it the right one goes.
func sides(left, right string, columns int) string {
	room := columns - width(right) - 1
	if right == "" || room < min(12, width(left)) {
		return cut(left, columns)
	}
	return fill(left, room) + " " + right
}

// foreign makes text of models, tools and files fit to be shown: without what a
// terminal would obey, with blanks for tabs.
func foreign(s string) string {
	s = display.Clean(s)
	if !strings.Contains(s, "\t") {
		return s
	}
	var b strings.Builder
	col := 0
	for _, r := range s {
		switch r {
		case '\t':
			n := 4 - col%4
			b.WriteString("    "[:n])
			col += n
		case '\n':
			b.WriteRune(r)
			col = 0
		default:
			b.WriteRune(r)
			col++
		}
	}
	return b.String()
}

// oneLine is foreign for what must stay on one line.
func oneLine(s string) string { return display.Line(s) }

// clipped returns the first lines of a text, and how many there are beyond.
func clipped(lines []string, most int) ([]string, int) {
	if len(lines) <= most {
		return lines, 0
	}
	return lines[:most], len(lines) - most
}
