package replay

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of a shown difference.
const (
	maxLines   = 12  // of each side
	maxColumns = 200 // of each line
	around     = 2   // lines of context
)

// diff shows where two texts begin to differ and where they are the same again.
func diff(a, b string) string {
	x, y := strings.Split(strings.TrimRight(a, "\n"), "\n"), strings.Split(strings.TrimRight(b, "\n"), "\n")
	same := 0
	for same < len(x) && same < len(y) && x[same] == y[same] {
		same++
	}
	tail := 0
	for tail < len(x)-same && tail < len(y)-same && x[len(x)-1-tail] == y[len(y)-1-tail] {
		tail++
	}
	var out []string
	for _, line := range x[max(0, same-around):same] {
		out = append(out, "  "+short(line, 0))
	}
	removed, added := x[same:len(x)-tail], y[same:len(y)-tail]
	at := 0 // where the first two lines differ, when that is beyond the width
	if len(removed) > 0 && len(added) > 0 {
		at = common(removed[0], added[0])
	}
	show := func(sign string, lines []string) {
		var shown []string
		for i, line := range lines {
			from := 0
			if i == 0 {
				from = at
			}
			shown = append(shown, sign+short(line, from))
		}
		out = append(out, clip(shown, maxLines)...)
	}
	show("- ", removed)
	show("+ ", added)
	for _, line := range x[len(x)-tail : min(len(x), len(x)-tail+around)] {
		out = append(out, "  "+short(line, 0))
	}
	return strings.Join(out, "\n")
}

// common returns how many bytes two lines have in common at their beginnings.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// short shortens a long line so that the byte at which it differs is in view.
func short(line string, at int) string {
	if len(line) <= maxColumns {
		return line
	}
	from := 0
	if at > maxColumns/2 {
		from = min(at-maxColumns/4, len(line)-maxColumns)
	}
	to := min(len(line), from+maxColumns)
	for from > 0 && !utf8.RuneStart(line[from]) {
		from--
	}
	for to < len(line) && !utf8.RuneStart(line[to]) {
		to--
	}
	out := line[from:to]
	if from > 0 {
		out = "…" + out
	}
	if to < len(line) {
		out += "…"
	}
	return out
}

// clip leaves out what is beyond so many lines, and says how many.
func clip(lines []string, most int) []string {
	if len(lines) <= most {
		return lines
	}
	return append(lines[:most:most], fmt.Sprintf("… %d lines more", len(lines)-most))
}
