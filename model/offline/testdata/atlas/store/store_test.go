package store

import "testing"

func TestAddRefusesLoops(t *testing.T) {
	var m Map
	if err := m.Add(Road{From: "a", To: "a"}); err == nil {
		t.Fatal("a road to its own start was taken")
	}
}

func TestFromIsEmptyForUnknownPlaces(t *testing.T) {
	var m Map
	if got := m.From("nowhere"); len(got) != 0 {
		t.Fatalf("got %v", got)
	}
}
