package tui

import (
	"strings"

	east "github.com/yuin/goldmark/extension/ast"
)

// table draws a table in the columns there are. Columns that are too wide give
// way, the widest first, and what is in them goes on below.
func (d *drawer) table(n *east.Table, total int) []string {
	var rows [][][]span
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var r [][]span
		st := style("")
		if row.Kind() == east.KindTableHeader {
			st = d.th.strong
		}
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			r = append(r, d.inlines(c, st))
		}
		rows = append(rows, r)
	}
	widths := make([]int, len(n.Alignments))
	for _, r := range rows {
		for i, c := range r {
			if i < len(widths) {
				widths[i] = max(widths[i], width(text1(c)), 1)
			}
		}
	}
	room := total - 3*(len(widths)-1)
	if room < 3*len(widths) { // more columns than can be told apart: cell by cell
		return d.tableAsList(rows, total)
	}
	fit(widths, room)
	var out []string
	for i, r := range rows {
		out = append(out, d.tableRow(r, widths, n.Alignments)...)
		if i == 0 {
			var parts []string
			for _, w := range widths {
				parts = append(parts, strings.Repeat("─", w))
			}
			out = append(out, d.th.border.paint(strings.Join(parts, "─┼─")))
		}
	}
	return out
}

// fit makes widths smaller, the largest first, until they take no more than room.
func fit(widths []int, room int) {
	sum := 0
	for _, w := range widths {
		sum += w
	}
	for sum > room {
		widest, second := 0, 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		for _, w := range widths {
			if w < widths[widest] {
				second = max(second, w)
			}
		}
		by := 1 // all are as wide as each other
		if second > 0 {
			by = min(sum-room, widths[widest]-second)
		}
		widths[widest] -= by
		sum -= by
	}
}

func (d *drawer) tableRow(row [][]span, widths []int, align []east.Alignment) []string {
	parts := make([][]string, len(widths))
	height := 1
	for i := range widths {
		if i < len(row) {
			parts[i] = wrap(row[i], widths[i])
		}
		height = max(height, len(parts[i]))
	}
	out := make([]string, height)
	for y := range out {
		var b strings.Builder
		for i, w := range widths {
			text := ""
			if y < len(parts[i]) {
				text = parts[i][y]
			}
			gap := max(0, w-width(text))
			left := 0
			switch align[i] {
			case east.AlignRight:
				left = gap
			case east.AlignCenter:
				left = gap / 2
			}
			if i > 0 {
				b.WriteString(d.th.border.paint(" │ "))
			}
			b.WriteString(strings.Repeat(" ", left) + text)
			if i < len(widths)-1 {
				b.WriteString(strings.Repeat(" ", gap-left))
			}
		}
		out[y] = b.String()
	}
	return out
}

// tableAsList draws a table that has no room, a cell a line.
func (d *drawer) tableAsList(rows [][][]span, total int) []string {
	var out []string
	for i, r := range rows {
		if i == 0 {
			continue
		}
		if len(out) > 0 {
			out = append(out, "")
		}
		for c, cell := range r {
			var line []span
			if c < len(rows[0]) {
				line = append(append(line, rows[0][c]...), span{": ", d.th.faint})
			}
			out = append(out, wrap(append(line, cell...), total)...)
		}
	}
	return out
}
