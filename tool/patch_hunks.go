package tool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A fileLine is one line of a file; end is "\n", "\r\n", or "" for a last line
// without one.
type fileLine struct{ text, end string }

func toFileLines(s string) []fileLine {
	parts := diffLines(s)
	lines := make([]fileLine, len(parts))
	for i, l := range parts {
		text, ended := strings.CutSuffix(l, "\n")
		lines[i].text = text
		if ended {
			lines[i].end = "\n"
			if text, cr := strings.CutSuffix(text, "\r"); cr {
				lines[i] = fileLine{text, "\r\n"}
			}
		}
	}
	return lines
}

// A hunkFit is where a hunk goes.
type hunkFit struct {
	at, n  int // lines of the file that it is about, from 0
	blanks bool
	indent func(string) (string, bool) // for the lines it adds, nil for none
}

// A patchFit finds the places of hunks in one file.
type patchFit struct {
	p      place
	text   string
	lines  []fileLine
	folded [len(hunkFolds)][]string // the lines by each reading, filled in when needed
	taken  []hunkFit                // of the hunks before
	cursor int                      // the line after the last of them
	drift  int                      // by how much the last one's header was off
}

// hunkFolds are the readings of a line under which hunk and file are compared,
// one after another: what they share can't be anything but white space.
var hunkFolds = [...]func(string) string{
	func(s string) string { return s },
	likenesses[0].fold, // blanks at the end
	likenesses[1].fold, // indentation
	likenesses[2].fold, // all blanks
}

// indentFold is the first reading under which the indentation may differ.
const indentFold = 2

func (f *patchFit) fold(level int) []string {
	if f.folded[level] == nil {
		f.folded[level] = make([]string, len(f.lines))
		for i, l := range f.lines {
			f.folded[level][i] = hunkFolds[level](l.text)
		}
	}
	return f.folded[level]
}

// find returns the place of the next hunk of the file.
func (f *patchFit) find(h *hunk) (hunkFit, error) {
	old := h.side('+')
	if len(old) == 0 {
		return f.findInsertion(h)
	}
	var misfit error
	for level, fold := range hunkFolds {
		want := make([]string, len(old))
		blank := true
		for i, l := range old {
			want[i] = fold(l)
			blank = blank && want[i] == ""
		}
		if blank && level > 0 {
			break // blank lines fit anywhere
		}
		found := f.occurrences(f.fold(level), want)
		if len(found) == 0 {
			continue
		}
		at, err := f.choose(h, found, len(old))
		if err != nil {
			return hunkFit{}, err
		}
		fit := hunkFit{at: at, n: len(old), blanks: level > 0}
		if level >= indentFold {
			fit.indent = reindent(old, f.lines[at:at+len(old)])
			if misfit = h.reindents(fit); misfit != nil {
				continue
			}
		}
		return fit, nil
	}
	if misfit != nil {
		return hunkFit{}, misfit
	}
	return hunkFit{}, errors.New(explainMiss(f.p, toLF(f.text), strings.Join(old, "\n"), strings.Join(h.side('-'), "\n"), hunkTerms))
}

var hunkTerms = missTerms{old: "its text", replacement: "its new text stands", replaced: "it may have been applied before", wholeLines: true}

// occurrences returns where want stands in lines, apart from the hunks before.
func (f *patchFit) occurrences(lines, want []string) []int {
	var found []int
	for i := 0; i+len(want) <= len(lines); i++ {
		if lines[i] == want[0] && slices.Equal(lines[i:i+len(want)], want) && f.free(i, len(want)) {
			found = append(found, i)
		}
	}
	return found
}

func (f *patchFit) free(at, n int) bool {
	for _, t := range f.taken {
		if at < t.at+t.n && t.at < at+n {
			return false
		}
	}
	return true
}

// choose picks the one place that is meant among those that fit. It never
// guesses: where the hunk's header, its anchor and the order of hunks leave
// two, that is an error.
func (f *patchFit) choose(h *hunk, found []int, n int) (int, error) {
	keep := func(which func(at int) bool) {
		if some := slices.DeleteFunc(slices.Clone(found), func(at int) bool { return !which(at) }); len(some) > 0 {
			found = some
		}
	}
	if h.atEnd {
		keep(func(at int) bool { return at+n == len(f.lines) })
	}
	if len(h.anchors) > 0 && len(found) > 1 {
		if after := f.firstAfterAnchors(h.anchors, found); len(after) > 0 {
			found = after
		}
	}
	if h.start > 0 && len(found) > 1 {
		keep(func(at int) bool { return at == h.start-1+f.drift })
	}
	if len(found) > 1 {
		keep(func(at int) bool { return at >= f.cursor })
	}
	if len(found) > 1 {
		return 0, fmt.Errorf("its text stands %d times in %s (lines %s); give more lines around it, or an @@ line with a line above it", len(found), f.p.show(), lineList(found))
	}
	return found[0], nil
}

