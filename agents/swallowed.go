package agents

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// swallowed looks for lines that were meant to restrict the agent and did not
// become fields: below a quote that is never closed, without a blank behind the
// colon, indented by mistake where the value above is text, or between a "---"
// and another that look like one header. Each is an error, for without it the
// agent would have more than its author gave it.
func swallowed(src source, doc *document, root *yaml.Node, lenient bool) []Diagnostic {
	var diags []Diagnostic
	report := func(line int, f *field, why, hint string) {
		diags = append(diags, Diagnostic{
			Pos: Pos{src.file, line, 1 + doc.indent}, Severity: Error, Code: CodeBadRestriction, Hint: hint,
			Message: fmt.Sprintf("this line seems to set %s, but %s; the definition is disabled, as this field restricts it", f.name, why),
		})
	}
	keys, set := map[int]bool{}, map[*field]bool{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		keys[root.Content[i].Line] = true
		if f, _ := doc.dialect.lookup(trim(root.Content[i].Value)); f != nil {
			set[f] = true
		}
	}
	for i, line := range doc.head {
		f, mark, indented := doc.dialect.restrictingLine(line)
		switch {
		case f == nil || keys[doc.first+i]:
		case !indented && mark != ":":
			report(doc.first+i, f, fmt.Sprintf("“%s” is no colon", mark), fmt.Sprintf("write “%s: ”", f.name))
		case !indented:
			report(doc.first+i, f, "it is part of the value above it, or has no blank behind the colon", "close the quote or bracket above, and put a blank behind the colon")
		case lenient && mark == ":" && !set[f]:
			report(doc.first+i, f, "it is indented and part of the value above it", "begin the line without blanks")
		}
		if len(diags) > 20 {
			return diags
		}
	}
	// The header may go on below a rule that ended it too soon.
	if doc.odd != "" || !strings.Contains(doc.body, "---") {
		return diags
	}
	below := strings.Split(doc.body, "\n")
	if end := slices.IndexFunc(below, func(l string) bool { return strings.TrimSpace(l) == "---" }); end > 0 {
		for i, line := range below[:end] {
			_, isKey := cutKey(line)
			if t := strings.TrimSpace(line); t != "" && !isKey && line[0] != ' ' && line[0] != '\t' && line[0] != '#' && !strings.HasPrefix(t, "- ") {
				break
			}
			if f, _, indented := doc.dialect.restrictingLine(line); f != nil && !indented {
				report(doc.bodyLine+i, f, "it stands below the “---” that ends the frontmatter", "remove that line")
				break
			}
		}
	}
	return diags
}

// restrictingLine returns the restricting field that a line names at its
// beginning, spelled to the letter, with what stands between it and its value.
func (d *dialect) restrictingLine(line string) (f *field, mark string, indented bool) {
	rest := strings.TrimLeft(line, " \t")
	i := strings.IndexAny(rest, ":：=")
	if i <= 0 || i > 40 {
		return nil, "", false
	}
	name := strings.Trim(strings.TrimSpace(rest[:i]), `"'`)
	f, exact := d.lookup(name)
	if f == nil || !exact || !f.restricts {
		return nil, "", false
	}
	mark = ":"
	if r := []rune(rest[i:])[0]; r != ':' {
		mark = string(r)
	}
	return f, mark, len(rest) < len(line)
}
