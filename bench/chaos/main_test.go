package main

import (
	"testing"
)

// TestChaos is the small version: every fault, a moment's work.
func TestChaos(t *testing.T) {
	s := serve(50, 7)
	defer s.Close()
	r, err := chaos(t.Context(), 50, s.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		if r.did[f.name] == 0 {
			t.Errorf("no request got %s: another seed is needed", f.name)
		}
	}
	if err := r.check(1 << 20); err != nil { // the race detector takes memory of its own
		t.Error(err)
	}
}
