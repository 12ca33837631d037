package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// printJSON writes a documented JSON result.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// A table aligns columns by what a terminal shows of them, wide characters
// included.
type table struct {
	rows []tableRow
}

// A tableRow has cells, or is a line of its own.
type tableRow struct {
	cells  []string
	note   string
	indent int
}

func (t *table) row(cells ...string) { t.indented(0, cells...) }

// indented adds a row that begins some columns further right.
func (t *table) indented(columns int, cells ...string) {
	for i := range cells {
		cells[i] = cleanLine(cells[i])
	}
	t.rows = append(t.rows, tableRow{cells: cells, indent: columns})
}

// note adds a line that takes no part in the columns.
func (t *table) note(text string) { t.rows = append(t.rows, tableRow{note: text}) }

// write prints the rows, each cut where it would be wider than width; 0 cuts
// nothing.
func (t *table) write(w io.Writer, width int) error {
	var wide []int
	for _, r := range t.rows {
		for i, c := range r.cells {
			if i == len(wide) {
				wide = append(wide, 0)
			}
			if i < len(r.cells)-1 {
				wide[i] = max(wide[i], ansi.StringWidth(c))
			}
		}
	}
	for _, r := range t.rows {
		var b strings.Builder
		b.WriteString(strings.Repeat(" ", r.indent))
		b.WriteString(r.note)
		for i, c := range r.cells {
			b.WriteString(c)
			if i < len(r.cells)-1 {
				b.WriteString(strings.Repeat(" ", wide[i]-ansi.StringWidth(c)+2))
			}
		}
		line := strings.TrimRight(b.String(), " ")
		if width > 0 {
			line = ansi.Truncate(line, width, "…")
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
	}
	return nil
}

// width is what a table on standard output may take up: the terminal's columns,
// 0 where it goes elsewhere.
func (a *app) width() int {
	if !isTerminal(a.p.Stdout) {
		return 0
	}
	columns, _ := size(a.p.Stdout)
	return columns
}
