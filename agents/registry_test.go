package agents_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse/agents"
)

// def is a definition for tests of the registry.
func def(name, file string) *agents.Definition {
	return &agents.Definition{Name: name, Pos: agents.Pos{File: file, Line: 1, Column: 1}}
}

func layerOf(kind agents.LayerKind, defs ...*agents.Definition) agents.Layer {
	return agents.Layer{Kind: kind, Name: string(kind), Defs: defs}
}

func names(defs []*agents.Definition) []string {
	var list []string
	for _, d := range defs {
		list = append(list, d.Name)
	}
	return list
}

func TestMerge(t *testing.T) {
	broken := func(name, file string) *agents.Definition {
		d := def(name, file)
		d.Broken, d.Disabled = true, true
		return d
	}
	tests := []struct {
		name    string
		layers  []agents.Layer
		winners map[string]string // name: file
		shadows map[string][]string
		diags   []string // "file code"
	}{
		{name: "nothing", winners: map[string]string{}},
		{
			name: "later replaces earlier",
			layers: []agents.Layer{
				layerOf(agents.LayerBuiltin, def("a", "builtin/a"), def("b", "builtin/b")),
				layerOf(agents.LayerUser, def("a", "user/a")),
				layerOf(agents.LayerProject, def("a", "project/a"), def("c", "project/c")),
			},
			winners: map[string]string{"a": "project/a", "b": "builtin/b", "c": "project/c"},
			shadows: map[string][]string{"a": {"user/a", "builtin/a"}},
		},
		{
			name:    "merging compares names exactly",
			layers:  []agents.Layer{layerOf(agents.LayerUser, def("Rev", "u")), layerOf(agents.LayerProject, def("rev", "p"))},
			winners: map[string]string{"Rev": "u", "rev": "p"},
		},
		{
			name:    "the first path of a layer wins",
			layers:  []agents.Layer{layerOf(agents.LayerUser, def("a", "z.md"), def("a", "b/x.md"), def("a", "B.md"))},
			winners: map[string]string{"a": "B.md"},
			diags:   []string{"b/x.md duplicate-name", "z.md duplicate-name"},
		},
		{
			name: "a duplicate in a higher layer shadows once",
			layers: []agents.Layer{
				layerOf(agents.LayerUser, def("a", "u.md")),
				layerOf(agents.LayerProject, def("a", "p2.md"), def("a", "p1.md")),
			},
			winners: map[string]string{"a": "p1.md"},
			shadows: map[string][]string{"a": {"u.md"}},
			diags:   []string{"p2.md duplicate-name"},
		},
		{
			name: "a broken file that would have shadowed another",
			layers: []agents.Layer{
				layerOf(agents.LayerBuiltin, def("reviewer", "built-in")),
				layerOf(agents.LayerProject, broken("reviewer", "p/reviewer.md")),
			},
			winners: map[string]string{"reviewer": "built-in"},
			diags:   []string{"p/reviewer.md shadow-lost"},
		},
		{
			name: "one whose name can't be read goes by its file's",
			layers: []agents.Layer{
				layerOf(agents.LayerBuiltin, def("reviewer", "built-in")),
				layerOf(agents.LayerProject, broken("", "p/reviewer.md")),
			},
			winners: map[string]string{"reviewer": "built-in"},
			diags:   []string{"p/reviewer.md shadow-lost"},
		},
		{
			name: "a broken file below the winner has lost nothing",
			layers: []agents.Layer{
				layerOf(agents.LayerUser, broken("a", "u.md")),
				layerOf(agents.LayerProject, def("a", "p.md")),
			},
			winners: map[string]string{"a": "p.md"},
		},
		{
			name: "in one layer, a broken file that came first",
			layers: []agents.Layer{
				layerOf(agents.LayerUser, broken("a", "1.md"), def("a", "2.md"), broken("a", "3.md")),
			},
			winners: map[string]string{"a": "2.md"},
			diags:   []string{"1.md shadow-lost"},
		},
		{
			name:    "a broken file that nobody stands in for",
			layers:  []agents.Layer{layerOf(agents.LayerUser, broken("a", "1.md"))},
			winners: map[string]string{},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			reg, diags := agents.Merge(tt.layers...)
			winners, shadows := map[string]string{}, map[string][]string{}
			for _, d := range reg.All() {
				winners[d.Name] = d.Pos.File
				if s := reg.Shadows(d.Name); len(s) > 0 {
					shadows[d.Name] = s
				}
			}
			if diff := cmp.Diff(tt.winners, winners); diff != "" {
				t.Errorf("winners (-want +got):\n%s", diff)
			}
			if len(tt.shadows)+len(shadows) > 0 {
				if diff := cmp.Diff(tt.shadows, shadows); diff != "" {
					t.Errorf("shadows (-want +got):\n%s", diff)
				}
			}
			var got []string
			for _, d := range diags {
				got = append(got, d.File+" "+d.Code)
			}
			if diff := cmp.Diff(tt.diags, got); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s", diff)
			}
		})
	}
}

