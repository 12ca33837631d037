package settings_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/synapse-agents/synapse/internal/settings"
)

func TestTrustFile(t *testing.T) {
	m := newMachine(t)
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	trust := settings.NewTrustFile(m.src.Home, func() time.Time { return now })
	is := func(dir string, want bool) {
		t.Helper()
		if got, err := trust.Trusted(m.path(dir)); err != nil || got != want {
			t.Errorf("%s trusted: %v, %v; want %v", dir, got, err, want)
		}
	}
	is("ws", false)
	if err := trust.Untrust(m.path("ws")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(trust.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Error("taking back what was never given made a file")
	}
	if err := os.MkdirAll(m.path("ws/sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(m.path("ws"), m.path("link")); err != nil {
		t.Fatal(err)
	}
	if err := trust.Trust(m.path("link")); err != nil {
		t.Fatal(err)
	}
	is("ws", true)
	is("link", true)
	is("ws/sub", false) // somebody else's repository may lie in there
	is("exe", false)
	var file struct {
		Workspaces map[string]struct {
			Trusted bool
			Since   time.Time
		}
	}
	if err := json.Unmarshal([]byte(m.read("home/.synapse/trust.json")), &file); err != nil {
		t.Fatal(err)
	}
	if e := file.Workspaces[m.path("ws")]; !e.Trusted || !e.Since.Equal(now) {
		t.Errorf("file %s", m.read("home/.synapse/trust.json"))
	}
	if info, err := os.Stat(trust.Path()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := trust.Trust(m.path("exe")); err != nil {
		t.Fatal(err)
	}
	if err := trust.Untrust(m.path("ws")); err != nil {
		t.Fatal(err)
	}
	is("ws", false)
	is("exe", true)
}

func TestTrustFileDamaged(t *testing.T) {
	for _, text := range []string{"", "{", `{"workspaces": []}`, `{"workspaces": {"$WS": true}}`, `{"workspaces": {"$WS": {"trusted": "yes"}}}`} {
		m := newMachine(t)
		text = strings.ReplaceAll(text, "$WS", m.path("ws"))
		m.write("home/.synapse/trust.json", text)
		trust := settings.NewTrustFile(m.src.Home, nil)
		yes, err := trust.Trusted(m.src.Workspace)
		var e *settings.Error
		if yes || !errors.As(err, &e) || e.Line != 1 {
			t.Errorf("%s: trusted %v, %v", text, yes, err)
		}
		if e := m.bad(); e.Path != trust.Path() {
			t.Errorf("loading: %v", e)
		}
		if !strings.Contains(text, "trusted") && !strings.Contains(text, "true") {
			if err := trust.Trust(m.src.Workspace); err == nil {
				t.Errorf("%s: written over", text)
			}
			if m.read("home/.synapse/trust.json") != text {
				t.Errorf("%s became %s", text, m.read("home/.synapse/trust.json"))
			}
		}
	}
}

func TestTrustConcurrently(t *testing.T) {
	m := newMachine(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if err := settings.NewTrustFile(m.src.Home, nil).Trust(m.path(fmt.Sprint("dir", i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range 8 {
		if yes, err := settings.NewTrustFile(m.src.Home, nil).Trusted(m.path(fmt.Sprint("dir", i))); !yes || err != nil {
			t.Errorf("dir%d: %v, %v", i, yes, err)
		}
	}
}

func TestTrustWithoutHome(t *testing.T) {
	m := newMachine(t).write(projectFile, `{"hooks": []}`)
	m.src.Home = ""
	if s, warnings := m.load(); s.Trusted || len(s.Hooks) > 0 || len(warnings) != 1 {
		t.Errorf("trusted %v, hooks %v, warnings %v", s.Trusted, s.Hooks, warnings)
	}
	if err := settings.NewTrustFile("", nil).Trust(m.src.Workspace); err == nil {
		t.Error("trusted without a place to keep it")
	}
	m.src.Trust = true
	if s, _ := m.load(); !s.Trusted || len(s.Hooks) != 1 {
		t.Errorf("a program that vouches: trusted %v, hooks %v", s.Trusted, s.Hooks)
	}
}

// A workspace can't make itself trusted, and .env can't move the home.
func TestWorkspaceCannotVouchForItself(t *testing.T) {
	m := newMachine(t).write(projectFile, `{"mcp_servers": {"x": {"command": "x"}}, "trusted": true}`)
	m.write("ws/.synapse/trust.json", fmt.Sprintf(`{"workspaces": {%q: {"trusted": true}}}`, m.path("ws")))
	m.write(dotenvFile, "HOME="+m.path("ws")+"\nXDG_STATE_HOME="+m.path("ws")+"\n")
	if s, _ := m.load(); s.Trusted || len(s.MCPServers) > 0 || strings.HasPrefix(s.StateDir(), m.path("ws")) {
		t.Errorf("trusted %v, servers %v, state %s", s.Trusted, s.MCPServers, s.StateDir())
	}
}

// A binary that was built inside of the workspace has the workspace's settings
// beside it, not the user's.
func TestExecutableInsideTheWorkspace(t *testing.T) {
	m := newMachine(t).write("ws/bin/.synapse/settings.json", `{"hooks": [], "max_depth": 9, "providers": {"x": {}}}`)
	m.src.ExeDir = m.path("ws/bin")
	s, warnings := m.load()
	if len(s.Hooks) > 0 || len(s.Providers) > 0 || s.MaxDepth.V != 3 || len(warnings) != 2 {
		t.Errorf("hooks %v, providers %v, max_depth %v, warnings %v", s.Hooks, s.Providers, s.MaxDepth, warnings)
	}
	m = newMachine(t).write(exeFile, `{"hooks": [], "max_depth": 9}`)
	if s, warnings = m.load(); len(s.Hooks) != 1 || s.MaxDepth.V != 9 || len(warnings) > 0 {
		t.Errorf("hooks %v, max_depth %v, warnings %v", s.Hooks, s.MaxDepth, warnings)
	}
}

// In the home directory the project's file is the user's own.
func TestHomeAsWorkspace(t *testing.T) {
	m := newMachine(t).write(userFile, `{"hooks": [], "max_depth": 9}`)
	m.src.Workspace = m.src.Home
	if s, warnings := m.load(); len(s.Hooks) != 1 || s.MaxDepth.V != 9 || len(warnings) > 0 {
		t.Errorf("hooks %v, max_depth %v, warnings %v", s.Hooks, s.MaxDepth, warnings)
	}
}

// A link inside of the workspace may lead out of it.
func TestUntrustedLinkedDirectory(t *testing.T) {
	m := newMachine(t).write(projectFile, `{"custom_agents_dirs": ["linked", "linked/deeper", "here"]}`)
	if err := os.Symlink(m.path("exe"), m.path("ws/linked")); err != nil {
		t.Fatal(err)
	}
	s, warnings := m.load()
	if len(s.CustomAgentsDirs.V) != 1 || s.CustomAgentsDirs.V[0] != m.path("ws/here") || len(warnings) != 1 {
		t.Errorf("directories %v, warnings %v", s.CustomAgentsDirs.V, warnings)
	}
}

// Even a trusted workspace only narrows.
func TestTrustedWorkspaceNarrows(t *testing.T) {
	m := newMachine(t).trust().write(userFile, `{"readonly": true, "excluded_tools": ["execute"], "limits": {"tokens": 10}, "disable_builtin_subagents": ["tester"], "minimal_filesystem_excluded_tools": ["patch"]}`)
	m.write(projectFile, `{"readonly": false, "excluded_tools": [], "limits": {"tokens": 0}, "disable_builtin_subagents": [], "minimal_filesystem_excluded_tools": [], "max_depth": 99}`)
	s, _ := m.load()
	if !s.ReadOnly.V || len(s.ExcludedTools.Items) != 1 || s.Limits.Tokens.V != 10 || len(s.DisableBuiltinSubagents.Items) != 1 ||
		len(s.MinimalFilesystemExcludedTools.Items) != 1 || s.MaxDepth.V != 3 {
		t.Errorf("widened: %v %v %v %v %v %v", s.ReadOnly, s.ExcludedTools, s.Limits.Tokens, s.DisableBuiltinSubagents, s.MinimalFilesystemExcludedTools, s.MaxDepth)
	}
}

func TestSecretsNeverPrint(t *testing.T) {
	const key = "sk-t0ps3cret"
	m := newMachine(t).env("OPENAI_API_KEY="+key, "MINE="+key).write(userFile, `{"providers": {"mine": {"api_key_env": "MINE"}}}`)
	s, _ := m.load()
	secret, ok := s.Secrets.Get("MINE")
	if !ok || secret.Reveal() != key || secret.Origin.String() != "environment MINE" {
		t.Fatalf("secret %v from %v", ok, secret.Origin)
	}
	var out strings.Builder
	log := slog.New(slog.NewJSONHandler(&out, nil))
	log.Info("x", "secret", secret, "secrets", s.Secrets, "settings", s)
	text := slog.New(slog.NewTextHandler(&out, nil))
	text.Info("x", "secret", secret, "secrets", s.Secrets, "settings", s)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+verb+verb+verb, secret, &secret, s.Secrets, s)
		fmt.Fprintf(&out, verb, []any{secret, map[string]settings.Secret{"a": secret}, struct{ hidden settings.Secret }{secret}})
	}
	for _, v := range []any{secret, s.Secrets, s.Show(), s} {
		data, err := json.Marshal(v)
		if err != nil {
			t.Error(err)
		}
		out.Write(data)
	}
	for _, form := range []string{key, fmt.Sprintf("%x", key)} {
		if strings.Contains(out.String(), form) {
			t.Errorf("the key shows as %s", form)
		}
	}
	if !strings.Contains(out.String(), "[redacted]") {
		t.Error("nothing says that something is left out")
	}
}

// A value that was meant to be a variable's name but is a key stays untold.
func TestBadSecretsAreNotQuoted(t *testing.T) {
	for _, text := range []string{
		`{"web_search": {"api_key_env": "sk-t0ps3cret"}}`, `{"providers": {"x": {"api_key_env": "sk-t0ps3cret"}}}`, `{"providers": {"x": {"base_url": "ftp://u:t0ps3cret@h"}}}`,
		`{"providers": {"x": {"base_url": "u:t0ps3cret@h"}}}`, `{"web_search": {"endpoint": "ws://h?key=t0ps3cret"}}`,
	} {
		if e := newMachine(t).write(userFile, text).bad(); strings.Contains(e.Error(), "t0ps3cret") {
			t.Errorf("%s: %v", text, e)
		}
	}
	m := newMachine(t).write(userFile, `{"providers": {"x": {"api_key": "t0ps3cret"}}, "openai_api_key": "t0ps3cret"}`)
	_, warnings := m.load()
	if len(warnings) != 2 || strings.Contains(fmt.Sprint(warnings), "t0ps3cret") || warnings[0].Code != settings.WarnSecretValue || warnings[1].Code != settings.WarnSecretValue {
		t.Errorf("warnings %v", warnings)
	}
	if e := newMachine(t).env("OPENAI_BASE_URL=u:t0ps3cret@h").bad(); strings.Contains(e.Error(), "t0ps3cret") || e.Var != "OPENAI_BASE_URL" {
		t.Errorf("%v", e)
	}
}

func TestTrustFileList(t *testing.T) {
	m := newMachine(t)
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	trust := settings.NewTrustFile(m.src.Home, func() time.Time { return now })
	if list, err := trust.List(); err != nil || len(list) != 0 {
		t.Errorf("without a file: %v, %v", list, err)
	}
	for _, dir := range []string{"ws", "other", "gone"} {
		if err := os.MkdirAll(m.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := trust.Trust(m.path(dir)); err != nil {
			t.Fatal(err)
		}
	}
	if err := trust.Untrust(m.path("gone")); err != nil {
		t.Fatal(err)
	}
	list, err := trust.List()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range list {
		if !w.Since.Equal(now) {
			t.Errorf("%s: since %v, want %v", w.Path, w.Since, now)
		}
		got = append(got, filepath.Base(w.Path))
	}
	if strings.Join(got, " ") != "other ws" {
		t.Errorf("trusted: %v", got)
	}
	if err := os.WriteFile(trust.Path(), []byte(`{"workspaces": {"/x": 1}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := trust.List(); err == nil {
		t.Error("a damaged entry passed")
	}
}

func TestStateDirWithoutLoading(t *testing.T) {
	for _, tt := range []struct {
		name, home, xdg, want string
	}{
		{"home", "/h", "", "/h/.local/state/synapse"},
		{"xdg", "/h", "/state", "/state/synapse"},
		{"relative xdg", "/h", "state", "/h/.local/state/synapse"},
		{"nothing", "", "", ""},
	} {
		src := settings.Sources{Home: tt.home, Environ: []string{"XDG_STATE_HOME=" + tt.xdg}}
		if got := src.StateDir(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
