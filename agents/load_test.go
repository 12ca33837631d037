package agents_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse/agents"
)

func file(name string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: Does %s.\n---\n\nYou do %s.\n", name, name, name)
}

// tree makes files below a new directory. A value that begins with "-> " is a
// symlink's target, in which ROOT stands for the directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			err = os.Symlink(strings.ReplaceAll(target, "ROOT", root), at)
		} else {
			err = os.WriteFile(at, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// found lists a layer as "path name" and "path severity code", paths relative to
// the root.
func found(layer agents.Layer, root string) (defs, diags []string) {
	rel := func(p string) string { return strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(p, root)), "/") }
	for _, d := range layer.Defs {
		if !d.Broken {
			defs = append(defs, rel(d.Pos.File)+" "+d.Name)
		}
	}
	for _, d := range layer.Diagnostics {
		diags = append(diags, fmt.Sprintf("%s %s %s", rel(d.File), d.Severity, d.Code))
	}
	return defs, diags
}

func TestLoadDir(t *testing.T) {
	elsewhere := tree(t, map[string]string{"secret.md": file("secret"), "dir/x.md": file("x")})
	tests := []struct {
		name  string
		files map[string]string
		opt   agents.LoadOptions
		defs  []string
		diags []string
	}{
		{name: "nothing"},
		{name: "recursive, in byte order", files: map[string]string{
			"b.md": file("b"), "a/z.md": file("z"), "a-b.md": file("ab"), "B.MD": file("upper"), "a/b/c.md": file("c"),
			"notes.txt": "x", "a/schema.json": "{}",
		}, defs: []string{"B.MD upper", "a-b.md ab", "a/b/c.md c", "a/z.md z", "b.md b"}},
		{name: "documentation", files: map[string]string{
			"README.md": "# x", "sub/Readme.zh-CN.md": "# x", "README_EN.md": "# x", "CHANGELOG.md": "# x", "AGENTS.md": "x", "CLAUDE.md": "x", "index.md": "x",
			"agents-expert.md": "x",
		}, diags: []string{
			"AGENTS.md info doc-file", "CHANGELOG.md info doc-file", "CLAUDE.md info doc-file", "README.md info doc-file", "README_EN.md info doc-file",
			"agents-expert.md error no-frontmatter", "index.md info doc-file", "sub/Readme.zh-CN.md info doc-file",
		}},
		{name: "documentation with frontmatter is a definition", files: map[string]string{"index.md": file("index")}, defs: []string{"index.md index"}},
		{name: "hidden", files: map[string]string{
			".draft.md": file("draft"), "._copy.md": "\x00", ".trash/old.md": file("old"), "_kept.md": file("kept"), ".git/x.md": file("git"),
		}, defs: []string{"_kept.md kept"}, diags: []string{"._copy.md info hidden-file", ".draft.md info hidden-file"}},
		{name: "hidden directories when asked for", opt: agents.LoadOptions{Hidden: true}, files: map[string]string{
			".claude/a.md": file("a"), ".git/x.md": file("git"),
		}, defs: []string{".claude/a.md a"}},
		{name: "a bad file never hides another", files: map[string]string{
			"a.md": "nothing", "b.md": file("b"), "c.md": "---\nname: c\n---\nx", "d.md": file("d"),
		}, defs: []string{"b.md b", "d.md d"}, diags: []string{"a.md error no-frontmatter", "c.md error missing-description"}},
		{name: "two files of one stem", files: map[string]string{"x/same.md": file("one"), "y/same.md": file("two")},
			defs: []string{"x/same.md one", "y/same.md two"}},
		{name: "a native file must have a name", files: map[string]string{"stem.md": "---\ndescription: d\n---\nx"},
			diags: []string{"stem.md error missing-name"}},
		{name: "another product's need not", opt: agents.LoadOptions{StemName: true}, files: map[string]string{"stem.agent.md": "---\ndescription: d\n---\nx"},
			defs: []string{"stem.agent.md stem"}, diags: []string{"stem.agent.md warning name-from-file"}},
		{name: "symlinks inside", files: map[string]string{
			"link.md": "-> shared/real.txt", "shared/real.txt": file("real"), "abs.md": "-> ROOT/shared/other.txt", "shared/other.txt": file("other"),
			"dir": "-> store/deep", "store/deep/x.md": file("x"),
		}, defs: []string{"abs.md other", "link.md real", "store/deep/x.md x"}},
		{name: "symlinks to definitions inside", files: map[string]string{
			"link.md": "-> .store/real.md", ".store/real.md": file("real"), "abs.md": "-> ROOT/.store/other.md", ".store/other.md": file("other"),
			"dir": "-> .store/deep", ".store/deep/x.md": file("x"), ".store/deep/more": "-> ../more", ".store/more/y.md": file("y"),
		}, defs: []string{"abs.md other", "dir/more/y.md y", "dir/x.md x", "link.md real"}},
		{name: "a symlink to a file that is read anyway", files: map[string]string{"a.md": "-> z.md", "z.md": file("z")}, defs: []string{"z.md z"}},
		{name: "symlinks that lead out", files: map[string]string{
			"out.md": "-> " + elsewhere + "/secret.md", "outdir": "-> " + elsewhere + "/dir", "up.md": "-> ../../../../../etc/passwd", "in.md": file("in"),
		}, defs: []string{"in.md in"}, diags: []string{
			"out.md error outside-root", "outdir warning outside-root",
		}},
		{name: "loops", files: map[string]string{
			"self.md": "-> self.md", "a/up": "-> ..", "a/x.md": file("x"), "p": "-> q", "q": "-> p",
		}, defs: []string{"a/x.md x"}, diags: []string{"a/up warning symlink-loop", "self.md error symlink-loop"}},
		{name: "a symlink to nothing", files: map[string]string{"gone.md": "-> nowhere.md"}, diags: []string{"gone.md error unreadable"}},
		{name: "a directory with a file's name", files: map[string]string{"agent.md/x.md": file("x")},
			defs: []string{"agent.md/x.md x"}, diags: []string{"agent.md info not-a-file"}},
		{name: "too large", files: map[string]string{"big.md": file("big") + strings.Repeat("x", agents.MaxFileSize)},
			diags: []string{"big.md error too-large"}},
		{name: "as large as may be", files: map[string]string{"big.md": file("big") + strings.Repeat("x", agents.MaxFileSize-len(file("big")))},
			defs: []string{"big.md big"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := tree(t, tt.files)
			layer := agents.LoadDir(root, agents.LayerUser, tt.opt)
			defs, diags := found(layer, root)
			if diags != nil && tt.name == "symlinks that lead out" {
				// Whether ../../../../../etc/passwd exists is the machine's affair.
				diags = slices.DeleteFunc(diags, func(s string) bool { return strings.HasPrefix(s, "up.md error") })
			}
			if diff := cmp.Diff(tt.defs, defs); diff != "" {
				t.Errorf("definitions (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.diags, diags); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s", diff)
			}
			for _, d := range layer.Defs {
				if d.Layer != agents.LayerUser {
					t.Errorf("%s: layer %q", d.Name, d.Layer)
				}
			}
			again := agents.LoadDir(root, agents.LayerUser, tt.opt)
			if diff := cmp.Diff(layer, again); diff != "" {
				t.Errorf("a second time (-first +second):\n%s", diff)
			}
		})
	}
}

