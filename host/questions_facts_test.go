package host_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A spot is a line of a file.
type spot struct {
	path string
	line int
}

// files counts the files of places.
func files(places []spot) int {
	seen := map[string]bool{}
	for _, p := range places {
		seen[p.path] = true
	}
	return len(seen)
}

// isData reports whether a file is sample data.
func isData(name string) bool { return strings.Contains("/"+name, "/testdata/") }

func isTest(name string) bool { return strings.HasSuffix(name, "_test.go") }

// lines returns a file's lines.
func (tr *tree) lines(name string) []string {
	if l, ok := tr.split[name]; ok {
		return l
	}
	text := tr.content[name]
	var l []string
	if text != "" {
		l = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	}
	tr.split[name] = l
	return l
}

// line returns the text at a spot, "" where there is none.
func (tr *tree) line(p spot) string {
	if l := tr.lines(p.path); p.line >= 1 && p.line <= len(l) {
		return l[p.line-1]
	}
	return ""
}

// text returns the lines that a quote names.
func (tr *tree) text(q quote) string {
	var l []string
	for n := q.from; n <= q.to; n++ {
		l = append(l, tr.line(spot{q.path, n}))
	}
	return strings.Join(l, "\n")
}

// under returns the files below a prefix with the ending, sorted.
func (tr *tree) under(prefix, end string) []string {
	var out []string
	for name := range tr.content {
		if strings.HasPrefix(name, prefix) && strings.HasSuffix(name, end) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (tr *tree) goFiles() []string { return tr.under("", ".go") }

// grep returns the lines that match, of the files that are wanted.
func (tr *tree) grep(pattern string, want func(string) bool) []spot {
	re := regexp.MustCompile(pattern)
	var out []spot
	for _, name := range tr.under("", "") {
		if !want(name) || strings.Contains(tr.content[name], "\x00") {
			continue
		}
		for i, l := range tr.lines(name) {
			if re.MatchString(l) {
				out = append(out, spot{name, i + 1})
			}
		}
	}
	return out
}

// A declaration is one at the top of a Go file, outside of a group.
type declaration struct {
	spot
	file, dir      string
	name, receiver string
	kind           string // func, interface, struct, type, const, var
	exported, test bool
	first, end     int // with its comment
}

// A source is a Go file, parsed.
type source struct {
	text         string
	declarations []declaration
	comments     []remark
}

// source parses a file, or takes what was made of the same text before.
func (tr *tree) source(name string) source {
	if s, ok := tr.sources[name]; ok && s.text == tr.content[name] {
		return s
	}
	s := source{text: tr.content[name]}
	fset := token.NewFileSet()
	line := func(p token.Pos) int { return fset.Position(p).Line }
	f, err := parser.ParseFile(fset, name, s.text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil { // somebody is in the middle of a change
		tr.sources[name] = s
		return s
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			s.comments = append(s.comments, remark{spot{name, line(c.Pos())}, c.Text})
		}
	}
	add := func(d declaration, decl ast.Decl, doc *ast.CommentGroup) {
		d.spot = spot{name, line(decl.Pos())}
		d.file, d.dir, d.test = name, path.Dir(name), isTest(name)
		d.first, d.end = d.line, line(decl.End())
		if doc != nil {
			d.first = line(doc.Pos())
		}
		d.exported = ast.IsExported(d.name) && (d.receiver == "" || ast.IsExported(d.receiver))
		s.declarations = append(s.declarations, d)
	}
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			d := declaration{kind: "func", name: decl.Name.Name}
			if decl.Recv != nil && len(decl.Recv.List) > 0 {
				d.receiver = baseName(decl.Recv.List[0].Type)
			}
			add(d, decl, decl.Doc)
		case *ast.GenDecl:
			if decl.Lparen.IsValid() || decl.Tok == token.IMPORT {
				continue
			}
			switch spec := decl.Specs[0].(type) {
			case *ast.TypeSpec:
				d := declaration{kind: "type", name: spec.Name.Name}
				switch spec.Type.(type) {
				case *ast.InterfaceType:
					d.kind = "interface"
				case *ast.StructType:
					d.kind = "struct"
				}
				add(d, decl, decl.Doc)
			case *ast.ValueSpec:
				add(declaration{kind: decl.Tok.String(), name: spec.Names[0].Name}, decl, decl.Doc)
			}
		}
	}
	tr.sources[name] = s
	return s
}

// declarations returns those of the Go files that are no sample data.
func (tr *tree) declarations() []declaration {
	var out []declaration
	for _, name := range tr.goFiles() {
		if !isData(name) {
			out = append(out, tr.source(name).declarations...)
		}
	}
	return out
}

