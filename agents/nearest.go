package agents

import "github.com/synapse-agents/synapse/internal/spelling"

// nearest returns the word that s was likely meant to be: the one with the
// fewest letters to insert, drop, replace or swap, "" when none is near.
func nearest(s string, words []string) string {
	best, limit := "", len([]rune(s))/3
	limit = min(max(limit, 1), 3)
	for _, w := range words {
		if d := spelling.Distance(s, w); d > 0 && d <= limit {
			best, limit = w, d-1
		}
	}
	return best
}