func TestLoadDirMissing(t *testing.T) {
	layer := agents.LoadDir(filepath.Join(t.TempDir(), "none"), agents.LayerUser, agents.LoadOptions{})
	if len(layer.Defs)+len(layer.Diagnostics) != 0 {
		t.Errorf("got %+v, want an empty layer", layer)
	}
}

func TestLoadDirOfAFile(t *testing.T) {
	root := tree(t, map[string]string{"agents": "x"})
	layer := agents.LoadDir(filepath.Join(root, "agents"), agents.LayerUser, agents.LoadOptions{})
	if _, diags := found(layer, root); !cmp.Equal(diags, []string{"agents error not-a-file"}) {
		t.Errorf("got %v", layer.Diagnostics)
	}
}

// A pipe in the directory must not make anything wait for a writer.
func TestLoadDirWithPipe(t *testing.T) {
	root := tree(t, map[string]string{"a.md": file("a")})
	if err := syscall.Mkfifo(filepath.Join(root, "pipe.md"), 0o600); err != nil {
		t.Skipf("no pipes here: %v", err)
	}
	defs, diags := found(agents.LoadDir(root, agents.LayerUser, agents.LoadOptions{}), root)
	if !cmp.Equal(defs, []string{"a.md a"}) || !cmp.Equal(diags, []string{"pipe.md error not-a-file"}) {
		t.Errorf("got %v, %v", defs, diags)
	}
}

func TestLoadDirUnreadable(t *testing.T) {
	root := tree(t, map[string]string{"a.md": file("a"), "shut.md": file("shut"), "shut/x.md": file("x")})
	for _, name := range []string{"shut.md", "shut"} {
		if err := os.Chmod(filepath.Join(root, name), 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(filepath.Join(root, name), 0o755) })
	}
	if _, err := os.ReadFile(filepath.Join(root, "shut.md")); err == nil {
		t.Skip("this user reads everything")
	}
	defs, diags := found(agents.LoadDir(root, agents.LayerUser, agents.LoadOptions{}), root)
	if !cmp.Equal(defs, []string{"a.md a"}) || !cmp.Equal(diags, []string{"shut error unreadable", "shut.md error unreadable"}) {
		t.Errorf("got %v, %v", defs, diags)
	}
}

