package tool

import (
	"bytes"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// A matcher finds the lines of a file that match a pattern. It is safe for use
// by several goroutines.
type matcher struct {
	re   *regexp.Regexp
	note string // what the user must know of how the pattern was read
	// literal stands in every match, so that files and lines without it need
	// no regexp; it is in lower case when fold is set. It may be empty.
	literal []byte
	fold    bool
	rare    int // the place in the literal of the byte that is likely the rarest
	// plain: the literal is ASCII within a line, so that it stands in a file's
	// bytes as it stands in the text, in all encodings of one byte a unit.
	plain bool
	// whole: the literal is all of the pattern, and no regexp is needed.
	whole bool
	// multi: the pattern itself speaks of line ends, so that a match may span
	// lines.
	multi bool
}

// maxPattern bounds a pattern's length: its program's size follows from it.
const maxPattern = 4096

func newMatcher(pattern string, ignoreCase bool) (*matcher, error) {
	if pattern == "" {
		return nil, fmt.Errorf("the pattern is empty; . matches every line that is not")
	}
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("the pattern has %d bytes; at most %d are taken", len(pattern), maxPattern)
	}
	m := &matcher{fold: ignoreCase}
	flags := syntax.Perl &^ syntax.OneLine
	if ignoreCase {
		flags |= syntax.FoldCase
	}
	tree, err := syntax.Parse(pattern, flags)
	if err == nil {
		m.multi = strings.Contains(pattern, `\n`) || strings.Contains(pattern, "\n")
		if !m.multi {
			tree = withinLine(tree)
		}
		m.re, err = regexp.Compile(tree.String())
	}
	if err != nil {
		reason := err.Error()
		if e, ok := err.(*syntax.Error); ok {
			reason = e.Code.String()
		}
		m.note = fmt.Sprintf("%q is no regular expression (%s); it was searched for as plain text", pattern, reason)
		m.multi = strings.Contains(pattern, "\n")
		if tree, err = syntax.Parse(pattern, flags|syntax.Literal); err != nil {
			return nil, fmt.Errorf("pattern %q: %w", pattern, err)
		}
		if m.re, err = regexp.Compile(tree.String()); err != nil {
			return nil, fmt.Errorf("pattern %q: %w", pattern, err)
		}
	}
	literal := longestLiteral(tree.Simplify(), ignoreCase)
	m.whole = tree.Op == syntax.OpLiteral && !ignoreCase && literal != ""
	if ignoreCase {
		if literal = strings.ToLower(literal); !isASCII(literal) {
			literal = ""
		}
	}
	m.literal = []byte(literal)
	m.plain = literal != "" && isASCII(literal) && !strings.ContainsAny(literal, "\r\n")
	m.rare = rarest(literal)
	return m, nil
}

// withinLine keeps a pattern from matching line ends it doesn't name: "\s" and
// "[^a]" would otherwise run on into the next lines.
func withinLine(re *syntax.Regexp) *syntax.Regexp {
	switch re.Op {
	case syntax.OpAnyChar:
		re.Op = syntax.OpAnyCharNotNL
	case syntax.OpCharClass:
		var without []rune
		for i := 0; i+1 < len(re.Rune); i += 2 {
			lo, hi := re.Rune[i], re.Rune[i+1]
			if lo > '\n' || hi < '\n' {
				without = append(without, lo, hi)
				continue
			}
			if lo < '\n' {
				without = append(without, lo, '\n'-1)
			}
			if hi > '\n' {
				without = append(without, '\n'+1, hi)
			}
		}
		re.Rune = without
		if len(without) == 0 {
			re.Op = syntax.OpNoMatch
		}
	}
	for i, sub := range re.Sub {
		re.Sub[i] = withinLine(sub)
	}
	return re
}

// longestLiteral returns the longest text that every match of re holds; in
// whatever case when fold is set.
func longestLiteral(re *syntax.Regexp, fold bool) string {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 && !fold {
			return "" // "(?i:...)" in the middle of a pattern
		}
		return string(re.Rune)
	case syntax.OpCapture, syntax.OpPlus:
		return longestLiteral(re.Sub[0], fold)
	case syntax.OpRepeat:
		if re.Min > 0 {
			return longestLiteral(re.Sub[0], fold)
		}
	case syntax.OpConcat:
		longest := ""
		for _, sub := range re.Sub {
			if s := longestLiteral(sub, fold); len(s) > len(longest) {
				longest = s
			}
		}
		return longest
	}
	return ""
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// commonBytes are what texts are mostly made of, the most common first.
const commonBytes = " etaoinsrlhdcmu\tfp.gy,bw(_)v\"-:;=k/x'0q1jz2"

