package tui

// DrawText draws a Markdown text that a model has written, whole and as it is
// drawn while it comes in pieces.
func DrawText(text string, pieces []string, width int) (whole, streamed []string) {
	th := darkTheme()
	s := &stream{}
	for _, p := range pieces {
		s.add(foreign(p))
		streamed = s.lines("", "", width, th)
	}
	return markdown(foreign(text), width, th), streamed
}

// DrawDiff draws a tool's diff.
func DrawDiff(path, diff string, width int) []string {
	c := change{Path: path, Diff: diff}
	return c.draw(width, darkTheme())
}