// The agents directory of a workspace that is not trusted must be inside it.
func TestLoadDirWithin(t *testing.T) {
	home := tree(t, map[string]string{"agents/private.md": file("private")})
	work := tree(t, map[string]string{".synapse/agents": "-> " + home + "/agents"})
	dir := filepath.Join(work, ".synapse/agents")
	if layer := agents.LoadDir(dir, agents.LayerProject, agents.LoadOptions{}); len(layer.Defs) != 1 {
		t.Errorf("a root that is a symlink: got %v", layer.Diagnostics)
	}
	layer := agents.LoadDir(dir, agents.LayerProject, agents.LoadOptions{Within: work})
	if len(layer.Defs) != 0 || len(layer.Diagnostics) != 1 || layer.Diagnostics[0].Code != agents.CodeOutsideRoot {
		t.Errorf("within the workspace: got %d definitions, %v", len(layer.Defs), layer.Diagnostics)
	}
}

func TestSchemaFile(t *testing.T) {
	with := func(path string) string {
		return "---\nname: a\ndescription: d\noutput_schema: " + path + "\n---\nx\n"
	}
	root := tree(t, map[string]string{
		"team/a.md": with("a.json"), "team/a.json": `{"type":"object"}`,
		"team/b.md": with("../shared/b.json"), "shared/b.json": "{\n  \"type\": \"array\"\n}",
		"team/c.md": with("../../c.json"), "team/d.md": with("link.json"), "team/link.json": "-> /etc/passwd",
		"team/e.md": with("broken.json"), "team/broken.json": "{\n  \"type\": \n",
		"team/f.md": with("/etc/passwd"), "team/g.md": with("missing.json"), "team/h.md": with("dir"), "team/dir/x": "",
		"team/i.md": with("C:/x.json"),
	})
	layer := agents.LoadDir(root, agents.LayerUser, agents.LoadOptions{})
	want := map[string]string{"a.md": `{"type":"object"}`, "b.md": `{"type":"array"}`}
	for _, d := range layer.Defs {
		if got := string(d.OutputSchema); got != want[filepath.Base(d.Pos.File)] {
			t.Errorf("%s: schema %s", d.Pos.File, got)
		}
		if d.Broken {
			t.Errorf("%s is broken by its schema", d.Pos.File)
		}
	}
	_, diags := found(layer, root)
	var wantDiags []string
	for _, name := range strings.Split("cdefghi", "") {
		wantDiags = append(wantDiags, "team/"+name+".md warning bad-schema")
	}
	if diff := cmp.Diff(wantDiags, diags); diff != "" {
		t.Errorf("diagnostics (-want +got):\n%s", diff)
	}
	for _, d := range layer.Diagnostics {
		if strings.HasSuffix(d.File, "e.md") && !strings.Contains(d.Message, "line 3") {
			t.Errorf("broken schema: no place in %q", d.Message)
		}
	}
}

func TestLoadFile(t *testing.T) {
	root := tree(t, map[string]string{
		"a.md": file("a"), "link.md": "-> a.md", ".dot.md": file("dot"), "loop.md": "-> loop.md", "dir/x.md": file("x"),
		"team.json": `{"agents": {"j": {"description": "d", "system_prompt": "p"}}}`,
	})
	tests := []struct {
		path  string
		defs  []string
		codes string
	}{
		{"a.md", []string{"a"}, ""},
		{"link.md", []string{"a"}, ""},
		{"team.json", []string{"j"}, ""},
		{".dot.md", nil, agents.CodeHiddenFile},
		{"loop.md", nil, agents.CodeSymlinkLoop},
		{"dir", nil, agents.CodeNotAFile},
		{"none.md", nil, agents.CodeUnreadable},
	}
	for _, tt := range tests {
		layer := agents.LoadFile(filepath.Join(root, tt.path), agents.LayerFlag, agents.LoadOptions{})
		var names []string
		for _, d := range layer.Defs {
			if !d.Broken {
				names = append(names, d.Name)
			}
		}
		var codes []string
		for _, d := range layer.Diagnostics {
			codes = append(codes, d.Code)
		}
		if !cmp.Equal(names, tt.defs) || strings.Join(codes, " ") != tt.codes {
			t.Errorf("%s: got %v, %v; want %v, %q", tt.path, names, layer.Diagnostics, tt.defs, tt.codes)
		}
	}
}
