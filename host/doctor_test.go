package host_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/synapse-agents/synapse/host"
)

// offline is a context in which no endpoint is asked for long: it has ended.
func offline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestDoctorOfNothing(t *testing.T) {
	p := newPlace(t, nil)
	h := p.open(quietly)
	for _, c := range h.Doctor(t.Context()) {
		if !c.OK || c.Detail == "" || c.Fix != "" {
			t.Errorf("check %+v: want all well where nothing is configured", c)
		}
	}
	if c := named(t, h.Doctor(t.Context()), "model"); !strings.Contains(c.Detail, "offline:rules") || !strings.Contains(c.Detail, "ANTHROPIC_API_KEY") {
		t.Errorf("check %+v: want the way to a language model", c)
	}
}

func TestDoctorOfProviders(t *testing.T) {
	s := modelServer(t, `"input_tokens":1`)
	for name, tt := range map[string]struct {
		environ []string
		ok      bool
		says    string
		fix     string
	}{
		"reached":   {[]string{"ANTHROPIC_API_KEY=right-key-5678", "ANTHROPIC_BASE_URL=" + s.URL}, true, "reached in", ""},
		"wrong key": {[]string{"ANTHROPIC_API_KEY=wrong-key-1234", "ANTHROPIC_BASE_URL=" + s.URL}, false, "invalid x-api-key", "ANTHROPIC_API_KEY"},
		"nobody":    {[]string{"ANTHROPIC_API_KEY=right-key-5678", "ANTHROPIC_BASE_URL=http://127.0.0.1:1"}, false, "no answer from 127.0.0.1:1", "network"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, nil)
			p.opt.Environ = append(p.opt.Environ, tt.environ...)
			h := p.open(func(o *host.Options) {
				quietly(o)
				o.Settings = append(o.Settings, host.Setting{Flag: "--model", Key: "model", Value: "anthropic:claude-sonnet-4-6"})
			})
			checks := h.Doctor(t.Context())
			provider, model := named(t, checks, "provider anthropic"), named(t, checks, "model")
			if provider.OK != tt.ok || model.OK != tt.ok || !strings.Contains(provider.Detail, tt.says) || !strings.Contains(provider.Fix, tt.fix) || (model.Fix == "") != tt.ok {
				t.Errorf("provider %+v\nmodel %+v", provider, model)
			}
			data, err := json.Marshal(checks)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(data), "key-1234") || strings.Contains(string(data), "key-5678") {
				t.Errorf("a key is shown: %s", data)
			}
		})
	}
}

func TestDoctorOfTheRest(t *testing.T) {
	if os.Getuid() == 0 && runtime.GOOS == "windows" {
		t.Skip("needs a user without every right")
	}
	p := newPlace(t, map[string]string{
		"ws/.synapse/agents/broken.md": "no frontmatter\n",
		"ws/.synapse/settings.json":    `{"providers": {"evil": {"base_url": "http://127.0.0.1:9"}}, "unknown_key": 1}`,
		"home/.synapse/settings.json":  `{"model_aliases": {"a": "offline:rules"}}`,
	})
	p.opt.Environ = append(p.opt.Environ, "XDG_STATE_HOME="+filepath.Join(p.home, "state"))
	h := p.open(func(o *host.Options) { quietly(o); o.Inspect = true })
	checks := h.Doctor(t.Context())
	if c := named(t, checks, "agents"); c.OK || !strings.Contains(c.Detail, "1 errors") || !strings.Contains(c.Detail, "broken.md") || c.Fix == "" {
		t.Errorf("%+v", c)
	}
	if c := named(t, checks, "trust"); !c.OK || !strings.Contains(c.Detail, "synapse trust") {
		t.Errorf("%+v", c)
	}
	if c := named(t, checks, "settings"); c.OK || c.Fix == "" || !strings.Contains(c.Detail, "evil") && !strings.Contains(c.Detail, "unknown_key") {
		t.Errorf("%+v", c)
	}
	// A journal that is none, a state directory that is a file.
	file := filepath.Join(p.home, "state", "synapse", "journal.db")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Repeat("this is not a database ", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	if c := named(t, h.Doctor(t.Context()), "journal"); c.OK || c.Fix == "" || !strings.Contains(c.Detail, file) {
		t.Errorf("%+v", c)
	}
	if err := os.RemoveAll(filepath.Dir(file)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Dir(file), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c := named(t, h.Doctor(t.Context()), "state directory"); c.OK || !strings.Contains(c.Detail, "not a directory") || !strings.Contains(c.Fix, "XDG_STATE_HOME") {
		t.Errorf("%+v", c)
	}
	left, err := filepath.Glob(filepath.Join(p.workspace, ".synapse-doctor-*"))
	if err != nil || left != nil {
		t.Errorf("files left over: %v, %v", left, err)
	}
}

func TestDoctorOfAJournal(t *testing.T) {
	p := newPlace(t, nil)
	p.opt.Environ = append(p.opt.Environ, "XDG_STATE_HOME="+filepath.Join(p.home, "state"))
	h := p.open(quietly)
	finish(t, h.Run(t.Context(), host.Input{Prompt: "What is here?"}))
	if c := named(t, h.Doctor(t.Context()), "journal"); !c.OK || !strings.Contains(c.Detail, "MB") {
		t.Errorf("%+v", c)
	}
}

// What keeps a host from being opened is a check, not an error.
func TestExamine(t *testing.T) {
	p := newPlace(t, map[string]string{"home/.synapse/settings.json": `{"model": `})
	checks := host.Examine(t.Context(), p.opt)
	if c := named(t, checks, "settings"); c.OK || !strings.Contains(c.Detail, "settings.json") || !strings.Contains(c.Fix, "config show") {
		t.Errorf("%+v", c)
	}
	p.write("home/.synapse/settings.json", `{"fallback_models": ["nobody:m"]}`)
	checks = host.Examine(t.Context(), p.opt)
	if c := named(t, checks, "model"); c.OK || !strings.Contains(c.Detail, "fallback_models: entry 1") || c.Fix == "" {
		t.Errorf("%+v", c)
	}
	if c := named(t, checks, "version"); !strings.Contains(c.Detail, runtime.Version()) {
		t.Errorf("%+v", c)
	}
}
