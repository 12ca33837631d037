package host_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/host"
	"github.com/synapse-agents/synapse/model/script"
)

// age makes all that there is look old, so that times tell changes apart.
func (p *place) age() {
	p.t.Helper()
	old := time.Now().Add(-time.Hour)
	err := filepath.WalkDir(filepath.Dir(p.home), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		return os.Chtimes(path, old, old)
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// replace writes a file the way editors do: beside it, then in its place.
func (p *place) replace(name, text string) {
	p.t.Helper()
	p.write(name+".tmp", text)
	file := filepath.Join(filepath.Dir(p.home), filepath.FromSlash(name))
	if err := os.Rename(file+".tmp", file); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) remove(name string) {
	p.t.Helper()
	if err := os.RemoveAll(filepath.Join(filepath.Dir(p.home), filepath.FromSlash(name))); err != nil {
		p.t.Fatal(err)
	}
}

// changes are ways in which people change definitions and settings, in order,
// with what is said of each.
var changes = []struct {
	name string
	make func(p *place)
	want string
}{
	{"an edit in place", func(p *place) {
		p.write("ws/.synapse/agents/a.md", definition("a", "tools: [read_file]\nmax_turns: 5\n"))
	}, "a: max_turns, tools changed"},
	{"a new file in its place", func(p *place) { p.replace("ws/.synapse/agents/a.md", definition("a", "")) }, "a: max_turns, tools changed"},
	{"a folder that was not there", func(p *place) { p.write("ws/.cursor/agents/c.md", definition("c", "")) }, "new agent c"},
	{"a folder below", func(p *place) { p.write("ws/.synapse/agents/x/y/d.md", definition("d", "")) }, "new agent d"},
	{"a file there", func(p *place) { p.replace("ws/.synapse/agents/x/y/d.md", definition("d", "model: inherit\n")) }, "d: model changed"},
	{"the folder goes", func(p *place) { p.remove("ws/.synapse/agents/x") }, "d is gone"},
	{"the user's layer", func(p *place) { p.write("home/.synapse/agents/u.md", definition("u", "")) }, "new agent u"},
	{"settings", func(p *place) { p.write("ws/.synapse/settings.json", `{"max_turns": 7, "readonly": true}`) }, "settings: max_turns 7, readonly true"},
	{"settings in its place", func(p *place) { p.replace("ws/.synapse/settings.json", `{"max_turns": 9}`) }, "settings: max_turns 9, readonly false"},
	{"the switch", func(p *place) { p.write("home/.synapse/disabled.json", `{"disabled": ["u"]}`) }, "u: enabled changed"},
	{"AGENTS.md", func(p *place) { p.write("ws/AGENTS.md", "Be brief.\n") }, "AGENTS.md changed"},
	{"a schema beside a definition", func(p *place) {
		p.write("ws/.synapse/agents/s.json", `{"type": "object"}`)
		p.write("ws/.synapse/agents/s.md", definition("s", "output_schema: s.json\n"))
	}, "new agent s"},
	{"the schema", func(p *place) { p.write("ws/.synapse/agents/s.json", `{"type": "array", "items": {}}`) }, "s: output_schema changed"},
	{"a prompt elsewhere", func(p *place) {
		p.write("ws/prompts/o.txt", "You are o.")
		p.write("ws/opencode.json", `{"agent": {"o": {"description": "d", "prompt": "{file:prompts/o.txt}"}}}`)
	}, "new agent o"},
	{"the prompt", func(p *place) { p.write("ws/prompts/o.txt", "You are another.") }, "o: prompt changed"},
	{"a mistake", func(p *place) { p.write("ws/.synapse/agents/a.md", "---\nname: a\n---\n") }, "a is gone; can't be loaded: WS/.synapse/agents/a.md:1:1: the definition has no description"},
	{"mended", func(p *place) { p.write("ws/.synapse/agents/a.md", definition("a", "")) }, "new agent a"},
	{"a workflow", func(p *place) {
		p.write("ws/.synapse/workflows/w.yaml", "name: w\ndescription: d\nnodes:\n  one: {agent: a, prompt: p}\nedges:\n  - {from: start, to: one}\n  - {from: one, to: end}\n")
	}, "new workflow w"},
	{"nothing that matters", func(p *place) { p.write("ws/main.go", "package main\n") }, ""},
}

func (p *place) said(c host.Change) string {
	return strings.ReplaceAll(c.String(), p.workspace, "WS")
}

// TestUpdate: every change is found when it is asked for, whether anyone watches
// or not, and where there is none nothing is read.
func TestUpdate(t *testing.T) {
	for _, watched := range []bool{false, true} {
		p := newPlace(t, map[string]string{"ws/.synapse/agents/a.md": definition("a", "")})
		p.age()
		h := p.open()
		if watched {
			if _, err := h.Watch(); err != nil {
				t.Fatal(err)
			}
		}
		before := h.Registry()
		if c, err := h.Update(t.Context()); err != nil || !c.Empty() || h.Registry() != before {
			t.Errorf("nothing has changed: %v, %v, read again: %t", c, err, h.Registry() != before)
		}
		for _, step := range changes {
			step.make(p)
			c, err := h.Update(t.Context())
			if got := p.said(c); err != nil || got != step.want {
				t.Errorf("%s (watched: %t): %q, %v, want %q", step.name, watched, got, err, step.want)
			}
		}
	}
}

// TestWatch: what happens is noticed without being asked for, once for many
// changes at a time, and no goroutine is left when the host is closed.
func TestWatch(t *testing.T) {
	p := newPlace(t, map[string]string{"ws/.synapse/agents/a.md": definition("a", "")})
	p.age()
	h := p.open()
	found, err := h.Watch()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := h.Watch(); err != nil || again != found {
		t.Errorf("a second watcher: %v", err)
	}
	for _, step := range changes {
		step.make(p)
		if step.want == "" {
			continue
		}
		got := ""
		for deadline := time.After(20 * time.Second); got == ""; { // what a test before it left may be noticed first
			select {
			case <-found:
			case <-deadline:
				t.Fatalf("%s was not noticed", step.name)
			}
			c, err := h.Update(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got = p.said(c)
		}
		// A step of two files may be seen in the middle.
		if !strings.HasSuffix(got, step.want) && !strings.Contains(step.want, "new agent") {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
	}
	for i := range 40 {
		p.write("ws/.synapse/agents/many.md", definition("many", strings.Repeat("#\n", i)))
	}
	times := 0
	for quiet := time.After(2 * time.Second); ; {
		select {
		case <-found:
			times++
			if _, err := h.Update(t.Context()); err != nil {
				t.Fatal(err)
			}
			continue
		case <-quiet:
		}
		break
	}
	if times == 0 || times > 10 {
		t.Errorf("40 changes at a time were told %d times", times)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	stacks := make([]byte, 1<<20)
	if text := string(stacks[:runtime.Stack(stacks, true)]); strings.Contains(text, "fsnotify") || strings.Contains(text, "host.(*watcher)") {
		t.Errorf("a goroutine is left:\n%s", text)
	}
	if _, err := h.Watch(); err == nil {
		t.Error("a closed host is watched")
	}
}

// TestUpdateInProgress: a request that goes on keeps what it was compiled with;
// the next one has what is new, and is told of it once.
func TestUpdateInProgress(t *testing.T) {
	p := newPlace(t, map[string]string{"ws/.synapse/agents/helper.md": definition("helper", "")})
	p.age()
	var h *host.Host
	m := script.Play(func(n int, req *synapse.Request) script.Turn {
		if strings.Contains(req.System, "You are helper") {
			return script.Turn{Text: "the old one"}
		}
		if strings.Contains(req.System, "You are new") {
			return script.Turn{Text: "the new one"}
		}
		if n > 0 {
			return script.Turn{Text: script.Results(req)}
		}
		p.write("ws/.synapse/agents/helper.md", "---\nname: helper\ndescription: Helps.\n---\nYou are new.\n")
		if strings.Contains(script.FirstUser(req), "one") {
			if _, err := h.Update(t.Context()); err != nil {
				t.Error(err)
			}
		}
		return script.Turn{Calls: []synapse.ToolCall{script.Call("task", map[string]any{"subagent_type": "helper", "description": "d", "prompt": "p"})}}
	})
	h = p.open(scripted(m))
	var told []string
	s := h.NewSession()
	s.OnChange = func(c host.Change) { told = append(told, c.String()) }
	if out, _ := finish(t, s.Send(t.Context(), "one")); !strings.Contains(out.Text, "the old one") {
		t.Errorf("the request in progress was answered by %q", out.Text)
	}
	if out, _ := finish(t, h.NewSession().Send(t.Context(), "two")); !strings.Contains(out.Text, "the new one") {
		t.Errorf("the next one was answered by %q", out.Text)
	}
	p.write("ws/.synapse/agents/other.md", definition("other", ""))
	finish(t, s.Send(t.Context(), "three"))
	finish(t, s.Send(t.Context(), "four"))
	if len(told) != 1 || told[0] != "new agent other" {
		t.Errorf("told %q", told)
	}
}
