// Package display holds what the screens and the commands share about showing
// things to people: how a count, a cost or a status is written, and how text
// that models, tools and files have produced is made harmless for a terminal.
package display

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/synapse-agents/synapse"
)

// Clean takes out of a text what a terminal would obey: it comes from models,
// tools and files, which have no say over the screen. Line ends and tabs stay.
func Clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD") // a lone byte may be a control character of eight bits
	if strings.IndexFunc(s, obeyed) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if obeyed(r) {
			return -1
		}
		return r
	}, s)
}

func obeyed(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.IsControl(r):
		return true
	}
	// Marks that turn the direction of what follows on the line.
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// Line is Clean for what must stay on one line: blanks of any kind and number
// become one space.
func Line(s string) string { return strings.Join(strings.Fields(Clean(s)), " ") }

// Number writes a count that is not negative, with commas.
func Number(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count writes how many there are of something, in the plural unless it is one.
func Count(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return Number(n) + " " + what
}

// Seconds writes how long something took.
func Seconds(d time.Duration) string {
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}

// Cost says what usage has cost, which nobody knows for a model without a price.
func Cost(u synapse.Usage) string {
	switch {
	case u.CostUSD == nil && u.Requests == 0 && u.Tokens() == 0:
		return "none" // no request has been counted: that is no price
	case u.CostUSD == nil:
		return "unknown"
	case *u.CostUSD == 0:
		return "$0"
	case *u.CostUSD < 0.01:
		return fmt.Sprintf("$%.4f", *u.CostUSD)
	}
	return fmt.Sprintf("$%.2f", *u.CostUSD)
}

// Mark is the sign of how a run has ended.
func Mark(s synapse.Status) string {
	switch s {
	case synapse.StatusCompleted:
		return "✓"
	case synapse.StatusPartial, synapse.StatusTimedOut:
		return "◐"
	case synapse.StatusCancelled:
		return "■"
	default:
		return "✗"
	}
}

// Spinner returns the sign of something that goes on, in the frame of that number.
func Spinner(frame int) string {
	const frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
	const size = len("⠋")
	n := len(frames) / size
	i := (frame%n + n) % n * size
	return frames[i : i+size]
}
