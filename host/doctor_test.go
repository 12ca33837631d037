package host_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/synapse-agents/synapse/host"
)

func named(t *testing.T, checks []host.Check, name string) host.Check {
	t.Helper()
	for _, c := range checks {
		if (c.State == host.CheckOK) != (c.Fix == "") || c.Detail == "" {
			t.Errorf("%+v: want something said, and a way out unless it is ok", c)
		}
	}
	for _, c := range checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q among %+v", name, checks)
	return host.Check{}
}

// quietly keeps a host from looking for servers on this machine.
func quietly(o *host.Options) {
	o.Settings = []host.Setting{{Flag: "test", Key: "probe_local", Value: "false"}}
}

func TestDoctorOfNothing(t *testing.T) {
	p := newPlace(t, nil)
	quietly(&p.opt)
	checks := host.Examine(t.Context(), p.opt, host.DoctorOptions{})
	for _, c := range checks {
		if c.State != host.CheckOK {
			t.Errorf("%+v: want all well where nothing is configured", c)
		}
	}
	if c := named(t, checks, "model"); !strings.Contains(c.Detail, "offline:rules") || !strings.Contains(c.Detail, "ANTHROPIC_API_KEY") {
		t.Errorf("%+v: want the way to a language model", c)
	}
}

func TestDoctorOfProviders(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch key := r.Header.Get("Authorization"); {
		case strings.Contains(key, "slow"):
			<-r.Context().Done()
		case strings.Contains(key, "busy"):
			w.WriteHeader(http.StatusServiceUnavailable)
		case !strings.Contains(key, "right"):
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":{"message":"no such key"}}`)
		default:
			fmt.Fprint(w, `{"object":"list","data":[{"id":"served"}]}`)
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	tests := []struct {
		name, key, base, model string
		offline                bool
		provider, main         host.CheckState
		says, fix              string
	}{
		{"reached", "right-5678", s.URL, "served", false, host.CheckOK, host.CheckOK, "with 1 models", ""},
		{"no such model", "right-5678", s.URL, "gone", false, host.CheckOK, host.CheckWarning, "with 1 models", ""},
		{"wrong key", "wrong-5678", s.URL, "served", false, host.CheckFault, host.CheckFault, "no such key", "OPENAI_API_KEY"},
		{"busy", "busy-5678", s.URL, "served", false, host.CheckWarning, host.CheckWarning, "503", "try again"},
		{"silent", "slow-5678", s.URL, "served", false, host.CheckFault, host.CheckFault, "no answer within", "network"},
		{"nobody", "right-5678", "http://127.0.0.1:1", "served", false, host.CheckFault, host.CheckFault, "127.0.0.1:1", "network"},
		{"not asked", "wrong-5678", s.URL, "served", true, host.CheckOK, host.CheckOK, "not asked", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t, nil)
			quietly(&p.opt)
			p.opt.Settings = append(p.opt.Settings, host.Setting{Flag: "--model", Key: "model", Value: "openai:" + tt.model})
			p.opt.Environ = append(p.opt.Environ, "OPENAI_API_KEY="+tt.key, "OPENAI_BASE_URL="+tt.base)
			checks := host.Examine(t.Context(), p.opt, host.DoctorOptions{Offline: tt.offline, Timeout: 500 * time.Millisecond})
			provider, main := named(t, checks, "provider openai"), named(t, checks, "model")
			if provider.State != tt.provider || main.State != tt.main || !strings.Contains(provider.Detail, tt.says) || !strings.Contains(provider.Fix, tt.fix) {
				t.Errorf("provider %+v\nmodel %+v", provider, main)
			}
			if data, err := json.Marshal(checks); err != nil || strings.Contains(string(data), "5678") {
				t.Errorf("a key is shown, or %v: %s", err, data)
			}
		})
	}
}

func TestDoctorOfTheRest(t *testing.T) {
	p := newPlace(t, map[string]string{
		"ws/.synapse/agents/broken.md": "no frontmatter\n",
		"ws/.synapse/settings.json":    `{"providers": {"evil": {"base_url": "http://127.0.0.1:9"}}, "unknown_key": 1}`,
	})
	quietly(&p.opt)
	p.opt.Environ = append(p.opt.Environ, "XDG_STATE_HOME="+filepath.Join(p.home, "state"))
	look := func() []host.Check { return host.Examine(t.Context(), p.opt, host.DoctorOptions{}) }
	checks := look()
	if c := named(t, checks, "agents"); c.State != host.CheckWarning || !strings.Contains(c.Detail, "broken.md") {
		t.Errorf("%+v", c)
	}
	if c := named(t, checks, "trust"); !strings.Contains(c.Detail, "synapse trust") {
		t.Errorf("%+v", c)
	}
	said := ""
	for _, c := range checks {
		if c.Name == "settings" && c.State == host.CheckWarning {
			said += c.Detail + "\n" + c.Fix + "\n"
		}
	}
	for _, want := range []string{"evil", "unknown_key", "synapse trust", "config show"} {
		if !strings.Contains(said, want) {
			t.Errorf("settings say %q: want %q", said, want)
		}
	}
	// A journal that is none, then a state directory that is a file.
	file := filepath.Join(p.home, "state", "synapse", "journal.db")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Repeat("this is not a database ", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	if c := named(t, look(), "journal"); c.State != host.CheckFault || !strings.Contains(c.Detail, file) {
		t.Errorf("%+v", c)
	}
	if err := os.RemoveAll(filepath.Dir(file)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Dir(file), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c := named(t, look(), "state directory"); c.State != host.CheckFault || !strings.Contains(c.Detail, "not a directory") || !strings.Contains(c.Fix, "XDG_STATE_HOME") {
		t.Errorf("%+v", c)
	}
	if left, err := filepath.Glob(filepath.Join(p.workspace, ".synapse-doctor-*")); err != nil || left != nil {
		t.Errorf("files left over: %v, %v", left, err)
	}
}

func TestDoctorOfAJournal(t *testing.T) {
	p := newPlace(t, nil)
	quietly(&p.opt)
	p.opt.Environ = append(p.opt.Environ, "XDG_STATE_HOME="+filepath.Join(p.home, "state"))
	h := p.open()
	finish(t, h.Run(t.Context(), host.Input{Prompt: "What is here?"}))
	if c := named(t, host.Examine(t.Context(), p.opt, host.DoctorOptions{}), "journal"); c.State != host.CheckOK || !strings.Contains(c.Detail, "read whole") {
		t.Errorf("%+v", c)
	}
}

// What keeps a host from being opened is a check, not an error.
func TestDoctorOfSettings(t *testing.T) {
	p := newPlace(t, map[string]string{"home/.synapse/settings.json": `{"model": `})
	if c := named(t, host.Examine(t.Context(), p.opt, host.DoctorOptions{}), "settings"); c.State != host.CheckFault || !strings.Contains(c.Detail, "settings.json") {
		t.Errorf("%+v", c)
	}
	p.write("home/.synapse/settings.json", `{"model": "nobody:m"}`)
	quietly(&p.opt)
	if c := named(t, host.Examine(t.Context(), p.opt, host.DoctorOptions{}), "model"); c.State != host.CheckFault || !strings.Contains(c.Detail, "nobody") {
		t.Errorf("%+v", c)
	}
}