// lineList writes line indices for people, at most ten.
func lineList(at []int) string {
	var parts []string
	for i, n := range at {
		if i == 10 {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, fmt.Sprint(n+1))
	}
	return strings.Join(parts, ", ")
}

// firstAfterAnchors returns, for each place where the anchors stand in order,
// the first of found that follows.
func (f *patchFit) firstAfterAnchors(anchors []string, found []int) []int {
	var after []int
	for _, a := range f.anchored(anchors) {
		i, _ := slices.BinarySearch(found, a)
		if i < len(found) && !slices.Contains(after, found[i]) {
			after = append(after, found[i])
		}
	}
	return after
}

// anchored returns the lines at which the last anchor stands, each after the
// others.
func (f *patchFit) anchored(anchors []string) []int {
	var at []int
	for i, a := range anchors {
		lines := f.anchorLines(a)
		if i == 0 {
			at = lines // it may stand anywhere
			continue
		}
		var next []int
		for _, before := range at {
			j, _ := slices.BinarySearch(lines, before+1)
			if j < len(lines) && !slices.Contains(next, lines[j]) {
				next = append(next, lines[j])
			}
		}
		at = next
	}
	return at
}

// anchorLines returns the lines that read like an anchor, or else begin so.
func (f *patchFit) anchorLines(anchor string) []int {
	want := strings.TrimSpace(anchor)
	for _, like := range []func(line string) bool{
		func(line string) bool { return line == want },
		func(line string) bool { return strings.HasPrefix(line, want) },
	} {
		var at []int
		for i, line := range f.fold(indentFold) {
			if like(line) {
				at = append(at, i)
			}
		}
		if len(at) > 0 {
			return at
		}
	}
	return nil
}

// findInsertion returns the place of a hunk that only adds: after its anchor,
// or at the end of the file.
func (f *patchFit) findInsertion(h *hunk) (hunkFit, error) {
	switch {
	case len(f.lines) == 0:
		return hunkFit{}, nil
	case len(h.anchors) > 0:
		at := f.anchored(h.anchors)
		if len(at) == 1 && slices.ContainsFunc(f.taken, func(t hunkFit) bool { return t.at <= at[0] && at[0]+1 < t.at+t.n }) {
			return hunkFit{}, fmt.Errorf("it goes into the middle of a hunk before it, after line %d; make them one", at[0]+1)
		}
		if len(at) == 1 {
			return hunkFit{at: at[0] + 1}, nil
		}
		last := h.anchors[len(h.anchors)-1]
		if len(at) == 0 {
			return hunkFit{}, errors.New(explainMiss(f.p, toLF(f.text), last, "", missTerms{old: fmt.Sprintf("the line %q of its @@", cut(last, 160))}))
		}
		return hunkFit{}, fmt.Errorf("the line %q of its @@ stands %d times in %s (lines %s); give lines around the new ones", cut(last, 160), len(at), f.p.show(), lineList(at))
	case h.numbered:
		return hunkFit{}, fmt.Errorf("it has + lines alone, so nothing tells whether line %d is still the right place; give lines around them", h.start)
	}
	return hunkFit{at: len(f.lines)}, nil
}