// rarest returns the place of the byte of a literal that is met least often.
func rarest(literal string) int {
	place, best := 0, -1
	for i := range len(literal) {
		rank := strings.IndexByte(commonBytes, literal[i])
		if rank < 0 {
			rank = len(commonBytes)
		}
		if rank > best {
			place, best = i, rank
		}
	}
	return place
}

// misses reports whether a file surely holds no match, by a look at its bytes
// before anything else is known of them. That is so for most files.
func (m *matcher) misses(data []byte) bool {
	if !m.plain || len(data) == 0 {
		return false
	}
	if data[0] >= 0xfe || bytes.IndexByte(data[:min(len(data), sniffLen)], 0) >= 0 {
		return false // two bytes a unit, or a binary file, which is counted
	}
	f, ok := m.finder(data)
	return ok && f.next(0) < 0
}

// A literalFinder finds the literal of a matcher in one text, from front to
// back.
type literalFinder struct {
	data    []byte
	literal []byte
	fold    bool
	rare    int
	at      [2]int // where the rare byte stands next, in lower and in upper case; len(data) for nowhere
}

// finder returns a finder for data. It reports false when the literal can't
// tell lines with a match from others.
func (m *matcher) finder(data []byte) (literalFinder, bool) {
	f := literalFinder{data: data, literal: m.literal, fold: m.fold, rare: m.rare, at: [2]int{-1, -1}}
	if len(m.literal) == 0 {
		return f, false
	}
	// Of the characters outside ASCII, two fold to a letter in it.
	if m.fold && (bytes.IndexByte(m.literal, 's') >= 0 && bytes.Contains(data, []byte("ſ")) ||
		bytes.IndexByte(m.literal, 'k') >= 0 && bytes.Contains(data, []byte("\u212a"))) {
		return f, false
	}
	return f, true
}

// next returns where the literal next stands at or after from, which never
// goes back; below 0 for nowhere.
func (f *literalFinder) next(from int) int {
	if !f.fold {
		if i := bytes.Index(f.data[from:], f.literal); i >= 0 {
			return from + i
		}
		return -1
	}
	low := f.literal[f.rare]
	cases := [2]byte{low, low}
	if 'a' <= low && low <= 'z' {
		cases[1] = low - 'a' + 'A'
	}
	for start := from + f.rare; start < len(f.data); {
		for i, c := range cases {
			if f.at[i] >= start {
				continue
			}
			f.at[i] = len(f.data)
			if j := bytes.IndexByte(f.data[start:], c); j >= 0 {
				f.at[i] = start + j
			}
		}
		at := min(f.at[0], f.at[1]) - f.rare
		if at+len(f.literal) > len(f.data) {
			return -1
		}
		if equalFold(f.data[at:at+len(f.literal)], f.literal) {
			return at
		}
		start = at + f.rare + 1
	}
	return -1
}

// equalFold reports whether a text is a literal in lower case but for the case
// of its ASCII letters.
func equalFold(data, literal []byte) bool {
	for i, c := range data {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != literal[i] {
			return false
		}
	}
	return true
}

// each calls fn with the bounds of every line that matches (or of the lines
// that one match spans), without the line end, until fn returns false.
func (m *matcher) each(data []byte, fn func(from, to int) bool) {
	f, byLiteral := m.finder(data)
	if byLiteral && m.multi {
		if f.next(0) < 0 {
			return
		}
		byLiteral = false // it need not be on the match's first line
	}
	for pos := 0; pos < len(data); {
		var from, to int
		if byLiteral {
			i := f.next(pos)
			if i < 0 {
				return
			}
			from, to = lineAround(data, i, i)
			if !m.whole && !m.re.Match(data[from:to]) {
				pos = to + 1
				continue
			}
		} else {
			loc := m.re.FindIndex(data[pos:])
			if loc == nil {
				return
			}
			// An empty match at the very end is on no line.
			if pos+loc[0] == len(data) && data[len(data)-1] == '\n' {
				return
			}
			last := pos + loc[1]
			if loc[1] > loc[0] {
				last-- // a match that takes a line's end in stays on that line
			}
			from, to = lineAround(data, pos+loc[0], last)
		}
		if !fn(from, to) {
			return
		}
		pos = to + 1
	}
}

// lineAround returns the bounds of the lines that hold data[first] to
// data[last].
func lineAround(data []byte, first, last int) (from, to int) {
	from = bytes.LastIndexByte(data[:first], '\n') + 1
	if i := bytes.IndexByte(data[last:], '\n'); i >= 0 {
		return from, last + i
	}
	return from, len(data)
}

// needsDecoding reports whether a file's bytes are not simply its text.
func needsDecoding(b []byte) bool {
	return len(b) >= 2 && (b[0] == 0xff || b[0] == 0xfe || b[0] == 0xef) || looksBinary(b) || !utf8.Valid(b)
}
