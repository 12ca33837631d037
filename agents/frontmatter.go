package agents

import (
	"strings"
	"unicode"
)

// document is a Markdown file taken apart.
type document struct {
	dialect *dialect
	head    []string // the frontmatter's lines, dedented
	first   int      // the file's line on which head begins, from 1
	indent  int      // how many characters were taken off the head's lines
	body    string   // trimmed
	// bodyLine is the file's line on which body begins.
	bodyLine int

	open    Pos    // of the opening "---"
	skipped string // what stands before it, for people; "" when nothing does
	// odd says how the frontmatter ends where it does not end in "---".
	odd     string
	oddLine int
	// stray is a line of the body that sets a restricting field, with a guessed
	// end above it: nobody can tell which of the two is meant.
	stray      int
	strayField string
}

// splitDocument finds frontmatter and body. It reports false when the file
// does not begin with frontmatter.
func splitDocument(src source, dl *dialect) (document, bool) {
	d := document{dialect: dl}
	lines := src.lines
	at, fence, ok := skipLeading(lines, &d)
	if !ok {
		return d, false
	}
	rule := lines[at]
	d.indent = len(rule) - len(strings.TrimLeft(rule, " \t"))
	if d.indent > 0 && d.skipped == "" {
		d.skipped = "indentation"
	}
	d.open = Pos{File: src.file, Line: at + 1, Column: d.indent + 1}
	d.first = at + 2
	rest := lines[at+1:]
	if d.indent > 0 {
		rest = dedentAll(rest, d.indent)
	}
	end, next := d.findEnd(rest)
	d.head = rest[:end]
	body := rest[next:]
	if fence != "" {
		body = dropFence(body, fence)
	}
	d.bodyLine = d.first + next
	d.setBody(body)
	return d, true
}

func (d *document) setBody(lines []string) {
	body := strings.Join(lines, "\n")
	body = strings.TrimRightFunc(body, unicode.IsSpace)
	// Leading blank lines go, the indentation of the first line stays.
	for {
		line, rest, more := strings.Cut(body, "\n")
		if strings.TrimSpace(line) != "" || !more {
			break
		}
		body = rest
		d.bodyLine++
	}
	d.body = body
}

// skipLeading passes over blank lines, HTML comments and one code fence that
// wraps the whole file. It returns the index of the opening rule.
func skipLeading(lines []string, d *document) (at int, fence string, ok bool) {
	note := func(what string) {
		if d.skipped == "" || what != "blank lines" {
			d.skipped = what
		}
	}
	for at < len(lines) {
		line := strings.TrimSpace(lines[at])
		switch {
		case line == "---":
			return at, fence, true
		case line == "":
			note("blank lines")
			at++
		case strings.HasPrefix(line, "<!--"):
			note("an HTML comment")
			line = line[len("<!--"):]
			for !strings.Contains(line, "-->") {
				if at++; at == len(lines) {
					return 0, "", false
				}
				line = lines[at]
			}
			if _, after, _ := strings.Cut(line, "-->"); strings.TrimSpace(after) != "" {
				return 0, "", false
			}
			at++
		case fence == "" && fenceMark(line) != "":
			note("a code fence")
			fence = fenceMark(line)
			at++
		default:
			return 0, "", false
		}
	}
	return 0, "", false
}

// fenceMark returns the marks with which a line opens a code fence, "" if it
// does not.
func fenceMark(line string) string {
	line = strings.TrimLeft(line, " \t")
	for _, c := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, c)
		if n := len(line) - len(rest); n >= 3 && !strings.Contains(rest, c) {
			return line[:n]
		}
	}
	return ""
}

// dropFence removes the line that closes the fence around the whole file: the
// last line that is not blank.
func dropFence(lines []string, fence string) []string {
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(lines[i])
		if line == "" {
			continue
		}
		if strings.HasPrefix(line, fence) && strings.Trim(line, fence[:1]) == "" {
			return lines[:i]
		}
		break
	}
	return lines
}

// dedentAll takes up to n blanks off every line.
func dedentAll(lines []string, n int) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		cut := 0
		for cut < n && cut < len(line) && (line[cut] == ' ' || line[cut] == '\t') {
			cut++
		}
		out[i] = line[cut:]
	}
	return out
}

// findEnd returns how many lines the frontmatter has and where the body begins.
func (d *document) findEnd(lines []string) (end, body int) {
	for i, line := range lines {
		t := strings.TrimRightFunc(line, unicode.IsSpace)
		if t == "---" {
			return i, i + 1
		}
		if t == "..." || isLongRule(t) {
			if d.dialect.setsKnownField(lines[i+1:]) {
				// The header goes on below: ending it here could lose a
				// restriction. The line itself is nothing that YAML can read, so
				// it will be told with the rest.
				continue
			}
			d.odd, d.oddLine = "in “"+shorten(t, 12)+"”", d.first+i
			return i, i + 1
		}
	}
	return d.guessEnd(lines)
}

