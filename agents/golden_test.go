package agents_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse/agents"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares with a file in testdata, or rewrites it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (run the test with -update to make it)", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// show writes a definition and what is said about it.
func show(t *testing.T, d *agents.Definition, diags []agents.Diagnostic) string {
	t.Helper()
	var b strings.Builder
	switch {
	case d == nil:
		b.WriteString("no definition\n")
	default:
		state := "loads"
		if d.Broken {
			state = "broken"
		}
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s\n", state, text)
		if list := d.ListedTools(); list != nil {
			fmt.Fprintf(&b, "tools: %q\n", list)
		}
	}
	for _, diag := range diags {
		diag.File = ""
		fmt.Fprintln(&b, strings.TrimPrefix(diag.String(), ":"))
	}
	return b.String()
}

// TestFiles reads one small file for each way in which files differ or go
// wrong.
func TestFiles(t *testing.T) {
	entries, err := os.ReadDir("testdata/files")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		if !strings.EqualFold(filepath.Ext(e.Name()), ".md") {
			continue
		}
		layer := agents.LoadFile(filepath.Join("testdata/files", e.Name()), agents.LayerProject, agents.LoadOptions{})
		var d *agents.Definition
		if len(layer.Defs) > 0 {
			d = layer.Defs[0]
		}
		fmt.Fprintf(&b, "-- %s --\n%s\n", e.Name(), show(t, d, layer.Diagnostics))
	}
	golden(t, "files.golden", b.String())
}
