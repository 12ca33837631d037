package host_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/synapse-agents/synapse/host"
	"github.com/synapse-agents/synapse/trace"
)

const notes = "---\nname: notes\ndescription: Use to write notes.\n---\nYou write notes.\n"

// filesBelow lists every file below a directory.
func filesBelow(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestInspect wants a host that is only looked at to need no model and to leave
// nothing behind.
func TestInspect(t *testing.T) {
	p := newPlace(t, map[string]string{"ws/.synapse/agents/notes.md": notes})
	p.opt.Settings = []host.Setting{{Flag: "test", Key: "model", Value: "nobody:x"}}
	if h, err := host.Open(t.Context(), p.opt); err == nil {
		h.Close()
		t.Fatal("a host to run requests opened without a model")
	}
	before := len(filesBelow(t, filepath.Dir(p.home)))
	h := p.open(func(o *host.Options) { o.Inspect = true })
	if _, ok := h.Registry().Get("notes"); !ok {
		t.Error("the workspace's agent is not there")
	}
	e, err := h.Explain("notes")
	if err != nil || e.Model.Value != "" || len(e.Tools.Allowed) == 0 {
		t.Errorf("explained as %+v, %v", e, err)
	}
	if w := strings.Join(h.Warnings(), "\n"); !strings.Contains(w, "no model for the main agent") || !strings.Contains(w, "nobody") {
		t.Errorf("warnings: %q", w)
	}
	if after := filesBelow(t, filepath.Dir(p.home)); len(after) != before {
		t.Errorf("looking at it wrote files: %v", after)
	}
}

func TestLoadRegistry(t *testing.T) {
	p := newPlace(t, map[string]string{
		"ws/.synapse/agents/notes.md":  notes,
		"ws/.synapse/agents/broken.md": "---\nname: broken\n---\nb\n",
		"home/.synapse/settings.json":  `{"disable_builtin_subagents": ["explore"]}`,
		"home/.synapse/disabled.json":  `{"disabled": ["tester"]}`,
	})
	p.opt.Settings = []host.Setting{{Flag: "test", Key: "model", Value: "nobody:x"}}
	r, diags, err := host.LoadRegistry(p.opt)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Get("notes"); !ok {
		t.Error("the workspace's agent is not there")
	}
	if _, ok := r.Get("explore"); ok {
		t.Error("an agent that settings remove is there")
	}
	if d, ok := r.Get("tester"); !ok || !d.Disabled {
		t.Error("an agent that is switched off is on, or gone")
	}
	if len(diags) == 0 || !strings.HasSuffix(diags[0].File, "broken.md") {
		t.Errorf("diagnostics: %v", diags)
	}
	p.write("home/.synapse/settings.json", `{"max_depth": "deep"}`)
	if _, _, err := host.LoadRegistry(p.opt); !host.IsConfig(err) {
		t.Errorf("a damaged file gave %v", err)
	}
	if got := filesBelow(t, p.home); len(got) != 2 {
		t.Errorf("reading wrote files: %v", got)
	}
}

func TestOpenJournal(t *testing.T) {
	p := newPlace(t, nil)
	if _, err := host.OpenJournal(t.Context(), host.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a home: %v", err)
	}
	if _, err := host.OpenJournal(t.Context(), p.opt); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before the first run: %v", err)
	}
	h := p.open()
	for _, err := range h.Run(t.Context(), host.Input{Prompt: "list the files"}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	h.Close()
	// What is wrong with settings does not keep the past from being read.
	p.write("home/.synapse/settings.json", "{")
	j, err := host.OpenJournal(t.Context(), p.opt)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	n := 0
	for s, err := range j.Traces(t.Context(), trace.TraceQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; s.Prompt != "list the files" {
			t.Errorf("prompt %q", s.Prompt)
		}
	}
	if n != 1 {
		t.Errorf("%d traces, want 1", n)
	}
	if _, err := os.Stat(j.Path()); err != nil {
		t.Error(err)
	}
}
