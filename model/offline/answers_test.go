package offline_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden files")

const atlas = "testdata/atlas"

// questions are what people ask, each with what the answer must hold to be
// right. The golden files hold the answers whole.
var questions = []struct {
	slug, ask string
	want      []string
}{
	{"list-go", "List the Go files", []string{"5 Go files", "route/route_test.go"}},
	{"list-python-zh", "列出所有 Python 文件", []string{"2 Python files", "tools/report.py"}},
	{"list-scope", "list the files in docs/", []string{"1 file in docs", "docs/limits.md"}},
	{"where-file", "where is report.py?", []string{"tools/report.py"}},
	{"define-const", "Where is MaxPlaces defined?", []string{"store/store.go:11: const MaxPlaces = 10_000", "store/store.go:10: // MaxPlaces is how many"}},
	{"define-method", "find the definition of Map.Add", []string{"store/store.go:29: func (m *Map) Add(r Road) error {"}},
	{"define-class", "where is the class Report defined?", []string{"tools/report.py:6: class Report:", `tools/report.py:7: """A table of places`}},
	{"define-zh", "backtrack 在哪里定义？", []string{"route/route.go:36: func backtrack("}},
	{"callers", "Who calls Shortest?", []string{"3 calls of Shortest in 2 files", "cmd/atlas/main.go:18:", "[in main]", "[in TestShortestWithoutAWay]"}},
	{"callers-zh", "谁调用了 checkRoad？", []string{"1 call of checkRoad", "store/store.go:35:", "[in Add]"}},
	{"define-and-callers", "Where is checkRoad defined and who calls it?", []string{"store/store.go:53: func checkRoad", "store/store.go:35:"}},
	{"locate-phrase", "Where is the shortest way computed?", []string{"route/route.go:14: func Shortest("}},
	{"find-where", "find where MaxPlaces is defined", []string{"store/store.go:11:"}},
	{"todo", "Find every TODO", []string{"3 TODO comments in 3 files", "cmd/atlas/main.go:29: // TODO", "store/store.go:54: // TODO", "tools/report.py:17: # TODO"}},
	{"marks", "list all TODO and FIXME comments in route/", []string{"1 TODO and FIXME comment in 1 file", "route/route.go:37: // FIXME"}},
	{"packages", "What packages are there and what is each for?", []string{"3 packages", "store/store.go:1: Package store keeps the places of a map and the roads between them."}},
	{"count", "count the Go files and lines", []string{"5 Go files, 2 of them tests", "184 Go lines in 5 files: 139 in code, 45 in tests"}},
	{"count-matches", `how many times does "Road" appear?`, []string{"10 lines in 4 files", "store/store.go: 7"}},
	{"count-tests", "How many tests are there?", []string{"5 tests in 3 files"}},
	{"covers", "Which tests cover the store?", []string{"store/store_test.go:5: func TestAddRefusesLoops", "store/store_test.go:12:"}},
	{"covers-python", "which tests are there for the report?", []string{"tools/test_report.py:7: def test_counts_places"}},
	{"how-to-test", "How do I run the tests?", []string{"go.mod is there, so: go test ./...", "README.md:12: Run `go test ./...`"}},
	{"how-to-install", "How do I install it?", []string{"README.md:8: go install example.com/atlas/cmd/atlas@latest"}},
	{"topic", "What does the README say about limits?", []string{"README.md:14: ## Limits", "README.md:16: A map holds at most 10,000 places."}},
	{"topic-file", "what does docs/limits.md say about names?", []string{"docs/limits.md:12: A place's name has at most 64 bytes."}},
	{"passages", "How many places can a map hold?", []string{"README.md:16: A map holds at most 10,000 places."}},
	{"summary", "Summarise README.md", []string{"README.md:3: Atlas finds the shortest way between two places.", "README.md:10: ## Tests"}},
	{"about", "What is this project?", []string{"README.md:3: Atlas finds the shortest way between two places."}},
	{"show-lines", "Show lines 1-5 of docs/limits.md", []string{"docs/limits.md:1-5", "    3  What Atlas refuses, and why."}},
	{"show-function", "Show the function backtrack", []string{"route/route.go:35-44", "   43      return way"}},
	{"show-method-python", "show the function read_places", []string{"tools/report.py:21-26", "   26                  yield line.split()[0]"}},
	{"outline-python", "Outline tools/report.py", []string{"6 definitions in tools/report.py", "tools/report.py:16: def lines(self):"}},
	{"outline-headings", "list the headings of docs/limits.md", []string{"4 headings", "docs/limits.md:14: ## Roads"}},
	{"export", "What does package store export?", []string{"6 exported definitions in store", "store/store.go:46: func (m *Map) From(place string) []Road {"}},
	{"functions", "which functions are in route?", []string{"route/route.go:14: func Shortest(", "route/route.go:36: func backtrack("}},
	{"imports", "Who imports store?", []string{"3 lines in 3 files", `route/route.go:7: "example.com/atlas/store"`}},
	{"version", "Which version of Go does it need?", []string{"go.mod:3: go 1.24"}},
	{"licence", "What licence is it under?", []string{"LICENSE:1: The Atlas Sample Licence"}},
	{"deps", "What are the dependencies?", []string{"go.mod:5: require example.com/units v1.2.0", "1 indirect"}},
	{"grep", `search for "own start"`, []string{"2 lines in 2 files", "docs/limits.md:16:"}},
	{"doc", "what is ErrNoWay?", []string{"route/route.go:10: // ErrNoWay is returned when no road leads", "route/route.go:11: var ErrNoWay"}},
	{"about-package", "tell me about the store package", []string{"store/store.go:1: Package store keeps the places", "store/store.go:29: func (m *Map) Add"}},
	{"about-file", "what does route/route.go do?", []string{"route/route.go:1: Package route finds the shortest way", "route/route.go:14: func Shortest("}},
	{"functions-zh", "store 包有哪些函数", []string{"3 functions in store", "store/store.go:53: func checkRoad"}},
	{"files-zh", "列出 docs 目录下的文件", []string{"1 file in docs", "docs/limits.md"}},
	{"count-scope", "How many tests does the store package have?", []string{"2 tests in 1 file in store"}},
	{"each", "for each of store and route: list its functions", []string{"store/store.go:29: func (m *Map) Add", "route/route.go:14: func Shortest"}},
	{"mixed", "Where is Shortest defined? Then write a poem about it", []string{"route/route.go:14:", "Not done: it takes a language model"}},
	{"nothing", "Who calls Nonesuch?", []string{"nothing uses Nonesuch"}},
}

