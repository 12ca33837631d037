package agents

// nearest returns the word that s was likely meant to be: the one with the
// fewest letters to insert, drop, replace or swap, "" when none is near.
func nearest(s string, words []string) string {
	best, limit := "", len([]rune(s))/3
	limit = min(max(limit, 1), 3)
	for _, w := range words {
		if d := editDistance(s, w, limit); d > 0 && d <= limit {
			best, limit = w, d-1
		}
	}
	return best
}

// editDistance counts insertions, deletions, replacements and swaps of
// neighbours. It gives up above limit.
func editDistance(a, b string, limit int) int {
	x, y := []rune(a), []rune(b)
	if d := len(x) - len(y); d > limit || -d > limit {
		return limit + 1
	}
	two, one := make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range one {
		one[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row := make([]int, len(y)+1)
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(one[j]+1, row[j-1]+1, one[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], two[j-2]+1)
			}
		}
		two, one = one, row
	}
	return one[len(y)]
}
