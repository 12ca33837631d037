package offline

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// find lists files by glob below dir.
func (s *session) find(pattern, dir string) outcome {
	if s.box.role(roleFind) == nil {
		if s.box.role(roleExec) != nil {
			return s.shell(findCommand(pattern, dir), "list the files")
		}
		if o := s.box.role(roleSearch); o != nil && o.mode("files") != "" { // files with a line, any line
			return s.use(roleSearch, want{"+pattern": "^", "+dir": dir, "+glob": pattern, "+mode": "files"}.clean(), "list "+pattern)
		}
	}
	return s.use(roleFind, want{"+pattern": pattern, "+dir": dir}.clean(), "list "+pattern)
}

// A query is a search in files.
type query struct {
	pattern string // RE2, and simple enough for grep -E
	path    string
	exts    []string
	glob    string // instead of exts
	fold    bool   // ignore case
	count   bool   // per file
	why     string
}

// search runs a query. Without a search tool, grep does it.
func (s *session) search(q query) outcome {
	glob := q.glob
	if glob == "" && len(q.exts) > 0 {
		glob = globFor(q.exts)
	}
	if q.why == "" {
		q.why = "look for " + clip(q.pattern, 40)
	}
	o := s.box.role(roleSearch)
	if o == nil && s.box.role(roleExec) != nil {
		return s.shell(grepCommand(q, glob), q.why)
	}
	w := want{"+pattern": q.pattern, "+dir": q.path, "glob": glob}
	if q.fold {
		w["+ignore_case"] = true
	}
	if o != nil {
		switch {
		case q.count:
			w["+mode"] = o.mode("count", "counts")
		default:
			w["mode"] = o.mode("lines", "content", "matches")
		}
	}
	return s.use(roleSearch, w.clean(), q.why)
}

// searchAny looks for any of several texts, in the place of TEXT in the query's
// pattern. A few are looked for one by one: a tool finds one text much faster
// than one of two, and each has a limit of its own.
func (s *session) searchAny(texts []string, q query) (hits []hit, out outcome) {
	const few = 4
	if len(texts) > few {
		texts = []string{strings.Join(texts, "|")}
	}
	seen := map[string]bool{}
	pattern := q.pattern
	out.state = ready
	for _, t := range texts {
		q.pattern = strings.ReplaceAll(pattern, "TEXT", "("+t+")")
		o := s.search(q)
		if !o.ok() && out.state != waiting {
			out = o
		}
		for _, h := range readHits(o.text) {
			if key := fmt.Sprintf("%s:%d", h.path, h.line); o.ok() && !seen[key] {
				seen[key] = true
				hits = append(hits, h)
			}
		}
	}
	return hits, out
}

// clean leaves empty values out.
func (w want) clean() want {
	for k, v := range w {
		if v == "" {
			delete(w, k)
		}
	}
	return w
}

// read reads n lines of a file from a line on; n 0 reads what one call gives.
func (s *session) read(file string, from, n int) outcome {
	if s.box.role(roleRead) == nil && s.box.role(roleExec) != nil {
		last := "$"
		if n > 0 {
			last = fmt.Sprint(max(from, 1) + n - 1)
		}
		return s.shell(fmt.Sprintf("sed -n '%d,%sp' %s", max(from, 1), last, shellQuote(file)), "read "+file)
	}
	w := want{"+file": file}
	if from > 1 {
		w["+offset"] = from
	}
	if n > 0 {
		w["limit"] = n
	}
	return s.use(roleRead, w, "read "+clip(file, 50))
}

// shell runs a command.
func (s *session) shell(command, why string) outcome {
	return s.use(roleExec, want{"+command": command}, why)
}

func globFor(exts []string) string {
	if len(exts) == 1 {
		return "**/*." + exts[0]
	}
	return "**/*.{" + strings.Join(exts, ",") + "}"
}

func findCommand(pattern, dir string) string {
	cmd := "find " + shellQuote(orDot(dir)) + " -path './.git' -prune -o -type f"
	var names []string
	for _, p := range expand(path.Base(pattern)) {
		names = append(names, "-iname "+shellQuote(p))
	}
	return cmd + ` \( ` + strings.Join(names, " -o ") + ` \) -print | sort`
}

