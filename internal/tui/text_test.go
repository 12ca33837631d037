package tui_test

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse/internal/tui"
)

// bare is lines without styles and blanks at their ends.
func bare(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(ansi.Strip(l), " ") + "\n")
	}
	return b.String()
}

func TestMarkdown(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"lines stay", "one\ntwo", "one\ntwo\n"},
		{"wide", "研究者研究者研究者研究者研究者", "研究者研究者研究者研\n究者研究者\n"},
		{"long word", "a " + strings.Repeat("x", 25), "a\nxxxxxxxxxxxxxxxxxxxx\nxxxxx\n"},
		{"list", "- one\n- two\n  - three four five six\n\n1. a\n2. b", "• one\n• two\n  • three four five\n    six\n\n1. a\n2. b\n"},
		{"task list", "- [x] done\n- [ ] open", "• ☑ done\n• ☐ open\n"},
		{"quote", "> one two three four five", "▏ one two three four\n▏ five\n"},
		{"code", "```go\nfunc f() {}\n\n\tx := 1\n```", "  func f() {}\n\n      x := 1\n"},
		{"open fence", "```\ncode", "  code\n"},
		{"link", "[text](https://e.org) <https://e.org>", "text (https://e.org)\nhttps://e.org\n"},
		{"hidden link", "[https://a.org](https://b.org)", "https://a.org\n(https://b.org)\n"},
		{"entities", "&lt;b&gt; &amp; &#27;[31m \\*x\\*", "<b> & [31m *x*\n"},
		{"html", "<b>x</b> <!-- y -->", "<b>x</b> <!-- y -->\n"},
		{"table", "|a|b|\n|-|-:|\n|one|22|\n|研究|3|", "a    │  b\n─────┼───\none  │ 22\n研究 │  3\n"},
		{"table that is too wide", "|a|b|\n|-|-|\n|one two three four|five six seven eight|", "a        │ b\n─────────┼──────────\none two  │ five six\nthree    │ seven\nfour     │ eight\n"},
		{"controls", "a\x1b[31mb\x07c\u202ed\x9be", "a[31mbcd\uFFFDe\n"},
		{"rule", "a\n\n---\n\nb", "a\n\n────────────────────\n\nb\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			whole, _ := tui.DrawText(tt.text, nil, 20)
			if diff := cmp.Diff(tt.want, bare(whole)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestMarkdownWhileItComes wants a text to look the same while it comes and when it
// is there, where nothing refers to what comes later.
func TestMarkdownWhileItComes(t *testing.T) {
	text := "# Title\n\nOne *two* three.\nFour.\n\n- a\n- b\n\n  still b\n\nAfter.\n\n```go\nfunc f() {\n\n\treturn\n}\n```\n\n" +
		"> quote\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n~~~\n```\n~~~\nEnd. " + strings.Repeat("More text follows here.\n\n", 30) + "```py\n" + strings.Repeat("x = 1\n\n", 700) + "```\nlast"
	for _, size := range []int{1, 17, 64, 1000} {
		var pieces []string
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		if size == 1 {
			pieces = pieces[:500]
		}
		whole, streamed := tui.DrawText(strings.Join(pieces, ""), pieces, 60)
		if diff := cmp.Diff(bare(whole), bare(streamed)); diff != "" {
			t.Errorf("in pieces of %d: %s", size, diff)
		}
	}
}

func TestDiff(t *testing.T) {
	got := bare(tui.DrawDiff("a.go", "--- a/a.go\n+++ b/a.go\n@@ -9,3 +9,3 @@ func x\n one\n-two\n+2\x1b[2J\n three\n@@ -100 +100,2 @@\n+long "+strings.Repeat("x", 30)+"\n", 30))
	want := "   9  one\n  10 -two\n  10 +2[2J\n  11  three\n   ⋯\n 100 +long\n     xxxxxxxxxxxxxxxxxxxxxxxxx\n     xxxxx\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// FuzzText wants whatever a model writes to stay within its columns, and nothing
// in it to reach the terminal but text and our own styles.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		"# a\n\n- b\n  1. c\n\n> > d", "```go\nx\n", "|a|b|\n|-|-|\n|1|2|", "&#x1b;[2J", "\x1b]0;t\x07", "👩‍👩‍👧‍👦界e\u0301", "[a](b\x1b) ![c](d)",
		strings.Repeat("> ", 50) + "x", strings.Repeat("- ", 50) + "x", "a\tb\r\nc", "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b", "<div>\n\x9b31m", "`a\n\nb`", " 00\uFFFD", "&#9;x&#10;y",
	} {
		f.Add(s, 24)
	}
	f.Fuzz(func(t *testing.T, text string, width int) {
		width = 20 + (width%80+80)%80
		var pieces []string
		size := max(5, len(text)/50)
		for i := 0; i < len(text); i += size {
			pieces = append(pieces, text[i:min(i+size, len(text))])
		}
		whole, streamed := tui.DrawText(text, pieces, width)
		for _, l := range append(append(whole, streamed...), tui.DrawDiff("x.go", text, width)...) {
			bare := ansi.Strip(l)
			if ansi.StringWidth(bare) > width {
				t.Errorf("%d columns of %d: %q", ansi.StringWidth(bare), width, l)
			}
			for _, r := range bare {
				if r < ' ' || r >= 0x7f && r < 0xa0 {
					t.Errorf("%q holds %q", l, r)
				}
			}
			for _, seq := range strings.Split(l, "\x1b")[1:] { // ours are styles alone
				if end := strings.IndexByte(seq, 'm'); !strings.HasPrefix(seq, "[") || end < 0 || strings.Trim(seq[1:end], "0123456789;:") != "" {
					t.Errorf("%q holds the sequence %q", l, seq)
				}
			}
		}
	})
}
