package host_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse/model/remote"
)

var update = flag.Bool("update", false, "write the catalogue's files anew")

// TestCatalogFiles: the files say what the module says, and there is one for each
// of our providers that it knows.
func TestCatalogFiles(t *testing.T) {
	all := map[string]catwalk.Provider{}
	for _, p := range embedded.GetAll() {
		all[string(p.ID)] = p
	}
	want := map[string]bool{"NOTICE": true}
	for _, row := range remote.Providers() {
		id := row.Name
		if id == "vertex" {
			id = string(catwalk.InferenceProviderVertexAI)
		}
		p, ok := all[id]
		if !ok || row.Local {
			continue
		}
		name := row.Name + ".json"
		want[name] = true
		file := filepath.Join("catalog", name)
		lines := catalogLines(t, p.Models)
		if *update {
			if err := os.WriteFile(file, lines, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(got, lines) {
			t.Errorf("%s is not up to date (%v); go test ./host -run CatalogFiles -update writes it (-file +module):\n%s", file, err, cmp.Diff(string(got), string(lines)))
		}
	}
	if len(want) < 10 {
		t.Errorf("only %d files: which of our providers does the module know?", len(want))
	}
	files, err := os.ReadDir("catalog")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !want[f.Name()] {
			t.Errorf("catalog/%s belongs to no provider", f.Name())
		}
	}
}

// catalogLines writes models as a file of ours has them, one a line.
func catalogLines(t *testing.T, models []catwalk.Model) []byte {
	var out bytes.Buffer
	out.WriteString("[\n")
	for i, m := range models {
		line, err := json.Marshal(struct {
			ID        string   `json:"id"`
			Name      string   `json:"name"`
			In        float64  `json:"in,omitempty"`
			Out       float64  `json:"out,omitempty"`
			InCached  float64  `json:"in_cached,omitempty"`
			OutCached float64  `json:"out_cached,omitempty"`
			Window    int64    `json:"window,omitempty"`
			MaxOutput int64    `json:"max_output,omitempty"`
			Reasons   bool     `json:"reasons,omitempty"`
			Levels    []string `json:"levels,omitempty"`
		}{m.ID, m.Name, m.CostPer1MIn, m.CostPer1MOut, m.CostPer1MInCached, m.CostPer1MOutCached, m.ContextWindow, m.DefaultMaxTokens, m.CanReason, m.ReasoningLevels})
		if err != nil {
			t.Fatal(err)
		}
		out.Write(line)
		if i < len(models)-1 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
	}
	out.WriteString("]\n")
	return out.Bytes()
}