// A layer's own diagnostics come first, sorted, then those of merging.
func TestMergeKeepsDiagnostics(t *testing.T) {
	layer := layerOf(agents.LayerUser, def("a", "a.md"), def("a", "b.md"))
	layer.Diagnostics = []agents.Diagnostic{{Pos: agents.Pos{File: "z.md"}, Code: "x"}, {Pos: agents.Pos{File: "c.md"}, Code: "y"}}
	_, diags := agents.Merge(layer)
	var got []string
	for _, d := range diags {
		got = append(got, d.File)
	}
	if want := []string{"b.md", "c.md", "z.md"}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if layer.Diagnostics[0].File != "z.md" {
		t.Error("Merge sorted the caller's slice")
	}
}

func TestLookup(t *testing.T) {
	off := def("Off Duty", "off.md")
	off.Disabled = true
	reg, _ := agents.Merge(agents.Builtin(), layerOf(agents.LayerUser,
		def("code-reviewer", "1"), def("Code Reviewer", "2"), def("潮汐", "3"), off, def("3000", "4")))
	tests := []struct {
		name, want string
		err        string // in the error
	}{
		{name: "code-reviewer", want: "code-reviewer"},
		{name: "Code Reviewer", want: "Code Reviewer"},
		{name: "CODE_REVIEWER", err: `could be Code Reviewer or code-reviewer`},
		{name: "General Purpose", want: "general-purpose"},
		{name: "general_purpose", want: "general-purpose"},
		{name: "general", want: "general-purpose"},
		{name: "General", want: "general-purpose"},
		{name: "潮汐", want: "潮汐"},
		{name: "3000", want: "3000"},
		{name: "Off Duty", err: `agent "Off Duty" is disabled; there are`},
		{name: "off-duty", err: `is disabled`},
		{name: "nobody", err: `no agent "nobody"; there are 3000, Code Reviewer,`},
		{name: "", err: `no agent ""`},
		{name: "-", err: `no agent "-"`},
	}
	for _, tt := range tests {
		d, err := reg.Lookup(tt.name)
		var le *agents.LookupError
		switch {
		case tt.err == "" && (err != nil || d.Name != tt.want):
			t.Errorf("Lookup(%q) = %v, %v; want %s", tt.name, d, err, tt.want)
		case tt.err != "" && (d != nil || !errors.As(err, &le) || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("Lookup(%q) = %v, %v; want an error with %q", tt.name, d, err, tt.err)
		}
		if err != nil && slices.Contains(le.Known, "Off Duty") {
			t.Errorf("Lookup(%q): a disabled agent is among those that can be reached", tt.name)
		}
	}
}

func TestFind(t *testing.T) {
	reg, _ := agents.Merge(agents.Builtin())
	defs, err := reg.Find("Tester", "nobody", "explore", "noone")
	if want := []string{"tester", "explore"}; !cmp.Equal(names(defs), want) {
		t.Errorf("found %v, want %v", names(defs), want)
	}
	if err == nil || !strings.Contains(err.Error(), `"nobody"`) || !strings.Contains(err.Error(), `"noone"`) {
		t.Errorf("error %v, want both names in it", err)
	}
}

// A definition that takes the name of an alias is meant by it.
func TestAliasGivesWay(t *testing.T) {
	reg, _ := agents.Merge(agents.Builtin(), layerOf(agents.LayerProject, def("general", "g.md")))
	if d, err := reg.Lookup("general"); err != nil || d.Pos.File != "g.md" {
		t.Errorf("got %v, %v", d, err)
	}
}

func TestWithoutAndDisable(t *testing.T) {
	reg, _ := agents.Merge(agents.Builtin(), layerOf(agents.LayerProject, def("tester", "p/tester.md"), def("mine", "p/mine.md")))
	before := names(reg.All())

	less, missing := reg.Without("tester", "general", "nobody")
	if want := []string{"analyst", "explore", "mine", "researcher", "reviewer"}; !cmp.Equal(names(less.All()), want) {
		t.Errorf("Without: %v, want %v", names(less.All()), want)
	}
	if !cmp.Equal(missing, []string{"nobody"}) {
		t.Errorf("Without: missing %v", missing)
	}
	for _, name := range []string{"tester", "general", "general-purpose"} {
		if d, err := less.Lookup(name); err == nil {
			t.Errorf("Without: %s still reaches %s", name, d.Name)
		}
	}

	off, missing := reg.Disable("general", "mine", "nobody")
	if !cmp.Equal(missing, []string{"nobody"}) || !cmp.Equal(names(off.All()), before) {
		t.Errorf("Disable: missing %v, all %v", missing, names(off.All()))
	}
	for _, name := range []string{"general", "general-purpose", "General Purpose", "mine", "MINE"} {
		if d, err := off.Lookup(name); err == nil {
			t.Errorf("Disable: %s still reaches %s", name, d.Name)
		}
	}
	if d, ok := off.Get("mine"); !ok || !d.Disabled {
		t.Error("Disable: mine is not listed as disabled")
	}
	if got := off.Shadows("tester"); len(got) != 1 {
		t.Errorf("Disable: shadows of tester: %v", got)
	}
	// The registry it was made from is as it was.
	if d, err := reg.Lookup("mine"); err != nil || d.Disabled || !cmp.Equal(names(reg.All()), before) {
		t.Errorf("the first registry has changed: %v, %v", d, err)
	}
}

func TestRegistryIsSafeForConcurrentUse(t *testing.T) {
	reg, _ := agents.Merge(agents.Builtin())
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 100 {
				reg.Lookup("Tester")
				reg.All()
				next, _ := reg.Disable("tester")
				if _, err := next.Lookup("tester"); err == nil {
					t.Errorf("goroutine %d: reached a disabled agent", i)
				}
			}
		})
	}
	wg.Wait()
}

