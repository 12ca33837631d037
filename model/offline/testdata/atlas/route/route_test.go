package route

import (
	"errors"
	"testing"

	"example.com/atlas/store"
)

func TestShortestPrefersTheDetour(t *testing.T) {
	var m store.Map
	for _, r := range []store.Road{{"a", "b", 9}, {"a", "c", 1}, {"c", "b", 2}} {
		if err := m.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	way, err := Shortest(&m, "a", "b")
	if err != nil || len(way) != 3 {
		t.Fatalf("got %v, %v", way, err)
	}
}

func TestShortestWithoutAWay(t *testing.T) {
	var m store.Map
	if _, err := Shortest(&m, "a", "b"); !errors.Is(err, ErrNoWay) {
		t.Fatalf("got %v", err)
	}
}
