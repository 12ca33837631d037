package settings_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse/internal/settings"
)

func openStore(m *machine) (*settings.Store, []settings.Warning, error) {
	return settings.NewStore(m.src)
}

func (m *machine) store() *settings.Store {
	m.t.Helper()
	s, _, err := openStore(m)
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

func set(t *testing.T, s *settings.Store, layer settings.Layer, key string, value any) settings.Saved {
	t.Helper()
	saved, err := s.Set(layer, key, value)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

// saveBoth saves a plain key and one inside of a group, and checks that they
// are in force.
func saveBoth(t *testing.T, s *settings.Store) {
	t.Helper()
	set(t, s, settings.LayerUser, "intent", false)
	set(t, s, settings.LayerUser, "limits.spawns", 7)
	if got := s.Settings(); got.Intent.V || got.Limits.Spawns.V != 7 {
		t.Fatalf("intent %v, limits.spawns %v", got.Intent, got.Limits.Spawns)
	}
}

// TestSaveKeepsTheFile changes single values and compares whole files.
func TestSaveKeepsTheFile(t *testing.T) {
	tests := []struct {
		name, before string
		key          string
		value        any
		after        string
	}{
		{"no file", "", "model", "openai:a", "{\n  \"model\": \"openai:a\"\n}\n"},
		{"empty object", "{}", "max_depth", 2, "{\n  \"max_depth\": 2\n}"},
		{"replaced", "{\n    \"x\" : 1 ,\n    \"model\":   \"openai:a\",\n    \"y\": [ ]\n}\n", "model", "openai:b", "{\n    \"x\" : 1 ,\n    \"model\":   \"openai:b\",\n    \"y\": [ ]\n}\n"},
		{"added with the file's indentation", "{\n\t\"x\": 1\n}\n", "limits.tokens", 5, "{\n\t\"x\": 1,\n\t\"limits\": {\n\t\t\"tokens\": 5\n\t}\n}\n"},
		{"added on one line", `{"x": 1}`, "readonly", true, `{"x": 1, "readonly": true}`},
		{"added inside", "{\n  \"limits\": {\n    \"tokens\": 5\n  }\n}", "limits.time", "5m", "{\n  \"limits\": {\n    \"tokens\": 5,\n    \"time\": \"5m\"\n  }\n}"},
		{"null becomes an object", `{"limits": null}`, "limits.tokens", 5, "{\"limits\": {\n    \"tokens\": 5\n  }}"},
		{"an entry with dots and quotes", `{"x": 1}`, `subagent_model_overrides.a."b`, "openai:<x>", "{\"x\": 1, \"subagent_model_overrides\": {\n    \"a.\\\"b\": \"openai:<x>\"\n  }}"},
		{"CRLF", "{\r\n  \"x\": 1\r\n}\r\n", "excluded_tools", []string{"execute", "patch"}, "{\r\n  \"x\": 1,\r\n  \"excluded_tools\": [\"execute\", \"patch\"]\r\n}\r\n"},
		{"a byte order mark", "\xef\xbb\xbf{}", "intent", true, "\xef\xbb\xbf{\n  \"intent\": true\n}"},
		{"removed first", "{\n  \"model\": \"openai:a\",\n  \"x\": 1\n}", "model", nil, "{\n  \"x\": 1\n}"},
		{"removed last", "{\n  \"x\": 1,\n  \"model\": \"openai:a\"\n}", "model", "inherit", "{\n  \"x\": 1\n}"},
		{"removed only", "{\n  \"model\": \"openai:a\"\n}\n", "model", "", "{}\n"},
		{"inherit removes an override", `{"subagent_model_overrides": {"a": "openai:x", "b": "openai:y"}}`, "subagent_model_overrides.a", "inherit", `{"subagent_model_overrides": {"b": "openai:y"}}`},
		{"removed what is not there", `{"x": 1}`, "limits.tokens", nil, `{"x": 1}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine(t)
			if tt.before != "" {
				m.write(userFile, tt.before)
			}
			s := m.store()
			saved := set(t, s, settings.LayerUser, tt.key, tt.value)
			if diff := cmp.Diff(tt.after, m.read(userFile)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if !saved.InForce || saved.HiddenBy != nil || saved.Path != m.path(userFile) || saved.Layer != settings.LayerUser {
				t.Errorf("saved %+v", saved)
			}
			// What the store holds is what a fresh load finds.
			fresh, _ := m.load()
			if diff := cmp.Diff(fresh.Show(), s.Settings().Show()); diff != "" {
				t.Errorf("the store and a load differ:\n%s", diff)
			}
		})
	}
}

func TestSaveRefuses(t *testing.T) {
	m := newMachine(t).write(userFile, `{"limits": {"tokens": 1}}`)
	s := m.store()
	var e *settings.Error
	for _, tt := range []struct {
		key   string
		value any
		says  string
	}{
		{"max_depth", "three", "whole number"},
		{"modle", "openai:x", "model"},
		{"model", "nobody", "model_aliases"},
		{"reasoning_effort", "extreme", "one of off"},
		{"subagent_model_overrides", []string{}, "object"},
		{"limits", map[string]any{"tokens": 1}, "limits"},
		{"permissions", map[string]any{"execute": "perhaps"}, "allow"},
	} {
		_, err := s.Set(settings.LayerUser, tt.key, tt.value)
		if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s = %v: %v, want %q in it", tt.key, tt.value, err, tt.says)
		}
	}
	if _, err := s.Set(settings.LayerFlag, "model", "openai:x"); err == nil {
		t.Error("saved to the flags")
	}
	if _, err := s.Set(settings.LayerUser, "model", func() {}); err == nil {
		t.Error("saved a function")
	}
	if m.read(userFile) != `{"limits": {"tokens": 1}}` {
		t.Errorf("the file became %s", m.read(userFile))
	}
	for _, layer := range []settings.Layer{settings.LayerUser, settings.LayerProject} {
		s, _, err := settings.NewStore(settings.Sources{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Set(layer, "model", "openai:x"); err == nil {
			t.Errorf("saved to %s, which there is not", layer)
		}
	}
}

func TestSaveAfterSomebodyElse(t *testing.T) {
	m := newMachine(t).write(userFile, `{"x": 1}`)
	for _, content := range []string{`{"x": 2}`, `{"x": `} {
		s := m.write(userFile, `{"x": 1}`).store()
		m.write(userFile, content)
		if _, err := s.Set(settings.LayerUser, "intent", false); !errors.Is(err, settings.ErrChanged) {
			t.Errorf("%s: %v, want ErrChanged", content, err)
		}
		if m.read(userFile) != content {
			t.Errorf("%s was written over", content)
		}
	}
	s := m.write(userFile, `{}`).store()
	if err := os.Remove(m.path(userFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Set(settings.LayerUser, "intent", false); !errors.Is(err, settings.ErrChanged) {
		t.Errorf("removed meanwhile: %v, want ErrChanged", err)
	}
	if _, err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	set(t, s, settings.LayerUser, "intent", false)
	// Damaged after the store was opened: reload fails, settings stay.
	m.write(userFile, "{")
	if _, err := s.Reload(); err == nil || s.Settings().Intent.V {
		t.Errorf("reload %v, intent %v", err, s.Settings().Intent)
	}
}

func TestSaveSaysWhatHidesIt(t *testing.T) {
	m := newMachine(t).write(projectFile, "{\"subagent_default_model\": \"openai:p\",\n \"subagent_model_overrides\": {\"tester\": \"openai:p\"}, \"readonly\": true}").env("AGENT_MODEL=openai:e")
	s := m.store()
	for _, tt := range []struct {
		layer settings.Layer
		key   string
		value any
		says  string
	}{
		{settings.LayerUser, "model", "openai:u", "saved model to user settings (~/.synapse/settings.json); it is hidden by environment AGENT_MODEL"},
		{settings.LayerUser, "subagent_default_model", "openai:u", "saved subagent_default_model to user settings (~/.synapse/settings.json); it is hidden by project settings (.synapse/settings.json:1)"},
		{settings.LayerUser, "subagent_model_overrides.tester", "openai:u", "saved subagent_model_overrides.tester to user settings (~/.synapse/settings.json); it is hidden by project settings (.synapse/settings.json:2)"},
		{settings.LayerUser, "subagent_model_overrides.reviewer", "openai:u", "saved subagent_model_overrides.reviewer to user settings (~/.synapse/settings.json)"},
		{settings.LayerUser, "readonly", false, "saved readonly to user settings (~/.synapse/settings.json); it is hidden by project settings (.synapse/settings.json:2)"},
		{settings.LayerUser, "subagent_default_model", nil, "removed subagent_default_model from user settings (~/.synapse/settings.json); it is still set by project settings (.synapse/settings.json:1)"},
		{settings.LayerUser, "excluded_tools", []string{"execute"}, "saved excluded_tools to user settings (~/.synapse/settings.json)"},
		{settings.LayerProject, "excluded_tools", []string{"execute"}, "saved excluded_tools to project settings (.synapse/settings.json)"},
		{settings.LayerProject, "excluded_tools", nil, "removed excluded_tools from project settings (.synapse/settings.json); it is still set by user settings (~/.synapse/settings.json:8)"},
		{settings.LayerProject, "hooks", []string{"x"}, "saved hooks to project settings (.synapse/settings.json); it has no effect: not used, since this workspace is not trusted: hooks on line 2"},
		{settings.LayerProject, "max_depth", 9, "saved max_depth to project settings (.synapse/settings.json); it has no effect: max_depth: 9 has no effect: 3 from default stands, since a workspace only narrows"},
	} {
		saved := set(t, s, tt.layer, tt.key, tt.value)
		if got := saved.String(); got != tt.says {
			t.Errorf("got  %s\nwant %s", got, tt.says)
		}
	}
}

func TestSaveKeepsModeAndLink(t *testing.T) {
	m := newMachine(t).write("dotfiles/settings.json", "{}")
	target := m.path("dotfiles/settings.json")
	if err := errors.Join(os.Chmod(target, 0o640), os.MkdirAll(m.path("home/.synapse"), 0o700), os.Symlink(target, m.path(userFile))); err != nil {
		t.Fatal(err)
	}
	set(t, m.store(), settings.LayerUser, "intent", false)
	if info, err := os.Lstat(m.path(userFile)); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o640 || !strings.Contains(m.read("dotfiles/settings.json"), "intent") {
		t.Errorf("mode %v, %v, content %s", info.Mode(), err, m.read("dotfiles/settings.json"))
	}
	// A new file of the user is the user's alone.
	m = newMachine(t)
	set(t, m.store(), settings.LayerUser, "intent", false)
	if info, err := os.Stat(m.path(userFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// A repository can't have a save to it land in the user's files.
func TestSaveThroughALinkOutOfTheWorkspace(t *testing.T) {
	m := newMachine(t).write("home/other.json", "{}")
	if err := errors.Join(os.MkdirAll(m.path("ws/.synapse"), 0o755), os.Symlink(m.path("home/other.json"), m.path(projectFile))); err != nil {
		t.Fatal(err)
	}
	if _, err := m.store().Set(settings.LayerProject, "intent", false); err == nil || m.read("home/other.json") != "{}" {
		t.Errorf("error %v, the user's file is %s", err, m.read("home/other.json"))
	}
}

func TestSaveInTheHomeDirectory(t *testing.T) {
	m := newMachine(t)
	m.src.Workspace = m.src.Home
	if saved := set(t, m.store(), settings.LayerProject, "max_depth", 9); saved.Layer != settings.LayerUser || !saved.InForce {
		t.Errorf("saved %+v", saved)
	}
}

// TestSaveConcurrently has several stores, as several processes would, save
// into one file; whoever finds it changed reloads. Nothing gets lost.
func TestSaveConcurrently(t *testing.T) {
	m := newMachine(t)
	var wg sync.WaitGroup
	const writers, saves = 4, 5
	for w := range writers {
		wg.Go(func() {
			s, _, err := openStore(m)
			if err != nil {
				t.Error(err)
				return
			}
			for i := range saves {
				for {
					_, err := s.Set(settings.LayerUser, fmt.Sprintf("subagent_model_overrides.a%d-%d", w, i), "openai:x")
					if err == nil {
						break
					}
					if !errors.Is(err, settings.ErrChanged) {
						t.Error(err)
						return
					}
					if _, err := s.Reload(); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	if s, _ := m.load(); len(s.SubagentModelOverrides) != writers*saves {
		t.Errorf("%d of %d saves are there", len(s.SubagentModelOverrides), writers*saves)
	}
}

// saverEnv names the directory in which this test binary, run again, saves
// until it is killed.
const saverEnv = "SETTINGS_TEST_SAVER"

func TestMain(m *testing.M) {
	if root := os.Getenv(saverEnv); root != "" {
		store, _, err := settings.NewStore(settings.Sources{Home: root})
		for i := 0; err == nil; i++ {
			_, err = store.Set(settings.LayerUser, "max_turns", i+1)
			if i == 0 {
				fmt.Println("saving")
			}
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestKilledWhileSaving kills a process that saves all the time: the file is
// always whole, and the next save cleans up.
func TestKilledWhileSaving(t *testing.T) {
	m := newMachine(t)
	m.src = settings.Sources{Home: m.src.Home}
	for round := range 5 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), saverEnv+"="+m.src.Home)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal("the saver did not start:", err)
		}
		time.Sleep(time.Duration(round*3) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed
		s, warnings := m.load()
		if s.MaxTurns.V < 1 || len(warnings) > 0 {
			t.Fatalf("max_turns %v, warnings %v", s.MaxTurns, warnings)
		}
	}
	// What a death between write and rename leaves behind.
	m.write("home/.synapse/.settings.json.123.tmp", `{"max_tu`)
	set(t, m.store(), settings.LayerUser, "max_turns", 1000)
	entries, err := os.ReadDir(filepath.Join(m.src.Home, ".synapse"))
	if err != nil || len(entries) != 1 || entries[0].Name() != "settings.json" {
		t.Errorf("left in the directory: %v, %v", entries, err)
	}
}
