package policy

import "strings"

// Text that rules are matched against may hold gaps: places whose content is
// only known when a command runs. Two control bytes stand for them; no pattern
// and no judged text can hold those bytes otherwise.
const (
	gap     = '\x00' // any text, the empty one included
	optWord = '\x01' // either nothing, or a blank and any text: a word that may vanish
)

// A grade says how sure it is that a rule is about a subject.
type grade int

const (
	miss   grade = iota // never
	may                 // for some content of the gaps
	partly              // in one of several readings of the subject
	hit                 // in every reading, whatever the gaps hold
)

// wildcard reports whether pattern covers all of text. In a pattern "*" stands
// for any run of bytes; everything else stands for itself.
func wildcard(pattern, text string) bool {
	p, t := 0, 0
	star, mark := -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && pattern[p] == text[t]:
			p++
			t++
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// gapped reports whether text has gaps.
func gapped(text string) bool {
	return strings.IndexByte(text, gap) >= 0 || strings.IndexByte(text, optWord) >= 0
}

// maxOptWords bounds how many vanishing words are tried in all combinations.
const maxOptWords = 6

// covers reports whether, whatever the gaps of text hold, one of the patterns
// matches it. A gap is a byte that no pattern holds, so only a "*" can swallow
// it, and what swallows one byte swallows any text.
func covers(text string, patterns ...string) bool {
	one := func(text string) bool {
		for _, p := range patterns {
			if wildcard(p, text) {
				return true
			}
		}
		return false
	}
	n := strings.Count(text, string(rune(optWord)))
	if n == 0 {
		return one(text)
	}
	if n > maxOptWords {
		return false
	}
	buf := make([]byte, 0, len(text)+n)
	for set := range 1 << n {
		buf = buf[:0]
		k := 0
		for i := range len(text) {
			if text[i] != optWord {
				buf = append(buf, text[i])
				continue
			}
			if set&(1<<k) != 0 {
				buf = append(buf, ' ', gap)
			}
			k++
		}
		if !one(string(buf)) {
			return false
		}
	}
	return true
}

// touches reports whether pattern matches text for some content of its gaps.
// It follows all positions in the pattern that the text so far can lead to.
func touches(pattern, text string) bool {
	if !gapped(text) {
		return wildcard(pattern, text)
	}
	n := len(pattern)
	at, next := make([]bool, n+1), make([]bool, n+1)
	spread := func(set []bool) {
		for i := range n {
			if set[i] && pattern[i] == '*' {
				set[i+1] = true
			}
		}
	}
	step := func(from, to []bool, c byte) {
		clear(to)
		for i := range n {
			if !from[i] {
				continue
			}
			switch pattern[i] {
			case '*':
				to[i] = true
			case c:
				to[i+1] = true
			}
		}
		spread(to)
	}
	// any marks everything from the first position on: a gap can hold
	// whatever the pattern still wants.
	anything := func(set []bool) {
		for i, first := 0, false; i <= n; i++ {
			first = first || set[i]
			set[i] = first
		}
	}
	at[0] = true
	spread(at)
	for i := range len(text) {
		switch c := text[i]; c {
		case gap:
			anything(at)
		case optWord:
			step(at, next, ' ')
			anything(next)
			for j := range at {
				at[j] = at[j] || next[j]
			}
		default:
			step(at, next, c)
			at, next = next, at
		}
	}
	return at[n]
}

// matchCommandText matches a command pattern, in which a "*" that is a word at
// the end also stands for no word: "git *" is about a bare git too.
func matchCommandText(pattern, text string) grade {
	patterns := []string{pattern}
	if head, ok := strings.CutSuffix(pattern, " *"); ok && head != "" {
		patterns = append(patterns, head)
	}
	if covers(text, patterns...) {
		return hit
	}
	for _, p := range patterns {
		if touches(p, text) {
			return may
		}
	}
	return miss
}

// plainText reports whether s holds none of the control characters that stand
// for gaps, or that a terminal could act on. Blanks may be tabs and newlines.
func plainText(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return r < ' ' && r != '\t' && r != '\n' || r == 0x7f
	}) < 0
}