// baseName returns the name of a receiver's type.
func baseName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return baseName(e.X)
	case *ast.IndexExpr:
		return baseName(e.X)
	case *ast.IndexListExpr:
		return baseName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// packageDocs returns the doc comments of the packages, as one line each, by
// directory; "" for a package that has none.
func (tr *tree) packageDocs(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	for _, name := range tr.goFiles() {
		dir := path.Dir(name)
		if isData(name) || isTest(name) || docs[dir] != "" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, tr.content[name], parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		docs[dir] = strings.Join(strings.Fields(f.Doc.Text()), " ")
	}
	return docs
}

// A remark is a comment of a Go file.
type remark struct {
	spot
	text string
}

// An answer is what was said, taken apart.
type answer struct {
	t      *testing.T
	tree   *tree
	whole  string // with all parts
	text   string
	lines  []string
	quotes []quote
}

// A quote is what an answer says that lines of a file are.
type quote struct {
	path     string
	from, to int
	text     string
}

var (
	cited    = regexp.MustCompile(`^ *([\w./-]+):(\d+)(?:-(\d+))?: (.*)$`)
	blockTop = regexp.MustCompile(`^([\w./-]+):(\d+)-(\d+)$`)
	blockRow = regexp.MustCompile(`^ {0,4}(\d+)(?:  (.*))?$`)
	tableRow = regexp.MustCompile(`^ +([\d,]+)  ([\w./-]+)$`)
	addition = regexp.MustCompile(` +\[(in \S+|no doc comment)\]$`)
	partTop  = regexp.MustCompile(`^## (\d+)\. .+$`)
	cutLine  = regexp.MustCompile(`^… ([\d,]+) \w+ more$`)
	// forms are the lines of answers that quote nothing. Each number in them is
	// checked by the question that they answer.
	forms = regexp.MustCompile(`^(` + strings.Join([]string{
		`## \d+\. .+`, `[\w-]+ reports:`, `… [\d,]+ \w+ more`, ` +[\d,]+  [\w./-]+`, `The tool adds: \[.+\]`,
		`\d+ packages`, `[\d,]+ tests in [\d,]+ files`, `\d+ agents can be delegated to \(from the task tool's text\)`,
		`[\d,]+ (\w+ )?files(, \d+ of them tests)? \((find_files|find) [^()]+\)(; \d+ of them, in sample data, are not listed)?`,
		`[\d,]+ Go lines in [\d,]+ files: [\d,]+ in code, [\d,]+ in tests \((search_files|grep) counts lines per file\)`,
		`the \d+ longest of [\d,]+ files by lines`, `\d+ interfaces in \d+ files, tests left out`,
		`(no|\d+) TODO comments? in (the project's own files|\d+ files?)(; \d+ lines? in sample data left out)?`,
		`(required versions|direct dependencies( \(\d+ indirect ones left out\))?): \d+ lines?`,
		`closest to “[^”]+”(, by names and comments| in documents and comments \(quoted, not interpreted\))`,
		`README\.md on “[^”]+” \(quoted, not interpreted\)`,
		`“[^”]+”: \d+ lines( of code)? in \d+ files(; \d+ in tests and comments)?`,
		`\d+ (definition|method|heading|call|function)s? (of|in) [\w./-]+( in \d+ files)?(, of which \d+ are exported)?`,
		`\d+ tests named after “policy” \(their own name, file or folder\) in \d+ files`,
		`import rules( of \w+)?: \d+ lines? in 1 file`, `lines about running the tests`, `go\.mod is there, so: go test \./\.\.\.`,
		"`git [^`]+`", `\d+ files? named \S+`,
	}, `|`) + `)$`)
)

// read takes an answer apart and reports what is wrong with its lines.
func read(t *testing.T, tr *tree, text, more string) *answer {
	t.Helper()
	a, faults := inspect(tr, text, more)
	a.t = t
	if n := len(a.lines); n > 200 {
		t.Errorf("an answer of %d lines", n)
	}
	for _, f := range faults {
		t.Error(f)
	}
	return a
}

// inspect checks every line of an answer: a quote against the file, all else
// against the forms, and more, which is one further form.
func inspect(tr *tree, text, more string) (a *answer, faults []string) {
	a = parse(nil, tr, text)
	a.whole = text
	further := regexp.MustCompile(`^\b$`) // nothing
	if more != "" {
		further = regexp.MustCompile(more)
	}
	for _, q := range a.quotes {
		if !tr.holds(q) {
			faults = append(faults, fmt.Sprintf("%s:%d-%d is quoted as %q, but it is\n%s", q.path, q.from, q.to, q.text, tr.text(q)))
		}
	}
	block := false
	for _, l := range a.lines {
		_, isFile := tr.content[l]
		m := cited.FindStringSubmatch(l)
		isQuote := m != nil && tr.content[m[1]] != ""
		block = blockTop.MatchString(l) || block && (l == "" || blockRow.MatchString(l))
		if l != "" && !block && !isFile && !isQuote && !forms.MatchString(l) && !further.MatchString(l) {
			faults = append(faults, fmt.Sprintf("the line %q is neither a quote nor a form that answers have", l))
		}
	}
	return a, faults
}