func TestBuiltin(t *testing.T) {
	layer := agents.Builtin()
	if len(layer.Diagnostics) > 0 {
		t.Errorf("the presets are not clean: %v", layer.Diagnostics)
	}
	var b strings.Builder
	for _, d := range layer.Defs {
		if len(d.Prompt) > 900 {
			t.Errorf("%s: the prompt has %d bytes", d.Name, len(d.Prompt))
		}
		if d.Model != "" {
			t.Errorf("%s names a model, which would silence the environment", d.Name)
		}
		temperature := "unset"
		if d.Temperature != nil {
			temperature = fmt.Sprint(*d.Temperature)
		}
		fmt.Fprintf(&b, "%s: mode %s, tools %s %v, denied %v, turns %d, temperature %s, spawns %t, ownership %s\n",
			d.Name, d.Mode, d.Tools.Mode, d.Tools.Names, d.DisallowedTools, d.MaxTurns, temperature, d.CanSpawn, d.Ownership)
	}
	want := `analyst: mode all, tools exact [read_file find_files search_files web_search fetch_url], denied [], turns 25, temperature 0.3, spawns false, ownership task
explore: mode all, tools exact [read_file find_files search_files ls glob grep], denied [], turns 15, temperature unset, spawns false, ownership task
general-purpose: mode all, tools exact [*], denied [], turns 30, temperature unset, spawns false, ownership task
researcher: mode all, tools inherit [], denied [write_file edit_file patch execute], turns 0, temperature unset, spawns false, ownership task
reviewer: mode all, tools inherit [], denied [write_file edit_file patch], turns 0, temperature unset, spawns false, ownership task
tester: mode all, tools inherit [], denied [], turns 0, temperature unset, spawns false, ownership task
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("presets (-want +got):\n%s", diff)
	}
}

// From files to a registry, as a program does it.
func TestLayersOfFiles(t *testing.T) {
	root := tree(t, map[string]string{
		"home/agents/tester.md":    file("tester"),
		"home/agents/mine.md":      file("mine"),
		"work/agents/sub/deep.md":  file("tester"),
		"work/agents/reviewer.md":  "---\nname: reviewer\ndescription: d\ntools: {bad: value}\n---\nx\n",
		"work/agents/broken.md":    "no frontmatter",
		"work/subagents/team.json": `{"agents": {"mine": {"description": "d", "system_prompt": "p"}}}`,
	})
	at := func(p string) string { return filepath.Join(root, p) }
	reg, diags := agents.Merge(
		agents.Builtin(),
		agents.LoadDir(at("home/agents"), agents.LayerUser, agents.LoadOptions{}),
		agents.LoadDir(at("work/agents"), agents.LayerProject, agents.LoadOptions{}),
		agents.LoadFile(at("work/subagents/team.json"), agents.LayerCustomJSON, agents.LoadOptions{}),
	)
	if d, _ := reg.Get("tester"); d.Layer != agents.LayerProject {
		t.Errorf("tester is from layer %s", d.Layer)
	}
	if got, want := reg.Shadows("tester"), []string{at("home/agents/tester.md"), "built-in:tester.md"}; !cmp.Equal(got, want) {
		t.Errorf("tester shadows %v, want %v", got, want)
	}
	if d, _ := reg.Get("mine"); d.Layer != agents.LayerCustomJSON || d.Pos.Line != 1 {
		t.Errorf("mine is %+v", d)
	}
	var codes []string
	for _, d := range diags {
		codes = append(codes, filepath.Base(d.File)+" "+d.Code)
	}
	want := []string{"broken.md no-frontmatter", "reviewer.md bad-restriction", "reviewer.md shadow-lost"}
	if !cmp.Equal(codes, want) {
		t.Errorf("got %v, want %v", codes, want)
	}
}
