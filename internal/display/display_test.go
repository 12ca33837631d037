package display_test

import (
	"testing"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/internal/display"
)

func TestClean(t *testing.T) {
	for _, tt := range []struct{ text, clean, line string }{
		{"plain 界 👩‍👩‍👧", "plain 界 👩‍👩‍👧", "plain 界 👩‍👩‍👧"},
		{"a\x1b[2Jb\x07\n\tc ", "a[2Jb\n\tc ", "a[2Jb c"},
		{"\u009b31mx\u202ey\u2066", "31mxy", "31mxy"},
		{"\x9b31m", "\uFFFD31m", "\uFFFD31m"}, // the same in one byte
		{"\r\n", "\n", ""},
	} {
		if got := display.Clean(tt.text); got != tt.clean {
			t.Errorf("Clean(%q) is %q, want %q", tt.text, got, tt.clean)
		}
		if got := display.Line(tt.text); got != tt.line {
			t.Errorf("Line(%q) is %q, want %q", tt.text, got, tt.line)
		}
	}
}

func TestFigures(t *testing.T) {
	dollars := func(d float64) synapse.Usage { return synapse.Usage{Requests: 1, InputTokens: 1, CostUSD: &d} }
	for _, tt := range []struct{ got, want string }{
		{display.Count(1, "turn"), "1 turn"}, {display.Count(0, "turn"), "0 turns"}, {display.Count(1234567, "token"), "1,234,567 tokens"},
		{display.Seconds(1540 * time.Millisecond), "1.5s"}, {display.Seconds(61*time.Second + 400*time.Millisecond), "1m1s"},
		{display.Cost(synapse.Usage{}), "none"}, {display.Cost(synapse.Usage{InputTokens: 1}), "unknown"}, {display.Cost(dollars(0)), "$0"},
		{display.Cost(dollars(0.0012)), "$0.0012"}, {display.Cost(dollars(1.234)), "$1.23"},
		{display.Spinner(0), "⠋"}, {display.Spinner(11), "⠙"}, {display.Spinner(-1), "⠏"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}
