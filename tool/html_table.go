package tool

import (
	"strings"

	"golang.org/x/net/html/atom"
)

// htmlMaxCell is the most bytes of a cell in a table that is written as one.
const htmlMaxCell = 300

// An htmlTable is a table that is open: its rows so far, and where the text
// around it goes on.
type htmlTable struct {
	outer   *htmlFlow
	rows    [][]string
	bytes   int // in rows
	inCell  bool
	caption bool // what is read is the table's title
	title   string
	head    bool // the first row is one of headings
}

// startTable begins a table. In too many of them, another is not told apart.
func (r *htmlReader) startTable() {
	r.block(2)
	if len(r.tables) >= htmlMaxDepth {
		r.flat++
		return
	}
	r.used += r.flow.out.Len()
	r.tables = append(r.tables, &htmlTable{outer: r.flow})
	r.flow = &htmlFlow{}
}

// startCell begins a row, a cell or a caption.
func (r *htmlReader) startCell(tag atom.Atom) {
	r.endCell()
	if len(r.tables) == 0 || r.flat > 0 {
		return
	}
	t := r.tables[len(r.tables)-1]
	switch tag {
	case atom.Caption:
		t.caption = true
	case atom.Tr:
		t.rows = append(t.rows, nil)
	default:
		t.inCell = true
		t.head = t.head || tag == atom.Th && len(t.rows) <= 1
	}
}

// endCell puts the text since the cell began into the table. Outside a table,
// rows and cells are lines.
func (r *htmlReader) endCell() {
	r.block(1)
	if len(r.tables) == 0 || r.flat > 0 {
		return
	}
	t := r.tables[len(r.tables)-1]
	text := strings.TrimSpace(r.flow.out.String())
	if !t.inCell && text == "" {
		t.caption = false
		return
	}
	r.flow = &htmlFlow{}
	r.used += len(text)
	t.bytes += len(text)
	if t.caption {
		t.title, t.caption = text, false
		return
	}
	if len(t.rows) == 0 {
		t.rows = append(t.rows, nil)
	}
	last := len(t.rows) - 1
	t.rows[last] = append(t.rows[last], text)
	t.inCell = false
}

// endTable writes the table where it began: as a table if its cells are short,
// else cell by cell, since then it was there for the layout.
func (r *htmlReader) endTable() {
	if len(r.tables) == 0 || r.flat > 0 {
		r.flat = max(0, r.flat-1)
		return
	}
	r.endCell()
	t := r.tables[len(r.tables)-1]
	r.tables = r.tables[:len(r.tables)-1]
	r.flow = t.outer
	r.used -= t.bytes + r.flow.out.Len()
	r.block(2)
	r.lines(t.title)
	r.block(2)
	columns, short := t.shape()
	first := true
	for _, row := range t.rows {
		if len(row) == 0 || r.full() {
			continue
		}
		if !short {
			for _, cell := range row {
				r.lines(cell)
				r.block(1)
			}
			continue
		}
		r.write("| " + oneLine.Replace(strings.Join(row, "\x00")) + " |")
		r.block(1)
		if first && t.head {
			r.write("|" + strings.Repeat("---|", columns))
			r.block(1)
		}
		first = false
	}
	r.block(2)
}

// oneLine writes cells, which NULs part, into a line.
var oneLine = strings.NewReplacer("\n", " ", "|", `\|`, "\x00", " | ")

// shape returns how many columns the table has, and whether its cells are
// short enough for a line a row.
func (t *htmlTable) shape() (columns int, short bool) {
	rows := 0
	short = true
	for _, row := range t.rows {
		columns = max(columns, len(row))
		rows += min(len(row), 1)
		for _, cell := range row {
			if len(cell) > htmlMaxCell || strings.Contains(cell, "\n\n") || strings.Contains(cell, "\n- ") || strings.Contains(cell, "```") {
				short = false
			}
		}
	}
	return columns, short && columns > 1 && rows > 1
}

// lines writes text that has been laid out already.
func (r *htmlReader) lines(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" {
			r.flow.breaks = 2
			continue
		}
		r.write(line)
		r.block(1)
	}
}