// parse finds the quotes.
func parse(t *testing.T, tr *tree, text string) *answer {
	a := &answer{t: t, tree: tr, text: text, lines: strings.Split(strings.TrimRight(text, "\n"), "\n")}
	block := ""
	for _, l := range a.lines {
		if m := cited.FindStringSubmatch(l); m != nil && tr.content[m[1]] != "" {
			q := quote{path: m[1], from: number(m[2]), to: number(m[2]), text: addition.ReplaceAllString(m[4], "")}
			if m[3] != "" {
				q.to = number(m[3])
			}
			a.quotes, block = append(a.quotes, q), ""
		} else if m := blockTop.FindStringSubmatch(l); m != nil {
			block = m[1]
		} else if m := blockRow.FindStringSubmatch(l); m != nil && block != "" {
			a.quotes = append(a.quotes, quote{path: block, from: number(m[1]), to: number(m[1]), text: m[2]})
		} else if l != "" {
			block = ""
		}
	}
	return a
}

var (
	codeMarks = regexp.MustCompile(`^\s*(//|/\*+|\*/|#)\s?|\s*\*/$`)
	blanks    = regexp.MustCompile(`\s+`)
)

// holds reports whether the files say what a quote says: a line as it stands, or
// several joined, for a comment without its marks. A long one may be cut.
func (tr *tree) holds(q quote) bool {
	lines := tr.lines(q.path)
	if q.from < 1 || q.to < q.from || q.to > len(lines) {
		return false
	}
	said, cut := strings.CutSuffix(q.text, "…")
	said = strings.TrimSpace(blanks.ReplaceAllString(said, " "))
	fits := func(is string) bool {
		is = strings.TrimSpace(blanks.ReplaceAllString(is, " "))
		return is == said || cut && said != "" && strings.HasPrefix(is, said)
	}
	if q.from == q.to && fits(lines[q.from-1]) {
		return true
	}
	joined := ""
	for _, l := range lines[q.from-1 : q.to] {
		if !strings.HasSuffix(q.path, ".md") {
			l = codeMarks.ReplaceAllString(l, "")
		}
		joined += " " + l
	}
	// A sentence may end before its last line does.
	joined = strings.TrimSpace(blanks.ReplaceAllString(joined, " "))
	return fits(joined) || said != "" && strings.HasPrefix(joined, said) && strings.Contains(".?!:", last(said))
}

func number(s string) int {
	n, err := strconv.Atoi(strings.ReplaceAll(s, ",", ""))
	if err != nil {
		return -1
	}
	return n
}

