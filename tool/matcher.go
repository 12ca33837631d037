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

// each calls fn with the bounds of every line that matches (or of the lines
// that one match spans), without the line end, until fn returns false.
func (m *matcher) each(data []byte, fn func(from, to int) bool) {
	hay := data
	byLiteral := len(m.literal) > 0
	if byLiteral && m.fold {
		hay, byLiteral = lowerASCII(data)
	}
	if byLiteral && !bytes.Contains(hay, m.literal) {
		return
	}
	for pos := 0; pos < len(data); {
		var from, to int
		if byLiteral && !m.multi {
			i := bytes.Index(hay[pos:], m.literal)
			if i < 0 {
				return
			}
			from, to = lineAround(data, pos+i, pos+i)
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

// lowerASCII returns data with A to Z in lower case. It reports false when the
// data hold one of the two characters outside ASCII that fold to a letter in
// it (ſ and the Kelvin sign), which a search in lower case would miss.
func lowerASCII(data []byte) ([]byte, bool) {
	if bytes.Contains(data, []byte("ſ")) || bytes.Contains(data, []byte("\u212a")) {
		return data, false
	}
	low := make([]byte, len(data))
	for i, c := range data {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		low[i] = c
	}
	return low, true
}

// needsDecoding reports whether a file's bytes are not simply its text.
func needsDecoding(b []byte) bool {
	return len(b) >= 2 && (b[0] == 0xff || b[0] == 0xfe || b[0] == 0xef) || looksBinary(b) || !utf8.Valid(b)
}