func grepCommand(q query, glob string) string {
	flags := "-rHnIE"
	if q.count {
		flags = "-rHcIE"
	}
	if q.fold {
		flags += "i"
	}
	cmd := "grep " + flags + " --exclude-dir=.git"
	if glob != "" {
		for _, p := range expand(path.Base(glob)) {
			cmd += " --include=" + shellQuote(p)
		}
	}
	cmd += " -e " + shellQuote(q.pattern) + " " + shellQuote(orDot(q.path))
	// What is cut is said, as the search tool says it.
	if q.count {
		return cmd + " | grep -v ':0$' | awk -F: 'NR<=250{print;next}{n+=$NF;f++}END{if(f)print \"[\" n \" more matches left out, \" f \" files among them wholly]\"}'"
	}
	return cmd + " | awk 'NR<=250{print;next}{n++}END{if(n)print \"[\" n \" more matches left out]\"}'"
}

// expand writes "*.{a,b}" as "*.a" and "*.b".
func expand(glob string) []string {
	open, end := strings.Index(glob, "{"), strings.LastIndex(glob, "}")
	if open < 0 || end < open {
		return []string{glob}
	}
	var out []string
	for alt := range strings.SplitSeq(glob[open+1:end], ",") {
		out = append(out, glob[:open]+alt+glob[end+1:])
	}
	return out
}

func orDot(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}

// ownGo matches Go files that are no tests, in the words of a glob.
const ownGo = "**/{*[!t],*[!s]t,*[!e]st,*[!t]est,*[!_]test,t,st,est,test}.go"

// everyGo runs a query over all Go files that are no tests, or are. Where that is
// more than a tool gives at once, it is asked for by the files' first letters.
func (s *session) everyGo(q query, tests bool) []outcome {
	if q.glob = ownGo; tests {
		q.glob = "**/*_test.go"
	}
	first := s.search(q)
	if n, _ := more(first.text); !first.ok() || n == 0 || s.box.role(roleSearch) == nil {
		return []outcome{first}
	}
	// A class that negates would match a slash as well.
	var outs []outcome
	for _, c := range []string{"[a-b]", "[c-d]", "[e-g]", "[h-l]", "[m-o]", "[p-r]", "[s-t]", "[!a-t]"} {
		if q.glob = "**/" + c + "*_test.go"; !tests {
			q.glob = "**/{" + strings.ReplaceAll("C,C*[!t/],C*[!s/]t,Ct,C*[!e/]st,Cst,C*[!t/]est,Cest,C*[!_/]test,Ctest", "C", c) + "}.go"
		}
		outs = append(outs, s.search(q))
	}
	return outs
}

var shellSafe = lazily(`^[\w./@%+=:,-]+$`)