// grouped writes a number with separators between its thousands.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// part returns the n-th part of an answer of several, from 1.
func (a *answer) part(n int) *answer {
	a.t.Helper()
	var lines []string
	in := false
	for _, l := range a.lines {
		if m := partTop.FindStringSubmatch(l); m != nil {
			in = number(m[1]) == n
		} else if in {
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 {
		a.t.Fatalf("the answer has no part %d:\n%s", n, a.whole)
	}
	p := parse(a.t, a.tree, strings.Join(lines, "\n"))
	p.whole = a.whole
	return p
}

// cut returns how many lines the answer says it leaves out.
func (a *answer) cut() int {
	n := 0
	for _, l := range a.lines {
		if m := cutLine.FindStringSubmatch(l); m != nil {
			n += number(m[1])
		}
	}
	return n
}

// listed returns the lines that are the path of a file and no more.
func (a *answer) listed() []string {
	var out []string
	for _, l := range a.lines {
		if _, ok := a.tree.content[l]; ok {
			out = append(out, l)
		}
	}
	return out
}

func (a *answer) lists(name string) {
	a.t.Helper()
	if !slices.Contains(a.listed(), name) {
		a.t.Errorf("%s is not listed", name)
	}
}

func (a *answer) says(text string) {
	a.t.Helper()
	if !strings.Contains(a.text, text) {
		a.t.Errorf("it does not say %q", text)
	}
}

func (a *answer) has(p spot) bool {
	return slices.ContainsFunc(a.quotes, func(q quote) bool { return q.path == p.path && q.from <= p.line && p.line <= q.to })
}

func (a *answer) quotesPlace(p spot) {
	a.t.Helper()
	if !a.has(p) {
		a.t.Errorf("it does not quote %s:%d: %s", p.path, p.line, a.tree.line(p))
	}
}

func (a *answer) quotesOneOf(places []spot) {
	a.t.Helper()
	if len(places) == 0 {
		a.t.Error("the test looks for a line that is not there")
	} else if !slices.ContainsFunc(places, a.has) {
		a.t.Errorf("it quotes none of %v", places)
	}
}

func (a *answer) quotesFile(name string) {
	a.t.Helper()
	if !slices.ContainsFunc(a.quotes, func(q quote) bool { return q.path == name }) {
		a.t.Errorf("it does not quote %s", name)
	}
}

func (a *answer) quotesRange(name string, from, to int) {
	a.t.Helper()
	for n := from; n <= to; n++ {
		a.quotesPlace(spot{name, n})
	}
	if len(a.quotes) != to-from+1 {
		a.t.Errorf("%d lines are quoted, want %d", len(a.quotes), to-from+1)
	}
}

// quotesExactly wants these lines quoted, and nothing else. Where there are more
// than an answer has room for, it has to say how many it leaves out.
func (a *answer) quotesExactly(want []spot) {
	a.t.Helper()
	if len(want) == 0 {
		a.t.Error("the test looks for lines that are not there")
	}
	for _, q := range a.quotes {
		if !slices.Contains(want, spot{q.path, q.from}) {
			a.t.Errorf("%s:%d is quoted: %s", q.path, q.from, q.text)
		}
	}
	if cut := a.cut(); cut > 0 {
		if cut+len(a.quotes) != len(want) {
			a.t.Errorf("%d are quoted and %d said to be left out, of %d", len(a.quotes), cut, len(want))
		}
		return
	}
	for _, p := range want {
		a.quotesPlace(p)
	}
}

// declared returns where the declarations are that are wanted.
func (a *answer) declared(want func(declaration) bool) []spot {
	a.t.Helper()
	var out []spot
	for _, d := range a.tree.declarations() {
		if want(d) {
			out = append(out, d.spot)
		}
	}
	return out
}

func (a *answer) quotesDeclaration(dir, name string) {
	a.t.Helper()
	a.quotesOneOf(a.declared(func(d declaration) bool { return d.dir == dir && d.name == name && !d.test }))
}

// quotesWhole wants what is declared by a name, with its comments, every line of
// it and nothing else.
func (a *answer) quotesWhole(name string) {
	a.t.Helper()
	lines := 0
	for _, d := range a.tree.declarations() {
		if d.name != name || d.test {
			continue
		}
		for n := d.first; n <= d.end; n++ {
			lines++
			a.quotesPlace(spot{d.file, n})
		}
	}
	if lines == 0 || len(a.quotes) != lines {
		a.t.Errorf("%d lines are quoted, want the %d of what is declared as %s", len(a.quotes), lines, name)
	}
}

// linesOf returns the matching lines of every file of that name: a repository may
// hold several modules.
func (a *answer) linesOf(name, pattern string) []spot {
	return a.tree.grep(pattern, func(f string) bool { return path.Base(f) == name && !isData(f) })
}

// headings returns a document's headings; in a block of code "#" is a comment.
func (a *answer) headings(name string) []spot {
	var out []spot
	code := false
	for i, l := range a.tree.lines(name) {
		if strings.HasPrefix(strings.TrimSpace(l), "```") {
			code = !code
		} else if !code && regexp.MustCompile(`^#{1,6} `).MatchString(l) {
			out = append(out, spot{name, i + 1})
		}
	}
	return out
}

// arrows returns the import rules of ARCHITECTURE.md, of one package if it is
// named.
func (a *answer) arrows(pkg string) []spot {
	var out []spot
	in := false
	for i, l := range a.tree.lines("ARCHITECTURE.md") {
		switch {
		case strings.HasPrefix(l, "```"):
			in = l == "```arrows"
		case in && (pkg == "" || strings.Fields(l)[0] == pkg):
			out = append(out, spot{"ARCHITECTURE.md", i + 1})
		}
	}
	return out
}

// holdsOutput wants a command's output, whole or as far as the answer goes.
func (a *answer) holdsOutput(name string, args ...string) {
	a.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = ".."
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	out, err := cmd.Output()
	if err != nil {
		a.t.Fatal(err)
	}
	var want []string
	for _, l := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		want = append(want, strings.TrimRight(strings.ReplaceAll(l, "\t", "    "), " "))
	}
	i := slices.IndexFunc(a.lines, func(l string) bool { return strings.HasPrefix(l, "`git ") })
	if i < 0 || i+2 > len(a.lines) {
		a.t.Fatal("no command is named")
	}
	got := slices.DeleteFunc(slices.Clone(a.lines[i+2:]), cutLine.MatchString)
	if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) || len(got) < len(want) && a.cut() == 0 {
		a.t.Errorf("the output is\n%s\nbut it says\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
}
