package tool_test

import (
	"context"
	"strings"
	"testing"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
	"github.com/synapse-agents/synapse/tool"
)

func TestLibraryTools(t *testing.T) {
	b := open(t, tool.Options{}, files{"a.go": "package a\n", "dir/b.go": "package b\n", "dir/c.txt": "x\n", ".gitignore": "*.log\n", "d.log": "package\n"})
	byName := map[string]synapse.Tool{}
	for _, x := range b.LibraryTools() {
		byName[x.Name] = x
		if x.Effect() != synapse.EffectRead || !x.Parallel || x.Subject.Kind != policy.SubjectPath {
			t.Errorf("%s: effect %s, parallel %v, subject %+v", x.Name, x.Effect(), x.Parallel, x.Subject)
		}
	}
	if len(byName) != 3 {
		t.Fatalf("tools %v", byName)
	}
	for _, x := range b.Tools() {
		if _, ok := byName[x.Name]; ok {
			t.Errorf("%s is among the application's tools too", x.Name)
		}
	}
	for _, test := range []struct {
		tool string
		args args
		want string // "!" in front: an error
	}{
		{"ls", args{}, ".gitignore\na.go\nd.log\ndir/"},
		{"ls", args{"path": "dir"}, "b.go\nc.txt"},
		{"ls", args{"path": "a.go"}, "!ls: a.go is a file of 10 bytes; read_file reads it"},
		{"ls", args{"path": "dri"}, "!ls: dri: no such file or directory; did you mean dir/?"},
		{"ls", args{"path": "../x"}, "!ls: path \"../x\" leads out of the workspace; / is its root"},
		{"glob", args{"pattern": "*.go"}, "a.go\ndir/b.go"},
		{"glob", args{"pattern": "["}, "!glob: pattern \"[\" is no glob: a [ or { is not closed; put a \\ before one that is meant as it is"},
		{"grep", args{"pattern": "package"}, "a.go:1:package a\ndir/b.go:1:package b"},
		{"grep", args{"pattern": "package", "path": "dir", "mode": "files"}, "dir/b.go"},
	} {
		r, err := byName[test.tool].Run(context.Background(), invocation(t, test.args))
		if err != nil {
			t.Fatal(err)
		}
		want, wantError := strings.CutPrefix(test.want, "!")
		if r.IsError != wantError || r.Text != want {
			t.Errorf("%s %v: error %v %q, want %q", test.tool, test.args, r.IsError, r.Text, want)
		}
	}
	in := invocation(t, args{})
	in.Permits = func(s string) bool { return s != "dir" }
	if r, err := byName["ls"].Run(context.Background(), in); err != nil || r.Text != ".gitignore\na.go\nd.log\n[1 left out by permission rules]" {
		t.Errorf("%v %v", r, err)
	}
}
