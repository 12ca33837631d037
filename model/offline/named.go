package offline

import (
	"fmt"
	"strings"
)

// listTools quotes what the request offers.
func (s *session) listTools() section {
	if s.final || len(s.box.names) == 0 {
		return section{lead: "no tools are offered"}
	}
	sec := section{lead: count(len(s.box.names), "tool") + " offered, each with the first line of its description"}
	for _, n := range s.box.names {
		text := firstLine(s.box.offers[n].def.Description)
		if i := sentenceEnd(text); i > 0 {
			text = text[:i]
		}
		sec.lines = append(sec.lines, n+": "+clip(text, 200))
	}
	return sec
}

// namedTool calls a tool that the request names, and quotes what it returns.
func (s *session) namedTool(a ask) section {
	name, w := a.subject, want{}
	switch {
	case a.flags["skill"]:
		name, w["+name"] = "skill", a.subject
	case a.flags["workflow"]:
		name, w["+name"] = "run_workflow", a.subject
	}
	var o *offer
	for _, n := range s.box.names {
		if fold(n) == fold(name) {
			o = s.box.offers[n]
		}
	}
	if o == nil {
		return undone(fmt.Sprintf("no tool %q is offered; there are: %s", name, strings.Join(s.box.names, ", ")))
	}
	if a.command != "" && len(w) == 0 {
		// What is said after the tool's name goes to its one argument.
		value := unquote(strings.TrimPrefix(a.command, "on "))
		for _, meaning := range []string{"command", "url", "pattern", "prompt", "file", "name"} {
			try := want{"+" + meaning: value}
			if _, ok := o.fill(try, "asked for"); ok {
				w = try
				break
			}
		}
	}
	out := s.call(o, w, "asked for")
	if sec, stop := stopped(out); stop {
		return sec
	}
	lines := strings.Split(strings.TrimRight(out.text, "\n"), "\n")
	for i, l := range lines {
		lines[i] = clip(strings.TrimRight(l, " \t\r"), 400)
	}
	return section{lead: o.def.Name + " returned", lines: head(lines, 120)}
}
