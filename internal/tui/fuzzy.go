package tui

import (
	"slices"
	"strings"
	"unicode"
)

// fuzzy reports how well a word answers a query: every character of the query
// must come in the word, in order. More is better. Beginnings of words, runs and
// an early start count; case does not.
func fuzzy(query, word string) (score int, ok bool) {
	if query == "" {
		return 0, true
	}
	q, w := []rune(strings.ToLower(query)), []rune(strings.ToLower(word))
	if i := strings.Index(string(w), string(q)); i >= 0 { // as it stands
		score += 40 - min(i, 20)
		if i == 0 {
			score += 40
		}
	}
	n, run, last := 0, 0, -2
	for i, r := range w {
		if n == len(q) {
			break
		}
		if r != q[n] {
			continue
		}
		n++
		switch {
		case i == last+1:
			run++
			score += 4 + run
		case i == 0, !unicode.IsLetter(w[i-1]) && !unicode.IsDigit(w[i-1]):
			run = 0
			score += 6
		default:
			run = 0
			score++
		}
		last = i
	}
	return score - len(w)/8, n == len(q)
}

// rank orders what answers a query, the best first, and leaves out the rest.
// Things of the same score stay in their order.
func rank[T any](query string, all []T, word func(T) string) []T {
	type scored struct {
		v     T
		score int
	}
	var found []scored
	for _, v := range all {
		if s, ok := fuzzy(query, word(v)); ok {
			found = append(found, scored{v, s})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return b.score - a.score })
	out := make([]T, len(found))
	for i, f := range found {
		out[i] = f.v
	}
	return out
}
