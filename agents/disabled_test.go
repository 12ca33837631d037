package agents_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse/agents"
)

func TestDisabled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "home", "disabled.json")
	if names, err := agents.ReadDisabled(file); err != nil || len(names) != 0 {
		t.Errorf("no file: %v, %v", names, err)
	}
	if err := agents.WriteDisabled(file, []string{"tester", "潮汐", "a<b", "tester"}); err != nil {
		t.Fatal(err)
	}
	names, err := agents.ReadDisabled(file)
	if want := []string{"a<b", "tester", "潮汐"}; err != nil || !cmp.Equal(names, want) {
		t.Errorf("got %v, %v; want %v", names, err, want)
	}
	if err := agents.WriteDisabled(file, nil); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(file); string(data) != "{\n  \"disabled\": []\n}\n" {
		t.Errorf("the file holds %q", data)
	}
	if got := ls(t, filepath.Dir(file)); !cmp.Equal(got, []string{"disabled.json"}) {
		t.Errorf("left behind: %v", got)
	}
}

func TestDisabledKeepsWhatItDoesNotKnow(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "disabled.json")
	old := `{"note": "<keep> me", "disabled": ["a"], "since": {"b": 1, "a": [2.50, null]}}`
	if err := os.WriteFile(file, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.json")
	if err := os.Symlink("disabled.json", link); err != nil {
		t.Skipf("no symlinks here: %v", err)
	}
	if err := agents.WriteDisabled(link, []string{"b"}); err != nil {
		t.Fatal(err)
	}
	want := `{
  "disabled": [
    "b"
  ],
  "note": "<keep> me",
  "since": {
    "b": 1,
    "a": [
      2.50,
      null
    ]
  }
}
`
	data, err := os.ReadFile(file)
	if diff := cmp.Diff(want, string(data)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the symlink was replaced: %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v, %v", info.Mode(), err)
	}
}

func TestDisabledDamaged(t *testing.T) {
	tests := []struct {
		text      string
		line, col int
	}{
		{"{\n  \"disabled\": [\"a\",]\n}", 2, 20},
		{"", 1, 1},
		{"[\"a\"]", 1, 1},
		{"{\n  \"disabled\": \"a\"\n}", 2, 15},
		{"{\"disabled\": [\n  \"a\",\n  7]}", 3, 3},
		{"{\"disabled\": [], \"disabled\": [\"a\"]}", 1, 18},
		{"{\"disabled\": []} x", 1, 18},
		{"{\"ü\": \"ü\", \"disabled\": 7}", 1, 24},
	}
	for _, tt := range tests {
		file := filepath.Join(t.TempDir(), "disabled.json")
		if err := os.WriteFile(file, []byte(tt.text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := agents.ReadDisabled(file)
		var damaged *agents.DamagedError
		if !errors.As(err, &damaged) || damaged.Line != tt.line || damaged.Column != tt.col || damaged.File != file {
			t.Errorf("%q: %v, want line %d, column %d", tt.text, err, tt.line, tt.col)
		}
		if err := agents.WriteDisabled(file, []string{"b"}); !errors.As(err, &damaged) {
			t.Errorf("%q: written all the same (%v)", tt.text, err)
		}
		if data, _ := os.ReadFile(file); string(data) != tt.text {
			t.Errorf("%q was overwritten with %q", tt.text, data)
		}
	}
}