// reindent returns the way from the indentation of a hunk's lines to that of
// the file's: the same blanks more or less in front of each, or tabs for
// spaces and the other way round. It is nil when there is no such way.
func reindent(hunkLines []string, file []fileLine) func(string) (string, bool) {
	type pair struct{ from, to string }
	var pairs []pair
	for i, l := range hunkLines {
		if strings.TrimSpace(l) != "" {
			pairs = append(pairs, pair{leading(l), leading(file[i].text)})
		}
	}
	all := func(change func(string) (string, bool)) bool {
		for _, p := range pairs {
			if to, ok := change(p.from); !ok || to != p.to {
				return false
			}
		}
		return true
	}
	var ways []func(string) (string, bool)
	for _, p := range pairs {
		if more, ok := strings.CutSuffix(p.to, p.from); ok {
			ways = append(ways, func(s string) (string, bool) { return more + s, true })
		} else if less, ok := strings.CutSuffix(p.from, p.to); ok {
			ways = append(ways, func(s string) (string, bool) { return strings.CutPrefix(s, less) })
		}
	}
	for _, width := range []int{4, 2, 8, 3} {
		unit := strings.Repeat(" ", width)
		ways = append(ways,
			func(s string) (string, bool) { return strings.ReplaceAll(s, unit, "\t"), true },
			func(s string) (string, bool) { return strings.ReplaceAll(s, "\t", unit), true })
	}
	for _, way := range ways {
		if all(way) {
			return way
		}
	}
	return nil
}

// reindents reports why the lines that the hunk adds can't follow the file's
// indentation, nil when they can.
func (h *hunk) reindents(fit hunkFit) error {
	for _, l := range h.lines {
		if l.sign != '+' || strings.TrimSpace(l.text) == "" {
			continue
		}
		ok := fit.indent != nil
		if ok {
			_, ok = fit.indent(leading(l.text))
		}
		if !ok {
			return fmt.Errorf("its text stands at line %d but for the indentation, and how to indent %q there can't be told from it; copy the file's blanks", fit.at+1, cut(l.text, 160))
		}
	}
	return nil
}

// applyHunks returns the text with the hunks applied, and what went wrong with
// each that has no place. crlf says what line ends new lines get where their
// neighbours don't tell.
func (f *patchFit) applyHunks(hunks []hunk, crlf bool) (string, []hunkFit, []error) {
	var problems []error
	for i := range hunks {
		h := &hunks[i]
		fit, err := f.find(h)
		if err != nil {
			which := "hunk"
			if len(hunks) > 1 {
				which = fmt.Sprintf("hunk %d of %d", i+1, len(hunks))
			}
			problems = append(problems, fmt.Errorf("%s (line %d of the patch): %w", which, h.line, err))
			continue
		}
		if h.start > 0 && fit.n > 0 {
			f.drift = fit.at - (h.start - 1)
		}
		f.taken = append(f.taken, fit)
		f.cursor = fit.at + fit.n
	}
	if len(problems) > 0 {
		return "", nil, problems
	}
	eol := "\n"
	if crlf {
		eol = "\r\n"
	}
	order := make([]int, len(hunks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		// What is only inserted comes before the lines that stand there.
		return cmp.Or(f.taken[a].at-f.taken[b].at, min(f.taken[a].n, 1)-min(f.taken[b].n, 1))
	})
	ended := len(f.lines) == 0 || f.lines[len(f.lines)-1].end != ""
	var out []fileLine
	done := 0
	for _, i := range order {
		h, fit := &hunks[i], f.taken[i]
		out = append(out, f.lines[done:fit.at]...)
		out = h.apply(out, f.lines, fit, eol)
		done = fit.at + fit.n
		if done == len(f.lines) && (h.openNew || h.openOld) {
			ended = !h.openNew
		}
	}
	touched := done == len(f.lines)
	out = append(out, f.lines[done:]...)
	for i := range out {
		if out[i].end == "" && (i < len(out)-1 || touched && ended) {
			out[i].end = eol
		}
		if i == len(out)-1 && touched && !ended {
			out[i].end = ""
		}
	}
	var text strings.Builder
	for _, l := range out {
		text.WriteString(l.text)
		text.WriteString(l.end)
	}
	return text.String(), f.taken, nil
}

// apply appends the hunk's new side to out. Context is kept as the file has it.
func (h *hunk) apply(out, file []fileLine, fit hunkFit, eol string) []fileLine {
	at := fit.at
	if at > 0 && file[at-1].end != "" {
		eol = file[at-1].end
	}
	for _, l := range h.lines {
		if l.sign == '+' {
			text := l.text
			if fit.indent != nil && strings.TrimSpace(text) != "" {
				blanks := leading(text)
				indented, _ := fit.indent(blanks) // reindents has tried
				text = indented + text[len(blanks):]
			}
			out = append(out, fileLine{text, eol})
			continue
		}
		if file[at].end != "" {
			eol = file[at].end // a line that is added goes by the one it replaces or follows
		}
		if l.sign == ' ' {
			out = append(out, file[at])
		}
		at++
	}
	return out
}
