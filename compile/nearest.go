package compile

import "strings"

// didYouMean returns a hint for a tool name that nothing answers to, or "".
func (h *host) didYouMean(name string) string {
	known := make([]string, len(h.tools))
	for i, t := range h.tools {
		known[i] = t.Name
	}
	if best := nearest(name, known); best != "" {
		return "did you mean `" + best + "`?"
	}
	return ""
}

// nearest returns the candidate that differs least from the name, ignoring
// case, or "" when none is close enough to be a slip of the keys.
func nearest(name string, candidates []string) string {
	best, least := "", len([]rune(name))/3+1
	for _, c := range candidates {
		if d := distance(strings.ToLower(name), strings.ToLower(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	var older, old []int
	row := make([]int, len(t)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(s); i++ {
		older, old, row = old, row, make([]int, len(t)+1)
		row[0] = i
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			row[j] = min(old[j]+1, row[j-1]+1, old[j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return row[len(t)]
}
