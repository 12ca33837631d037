package spelling_test

import (
	"strings"
	"testing"

	"github.com/synapse-agents/synapse/internal/spelling"
)

func TestNearest(t *testing.T) {
	words := []string{"tools", "disallowed_tools", "max_turns", "model", "mode", "readonly"}
	for word, want := range map[string]string{
		"tool": "tools", "Tools": "tools", "disalowed_tools": "disallowed_tools", "disallowedTools": "disallowed_tools",
		"max turns": "max_turns", "maxtruns": "max_turns", "modle": "model", "read-only": "readonly",
		"permissions": "", "x": "", "": "", strings.Repeat("tools", 100): "",
	} {
		if got := spelling.Nearest(word, words); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "abd", 1}, {"abc", "ab", 1}, {"ab", "xab", 1},
		{"kitten", "sitting", 3}, {"日本", "日木", 1}, {"ca", "abc", 3},
	} {
		for _, p := range [][2]string{{tt.a, tt.b}, {tt.b, tt.a}} {
			if got := spelling.Distance(p[0], p[1]); got != tt.want {
				t.Errorf("Distance(%q, %q) = %d, want %d", p[0], p[1], got, tt.want)
			}
		}
	}
}
