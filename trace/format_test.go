package trace_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/trace"
	"github.com/synapse-agents/synapse/trace/tracetest"
)

// TestSQLiteFormats opens a file of each version of the format there has been.
// The two files of a version in testdata are never written anew: if this test
// fails, it is the program that must change.
func TestSQLiteFormats(t *testing.T) {
	for _, version := range []string{"v1"} {
		t.Run(version, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			rawExec(t, path, string(contents(t, filepath.Join("testdata", version+".sql"))))
			j := openSQLite(t, path, trace.SQLiteOptions{})
			var got bytes.Buffer
			if err := trace.WriteJSONL(&got, j.Events(t.Context(), trace.Query{})); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(contents(t, filepath.Join("testdata", version+".jsonl"))), got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var prompts []string
			for s, err := range j.Traces(t.Context(), trace.TraceQuery{}) {
				if err != nil {
					t.Fatal(err)
				}
				prompts = append(prompts, s.Trace+": "+s.Prompt)
			}
			if diff := cmp.Diff([]string{"talk: Find the bug", "every: "}, prompts); diff != "" {
				t.Errorf("traces (-want +got):\n%s", diff)
			}
			// And it is written to.
			run := tracetest.Run{Trace: "talk", ID: "talk-main", Agent: "main"}
			mustAppend(t, j, run.Event(1000, &synapse.Warning{}))
			if err := j.Check(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
