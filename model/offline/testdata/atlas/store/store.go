// Package store keeps the places of a map and the roads between them. It is
// safe for use by several goroutines at once.
package store

import (
	"errors"
	"sync"
)

// MaxPlaces is how many places a map holds.
const MaxPlaces = 10_000

// ErrFull is returned when a map holds MaxPlaces places.
var ErrFull = errors.New("the map is full")

// A Road leads from one place to another.
type Road struct {
	From, To string
	Length   int
}

// A Map is a set of places with roads.
type Map struct {
	mu    sync.Mutex
	roads map[string][]Road
}

// Add puts a road on the map, and its two ends where they are missing.
func (m *Map) Add(r Road) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.roads) >= MaxPlaces {
		return ErrFull
	}
	if err := checkRoad(r); err != nil {
		return err
	}
	if m.roads == nil {
		m.roads = map[string][]Road{}
	}
	m.roads[r.From] = append(m.roads[r.From], r)
	return nil
}

// From returns the roads that leave a place.
func (m *Map) From(place string) []Road {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.roads[place]
}

// checkRoad refuses a road that no map may have.
func checkRoad(r Road) error {
	// TODO: say which of the two ends is wrong
	if r.Length < 0 || r.From == r.To {
		return errors.New("bad road")
	}
	return nil
}
