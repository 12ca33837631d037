package agents_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse/agents"
)

func ls(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestSeed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "agents")
	written, err := agents.Seed(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "researcher.md"), filepath.Join(dir, "tester.md"), filepath.Join(dir, "reviewer.md")}
	if !cmp.Equal(written, want) {
		t.Errorf("wrote %v, want %v", written, want)
	}
	if got := ls(t, dir); !cmp.Equal(got, []string{"researcher.md", "reviewer.md", "tester.md"}) {
		t.Errorf("the directory holds %v", got)
	}
	// What was written is what is built in, and takes its place.
	reg, diags := agents.Merge(agents.Builtin(), agents.LoadDir(dir, agents.LayerUser, agents.LoadOptions{}))
	if len(diags) > 0 {
		t.Errorf("the seeds are not clean: %v", diags)
	}
	builtin, _ := agents.Merge(agents.Builtin())
	for _, name := range agents.Seeds() {
		got, _ := reg.Get(name)
		was, _ := builtin.Get(name)
		if got.Layer != agents.LayerUser {
			t.Errorf("%s is from %s", name, got.Layer)
		}
		if diff := cmp.Diff(was, got, sameContent); diff != "" {
			t.Errorf("%s (-built in +seed):\n%s", name, diff)
		}
	}

	// Nothing is overwritten; what was deleted comes back.
	if err := os.WriteFile(want[1], []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(want[2]); err != nil {
		t.Fatal(err)
	}
	written, err = agents.Seed(dir)
	if err != nil || !cmp.Equal(written, want[2:]) {
		t.Errorf("a second time: wrote %v, %v", written, err)
	}
	if data, _ := os.ReadFile(want[1]); string(data) != "mine" {
		t.Errorf("tester.md was overwritten: %q", data)
	}
	if written, err = agents.Seed(dir); err != nil || len(written) != 0 {
		t.Errorf("a third time: wrote %v, %v", written, err)
	}
}

// A symlink that leads nowhere is somebody's file too.
func TestSeedLeavesDanglingSymlinks(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("nowhere", filepath.Join(dir, "tester.md")); err != nil {
		t.Skipf("no symlinks here: %v", err)
	}
	written, err := agents.Seed(dir)
	if err != nil || len(written) != 2 {
		t.Errorf("wrote %v, %v", written, err)
	}
	if got := ls(t, dir); slices.Contains(got, "nowhere") {
		t.Errorf("the symlink was followed: %v", got)
	}
}

func TestSeedAtOnce(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	count := map[string]int{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			written, err := agents.Seed(dir)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, f := range written {
				count[filepath.Base(f)]++
			}
		})
	}
	wg.Wait()
	if want := map[string]int{"researcher.md": 1, "reviewer.md": 1, "tester.md": 1}; !cmp.Equal(count, want) {
		t.Errorf("written %v", count)
	}
	if got := ls(t, dir); len(got) != 3 {
		t.Errorf("the directory holds %v", got)
	}
}

func TestSeedWhereItCanNot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if written, err := agents.Seed(filepath.Join(file, "agents")); err == nil || !strings.Contains(err.Error(), "seed agents") {
		t.Errorf("wrote %v, %v", written, err)
	}
}
