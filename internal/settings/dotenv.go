package settings

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// A variable is one assignment of a .env file or of the environment.
type variable struct {
	name, value string
	line        int // in .env, from 1
}

// A dotenvProblem is a line of a .env file that can't be read.
type dotenvProblem struct {
	line, column int
	name         string // the variable it seems to be about, "" when there is none
	found, takes string
}

// parseDotenv reads a .env file: NAME=value lines, with an optional "export",
// blank lines and comments. A value is bare (up to " #", blanks around it cut),
// in single quotes (as it stands) or in double quotes (\n \r \t \" \\ \$);
// quoted values may span lines. "$" is an ordinary character: nothing is
// expanded, so a file can't carry one variable's content into another.
//
// A line that can't be read is reported and passed over, and so is a quote that
// does not end: it hides its own line, never the rest of the file.
func parseDotenv(data []byte) ([]variable, []dotenvProblem) {
	var vars []variable
	var problems []dotenvProblem
	data = data[len(bom(data)):]
	lines := strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		number := i + 1
		rest := strings.TrimLeft(lines[i], " \t")
		if rest == "" || rest[0] == '#' || strings.TrimSpace(rest) == "" {
			continue
		}
		column := func(at string) int { // at is a suffix of the line
			return 1 + len([]rune(lines[number-1])) - len([]rune(at))
		}
		if after, ok := strings.CutPrefix(rest, "export"); ok && strings.TrimLeft(after, " \t") != after {
			rest = strings.TrimLeft(after, " \t")
		}
		name := variableName(rest)
		rest = rest[len(name):]
		value, isAssignment := strings.CutPrefix(strings.TrimLeft(rest, " \t"), "=")
		if name == "" || !isAssignment {
			problems = append(problems, dotenvProblem{line: number, column: column(rest), name: name,
				found: "a line without an assignment", takes: "NAME=value"})
			continue
		}
		value = strings.TrimLeft(value, " \t")
		if value == "" || value[0] != '"' && value[0] != '\'' {
			vars = append(vars, variable{name, bareValue(value), number})
			continue
		}
		at := column(value)
		text, tail, last, ok := quotedValue(value, lines[i+1:])
		if !ok {
			problems = append(problems, dotenvProblem{line: number, column: at, name: name,
				found: "a quote that does not end", takes: "a closing " + value[:1]})
			continue
		}
		i += last
		if tail = strings.TrimSpace(tail); tail != "" && tail[0] != '#' {
			problems = append(problems, dotenvProblem{line: i + 1, name: name,
				found: "text after the closing quote", takes: "the end of the line or a comment"})
			continue
		}
		vars = append(vars, variable{name, text, number})
	}
	return vars, problems
}

// variableName returns the name that s starts with.
func variableName(s string) string {
	end := 0
	for end < len(s) && isWord(s[end]) && (end > 0 || s[end] < '0' || s[end] > '9') {
		end++
	}
	return s[:end]
}

func bareValue(s string) string {
	for i := range len(s) {
		if s[i] == '#' && (i == 0 || s[i-1] == ' ' || s[i-1] == '\t') {
			s = s[:i]
			break
		}
	}
	return strings.TrimSpace(s)
}

// quotedValue reads the quoted text that first starts with; it may go on over
// the lines that follow, of which it used up used. tail is what stands after
// the closing quote.
func quotedValue(first string, following []string) (text, tail string, used int, ok bool) {
	quote := first[0]
	var b strings.Builder
	line := first[1:]
	for {
		for i := 0; i < len(line); i++ {
			switch c := line[i]; {
			case c == quote:
				return b.String(), line[i+1:], used, true
			case c == '\\' && quote == '"' && i+1 < len(line):
				i++
				switch line[i] {
				case 'n':
					b.WriteByte('\n')
				case 'r':
					b.WriteByte('\r')
				case 't':
					b.WriteByte('\t')
				case '"', '\\', '$':
					b.WriteByte(line[i])
				default: // no escape of ours: a Windows path, a pattern
					b.WriteByte('\\')
					b.WriteByte(line[i])
				}
			default:
				b.WriteByte(c)
			}
		}
		if used == len(following) {
			return "", "", 0, false
		}
		b.WriteByte('\n')
		line = following[used]
		used++
	}
}

// readDotenv turns a .env file into a layer's variables. What can't be read is
// an error where it is about a variable that we know, since what that was to
// restrict would be lost; else the line belongs to another program and is
// warned about.
func (l *loader) readDotenv(path string, data []byte) []variable {
	if bytes.IndexByte(data, 0) >= 0 || invalidUTF8(data) >= 0 {
		l.warn(Warning{Code: WarnDotenv, Path: path, Message: "this is no UTF-8 text, so no variable is read from it"})
		return nil
	}
	vars, problems := parseDotenv(data)
	for _, p := range problems {
		if p.name != "" && l.isOurs(p.name) {
			l.fail(&Error{Path: path, Line: p.line, Column: p.column, Var: p.name, Found: p.found, Takes: p.takes})
			continue
		}
		l.warn(Warning{Code: WarnDotenv, Path: path, Line: p.line, Column: p.column, Var: p.name,
			Message: fmt.Sprintf("%s is passed over; a line is %s", p.found, p.takes)})
	}
	var kept []variable // the last assignment of each name
	for _, v := range vars {
		if i := slices.IndexFunc(kept, func(k variable) bool { return k.name == v.name }); i >= 0 {
			if l.isOurs(v.name) {
				l.warn(Warning{Code: WarnDotenv, Path: path, Line: v.line, Var: v.name,
					Message: fmt.Sprintf("set on line %d already; this line is the one that counts", kept[i].line)})
			}
			kept[i] = v
			continue
		}
		kept = append(kept, v)
	}
	return kept
}
