package tool

import (
	"fmt"
	"strings"
)

// A fileChange is what the details of write_file and edit_file hold, and those
// of patch for each file.
type fileChange struct {
	Path    string `json:"path"`
	Created bool   `json:"created,omitempty"`
	Deleted bool   `json:"deleted,omitempty"`
	From    string `json:"from,omitempty"` // the path before it moved
	Added   int    `json:"added"`          // lines
	Removed int    `json:"removed"`
	Diff    string `json:"diff,omitempty"` // unified
}

const (
	diffContext  = 3
	diffMaxBytes = 60 << 10
	diffMaxEdits = 800 // beyond it the changed middle is one replaced block
)

// newFileChange compares two contents of a file.
func newFileChange(name, before, after string, created bool) fileChange {
	c := fileChange{Path: name, Created: created}
	c.compare(before, after)
	return c
}

// compare fills in what differs between two contents.
func (c *fileChange) compare(before, after string) {
	if before == after {
		return
	}
	a, b := diffLines(before), diffLines(after)
	ops := diffOps(a, b)
	for _, op := range ops {
		c.Added += op.bEnd - op.bStart
		c.Removed += op.aEnd - op.aStart
	}
	from, to := "a/"+c.Path, "b/"+c.Path
	switch {
	case c.Created:
		from = noFile
	case c.Deleted:
		to = noFile
	case c.From != "":
		from = "a/" + c.From
	}
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", from, to)
	writeHunks(&out, a, b, ops)
	c.Diff = out.String()
}

// diffLines splits s into lines that keep their ends.
func diffLines(s string) []string {
	if s == "" {
		return nil
	}
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// A diffOp replaces a[aStart:aEnd] by b[bStart:bEnd].
type diffOp struct{ aStart, aEnd, bStart, bEnd int }

// diffOps returns the replacements that turn a into b, in order and apart.
func diffOps(a, b []string) []diffOp {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	ma, mb := a[head:len(a)-tail], b[head:len(b)-tail]
	ops, ok := shortestEdit(ma, mb)
	if !ok {
		ops = []diffOp{{0, len(ma), 0, len(mb)}}
	}
	for i := range ops {
		ops[i].aStart += head
		ops[i].aEnd += head
		ops[i].bStart += head
		ops[i].bEnd += head
	}
	return ops
}

// shortestEdit is Myers' greedy search. It reports false when the two differ
// in more than diffMaxEdits lines.
func shortestEdit(a, b []string) ([]diffOp, bool) {
	n, m := len(a), len(b)
	if n == 0 || m == 0 {
		return []diffOp{{0, n, 0, m}}, true
	}
	limit := min(n+m, diffMaxEdits)
	reach := make([]int, 2*limit+2) // reach[k+limit]: how far down a diagonal k gets
	var trace [][]int
	found := -1
search:
	for d := 0; d <= limit; d++ {
		// Only the diagonals -d..d are alive.
		for k := -d; k <= d; k += 2 {
			x := 0
			switch {
			case d == 0:
			case k == -d || k != d && reach[k-1+limit] < reach[k+1+limit]:
				x = reach[k+1+limit]
			default:
				x = reach[k-1+limit] + 1
			}
			for x < n && x-k < m && a[x] == b[x-k] {
				x++
			}
			reach[k+limit] = x
			if x >= n && x-k >= m {
				found = d
				break search
			}
		}
		trace = append(trace, append([]int(nil), reach[limit-d:limit+d+1]...))
	}
	if found < 0 {
		return nil, false
	}
	// Walk back from the end, collecting single steps, and join neighbours.
	var ops []diffOp // in reverse
	x, y := n, m
	for d := found; d > 0; d-- {
		before := trace[d-1] // diagonals -(d-1)..d-1
		at := func(k int) int { return before[k+d-1] }
		k := x - y
		down := k == -d || k != d && (k-1 < -(d-1) || k+1 <= d-1 && at(k-1) < at(k+1))
		var px int
		if down {
			px = at(k + 1)
			k++
		} else {
			px = at(k - 1)
			k--
		}
		py := px - k
		step := diffOp{px, px + 1, py, py}
		if down {
			step = diffOp{px, px, py, py + 1}
		}
		if last := len(ops) - 1; last >= 0 && ops[last].aStart == step.aEnd && ops[last].bStart == step.bEnd {
			ops[last].aStart, ops[last].bStart = step.aStart, step.bStart
		} else {
			ops = append(ops, step)
		}
		x, y = px, py
	}
	for i, j := 0, len(ops)-1; i < j; i, j = i+1, j-1 {
		ops[i], ops[j] = ops[j], ops[i]
	}
	return ops, true
}

func writeHunks(out *strings.Builder, a, b []string, ops []diffOp) {
	for i := 0; i < len(ops); {
		// Changes closer than two contexts share a hunk.
		j := i + 1
		for j < len(ops) && ops[j].aStart-ops[j-1].aEnd <= 2*diffContext {
			j++
		}
		group := ops[i:j]
		i = j
		first, last := group[0], group[len(group)-1]
		aFrom, bFrom := max(0, first.aStart-diffContext), max(0, first.bStart-diffContext)
		aTo, bTo := min(len(a), last.aEnd+diffContext), min(len(b), last.bEnd+diffContext)
		fmt.Fprintf(out, "@@ -%s +%s @@\n", hunkRange(aFrom, aTo), hunkRange(bFrom, bTo))
		at := aFrom
		for _, op := range group {
			diffText(out, " ", a[at:op.aStart])
			diffText(out, "-", a[op.aStart:op.aEnd])
			diffText(out, "+", b[op.bStart:op.bEnd])
			at = op.aEnd
		}
		diffText(out, " ", a[at:aTo])
		if out.Len() > diffMaxBytes {
			out.WriteString("[the rest of the diff is left out]\n")
			return
		}
	}
}

func hunkRange(from, to int) string {
	switch n := to - from; n {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	default:
		return fmt.Sprintf("%d,%d", from+1, n)
	}
}

func diffText(out *strings.Builder, sign string, lines []string) {
	for _, l := range lines {
		if out.Len() > diffMaxBytes {
			return
		}
		text, hasEnd := strings.CutSuffix(l, "\n")
		out.WriteString(sign)
		out.WriteString(strings.ToValidUTF8(cut(text, diffMaxBytes/4), "\uFFFD"))
		out.WriteByte('\n')
		if !hasEnd {
			out.WriteString("\\ No newline at end of file\n")
		}
	}
}