// guessEnd ends the frontmatter at the last line that sets a known field.
func (d *document) guessEnd(lines []string) (end, body int) {
	end = d.dialect.headExtent(lines)
	d.odd, d.oddLine = "nowhere", d.first+max(end-1, 0)
	if i, field := d.dialect.restriction(lines[end:]); field != "" {
		d.stray, d.strayField = d.first+end+i, field
	}
	return end, end
}

// restriction returns the first line, outside code fences, that sets a
// restricting field.
func (d *dialect) restriction(lines []string) (index int, field string) {
	fence := ""
	for i, line := range lines {
		if mark := fenceMark(line); mark != "" {
			if fence == "" {
				fence = mark
			} else if strings.HasPrefix(mark, fence) {
				fence = ""
			}
			continue
		}
		if k, ok := cutKey(line); ok && fence == "" {
			if f, _ := d.lookup(k.name); f != nil && f.restricts {
				return i, f.name
			}
		}
	}
	return 0, ""
}

// endAtText ends the frontmatter where Markdown begins in it: its closing line
// is missing then, and the "---" that was found is a rule in the
// body. Text alone is not enough, as a field's value may go on in it; there
// must be a heading too, and no restricting field.
func (d *document) endAtText() {
	end := d.dialect.headExtent(d.head)
	rest := d.head[end:]
	heading, prose := false, false
	for _, line := range rest {
		_, isKey := cutKey(line)
		switch {
		case line == "" || line[0] == ' ' || line[0] == '\t' || isKey || strings.HasPrefix(line, "- "):
		case strings.HasPrefix(strings.TrimLeft(line, "#"), " ") && line[0] == '#':
			heading = true
		case line[0] != '#':
			prose = true
		}
	}
	if _, field := d.dialect.restriction(rest); d.odd != "" || end == 0 || !heading || !prose || field != "" {
		return
	}
	d.odd, d.oddLine = "nowhere", d.first+max(end-1, 0)
	d.head = d.head[:end]
	d.bodyLine = d.first + end
	d.setBody(append(append([]string{}, rest...), "---", "", d.body))
}

// headExtent returns how many of the lines belong to frontmatter that nothing
// closes: up to the last known field with its value, before the first line
// that is neither key, value, comment nor blank.
func (d *dialect) headExtent(lines []string) int {
	end := 0
	open := false  // the lines so far end in a known field's value
	empty := false // whose key line holds no value, so a list may follow
	blank := false // a blank line came after it
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "":
			blank = true
		case line[0] == ' ' || line[0] == '\t':
			if open && (!blank || empty) {
				end = i + 1
			}
		case strings.HasPrefix(line, "#"):
			// A comment to YAML, a heading to Markdown: decided by what follows.
		case line == "-" || strings.HasPrefix(line, "- "):
			if blank || !open || !empty {
				return end
			}
			end = i + 1
		default:
			k, ok := cutKey(line)
			if !ok {
				return end
			}
			f, _ := d.lookup(k.name)
			open, blank = f != nil, false
			empty = k.value == "" || k.value[0] == '|' || k.value[0] == '>'
			if open {
				end = i + 1
			}
		}
	}
	return end
}

// setsKnownField reports whether the first line that is not blank sets a known
// field.
func (d *dialect) setsKnownField(lines []string) bool {
	for _, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}
		k, ok := cutKey(line)
		if !ok {
			return false
		}
		f, _ := d.lookup(k.name)
		return f != nil
	}
	return false
}

// isLongRule reports whether a line is a rule of more than three dashes.
func isLongRule(t string) bool {
	return len(t) > 3 && strings.Trim(t, "-") == ""
}

// keyLine is a line "key: value" that begins at the margin.
type keyLine struct {
	name  string
	value string // trimmed
	col   int    // the value's column, in bytes from 1
}

// cutKey takes a line "key: value" apart. A key has up to three words of
// letters, digits, "_", "-" and ".", and begins with a letter or "_"; it may be
// quoted.
func cutKey(line string) (keyLine, bool) {
	if line == "" || line[0] == ' ' || line[0] == '\t' || line[0] == '-' || line[0] == '#' {
		return keyLine{}, false
	}
	key, rest, ok := strings.Cut(line, ":")
	if !ok || rest != "" && !strings.HasPrefix(rest, " ") && !strings.HasPrefix(rest, "\t") && !strings.HasPrefix(rest, "\u00a0") {
		return keyLine{}, false
	}
	name := strings.TrimSpace(key)
	if n := len(name); n > 2 && (name[0] == '"' || name[0] == '\'') && name[n-1] == name[0] {
		name = name[1 : n-1]
	}
	if name == "" || len(name) > 64 || len(strings.Fields(name)) > 3 {
		return keyLine{}, false
	}
	for i, c := range name {
		letter := c == '_' || unicode.IsLetter(c)
		if !letter && (i == 0 || c != ' ' && c != '-' && c != '.' && !unicode.IsDigit(c)) {
			return keyLine{}, false
		}
	}
	value := strings.TrimSpace(rest)
	return keyLine{name: name, value: value, col: len(line) - len(strings.TrimLeftFunc(rest, unicode.IsSpace)) + 1}, true
}

// shorten cuts text for a message.
func shorten(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	return string(runes[:n]) + "…"
}
