// Package spelling finds what a misspelled word was meant to be, for the "did
// you mean" of messages.
package spelling

import (
	"strings"
	"unicode"
)

// maxWord is how long a word may be, in runes, before nothing is like it: what
// is longer is no slip of the keys, and comparing would take its time.
const maxWord = 64

// Nearest returns the candidate that word was probably meant to be, the first
// of those that are equally near; "" if none is near. Letter case, "_", "-", "."
// and blanks don't count.
func Nearest(word string, candidates []string) string {
	want := fold(word)
	best, least := "", min(max(1, len([]rune(want))/3), 3)+1
	for _, c := range candidates {
		if d := Distance(want, fold(c)); d < least && c != word {
			best, least = c, d
		}
	}
	return best
}

func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' || unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// Distance counts the letters to insert, drop, replace or swap with their
// neighbour to make a into b (optimal string alignment). For words too long to
// be compared it is the sum of their lengths.
func Distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if len(x) > maxWord || len(y) > maxWord {
		return len(x) + len(y)
	}
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := range x {
		row[0] = i + 1
		for j := range y {
			change := last[j]
			if x[i] != y[j] {
				change++
			}
			row[j+1] = min(change, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}
