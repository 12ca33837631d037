package tui

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/synapse-agents/synapse"
)

// A change is what a tool says about a file that it has changed, in the details
// of its result.
type change struct {
	Path    string   `json:"path"`
	Created bool     `json:"created"`
	Deleted bool     `json:"deleted"`
	From    string   `json:"from"`
	Added   int      `json:"added"`
	Removed int      `json:"removed"`
	Diff    string   `json:"diff"`
	Files   []change `json:"files"`
}

// changesOf reads the changes that a result tells of.
func changesOf(r *synapse.ToolResult) []change {
	if len(r.Details) == 0 || r.IsError {
		return nil
	}
	var c change
	if json.Unmarshal(r.Details, &c) != nil {
		return nil
	}
	if len(c.Files) > 0 {
		return c.Files
	}
	if c.Diff == "" {
		return nil
	}
	return []change{c}
}

// summary says in a few words what has changed.
func (c *change) summary() string {
	s := oneLine(c.Path)
	switch {
	case c.Created:
		s = "new " + s
	case c.Deleted:
		s = "deleted " + s
	case c.From != "":
		s = oneLine(c.From) + " → " + s
	}
	return fmt.Sprintf("%s +%d −%d", s, c.Added, c.Removed)
}

// draw draws the change's diff with line numbers, without its file header.
func (c *change) draw(width int, th *theme) []string {
	var out []string
	language := ""
	if i := strings.LastIndexByte(c.Path, '.'); i >= 0 {
		language = c.Path[i+1:]
	}
	was, is := 0, 0
	for line := range strings.Lines(foreign(c.Diff)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "), line == "":
			continue
		case strings.HasPrefix(line, "@@"):
			fmt.Sscanf(line, "@@ -%d", &was)
			if _, after, ok := strings.Cut(line, "+"); ok {
				fmt.Sscanf(after, "%d", &is)
			}
			if len(out) > 0 {
				out = append(out, th.border.paint("   ⋯"))
			}
			continue
		}
		number := is
		if line[0] == '-' {
			number = was
		}
		switch line[0] {
		case '-':
			was++
		case '+':
			is++
		case ' ':
			was++
			is++
		}
		st := diffStyle(line, th)
		body := []span{{line, st}}
		if line[0] == ' ' {
			body = append([]span{{" ", ""}}, highlight(line[1:], language, th)[0]...)
		}
		for i, l := range wrap(body, max(width-5, 8)) {
			gutter := "     "
			if i == 0 {
				gutter = fmt.Sprintf("%4d ", number)
			}
			out = append(out, th.border.paint(gutter)+l)
		}
	}
	return out
}
