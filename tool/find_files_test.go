package tool_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/synapse-agents/synapse/tool"
)

func TestFindFiles(t *testing.T) {
	b := open(t, tool.Options{}, map[string]string{
		"main.go": "", "src/a.go": "", "src/a_test.go": "", "src/deep/b.ts": "", "src/deep/c.tsx": "",
		".hidden/x.go": "", "node_modules/m/index.go": "", ".git/config.go": "", "docs/[x].md": "",
		"skip/me.go": "", ".gitignore": "skip/\n*.log\n!keep.log\n", "a.log": "", "src/keep.log": "",
	})
	for _, test := range []struct {
		name string
		args args
		want string
	}{
		{"name at any depth", args{"pattern": "*.go"}, ".hidden/x.go\nmain.go\nsrc/a.go\nsrc/a_test.go"},
		{"all", args{"pattern": "*", "path": "src"}, "src/a.go\nsrc/a_test.go\nsrc/deep/b.ts\nsrc/deep/c.tsx\nsrc/keep.log"},
		{"anchored", args{"pattern": "/*.go"}, "main.go"},
		{"with a slash", args{"pattern": "src/*.go"}, "src/a.go\nsrc/a_test.go"},
		{"below a path", args{"pattern": "deep/*", "path": "/src"}, "src/deep/b.ts\nsrc/deep/c.tsx"},
		{"any depth", args{"pattern": "**/*.ts"}, "src/deep/b.ts"},
		{"alternatives", args{"pattern": "**/*.{ts,tsx}"}, "src/deep/b.ts\nsrc/deep/c.tsx"},
		{"host path", args{"pattern": filepath.Join(b.dir, "src/*.go")}, "src/a.go\nsrc/a_test.go"},
		{"directory", args{"pattern": "src/deep/"}, "src/deep/b.ts\nsrc/deep/c.tsx"},
		{"escaped", args{"pattern": `\[x\].md`}, "docs/[x].md"},
		{"negated ignore", args{"pattern": "*.log"}, "src/keep.log"},
		{"ignored, named", args{"pattern": "*", "path": "skip"}, "skip/me.go"},
		{"junk, named", args{"pattern": "*.go", "path": "node_modules"}, "node_modules/m/index.go"},
		{"anchored by mistake", args{"pattern": "deep/*.ts"}, "[nothing matches deep/*.ts right below /; it matches deeper:]\nsrc/deep/b.ts"},
		{"a directory", args{"pattern": "deep"}, "[no file matches deep; these directories do:]\nsrc/deep/"},
		{"nothing", args{"pattern": "*.rs"}, "[no file matches *.rs among the 9 files below / that git doesn't ignore]"},
	} {
		if diff := cmp.Diff(test.want, b.ok("find_files", test.args)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	b.fails("find_files", args{"pattern": "[x"}, "is no glob")
	b.fails("find_files", args{"pattern": ""}, "the pattern is empty")
	b.fails("find_files", args{"pattern": "*", "path": "main.go"}, "is a file")
	b.fails("find_files", args{"pattern": "*", "path": "scr"}, "did you mean src/")
}

// A class stands for one character of a name, never for the slash between two.
func TestFindFilesClasses(t *testing.T) {
	b := open(t, tool.Options{}, map[string]string{
		"d/x": "", "d-x": "", "d.x": "", "d0x": "", "dsx": "", "d]x": "", "d,x": "", "däx": "", "d!x": "",
	})
	for pattern, want := range map[string]string{
		"d[!s]x":      "d!x d,x d-x d.x d0x d]x däx",
		"d[^s]x":      "d!x d,x d-x d.x d0x d]x däx",
		"/d[!-s]x":    "d!x d,x d.x d0x d]x däx",
		"d[!s-]x":     "d!x d,x d.x d0x d]x däx",
		"d[!\\]]x":    "d!x d,x d-x d.x d0x dsx däx",
		"d[!+-9]x":    "d!x d]x dsx däx",
		"d[+-9]x":     "d,x d-x d.x d0x",
		"d[--0]x":     "d-x d.x d0x",
		"d[ --]x":     "d!x d,x d-x",
		"d[/s]x":      "dsx",
		"d[s/]x":      "dsx",
		"d[.-/]x":     "d.x",
		"d[/-0]x":     "d0x",
		"d[s-]x":      "d-x dsx",
		"d[z-s]x":     "",
		"d[s-a]x":     "dsx",
		"d[/]x":       "",
		"d[ä,\\]]x":   "d,x d]x däx",
		"d{[!s],s}x":  "d!x d,x d-x d.x d0x d]x dsx däx",
		"d\\[!s]x":    "",
		"**/d[!s]x":   "d!x d,x d-x d.x d0x d]x däx",
		"d/[!s]":      "d/x",
		"*[!s]x":      "d!x d,x d-x d.x d0x d]x däx",
		"/d[!a-z0]*x": "d!x d,x d-x d.x d]x däx",
	} {
		got := b.ok("find_files", args{"pattern": pattern})
		if strings.HasPrefix(got, "[no file matches") {
			got = ""
		}
		if got = strings.ReplaceAll(got, "\n", " "); got != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}

func TestFindFilesSaysWhatIsLeftOut(t *testing.T) {
	files := make(map[string]string)
	for i := range 230 {
		files[fmt.Sprintf("f%03d.txt", i)] = ""
	}
	b := open(t, tool.Options{}, files)
	r := b.run("find_files", args{"pattern": "*"})
	lines := strings.Split(r.Text, "\n")
	if len(lines) != 201 || lines[0] != "f000.txt" || lines[199] != "f199.txt" || !strings.HasPrefix(lines[200], "[30 more left out") {
		t.Errorf("%d lines, last %q", len(lines), lines[len(lines)-1])
	}
	var d struct{ Files int }
	if err := json.Unmarshal(r.Details, &d); err != nil || d.Files != 230 {
		t.Errorf("details %s: %v", r.Details, err)
	}
}

// git is the second judge of what is ignored: it must list the same files.
func gitLists(t testing.TB, dir string) []string {
	t.Helper()
	cmd := exec.Command("git", "-c", "core.excludesFile=/dev/null", "-c", "core.quotePath=false", "ls-files", "-z", "--others", "--exclude-standard")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_DIR="+filepath.Join(dir, ".git"), "GIT_WORK_TREE="+dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	var files []string
	for file := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if file != "" {
			files = append(files, file)
		}
	}
	slices.Sort(files)
	return files
}

func gitInit(t testing.TB, dir string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	cmd := exec.Command("git", "init", "-q")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
}

// ignoreTree is a small tree whose names try the corners of patterns.
var ignoreTree = []string{
	"a", "b", "ab", "abc", "a.txt", "b.txt", "ABC", "a b", "a ", "#x", "!x", "[a]", `a\b`, "*", "é", "d/a", "d/b", "d/ab", "d/e/a", "d/e/b.txt",
	"d/e/f/a", "d/e/f/abc", "ax/b", "axx/b", "e/d/a", "e/d/e/x", "build/out", "build/keep", "src/build/x", "foo/bar/baz", "foo/x/bar", "-", "a-b", "]x", "^x",
}

// checkAgainstGit tries pattern files, one set after another, on one tree.
func checkAgainstGit(t *testing.T, cases []map[string]string) {
	t.Helper()
	files := make(map[string]string)
	for _, name := range ignoreTree {
		files[name] = ""
	}
	b := open(t, tool.Options{}, files)
	gitInit(t, b.dir)
	for _, ignores := range cases {
		for name, content := range ignores {
			put(t, filepath.Join(b.dir, name), content)
		}
		if diff := cmp.Diff(gitLists(t, b.dir), found(b)); diff != "" {
			t.Errorf("%q: (-git +ours):\n%s", ignores, diff)
		}
		for name := range ignores {
			if err := os.Remove(filepath.Join(b.dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// found lists the files of the workspace that are not ignored.
func found(b *bench) []string {
	b.t.Helper()
	var files []string
	for line := range strings.SplitSeq(b.ok("find_files", args{"pattern": "**"}), "\n") {
		if !strings.HasSuffix(line, "/") && !strings.HasPrefix(line, "[no file") {
			files = append(files, line)
		}
	}
	return files
}

func TestGitignoreAgainstGit(t *testing.T) {
	var cases []map[string]string
	for _, ignore := range []string{
		"a", "/a", "a/", "*.txt", "!a", "*\n!a", "*\n!*/\n!*.txt", "d/*", "d/**", "d/**/a", "**/a", "**/a/", "d/e", "d/e/", "/d/e/**/abc", "a**/b", "a*/b", "**",
		"/*", "/**", "**/", "*/", "/", "//", "!", "\\", "a\\", `\a`, `\#x`, `\!x`, "#x", `\*`, "[a]", `\[a\]`, "[ab]", "[!a]", "[^a]", "[a-c]", "[c-a]", "[]x]x", "[]-]", "[a",
		"[[:alpha:]]", "[[:upper:]]*", "[![:alnum:]]*", "[[:nope:]]", "[[:alpha:]", "[:alpha:]", "[a-]", "[-a]", `[\]]x`, "[[]a]", "a ", `a\ `, "a  ", "  a", "a\t", "a b", "?", "??", "d/?", "d?a",
		"é", "?x", "d/e/f/", "foo/bar", "foo/**/bar", "**/bar/baz", "foo/**bar", "foo**bar", "f*o/bar", "build/*\n!build/keep", "build/\n!build/keep", "**/build", "/build", "src/**/x",
		"a\r\nb\r\n", "\ufeffa\n", "a\n\n\n# comment\nb", "*\n!*.txt\nb.txt", "***/a", "d/***/a", "d/*/a", "d/*/*/a", "*/a", "d//a", "./a", "../a", "a/../b", "d/e/../a", "**/**/a", "d/**/**/a", "**/e/**/a",
		"d/**\n!d/b", "d/*\n!d/e\nd/e/*\n!d/e/a", "[a-z]b", "[]]x", "[^]]*", "[!]a-]*", "*[", "*]", "\\\\", `a\\b`, `[\\]`, `a[\\]b`, "\x80", "[\x80-\xff]*", "-", "[!-]", `[a\-c]`, "[--a]", "/d/**/", "d/**/e/", "*?", "?*", "*a*b*", "a*c",
	} {
		cases = append(cases, map[string]string{".gitignore": ignore})
	}
	checkAgainstGit(t, cases)
}

func TestNestedGitignoreAgainstGit(t *testing.T) {
	checkAgainstGit(t, []map[string]string{
		{".gitignore": "a", "d/.gitignore": "!a"},
		{".gitignore": "d/\n", "d/.gitignore": "!a"},
		{".gitignore": "*.txt\n", "d/e/.gitignore": "!b.txt\n/f/\n"},
		{"d/.gitignore": "/a\ne/f/abc\n"},
		{"d/.gitignore": "*\n!.gitignore\n", "d/e/.gitignore": "!*"},
		{"foo/.gitignore": "bar/\n!baz", "foo/bar/.gitignore": "!baz"},
		{".git/info/exclude": "a\nd/e/\n*.txt\n", ".gitignore": "!d/e\n"},
		{".git/info/exclude": "b\nd/e/\n*.txt\n", ".gitignore": "/a\nd/e/f\n"},
		{".git/info/exclude": "/*", "d/.gitignore": "!a\n"},
	})
}

// Random pattern files, from a fixed seed.
func TestRandomGitignoreAgainstGit(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "b", "d", "e", "f", "foo", "bar", "build", "*", "**", "?", "/", "/", "/**/", "[ab]", "[!a]", "[a-c]", ".txt", "\\", "x", "!", " ", "abc"}
	var cases []map[string]string
	for range 200 {
		ignores := make(map[string]string)
		for _, name := range []string{".gitignore", "d/.gitignore", "d/e/.gitignore"} {
			if name != ".gitignore" && random.IntN(2) == 0 {
				continue
			}
			var sb strings.Builder
			for range 1 + random.IntN(4) {
				if random.IntN(4) == 0 {
					sb.WriteByte('!')
				}
				for range 1 + random.IntN(5) {
					sb.WriteString(pieces[random.IntN(len(pieces))])
				}
				sb.WriteByte('\n')
			}
			ignores[name] = sb.String()
		}
		cases = append(cases, ignores)
	}
	checkAgainstGit(t, cases)
}

// A pattern with many stars takes no more steps than its length times the
// path's.
func TestGitignoreWithManyStarsEnds(t *testing.T) {
	name := strings.Repeat("a", 200)
	b := open(t, tool.Options{}, map[string]string{name: "", ".gitignore": strings.Repeat("*a", 100) + "b\n" + strings.Repeat("**/", 100) + "x\n"})
	if got := b.ok("find_files", args{"pattern": "a*"}); got != name {
		t.Errorf("got %q", got)
	}
}

func FuzzGitignore(f *testing.F) {
	for _, s := range []string{"a", "!a", "**/a/", "[a-c]", "[[:alpha:]]", `a\`, "d/**/e", "*\n!*/", "[", "\ufeff#", "a**/b", " "} {
		f.Add(s)
	}
	dir := f.TempDir()
	for _, name := range ignoreTree {
		put(f, filepath.Join(dir, name), "")
	}
	w, err := tool.Open(dir, tool.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { w.Close() })
	b := &bench{f, dir, w}
	put(f, filepath.Join(dir, ".gitignore"), "")
	all := strings.Split(b.ok("find_files", args{"pattern": "**"}), "\n")
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsAny(line, "\n\r") {
			return
		}
		// Whatever a pattern ignores, the same pattern with a "!" after it
		// takes back.
		put(t, filepath.Join(dir, ".gitignore"), line+"\n!"+line+"\n")
		b := &bench{t, dir, w}
		got := strings.Split(b.ok("find_files", args{"pattern": "**"}), "\n")
		if strings.HasPrefix(line, "!") || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "\ufeff") || line != strings.TrimSpace(line) {
			return // the "!" changes what the line says
		}
		if diff := cmp.Diff(all, got); diff != "" {
			t.Errorf("%q and its negation (-want +got):\n%s", line, diff)
		}
	})
}
