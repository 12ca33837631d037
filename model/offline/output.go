package offline

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A hit is a line of a file, as a tool returned it.
type hit struct {
	path string
	line int
	text string
	near bool // shown around a match, not one itself
}

// quote writes a hit the way every answer does.
func (h hit) quote() string {
	return fmt.Sprintf("%s:%d: %s", h.path, h.line, clip(strings.TrimSpace(h.text), 240))
}

var (
	plainHit   = lazily(`^([^:\s][^:]*?):(\d+):(.*)$`)
	contextHit = lazily(`^([^:\s][^:]*?)-(\d+)-(.*)$`)
	groupedHit = lazily(`^\s*(\d+)(\t|→|\||:|-)(.*)$`)
	header     = lazily(`^[^\s:][^:]*\.?[\w]+:?$`)
	countLine  = lazily(`^([^:\s][^:]*?):\s*(\d+)$`)
	countFirst = lazily(`^\s*(\d+)\s+(\S.*)$`)
	// remark is a line that a tool adds about its result.
	remark = lazily(`(?i)^\s*[\[(…]|^\s*(no (files?|match(es)?|results?)|found \d|\d+ (more|matches|files|lines)|showing|truncated|total|note:|warning:|there (is|are)|nothing|only)\b|\.\.\.|…`)
)

// readHits reads the result of a search: "path:12:text" lines, or a path with
// "12:text" lines under it.
func readHits(text string) []hit {
	var out []hit
	under := ""
	for l := range strings.Lines(text) {
		l = strings.TrimRight(l, "\r\n")
		if m := groupedHit().FindStringSubmatch(l); m != nil && under != "" {
			out = append(out, hit{path: under, line: atoi(m[1]), text: oneBlank(m[3], m[2]), near: m[2] == "-"})
			continue
		}
		if m := plainHit().FindStringSubmatch(l); m != nil {
			out = append(out, hit{path: showPath(m[1]), line: atoi(m[2]), text: oneBlank(m[3], ":")})
			continue
		}
		if m := contextHit().FindStringSubmatch(l); m != nil {
			out = append(out, hit{path: showPath(m[1]), line: atoi(m[2]), text: m[3], near: true})
			continue
		}
		if header().MatchString(l) && !remark().MatchString(l) {
			under = showPath(strings.TrimSuffix(l, ":"))
		}
	}
	return out
}

// oneBlank takes off the blank that some formats put between number and text.
func oneBlank(s, sep string) string {
	if sep == ":" || sep == "|" || sep == "-" {
		return strings.TrimPrefix(s, " ")
	}
	return s
}

// readPaths reads a list of files, one a line.
func readPaths(text string) []string {
	var out []string
	seen := map[string]bool{}
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		if l == "" || remark().MatchString(l) || strings.HasSuffix(l, ":") || strings.Contains(l, ": ") {
			continue
		}
		if p := showPath(l); p != "" && !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}

// A tally is a number with the file it belongs to.
type tally struct {
	path string
	n    int
}

// readTallies reads counts per file.
func readTallies(text string) []tally {
	var out []tally
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		if m := countLine().FindStringSubmatch(l); m != nil {
			out = append(out, tally{showPath(m[1]), atoi(m[2])})
		} else if m := countFirst().FindStringSubmatch(l); m != nil && !remark().MatchString(l) && strings.ContainsAny(m[2], "./") {
			out = append(out, tally{showPath(m[2]), atoi(m[1])})
		}
	}
	return out
}

var numbered = lazily(`^\s*(\d+)(?:\t|→|\| ?|: ?)(.*)$`)

// readLines reads a file's lines as a tool numbers them; lines without numbers
// are counted from the first line asked for.
func readLines(file, text string, from int) []hit {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	var out []hit
	last := 0
	for _, l := range lines {
		l = strings.TrimRight(l, "\r")
		if m := numbered().FindStringSubmatch(l); m != nil && atoi(m[1]) > last {
			last = atoi(m[1])
			out = append(out, hit{path: file, line: last, text: m[2]})
		}
	}
	if len(out)*2 >= len(lines) {
		return out
	}
	out = nil
	for i, l := range lines {
		out = append(out, hit{path: file, line: max(from, 1) + i, text: strings.TrimRight(l, "\r")})
	}
	return out
}

// partial reports whether a tool says that its result is not all there is.
func partial(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := max(0, len(lines)-3); i < len(lines); i++ {
		low := strings.ToLower(lines[i])
		for _, w := range []string{"truncated", "more match", "more file", "more line", "limit reached", "first ", "… "} {
			if strings.Contains(low, w) && remark().MatchString(lines[i]) && !plainHit().MatchString(lines[i]) {
				return strings.TrimSpace(lines[i])
			}
		}
	}
	return ""
}

// showPath writes a path from the root without the slash in front.
func showPath(p string) string {
	return strings.TrimLeft(strings.TrimPrefix(strings.TrimSpace(p), "./"), "/")
}

func ext(p string) string { return strings.TrimPrefix(path.Ext(p), ".") }

var testFile = lazily(`(_test\.(go|py|rs|c|cc)|(^|/)test_[^/]*\.py|\.(test|spec)\.[jt]sx?|Tests?\.java)$|(^|/)(tests?|__tests__|testdata|spec)/`)

func isTest(p string) bool { return testFile().MatchString(p) }

// inData reports whether a file is sample data or somebody else's code.
func inData(p string) bool {
	for _, dir := range strings.Split(path.Dir(p), "/") {
		switch dir {
		case "testdata", "vendor", "node_modules", "fixtures", "third_party", ".git", "dist", "target":
			return true
		}
	}
	return false
}

// under keeps the hits whose path lies in scope or has it as a component.
func under(hits []hit, scope string) []hit {
	if scope == "" {
		return hits
	}
	var out []hit
	for _, h := range hits {
		if inScope(h.path, scope) {
			out = append(out, h)
		}
	}
	return out
}

func inScope(p, scope string) bool {
	return scope == "" || p == scope || strings.HasPrefix(p, scope+"/") || strings.Contains("/"+p, "/"+scope+"/") ||
		strings.HasSuffix("/"+p, "/"+scope)
}

// count writes a number with its noun.
func count(n int, one string, many ...string) string {
	word := one
	if n != 1 {
		if word = one + "s"; len(many) > 0 {
			word = many[0]
		}
	}
	return group(n) + " " + word
}

// group writes a number with separators between its thousands.
func group(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func distinctFiles(hits []hit) int {
	seen := map[string]bool{}
	for _, h := range hits {
		seen[h.path] = true
	}
	return len(seen)
}

// byOwnFirst sorts the project's own code before tests, and those before
// sample data, keeping the order otherwise.
func byOwnFirst(hits []hit) []hit {
	out := slices.Clone(hits)
	weight := func(p string) int {
		switch {
		case inData(p):
			return 2
		case isTest(p):
			return 1
		}
		return 0
	}
	slices.SortStableFunc(out, func(a, b hit) int { return weight(a.path) - weight(b.path) })
	return out
}