func shellQuote(s string) string {
	if shellSafe().MatchString(s) && !strings.HasPrefix(s, "-") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

var leftOut = lazily(`\[?(\d+) more(?: \w+)? left out(?:, (\d+) files? among)?`)

// more returns how many results, and files, a tool says it left out.
func more(text string) (results, files int) {
	if m := leftOut().FindStringSubmatch(text); m != nil {
		return atoi(m[1]), atoi(m[2])
	}
	return 0, 0
}

// resolve returns the files that a request can mean by a name, best first:
// an exact path, else files of that name or stem, shallow ones first.
func (s *session) resolve(name string) ([]string, section, bool) {
	name = cleanPath(name)
	pattern := name
	known := path.Ext(name) != "" || strings.Contains(name, "/")
	switch {
	case strings.ContainsAny(name, "*?"):
	case known:
		pattern = "**/" + name
	default:
		pattern = "**/" + foldCase(name) + "*"
	}
	out := s.find(pattern, "")
	if out.state == missing && known && s.box.role(roleRead) != nil {
		return []string{name}, section{}, false // reading it will tell
	}
	if sec, stop := stopped(out); stop {
		return nil, sec, true
	}
	paths := readPaths(out.text)
	slices.SortStableFunc(paths, func(a, b string) int {
		rank := func(p string) int {
			n := strings.Count(p, "/") * 4
			stem := strings.TrimSuffix(path.Base(p), path.Ext(p))
			if !strings.EqualFold(stem, name) && !strings.EqualFold(path.Base(p), name) && !strings.EqualFold(p, name) {
				n += 2
			}
			if inData(p) && !inData(name+"/x") {
				n += 40
			}
			return n
		}
		return rank(a) - rank(b)
	})
	return paths, section{}, false
}

// foldCase writes a name as a glob that ignores case.
func foldCase(name string) string {
	var b strings.Builder
	for _, r := range name {
		lo, up := strings.ToLower(string(r)), strings.ToUpper(string(r))
		switch {
		case lo != up && len(lo) == 1 && len(up) == 1:
			b.WriteString("[" + lo + up + "]")
		case strings.ContainsRune(`[]{}*?\!`, r):
			b.WriteString(`\` + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// sourceExts are the files that definitions are looked for in.
var sourceExts = []string{"go", "py", "js", "jsx", "mjs", "ts", "tsx", "rs", "java", "c", "h", "cc", "cpp", "hpp"}

// modifiers are words that may stand before the word that opens a definition.
const modifiers = `(export |default |pub(\([a-z]+\))? |public |private |protected |static |final |abstract |async |unsafe |extern |inline |declare |open |sealed )*`

// opener is the word that opens a definition, in any of the languages.
const opener = `(func|function\*?|def|class|type|struct|interface|enum|trait|fn|mod|const|let|var|static|record|union|macro_rules!|namespace)`

// definition returns a pattern for the lines that define a name.
func definition(name string) string {
	n := regexp.QuoteMeta(name)
	return strings.Join([]string{
		`^\s*` + modifiers + opener + ` +(\([^)]*\) *)?` + n + `\b`,
		`^\t` + n + `( +[][*.A-Za-z0-9_]+)? *=`, // in a Go const or var block
		`^\t` + n + ` *(//.*)?$`,
		`^` + n + ` *(:[^=]+)?= `,
		`^[A-Za-z_][A-Za-z0-9_ *]*[ *]` + n + ` *\([^;]*$`,
		`^#define +` + n + `\b`,
		`^\s+(public|private|protected|static) [^=;]*\b` + n + ` *\(`,
	}, "|")
}

// definitionQuery finds the lines that may define a name; which of them do,
// definition says. Its pattern has the name in the middle whatever comes before,
// so that a tool needs to look at the lines only that hold it.
func definitionQuery(name, scope string, exts []string) query {
	before := []string{`\s*` + modifiers + opener + ` +(\([^)]*\) *)?`, `\t`, ``, `[A-Za-z_][A-Za-z0-9_ *]*[ *]`, `#define +`, `\s+(public|private|protected|static) [^=;]*`}
	return query{
		pattern: `^(` + strings.Join(before, "|") + `)` + regexp.QuoteMeta(name) + `\b`,
		path:    scope, exts: exts, why: "find the definition of " + name,
	}
}

// definitionsIn returns the lines of a result that define a name.
func definitionsIn(out outcome, name string) []hit {
	re := regexp.MustCompile(definition(name))
	return slices.DeleteFunc(readHits(out.text), func(h hit) bool { return !re.MatchString(h.text) })
}

// outlines maps a kind of file to the pattern of its defining lines.
var outlines = map[string]string{
	"go":   `^(func|type|var|const) +[A-Za-z_(]|^\t[A-Z]\w* +\w+ += `,
	"py":   `^\s*(async def|def|class) `,
	"js":   `^\s*(export )?(default )?(async )?(function|class|interface|type|enum|const [A-Za-z_]+ = (async )?\() ?`,
	"rs":   `^\s*(pub(\([a-z]+\))? )?(async |unsafe )*(fn|struct|enum|trait|type|mod|impl|const|static)[ <]`,
	"java": `^\s*(public|private|protected|static|final|abstract) .*[({]\s*$`,
	"c":    `^([A-Za-z_][^;=]*\)\s*\{?\s*$|#define |typedef |struct |enum )`,
	"md":   "^#{1,6} |^ {0,3}(```|~~~)",
}

// outlineFor returns the pattern for a file's kind, and false where none is
// known.
func outlineFor(e string) (string, bool) {
	switch e {
	case "jsx", "mjs", "cjs", "ts", "tsx":
		e = "js"
	case "h", "cc", "cpp", "hpp":
		e = "c"
	case "markdown":
		e = "md"
	}
	p, ok := outlines[e]
	return p, ok
}

var identifier = lazily(`^[A-Za-z_$][\w$]*(?:\.[A-Za-z_]\w*)?$`)

// splitName takes "pkg.Name" or "Type.Method" apart.
func splitName(s string) (qualifier, base string) {
	if i := strings.LastIndex(s, "."); i > 0 && i+1 < len(s) {
		return s[:i], s[i+1:]
	}
	return "", s
}

// atLeast qualifies a number that results give which leave something out.
func atLeast(outs ...outcome) string {
	for _, o := range outs {
		if n, _ := more(o.text); n > 0 {
			return "at least "
		}
	}
	return ""
}

// noted returns what a tool says about its result being incomplete, as lines.
func noted(outs ...outcome) []string {
	var lines []string
	for _, o := range outs {
		if n := partial(o.text); n != "" {
			lines = append(lines, "", "The tool adds: "+n)
		}
	}
	return lines
}
