package synapse_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/synapse-agents/synapse"

// loopRuntimeFiles are the files of package run that may touch the world.
var loopRuntimeFiles = []string{"local.go", "localrun.go", "driver.go", "queue.go", "account.go", "handler.go", "throttle.go"}

// A goFile is one non-test file of ours.
type goFile struct {
	path string // slash-separated, from the module's root
	dir  string // "." for the root
	ast  *ast.File
	fset *token.FileSet
	size int // lines
}

func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != "." {
				if name := d.Name(); name == "testdata" || strings.HasPrefix(name, ".") {
					return filepath.SkipDir
				}
				if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil {
					return filepath.SkipDir // a module of its own
				}
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, p, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		slash := filepath.ToSlash(p)
		files = append(files, goFile{path: slash, dir: path.Dir(slash), ast: f, fset: fset, size: strings.Count(string(src), "\n")})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("found only %d Go files: the test is looking in the wrong place", len(files))
	}
	return files
}

// arrows reads the block of ARCHITECTURE.md: package patterns → what they may import.
func arrows(t *testing.T) map[string][]string {
	t.Helper()
	doc, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```arrows\n(.*?)```").FindSubmatch(doc)
	if m == nil {
		t.Fatal("ARCHITECTURE.md has no block of arrows")
	}
	out := map[string][]string{}
	for line := range strings.Lines(string(m[1])) {
		from, to, ok := strings.Cut(line, "->")
		if !ok {
			t.Fatalf("ARCHITECTURE.md: line %q is no arrow", line)
		}
		out[strings.TrimSpace(from)] = strings.Fields(to)
	}
	return out
}

func TestArrows(t *testing.T) {
	rules := arrows(t)
	for _, f := range goFiles(t) {
		allowed, ok := rules[f.dir]
		for pattern, to := range rules {
			if match, _ := path.Match(pattern, f.dir); match && !ok {
				allowed, ok = to, true
			}
		}
		if !ok {
			t.Errorf("%s: package %q has no line among the arrows of ARCHITECTURE.md", f.path, f.dir)
			continue
		}
		for _, imp := range f.ast.Imports {
			name, _ := strconv.Unquote(imp.Path.Value)
			if name != modulePath && !strings.HasPrefix(name, modulePath+"/") {
				if f.dir == "." && strings.Contains(strings.SplitN(name, "/", 2)[0], ".") {
					t.Errorf("%s imports %s: the root package imports the standard library only", f.path, name)
				}
				continue
			}
			rel := strings.TrimPrefix(strings.TrimPrefix(name, modulePath), "/")
			if rel == "" {
				rel = "."
			}
			if !slices.Contains(allowed, rel) && !slices.Contains(allowed, "*") {
				t.Errorf("%s imports %s: ARCHITECTURE.md has no arrow %s -> %s", f.path, name, f.dir, rel)
			}
		}
	}
}

func TestBans(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, v := range violations(f) {
			t.Error(v)
		}
	}
}

// TestBansAreSeen shows that the bans find what they forbid.
func TestBansAreSeen(t *testing.T) {
	src := `package run
import ("os"; "math/rand"; "testing"; "time"; "net")
func f() { go f(); _ = time.Now(); _ = os.Getenv("X"); _, _ = os.UserHomeDir(); _ = rand.Int(); var _ testing.T; _ = net.IP{} }`
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, "run/loop.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := violations(goFile{path: "run/loop.go", dir: "run", ast: parsed, fset: fset, size: 601})
	for _, want := range []string{"os.Getenv", "os.UserHomeDir", "time.Now", "go statement", `imports "os"`, `imports "math/rand"`, `imports "testing"`, `imports "net"`, "601 lines"} {
		if !slices.ContainsFunc(got, func(v string) bool { return strings.Contains(v, want) }) {
			t.Errorf("nothing said about %s in:\n%s", want, strings.Join(got, "\n"))
		}
	}
}

func violations(f goFile) []string {
	var out []string
	say := func(pos token.Pos, format string, args ...any) {
		out = append(out, fmt.Sprintf("%s: ", f.fset.Position(pos))+fmt.Sprintf(format, args...))
	}
	loop := f.dir == "run" && !slices.Contains(loopRuntimeFiles, path.Base(f.path))
	inCmd := strings.HasPrefix(f.dir, "cmd/") || strings.HasPrefix(f.dir, "examples/")
	for _, imp := range f.ast.Imports {
		name, _ := strconv.Unquote(imp.Path.Value)
		if name == "testing" && !strings.HasSuffix(path.Base(f.dir), "test") {
			say(imp.Pos(), `imports "testing" outside a test`)
		}
		if loop {
			switch name {
			case "os", "io/fs", "net", "net/http", "os/exec", "math/rand", "math/rand/v2", "crypto/rand", "sync", "context":
				say(imp.Pos(), "the loop imports %q: it reaches the world through the Runtime port only", name)
			}
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if loop {
				say(n.Pos(), "a go statement in the loop: fan-out goes through the Runtime port")
			}
		case *ast.SelectorExpr:
			pkg, ok := n.X.(*ast.Ident)
			if !ok {
				break
			}
			switch name := pkg.Name + "." + n.Sel.Name; name {
			case "os.Getenv", "os.LookupEnv", "os.Environ", "os.ExpandEnv", "os.UserHomeDir", "os.UserConfigDir", "os.UserCacheDir":
				if !inCmd {
					say(n.Pos(), "%s outside cmd: the environment and the home directory are handed in", name)
				}
			case "time.Now", "time.Since", "time.Sleep", "time.After":
				if loop {
					say(n.Pos(), "%s in the loop: it has Runtime.Now", name)
				}
			}
		}
		return true
	})
	if f.size > 600 {
		out = append(out, fmt.Sprintf("%s: %d lines: split it", f.path, f.size))
	}
	for _, part := range strings.Split(strings.TrimSuffix(f.path, ".go"), "/") {
		switch part {
		case "util", "utils", "common", "helper", "helpers", "misc", "types":
			out = append(out, fmt.Sprintf("%s: the name %q says nothing", f.path, part))
		}
	}
	return out
}
