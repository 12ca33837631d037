package settings_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/synapse-agents/synapse/internal/settings"
)

var update = flag.Bool("update", false, "rewrite the golden parts of testdata")

// A machine is a home, a workspace and an executable's directory on disk.
type machine struct {
	t    *testing.T
	root string
	src  settings.Sources
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, root: root, src: settings.Sources{
		Home: filepath.Join(root, "home"), ExeDir: filepath.Join(root, "exe"), Workspace: filepath.Join(root, "ws"),
	}}
	for _, dir := range []string{m.src.Home, m.src.ExeDir, m.src.Workspace} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// The files of the layers.
const (
	userFile    = "home/.synapse/settings.json"
	exeFile     = "exe/.synapse/settings.json"
	projectFile = "ws/.synapse/settings.json"
	dotenvFile  = "ws/.env"
)

func (m *machine) path(name string) string { return filepath.Join(m.root, filepath.FromSlash(name)) }

func (m *machine) write(name, content string) *machine {
	m.t.Helper()
	path := m.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		m.t.Fatal(err)
	}
	return m
}

func (m *machine) read(name string) string {
	m.t.Helper()
	data, err := os.ReadFile(m.path(name))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(data)
}

func (m *machine) env(kv ...string) *machine {
	m.src.Environ = append(m.src.Environ, kv...)
	return m
}

func (m *machine) flag(flag, key, value string) *machine {
	m.src.Flags = append(m.src.Flags, settings.Override{Flag: flag, Key: key, Value: value})
	return m
}

// trust makes the user trust the workspace.
func (m *machine) trust() *machine {
	m.t.Helper()
	if err := settings.NewTrustFile(m.src.Home, nil).Trust(m.src.Workspace); err != nil {
		m.t.Fatal(err)
	}
	return m
}

func (m *machine) load() (*settings.Settings, []settings.Warning) {
	m.t.Helper()
	s, warnings, err := settings.Load(m.src)
	if err != nil {
		m.t.Fatal(err)
	}
	return s, warnings
}

// short takes the machine's directories out of a text.
func (m *machine) short(text string) string { return strings.ReplaceAll(text, m.root, "$ROOT") }

// show is what a load came to: rows that a layer set, warnings, errors.
func (m *machine) show() string {
	var b strings.Builder
	s, warnings, err := settings.Load(m.src)
	if s != nil {
		for _, r := range s.Show() {
			if r.Origin.Layer != settings.LayerDefault {
				fmt.Fprintf(&b, "%s = %s  <- %s\n", r.Key, r.Text(), r.Origin)
			}
		}
	}
	for _, w := range warnings {
		fmt.Fprintf(&b, "warning %s: %s\n", w.Code, w)
	}
	if err != nil {
		fmt.Fprintf(&b, "error: %s\n", strings.ReplaceAll(err.Error(), "\n", "\nerror: "))
	}
	return m.short(b.String())
}

// TestShow loads the layers of each archive and compares what comes out. The
// files are named as on a machine; besides, "environ" and "flags" (flag key
// value) hold lines, and "trusted" says that the user trusts the workspace.
func TestShow(t *testing.T) {
	archives, err := filepath.Glob("testdata/show/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			m := newMachine(t)
			want := -1
			for i, f := range archive.Files {
				content := strings.ReplaceAll(string(f.Data), "$ROOT", m.root)
				switch f.Name {
				case "environ":
					m.env(strings.Split(strings.TrimSpace(content), "\n")...)
				case "flags":
					for line := range strings.SplitSeq(strings.TrimSpace(content), "\n") {
						parts := strings.SplitN(line, " ", 3)
						m.flag(parts[0], parts[1], parts[2])
					}
				case "trusted":
					m.trust()
				case "want":
					want = i
				default:
					m.write(f.Name, content)
				}
			}
			got := m.show()
			if *update {
				if want < 0 {
					archive.Files = append(archive.Files, txtar.File{Name: "want"})
					want = len(archive.Files) - 1
				}
				archive.Files[want].Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want < 0 {
				t.Fatal(`the archive has no "want"`)
			}
			if diff := cmp.Diff(string(archive.Files[want].Data), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// bad returns the one bad value of a load.
func (m *machine) bad() *settings.Error {
	m.t.Helper()
	s, _, err := settings.Load(m.src)
	var e *settings.Error
	if !errors.As(err, &e) {
		m.t.Fatalf("error %v, want a *settings.Error", err)
	}
	if s != nil {
		m.t.Error("settings came with an error")
	}
	return e
}
