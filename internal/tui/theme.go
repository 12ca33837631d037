package tui

import (
	"image/color"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// A style is what goes before a text so that it looks a certain way; the empty
// one leaves it plain.
type style string

const reset = "\x1b[m"

// paint returns the text in the style. The text must not hold styles itself.
func (s style) paint(text string) string {
	if s == "" || text == "" {
		return text
	}
	return string(s) + text + reset
}

// A theme says how everything looks. Themes are compared by pointer: what was
// drawn with another one is drawn again.
type theme struct {
	name  string
	about string

	faint, strong, italic, struck       style
	accent, good, warn, bad             style
	user, agent, heading, link, quote   style
	code, keyword, str, number, comment style
	added, removed, hunk                style
	selected, border, key               style
}

// paints are the colours that a theme is made of; "" is the terminal's own.
type paints struct {
	text2, accent, good, warn, bad, user, agent, heading, link string
	code, keyword, str, number, comment, selected, border      string
}

// hex reads "#rrggbb", and one of the sixteen colours of the terminal's own
// palette as a number.
func hex(s string) color.Color {
	if n, err := strconv.ParseUint(strings.TrimPrefix(s, "#"), 16, 32); err == nil && strings.HasPrefix(s, "#") {
		return color.RGBA{R: uint8(n >> 16), G: uint8(n >> 8), B: uint8(n), A: 255}
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 15 {
		return nil
	}
	return ansi.BasicColor(n)
}

func fg(c string, base ansi.Style) style {
	if hc := hex(c); hc != nil {
		base = base.ForegroundColor(hc)
	}
	if len(base) == 0 {
		return ""
	}
	return style(base.String())
}

func newTheme(name, about string, p paints) *theme {
	plain, bold, faint := ansi.NewStyle(), ansi.NewStyle().Bold(), ansi.NewStyle().Faint()
	t := &theme{
		name: name, about: about,
		strong: fg("", bold), italic: fg("", ansi.NewStyle().Italic(true)), struck: fg("", ansi.NewStyle().Strikethrough(true)),
		faint: fg("", faint), accent: fg(p.accent, plain), good: fg(p.good, plain), warn: fg(p.warn, plain), bad: fg(p.bad, plain),
		user: fg(p.user, bold), agent: fg(p.agent, bold), heading: fg(p.heading, bold),
		link: fg(p.link, ansi.NewStyle().Underline(true)), quote: fg(p.text2, ansi.NewStyle().Italic(true)),
		code: fg(p.code, plain), keyword: fg(p.keyword, plain), str: fg(p.str, plain), number: fg(p.number, plain), comment: fg(p.comment, faint),
		added: fg(p.good, plain), removed: fg(p.bad, plain), hunk: fg(p.accent, faint),
		border: fg(p.border, faint), key: fg(p.accent, bold),
	}
	if p.text2 != "" {
		t.faint, t.comment, t.border = fg(p.text2, plain), fg(p.comment, plain), fg(p.border, plain)
	}
	selected := ansi.NewStyle().Reverse(true)
	if c := hex(p.selected); c != nil {
		selected = bold.BackgroundColor(c)
	}
	t.selected = fg("", selected)
	return t
}

// themeAuto follows the terminal's background.
const themeAuto = "auto"

// themes are all there are but themeAuto, in the order in which they are offered.
var themes = []func() *theme{darkTheme, lightTheme, ansiTheme, monoTheme}

func darkTheme() *theme {
	return newTheme("dark", "for a dark background", paints{
		text2: "#8b93a6", accent: "#7dcfff", good: "#9ece6a", warn: "#e0af68", bad: "#f7768e", user: "#c0caf5", agent: "#bb9af7",
		heading: "#7aa2f7", link: "#7dcfff", code: "#e0af68", keyword: "#bb9af7", str: "#9ece6a", number: "#ff9e64", comment: "#737aa2",
		selected: "#33467c", border: "#4a5278",
	})
}

func lightTheme() *theme {
	return newTheme("light", "for a light background", paints{
		text2: "#5f6475", accent: "#006a83", good: "#386a1d", warn: "#8a5a00", bad: "#b3261e", user: "#1a1c2c", agent: "#6b3fa0",
		heading: "#1f4fa8", link: "#006a83", code: "#8a4b00", keyword: "#6b3fa0", str: "#386a1d", number: "#a04000", comment: "#6b7080",
		selected: "#cfdcf7", border: "#a5abbd",
	})
}

func ansiTheme() *theme {
	return newTheme("ansi", "the terminal's own sixteen colours", paints{
		accent: "6", good: "2", warn: "3", bad: "1", agent: "5", heading: "4", link: "6", code: "3", keyword: "5", str: "2", number: "3",
	})
}

func monoTheme() *theme { return newTheme("mono", "no colours", paints{}) }

// themeNamed returns the theme of a name, nil if there is none.
func themeNamed(name string) *theme {
	for _, make := range themes {
		if t := make(); t.name == name {
			return t
		}
	}
	return nil
}