func TestQuestions(t *testing.T) {
	for _, q := range questions {
		t.Run(q.slug, func(t *testing.T) {
			b := newBench(t, atlas)
			got, err := b.ask(q.ask)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range q.want {
				if !strings.Contains(got, w) {
					t.Errorf("the answer lacks %q:\n%s", w, got)
				}
			}
			verify(t, atlas, got)
			golden(t, q.slug, fmt.Sprintf("Q: %s\n\n%s", q.ask, got))
		})
	}
}

// golden compares with a file in testdata/answers.
func golden(t *testing.T, slug, got string) {
	t.Helper()
	file := filepath.Join("testdata", "answers", slug+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
}

var (
	citation = regexp.MustCompile(`^\s*([\w./-]+):(\d+)(?:-(\d+))?: (.*)$`)
	blockTop = regexp.MustCompile(`^([\w./-]+):(\d+)-(\d+)$`)
	blockRow = regexp.MustCompile(`^ {0,4}(\d+)(?:  (.*))?$`)
	addition = regexp.MustCompile(`\s+\[(in \S+|no doc comment)\]$`)
	marks    = regexp.MustCompile(`^\s*(//+|#+|"""|/\*+)\s?|"""$`)
	// frame is all that an answer may hold besides quotes: headings, what was
	// looked for and how much was found, numbers, and what is missing.
	frame = regexp.MustCompile(`^(## \d+\. |[\w-]+ reports:$|Not done: |… [\d,]+ |  ?\s*[\d,]+  \S|The tool adds: |Also of that name: |` +
		`(no|nothing|[\d,]+) .*|lines (about|closest to) .*|closest to .*|“.*”: .*|imports (of|in) .*|required versions: .*|direct dependencies.*|modules: .*|` +
		`LICENSE begins|the \d+ longest of .*|import rules.*|[\w./-]+, its headings.*|[\w./-]+ on “.*|[\w./-]+ \([\d,]+ lines\): .*|go\.mod is there, so: .*|Makefile is there, so: .*|` + "`.*`.*|" + `[\w./-]+: \d+$|[\w./-]+/?: .*|[\w./-]+$)`)
)

// verify checks every line of an answer: a quote against the file it names, all
// else against the few forms that an answer may have besides.
func verify(t *testing.T, dir, answer string) (quotes int) {
	t.Helper()
	block := ""
	for l := range strings.Lines(answer) {
		l = strings.TrimRight(l, "\n")
		switch {
		case strings.TrimSpace(l) == "":
		case citation.MatchString(l):
			m := citation.FindStringSubmatch(l)
			first, last := number(m[2]), number(m[2])
			if m[3] != "" {
				last = number(m[3])
			}
			lines := fileLines(t, dir, m[1])
			if first < 1 || last > len(lines) || last < first {
				t.Errorf("%q names lines that %s does not have", l, m[1])
				continue
			}
			text := strings.TrimSpace(addition.ReplaceAllString(m[4], ""))
			quotes++
			if !quotesOf(lines[first-1:last], text) {
				t.Errorf("%q is not what %s says there:\n%s", l, m[1], strings.Join(lines[first-1:last], "\n"))
			}
		case blockTop.MatchString(l):
			block = blockTop.FindStringSubmatch(l)[1]
		case block != "" && blockRow.MatchString(l):
			m := blockRow.FindStringSubmatch(l)
			lines := fileLines(t, dir, block)
			if n := number(m[1]); n < 1 || n > len(lines) || strings.ReplaceAll(strings.TrimRight(lines[n-1], " \t"), "\t", "    ") != m[2] {
				t.Errorf("%q is not in %s", l, block)
			}
			quotes++
		case frame.MatchString(l):
		default:
			t.Errorf("the line %q is neither a quote nor a form that answers have", l)
		}
	}
	return quotes
}

// quotesOf reports whether a quote is the line itself, or a sentence of the
// lines joined without comment marks; a long one may be cut.
func quotesOf(lines []string, text string) bool {
	text, cut := strings.CutSuffix(text, "…")
	if len(lines) == 1 {
		whole := strings.TrimSpace(lines[0])
		if whole == text || cut && strings.HasPrefix(whole, text) {
			return true
		}
	}
	var bare []string
	for _, l := range lines {
		bare = append(bare, strings.TrimSpace(marks.ReplaceAllString(l, "")))
	}
	return len(text) > 0 && strings.HasPrefix(strings.Join(bare, " "), text)
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

func fileLines(t *testing.T, dir, name string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Errorf("an answer quotes %s: %v", name, err)
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// The verifier has to be able to fail, or it would prove nothing.
func TestVerifierSeesFalseQuotes(t *testing.T) {
	lines := fileLines(t, atlas, "store/store.go")
	for _, tc := range []struct {
		from, to int
		text     string
		want     bool
	}{
		{11, 11, "const MaxPlaces = 10_000", true},
		{11, 11, "const MaxPlaces = 10_001", false},
		{12, 12, "const MaxPlaces = 10_000", false},
		{1, 2, "Package store keeps the places of a map and the roads between them.", true},
		{1, 2, "Package store keeps the roads.", false},
		{1, 2, "", false},
	} {
		if got := quotesOf(lines[tc.from-1:tc.to], tc.text); got != tc.want {
			t.Errorf("quotesOf(%d-%d, %q) = %v", tc.from, tc.to, tc.text, got)
		}
	}
}

// The answers about this very repository: what is quoted changes with it, so
// there are no golden files, but every quote is checked against its file.
func TestThisRepository(t *testing.T) {
	root := "../.."
	for _, q := range []struct {
		ask  string
		want []string
	}{
		{"What packages are there and what is each for?", []string{"policy/policy.go:1: Package policy answers one question", "Package synapse holds the nouns"}},
		{"Where is ParseModelRef defined?", []string{"model.go:", "func ParseModelRef(s string) (ModelRef, error) {"}},
		{"what is ErrorUnsupported?", []string{`ErrorUnsupported ErrorKind = "unsupported"`}},
		{"who calls refuse?", []string{"model/offline/offline.go:", "yield(nil, refuse(out.refusal))"}},
		{"Which Go version does it need?", []string{"go.mod:"}},
		{"what does package model/offline export?", []string{"func New() synapse.Model"}},
		{"count the Go files and lines", []string{"in code", "in tests"}},
	} {
		t.Run(q.ask, func(t *testing.T) {
			b := newBench(t, root)
			got, err := b.ask(q.ask)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range q.want {
				if !strings.Contains(got, w) {
					t.Errorf("the answer lacks %q:\n%s", w, got)
				}
			}
			verify(t, root, got)
			if n := strings.Count(got, "\n"); n > 205 {
				t.Errorf("%d lines", n)
			}
		})
	}
}
