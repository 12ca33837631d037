package tool_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
	"github.com/synapse-agents/synapse/tool"
)

// A bench is a workspace under test.
type bench struct {
	t   testing.TB
	dir string
	*tool.Workspace
}

func open(t testing.TB, opt tool.Options, files map[string]string) *bench {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		put(t, filepath.Join(dir, name), content)
	}
	w, err := tool.Open(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return &bench{t, dir, w}
}

func put(t testing.TB, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) read(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

func (b *bench) tool(name string) synapse.Tool {
	b.t.Helper()
	for _, t := range b.Tools() {
		if t.Name == name {
			return t
		}
	}
	b.t.Fatalf("no tool %s", name)
	return synapse.Tool{}
}

type args = map[string]any

func invocation(t testing.TB, a args) *synapse.Invocation {
	t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return &synapse.Invocation{
		CallID: "c1", Args: raw,
		Permits: func(string) bool { return true },
		Output:  func(string) {},
	}
}

// run calls a tool and fails the test when it returns a Go error.
func (b *bench) run(name string, a args) *synapse.ToolResult {
	b.t.Helper()
	return b.call(name, invocation(b.t, a))
}

func (b *bench) call(name string, in *synapse.Invocation) *synapse.ToolResult {
	b.t.Helper()
	t := b.tool(name)
	r, err := t.Run(context.Background(), in)
	if err != nil {
		b.t.Fatalf("%s %s: %v", name, in.Args, err)
	}
	return r
}

// ok is run for a call that must succeed.
func (b *bench) ok(name string, a args) string {
	b.t.Helper()
	r := b.run(name, a)
	if r.IsError {
		b.t.Fatalf("%s %v: unexpected error result: %s", name, a, r.Text)
	}
	return r.Text
}

// fails is run for a call whose result must be an error that holds want.
func (b *bench) fails(name string, a args, want string) string {
	b.t.Helper()
	r := b.run(name, a)
	if !r.IsError || !strings.Contains(r.Text, want) {
		b.t.Fatalf("%s %v: got error=%v %q, want an error with %q", name, a, r.IsError, r.Text, want)
	}
	return r.Text
}

func TestToolsOrderAndTraits(t *testing.T) {
	b := open(t, tool.Options{WebSearch: tool.WebSearch{Kind: tool.WebSearchBrave}}, nil)
	type traits struct {
		Name               string
		Effect             synapse.Effect
		Parallel           bool
		Subject            policy.SubjectKind
		Args               []string
		DescriptionTooLong bool
	}
	var got []traits
	total := 0
	for _, x := range b.Tools() {
		got = append(got, traits{x.Name, x.Effect(), x.Parallel, x.Subject.Kind, x.Subject.Args, len(x.Description) > 350})
		total += len(x.Name) + len(x.Description) + len(x.Schema)
		t.Logf("%s: %d + %d bytes: %s", x.Name, len(x.Description), len(x.Schema), x.Schema)
	}
	want := []traits{
		{"read_file", synapse.EffectRead, true, policy.SubjectPath, []string{"path"}, false},
		{"find_files", synapse.EffectRead, true, policy.SubjectPath, []string{"path"}, false},
		{"search_files", synapse.EffectRead, true, policy.SubjectPath, []string{"path"}, false},
		{"write_file", synapse.EffectKeyed, false, policy.SubjectPath, []string{"path"}, false},
		{"edit_file", synapse.EffectKeyed, false, policy.SubjectPath, []string{"path"}, false},
		{"patch", synapse.EffectKeyed, false, policy.SubjectPath, nil, false},
		{"execute", synapse.EffectUnsafe, false, policy.SubjectCommand, []string{"command"}, false},
		{"fetch_url", synapse.EffectRead, true, policy.SubjectURL, []string{"url"}, false},
		{"web_search", synapse.EffectRead, true, policy.SubjectText, []string{"query"}, false},
		{"write_todos", synapse.EffectRead, true, policy.SubjectNone, nil, false},
		{"skill", synapse.EffectRead, true, policy.SubjectText, []string{"name"}, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	// They travel with every request of every child.
	if total > 3800 {
		t.Errorf("names, descriptions and schemas have %d bytes, want at most 3800", total)
	}
}

func TestPathsNameTheSameFile(t *testing.T) {
	b := open(t, tool.Options{}, map[string]string{"a/b.txt": "here\n"})
	for _, p := range []string{"a/b.txt", "/a/b.txt", "./a/b.txt", "a//b.txt", "a/x/../b.txt", filepath.Join(b.dir, "a/b.txt")} {
		if got := b.ok("read_file", args{"path": p}); got != "1\there" {
			t.Errorf("read_file %s = %q", p, got)
		}
	}
}

// A workspace /…/app that has a folder of its own name in it: the path as
// written wins when there is such a file.
func TestHostPathAmbiguity(t *testing.T) {
	b := open(t, tool.Options{}, nil)
	put(t, filepath.Join(b.dir, b.dir, "f"), "inner\n")
	put(t, filepath.Join(b.dir, "f"), "outer\n")
	put(t, filepath.Join(b.dir, "g"), "outer g\n")
	if got := b.ok("read_file", args{"path": filepath.Join(b.dir, "f")}); got != "1\tinner" {
		t.Errorf("got %q, want the inner file", got)
	}
	if got := b.ok("read_file", args{"path": filepath.Join(b.dir, "g")}); got != "1\touter g" {
		t.Errorf("got %q, want the file of the host path", got)
	}
}

func TestEscapesAreRefused(t *testing.T) {
	outside := t.TempDir()
	put(t, filepath.Join(outside, "secret"), "TOP SECRET\n")
	b := open(t, tool.Options{}, map[string]string{"dir/in.txt": "in\n"})
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(b.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	rel, err := filepath.Rel(b.dir, outside)
	if err != nil {
		t.Fatal(err)
	}
	link(filepath.Join(outside, "secret"), "abs")
	link(filepath.Join(rel, "secret"), "rel")
	link(outside, "dirlink")
	link("../"+rel, "dir/deep")
	link("loop2", "loop1")
	link("loop1", "loop2")
	link(filepath.Join(outside, "new"), "dangling")
	for _, p := range []string{
		"../" + filepath.Base(outside) + "/secret", "dir/../../x", "/../x", "abs", "rel", "dirlink/secret", "dir/deep/secret",
		"loop1", "dangling", filepath.Join(outside, "secret"), "x\x00y",
	} {
		for name, a := range map[string]args{
			"read_file":    {"path": p},
			"find_files":   {"path": p, "pattern": "*"},
			"search_files": {"path": p, "pattern": "SECRET"},
			"edit_file":    {"path": p, "old_string": "TOP", "new_string": "NO"},
		} {
			r := b.run(name, a)
			if !r.IsError || strings.Contains(r.Text, "TOP SECRET") {
				t.Errorf("%s %q = error %v: %q, want a refusal", name, p, r.IsError, r.Text)
			}
		}
	}
	for _, p := range []string{"../x", "/../x", "abs", "rel", "dirlink/new", "dir/deep/new", "loop1", "dangling"} {
		b.fails("write_file", args{"path": p, "content": "overwritten"}, "write_file: ")
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside holds %v (%v), want the one file it had", entries, err)
	}
	if got, _ := os.ReadFile(filepath.Join(outside, "secret")); string(got) != "TOP SECRET\n" {
		t.Errorf("the file outside is now %q", got)
	}
	// A host path is a path below the root when it doesn't lie in the
	// workspace: it makes no file outside.
	b.ok("write_file", args{"path": filepath.Join(outside, "new"), "content": "x"})
	if got := b.read(filepath.Join(outside, "new")); got != "x" {
		t.Errorf("got %q", got)
	}
	if _, err := os.Stat(filepath.Join(outside, "new")); err == nil {
		t.Error("a file was created outside")
	}
	// Walks pass links over rather than following them.
	if got := b.ok("search_files", args{"pattern": "SECRET"}); strings.Contains(got, "TOP") {
		t.Errorf("search followed a link: %s", got)
	}
}

func TestLinksWithin(t *testing.T) {
	b := open(t, tool.Options{}, map[string]string{"real/f": "one\n"})
	for name, target := range map[string]string{"l": "real/f", "d": "real", "abs": filepath.Join(b.dir, "real/f")} {
		if err := os.Symlink(target, filepath.Join(b.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"l", "d/f", "abs"} {
		if got := b.ok("read_file", args{"path": p}); got != "1\tone" {
			t.Errorf("%s: %q", p, got)
		}
	}
	b.ok("write_file", args{"path": "l", "content": "two\n"})
	if info, err := os.Lstat(filepath.Join(b.dir, "l")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("writing through a link replaced it: %v %v", info, err)
	}
	b.ok("edit_file", args{"path": "abs", "old_string": "two", "new_string": "three"})
	if got := b.read("real/f"); got != "three\n" {
		t.Errorf("real/f = %q", got)
	}
}

// A rule holds for the file, whatever it is called on the way.
func TestRulesHoldForTheRealPath(t *testing.T) {
	b := open(t, tool.Options{}, map[string]string{"secret/key": "k3y\n", "open/a": "fine\n"})
	if err := os.Symlink("../secret", filepath.Join(b.dir, "open/alias")); err != nil {
		t.Fatal(err)
	}
	deny := func(subject string) bool { return !strings.HasPrefix(subject, "secret") }
	for _, p := range []string{"open/alias/key", filepath.Join(b.dir, "secret/key")} {
		for name, a := range map[string]args{
			"read_file":    {"path": p},
			"search_files": {"path": p, "pattern": "."},
			"edit_file":    {"path": p, "old_string": "k3y", "new_string": "x"},
			"write_file":   {"path": p, "content": "x"},
		} {
			in := invocation(t, a)
			in.Permits = deny
			r := b.call(name, in)
			if !r.IsError || !strings.Contains(r.Text, "permission denied") || strings.Contains(r.Text, "k3y") {
				t.Errorf("%s %s: %v %q", name, p, r.IsError, r.Text)
			}
		}
	}
	if got := b.read("secret/key"); got != "k3y\n" {
		t.Errorf("the file is now %q", got)
	}
	// What was judged as written is not asked about again: an approval holds.
	in := invocation(t, args{"path": "open/a"})
	in.Permits = func(string) bool { return false }
	if r := b.call("read_file", in); r.IsError {
		t.Errorf("a path without another name was judged twice: %s", r.Text)
	}
	for name, a := range map[string]args{
		"find_files":   {"pattern": "*"},
		"search_files": {"pattern": "."},
	} {
		in := invocation(t, a)
		in.Permits = deny
		r := b.call(name, in)
		if strings.Contains(r.Text, "secret/key") || !strings.Contains(r.Text, "[1 file left out by permission rules]") {
			t.Errorf("%s: %s", name, r.Text)
		}
	}
}

func TestSpecialFilesAreRefusedWithoutBlocking(t *testing.T) {
	b := open(t, tool.Options{}, map[string]string{"a.txt": "x\n"})
	if err := syscall.Mkfifo(filepath.Join(b.dir, "pipe"), 0o644); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	l, err := net.Listen("unix", filepath.Join(b.dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	special := map[string]string{"pipe": "a named pipe", "sock": "a socket"}
	if err := syscall.Mknod(filepath.Join(b.dir, "zero"), syscall.S_IFCHR|0o644, 1<<8|5); err == nil {
		special["zero"] = "a device"
	}
	watchdog := time.AfterFunc(10*time.Second, func() { panic("a special file made a tool hang") })
	defer watchdog.Stop()
	for name, what := range special {
		b.fails("read_file", args{"path": name}, what)
		b.fails("search_files", args{"path": name, "pattern": "x"}, what)
		b.fails("edit_file", args{"path": name, "old_string": "a", "new_string": "b"}, what)
		b.fails("write_file", args{"path": name, "content": "b"}, what)
	}
	if got := b.ok("search_files", args{"pattern": "x"}); got != "a.txt:1:x" {
		t.Errorf("search over a tree with special files: %q", got)
	}
}

// Someone swaps a directory for a link out of the workspace, again and again,
// while files below it are read and written. Nothing outside may be seen or
// touched at any moment.
func TestSwappedLinkNeverLeadsOut(t *testing.T) {
	outside := t.TempDir()
	put(t, filepath.Join(outside, "f"), "OUTSIDE\n")
	b := open(t, tool.Options{}, map[string]string{"real/f": "inside\n"})
	d := filepath.Join(b.dir, "d")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			target := "real"
			if i%2 == 1 {
				target = outside
			}
			tmp := filepath.Join(b.dir, "tmp-link")
			_ = os.Symlink(target, tmp)
			_ = os.Rename(tmp, d)
		}
	})
	inside, refused := 0, 0
	for deadline := time.Now().Add(500 * time.Millisecond); time.Now().Before(deadline); {
		r := b.run("read_file", args{"path": "d/f"})
		switch {
		case strings.Contains(r.Text, "OUTSIDE"):
			t.Fatal("a read got out through a swapped link")
		case r.IsError:
			refused++
		default:
			inside++
		}
		b.run("write_file", args{"path": "d/f", "content": "inside\n"})
		b.run("write_file", args{"path": "d/new", "content": "x"})
		runtime.Gosched()
	}
	close(stop)
	wg.Wait()
	if inside == 0 || refused == 0 {
		t.Errorf("%d reads inside, %d refused: the race was not run", inside, refused)
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside holds %v (%v)", entries, err)
	}
	if got, _ := os.ReadFile(filepath.Join(outside, "f")); string(got) != "OUTSIDE\n" {
		t.Errorf("the file outside is now %q", got)
	}
}

func TestMountsAreReadOnly(t *testing.T) {
	results := t.TempDir()
	put(t, filepath.Join(results, "t1/full.txt"), "the whole answer\n")
	later := filepath.Join(t.TempDir(), "later")
	b := open(t, tool.Options{Mounts: map[string]string{"/.synapse/results/": results, "/late": later}}, map[string]string{"a.txt": "x\n"})
	if got := b.ok("read_file", args{"path": "/.synapse/results/t1/full.txt"}); got != "1\tthe whole answer" {
		t.Errorf("read: %q", got)
	}
	if got := b.ok("find_files", args{"path": ".synapse/results", "pattern": "*.txt"}); got != ".synapse/results/t1/full.txt" {
		t.Errorf("find: %q", got)
	}
	if got := b.ok("search_files", args{"path": ".synapse/results", "pattern": "whole"}); got != ".synapse/results/t1/full.txt:1:the whole answer" {
		t.Errorf("search: %q", got)
	}
	b.fails("write_file", args{"path": "/.synapse/results/x", "content": "y"}, "only for reading")
	b.fails("edit_file", args{"path": "/.synapse/results/t1/full.txt", "old_string": "whole", "new_string": "half"}, "only for reading")
	b.fails("read_file", args{"path": "/.synapse/results/../../../etc/passwd"}, "out of the workspace")
	b.fails("read_file", args{"path": "late/f"}, "no such file")
	put(t, filepath.Join(later, "f"), "now\n")
	if got := b.ok("read_file", args{"path": "late/f"}); got != "1\tnow" {
		t.Errorf("a mount that came later: %q", got)
	}
}

func TestOpenErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	put(t, file, "")
	for name, open := range map[string]func() (*tool.Workspace, error){
		"missing": func() (*tool.Workspace, error) { return tool.Open(filepath.Join(file, "x"), tool.Options{}) },
		"file":    func() (*tool.Workspace, error) { return tool.Open(file, tool.Options{}) },
		"root mount": func() (*tool.Workspace, error) {
			return tool.Open(t.TempDir(), tool.Options{Mounts: map[string]string{"/": "x"}})
		},
	} {
		if w, err := open(); err == nil {
			w.Close()
			t.Errorf("%s: no error", name)
		} else if !strings.HasPrefix(err.Error(), "open workspace: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClosedWorkspaceFails(t *testing.T) {
	w, err := tool.Open(t.TempDir(), tool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	read := w.Tools()[0]
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := read.Run(context.Background(), invocation(t, args{"path": "/"})); err != nil || !r.IsError {
		t.Errorf("after close: %v, %v", r, err)
	}
}

func TestMalformedArguments(t *testing.T) {
	b := open(t, tool.Options{WebSearch: tool.WebSearch{Kind: tool.WebSearchBrave}}, nil)
	for _, x := range b.Tools() {
		for _, raw := range []string{`[]`, `"x"`, `{`, `{"path":1,"pattern":2,"command":3,"name":4,"todos":5,"patch":6,"url":7,"query":8}`} {
			r, err := x.Run(context.Background(), &synapse.Invocation{Args: json.RawMessage(raw)})
			if err != nil || !r.IsError || !strings.HasPrefix(r.Text, x.Name+": ") {
				t.Errorf("%s %s: %v %v", x.Name, raw, r, err)
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := x.Run(ctx, invocation(t, args{"path": "a", "pattern": "a", "command": "true", "name": "x", "content": "", "todos": []any{}, "patch": "", "url": "", "query": ""})); err == nil {
			t.Errorf("%s started though its context had ended", x.Name)
		}
	}
}
