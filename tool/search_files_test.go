package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/synapse-agents/synapse/tool"
)

func TestSearchFiles(t *testing.T) {
	b := open(t, tool.Options{}, map[string]string{
		"a.go":       "package a\n\nfunc Foo() {}\n\n// foo bar\n// end",
		"b.txt":      "foo (bar\nFOO\nlast foo\n",
		"crlf.txt":   "one foo\r\ntwo\r\n",
		"latin.txt":  "caf\xe9 foo\n",
		"utf16.txt":  "\xff\xfef\x00o\x00o\x00 \x001\x006\x00\n\x00",
		"bin":        "foo\x00foo\n",
		"d/deep.go":  "x := foo\n",
		"d/blank.md": "foo\n\n\n\nfoo\n",
		"ign.go":     "foo\n", ".gitignore": "ign.go\n",
		"empty": "",
	})
	for _, test := range []struct {
		name string
		args args
		want string
	}{
		{"literal", args{"pattern": "foo"}, "a.go:5:// foo bar\nb.txt:1:foo (bar\nb.txt:3:last foo\ncrlf.txt:1:one foo\nd/blank.md:1:foo\nd/blank.md:5:foo\nd/deep.go:1:x := foo\nlatin.txt:1:café foo\nutf16.txt:1:foo 16\n[not searched: 1 binary]"},
		{"regexp", args{"pattern": `^func \w+\(\)`, "glob": "*.go"}, "a.go:3:func Foo() {}"},
		{"line end", args{"pattern": "foo$", "glob": "*.txt"}, "b.txt:3:last foo\ncrlf.txt:1:one foo\nlatin.txt:1:café foo"},
		{"classes stay on their line", args{"pattern": `^\s*foo`, "path": "d/blank.md"}, "d/blank.md:1:foo\nd/blank.md:5:foo"},
		{"negated class stays on its line", args{"pattern": `foo[^x]*foo`, "path": "d/blank.md"}, "[no match in 1 file below d/blank.md]"},
		{"dot all stays on its line", args{"pattern": `(?s)foo.*foo`, "path": "d/blank.md"}, "[no match in 1 file below d/blank.md]"},
		{"spanning when asked", args{"pattern": `\(bar\nFOO`}, "b.txt:1:foo (bar\nb.txt:2:FOO\n[not searched: 1 binary]"},
		{"ignoring case", args{"pattern": "FOO", "ignore_case": true, "path": "b.txt"}, "b.txt:1:foo (bar\nb.txt:2:FOO\nb.txt:3:last foo"},
		{"inline flag", args{"pattern": "x(?i:FOO)?|(?i)fOo", "path": "b.txt"}, "b.txt:1:foo (bar\nb.txt:2:FOO\nb.txt:3:last foo"},
		{"inline flag in the middle", args{"pattern": "last (?i:FOO)", "path": "b.txt"}, "b.txt:3:last foo"},
		{"no regexp", args{"pattern": "foo (bar", "glob": "*.txt"}, "b.txt:1:foo (bar\n[\"foo (bar\" is no regular expression (missing closing )); it was searched for as plain text]"},
		{"context", args{"pattern": "Foo", "context": 1, "path": "a.go"}, "a.go-2-\na.go:3:func Foo() {}\na.go-4-"},
		{"context meets", args{"pattern": "Foo|bar", "context": 1, "path": "a.go"}, "a.go-2-\na.go:3:func Foo() {}\na.go-4-\na.go:5:// foo bar\na.go-6-// end"},
		{"context apart", args{"pattern": "foo", "context": 1, "path": "d/blank.md"}, "d/blank.md:1:foo\nd/blank.md-2-\n--\nd/blank.md-4-\nd/blank.md:5:foo"},
		{"files", args{"pattern": "foo", "mode": "files", "path": "d"}, "d/blank.md\nd/deep.go"},
		{"count", args{"pattern": "foo", "mode": "count", "path": "d"}, "d/blank.md:2\nd/deep.go:1"},
		{"glob with a slash", args{"pattern": "foo", "glob": "d/*.go"}, "d/deep.go:1:x := foo"},
		{"glob that excludes", args{"pattern": "foo", "glob": "!*.md", "path": "d"}, "d/deep.go:1:x := foo"},
		{"ignored, named", args{"pattern": "foo", "path": "ign.go"}, "ign.go:1:foo"},
		{"non-ASCII", args{"pattern": "é"}, "latin.txt:1:café foo\n[not searched: 1 binary]"},
		{"non-ASCII ignoring case", args{"pattern": "CAFÉ", "ignore_case": true, "glob": "latin*"}, "latin.txt:1:café foo"},
		{"empty lines", args{"pattern": "^$", "path": "a.go"}, "a.go:2:\na.go:4:"},
		{"any line", args{"pattern": "x*", "path": "b.txt", "mode": "count"}, "b.txt:3"},
		{"nothing", args{"pattern": "nope", "glob": "*.go"}, "[no match in 2 files that match *.go below /]"},
	} {
		if diff := cmp.Diff(test.want, b.ok("search_files", test.args)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	b.fails("search_files", args{"pattern": ""}, "the pattern is empty")
	b.fails("search_files", args{"pattern": "x", "mode": "words"}, "want lines, files or count")
	b.fails("search_files", args{"pattern": "x", "glob": "[x"}, "is no glob")
	b.fails("search_files", args{"pattern": "x", "path": "nope"}, "no such file")
	b.fails("search_files", args{"pattern": strings.Repeat("x", 5000)}, "at most 4096")
}

// Two characters outside ASCII fold to k and s.
func TestSearchFoldsLikeTheRegexp(t *testing.T) {
	b := open(t, tool.Options{}, map[string]string{"a": "\u212aelvin\nmi\u017fs\nKELVIN\n"})
	if got := b.ok("search_files", args{"pattern": "kelvin", "ignore_case": true}); got != "a:1:\u212aelvin\na:3:KELVIN" {
		t.Errorf("got %q", got)
	}
	if got := b.ok("search_files", args{"pattern": "MISS", "ignore_case": true}); got != "a:2:mi\u017fs" {
		t.Errorf("got %q", got)
	}
}

func TestSearchSaysWhatIsLeftOut(t *testing.T) {
	files := make(map[string]string)
	for i := range 600 {
		files[fmt.Sprintf("f%03d", i)] = "needle\nhay\nneedle\n"
	}
	b := open(t, tool.Options{}, files)
	put(t, filepath.Join(b.dir, "huge"), strings.Repeat("needle\n", 2<<20))
	r := b.run("search_files", args{"pattern": "needle"})
	lines := strings.Split(r.Text, "\n")
	want := []string{"f124:3:needle", "[950 more matches left out, 475 files among them wholly; narrow the pattern, path or glob]", "[not searched: 1 over 10 MB]"}
	if diff := cmp.Diff(want, lines[249:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var d struct{ Matches, Files int }
	if err := json.Unmarshal(r.Details, &d); err != nil || d.Matches != 1200 || d.Files != 600 {
		t.Errorf("details %s: %v", r.Details, err)
	}
	if got := b.ok("search_files", args{"pattern": "needle", "mode": "files"}); !strings.Contains(got, "[350 more files left out;") {
		t.Errorf("files: %q", got[len(got)-200:])
	}
}

func TestSearchCutsLongLines(t *testing.T) {
	b := open(t, tool.Options{}, map[string]string{"min.js": strings.Repeat("x", 5000) + "NEEDLE" + strings.Repeat("y", 5000)})
	got := b.ok("search_files", args{"pattern": "NEEDLE"})
	if len(got) > 500 || !strings.Contains(got, "NEEDLE") || !strings.HasPrefix(got, "min.js:1:…x") || !strings.HasSuffix(got, "y…") {
		t.Errorf("got %q", got)
	}
}

func TestSearchStopsWhenCancelled(t *testing.T) {
	b := open(t, tool.Options{}, map[string]string{"a": "x\n", "b": "x\n"})
	ctx, cancel := context.WithCancel(context.Background())
	in := invocation(t, args{"pattern": "x"})
	in.Permits = func(string) bool { cancel(); return true }
	if r, err := b.tool("search_files").Run(ctx, in); err == nil {
		t.Errorf("got %v, want the context's error", r)
	}
}

func TestUnreadableIsCounted(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root reads everything")
	}
	b := open(t, tool.Options{}, map[string]string{"a": "x\n", "d/b": "x\n"})
	for _, name := range []string{"a", "d"} {
		if err := os.Chmod(filepath.Join(b.dir, name), 0); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(filepath.Join(b.dir, name), 0o755)
	}
	got := b.ok("search_files", args{"pattern": "x"})
	if !strings.Contains(got, "[not searched: 1 unreadable]\n[1 directory could not be read]") {
		t.Errorf("got %q", got)
	}
}

func BenchmarkSearch(b *testing.B) {
	files := make(map[string]string)
	line := "	if err := context.Background(); err != nil { return fmt.Errorf(\"read %s: %w\", name, err) }\n"
	for i := range 5000 {
		body := strings.Repeat(line, 60)
		if i%100 == 0 {
			body += "// the Needle stands here\n"
		}
		files[fmt.Sprintf("pkg%02d/sub%d/file%04d.go", i%50, i%7, i)] = body
	}
	w := open(b, tool.Options{}, files)
	for name, a := range map[string]args{
		"literal":     {"pattern": "Needle"},
		"regexp":      {"pattern": `the \w+dle stands`},
		"no literal":  {"pattern": `[A-Z][a-z]+dle st`},
		"ignore case": {"pattern": "needle", "ignore_case": true},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(5000 * 60 * len(line)))
			for b.Loop() {
				if got := w.ok("search_files", a); strings.Count(got, "\n") != 49 {
					b.Fatalf("%d lines", strings.Count(got, "\n")+1)
				}
			}
		})
	}
}

