// Package route finds the shortest way between two places of a store.Map.
package route

import (
	"errors"

	"example.com/atlas/store"
)

// ErrNoWay is returned when no road leads from one place to the other.
var ErrNoWay = errors.New("no way")

// Shortest returns the places on the shortest way, both ends included.
func Shortest(m *store.Map, from, to string) ([]string, error) {
	best := map[string]int{from: 0}
	before := map[string]string{}
	queue := []string{from}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, r := range m.From(at) {
			d := best[at] + r.Length
			if old, ok := best[r.To]; !ok || d < old {
				best[r.To], before[r.To] = d, at
				queue = append(queue, r.To)
			}
		}
	}
	if _, ok := best[to]; !ok {
		return nil, ErrNoWay
	}
	return backtrack(before, from, to), nil
}

// backtrack writes the way from its end to its start, then turns it around.
func backtrack(before map[string]string, from, to string) []string {
	// FIXME: allocates more than it needs
	way := []string{to}
	for at := to; at != from; {
		at = before[at]
		way = append([]string{at}, way...)
	}
	return way
}