// A tree deeper than the walk keeps directories open.
func TestSearchDeepTree(t *testing.T) {
	deep := strings.Repeat("d/", 130)
	b := open(t, tool.Options{}, files{deep + "f": "needle\n", strings.Repeat("d/", 99) + "g": "needle\n", "h": "needle\n"})
	got := b.ok("search_files", args{"pattern": "needle", "mode": "files"})
	if want := deep + "f\n" + strings.Repeat("d/", 99) + "g\nh"; got != want {
		t.Errorf("got %q", got)
	}
}

// Directories are swapped for links out of the workspace, and back, while a
// search walks over them: nothing outside is ever seen.
func TestSearchNeverFollowsASwappedDirectory(t *testing.T) {
	outside := t.TempDir()
	put(t, filepath.Join(outside, "sub/f"), "needle OUTSIDE\n")
	tree := files{}
	for i := range 40 {
		tree[fmt.Sprintf("d%02d/sub/f", i)] = "needle inside\n"
	}
	b := open(t, tool.Options{}, tree)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			d := filepath.Join(b.dir, fmt.Sprintf("d%02d", i%40))
			_ = os.Rename(d, d+".kept")
			_ = os.Symlink(outside, d)
			runtime.Gosched()
			_ = os.Remove(d)
			_ = os.Rename(d+".kept", d)
		}
	})
	inside := 0
	for deadline := time.Now().Add(500 * time.Millisecond); time.Now().Before(deadline); {
		r := b.run("search_files", args{"pattern": "needle"})
		if strings.Contains(r.Text, "OUTSIDE") {
			t.Error("a search got out through a swapped directory")
			break
		}
		inside += strings.Count(r.Text, "inside")
	}
	close(stop)
	wg.Wait()
	if inside == 0 {
		t.Error("nothing was found at all: the race was not run")
	}
}

// The regexp package, line by line, is the second judge of what matches.
func FuzzSearch(f *testing.F) {
	f.Add("the Needle\nand\r\nmore", "needle", true)
	f.Add("ſun sun SUN\nK k K\n", "s", true)
	f.Add("a1b\n\nab", `a\d?b`, false)
	f.Add("x\xffneedle\xfe\n", "needle", false)
	f.Add("aab\naaab", "(?i)AAB", false)
	f.Add("tab\tq\n", `[^\n]q`, true)
	dir := f.TempDir()
	w, err := tool.Open(dir, tool.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { w.Close() })
	f.Fuzz(func(t *testing.T, content, pattern string, fold bool) {
		expr := pattern
		if fold {
			expr = "(?i)" + pattern
		}
		re, err := regexp.Compile(expr)
		if _, plain := regexp.Compile(pattern); err != nil || plain != nil || pattern == "" || strings.ContainsAny(pattern, "\n\r") || strings.Contains(pattern, `\n`) ||
			strings.Contains(pattern, "(?") || strings.ContainsAny(pattern, "^$") || strings.Contains(strings.ToLower(pattern), `\b`) || strings.ContainsAny(pattern, `\`) && strings.ContainsAny(pattern, "AzC") {
			t.Skip() // what speaks of lines means something else within one
		}
		if !utf8.ValidString(content) || strings.HasPrefix(content, "\ufeff") || strings.ContainsFunc(content, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }) {
			t.Skip() // another encoding may be guessed
		}
		put(t, filepath.Join(dir, "f"), content)
		b := &bench{t, dir, w}
		want := 0
		for line := range strings.Lines(content) {
			if re.MatchString(strings.TrimSuffix(line, "\n")) {
				want++
			}
		}
		r := b.run("search_files", args{"pattern": pattern, "ignore_case": fold})
		var d struct{ Matches int }
		if err := json.Unmarshal(r.Details, &d); err != nil {
			t.Fatalf("%v: %s", err, r.Text)
		}
		if d.Matches != want {
			t.Errorf("%q in %q, fold %v: %d lines match, want %d:\n%s", pattern, content, fold, d.Matches, want, r.Text)
		}
	})
}
