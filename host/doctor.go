package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/internal/settings"
	"github.com/synapse-agents/synapse/model/offline"
	"github.com/synapse-agents/synapse/model/remote"
	"github.com/synapse-agents/synapse/trace"
)

// A Check is one thing that was looked at. No secret is in it.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // what to do about it; set when it is not OK
}

// reachTimeout is how long an endpoint may take to show that it is there.
const reachTimeout = 4 * time.Second

// Examine opens a host to look at and examines it. What keeps it from being
// opened is a check that is not OK.
func Examine(ctx context.Context, opt Options) []Check {
	opt.Inspect = true
	h, err := Open(ctx, opt)
	if err != nil {
		fix := "see above"
		if IsConfig(err) {
			fix = "correct what the message names; `synapse config show` prints every setting with where it was set"
		}
		return []Check{versions(), {Name: "settings", Detail: err.Error(), Fix: fix}}
	}
	defer h.Close()
	return h.Doctor(ctx)
}

// Doctor looks at what has to be right for requests to run: settings, trust,
// definitions, directories, the journal, and the models that are configured.
// Endpoints are asked for as little as they can be (a list of models, where
// there is one), all at once and not for long; keys go where they belong, and
// nothing else leaves the machine. It may be used at any time.
func (h *Host) Doctor(ctx context.Context) []Check {
	a := h.current()
	checks := []Check{versions()}
	checks = append(checks, h.checkSettings(a)...)
	checks = append(checks, h.checkTrust(a), h.checkDefinitions(a))
	checks = append(checks, h.checkDirs(a.settings)...)
	checks = append(checks, h.checkJournal(ctx, a.settings), h.checkShell())
	return append(checks, h.checkModels(ctx, a)...)
}

func versions() Check {
	detail := fmt.Sprintf("%s on %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == "charm.land/catwalk" {
				detail += ", models and prices of " + dep.Version
			}
		}
	}
	return Check{Name: "version", OK: true, Detail: detail}
}

func (h *Host) checkSettings(a *assembly) []Check {
	warnings := slices.Clone(h.warnings)
	for _, w := range a.warnings {
		if w.Code != WarnNoModel { // the check of the model says it
			warnings = append(warnings, w.String())
		}
	}
	if len(warnings) == 0 {
		return []Check{{Name: "settings", OK: true, Detail: "read without a warning"}}
	}
	var checks []Check
	for _, w := range warnings {
		checks = append(checks, Check{Name: "settings", Detail: w, Fix: "correct or remove what the warning names; `synapse config show` prints where each setting was set"})
	}
	return checks
}

func (h *Host) checkTrust(a *assembly) Check {
	c := Check{Name: "trust", OK: true, Detail: "the workspace is trusted"}
	if a.settings.Trusted {
		return c
	}
	c.Detail = "the workspace is not trusted: its settings and .env can't name providers, keys, hooks, MCP servers or directories outside it"
	for _, name := range []string{filepath.Join(".synapse", "settings.json"), ".env"} {
		if _, err := os.Lstat(filepath.Join(h.opt.Workspace, name)); err == nil {
			c.Detail += "; it has " + name + " (`synapse trust` if that is yours)"
			break
		}
	}
	return c
}

func (h *Host) checkDefinitions(a *assembly) Check {
	counts := map[agents.Severity]int{}
	for _, d := range a.diagnostics {
		counts[d.Severity]++
	}
	c := Check{Name: "agents", OK: counts[agents.Error] == 0, Detail: fmt.Sprintf("%d agents, %d errors, %d warnings in their definitions", len(a.registry.All()), counts[agents.Error], counts[agents.Warn])}
	if !c.OK {
		c.Fix = "`synapse agents list` names the files and what is wrong with them; `synapse agents validate FILE` checks one"
		for _, d := range a.diagnostics {
			if d.Severity == agents.Error {
				c.Detail += "; the first: " + d.String()
				break
			}
		}
	}
	return c
}

// checkDirs sees whether the directories that this program writes to can be
// written to. What is not there yet is judged by its nearest parent that is.
func (h *Host) checkDirs(set *settings.Settings) []Check {
	places := []struct{ name, dir, fix string }{
		{"workspace", h.opt.Workspace, "choose another one with -w, or give yourself the right to write there; agents that only read don't need it"},
		{"user directory", set.UserDir(), "give yourself the right to write there: chmod u+rwx"},
		{"state directory", set.StateDir(), "give yourself the right to write there, or set XDG_STATE_HOME to another place"},
	}
	var checks []Check
	for _, p := range places {
		c := Check{Name: p.name, OK: true, Detail: p.dir}
		if p.dir == "" {
			c.Detail = "none: nothing is kept between runs"
			checks = append(checks, c)
			continue
		}
		if err := writable(p.dir); err != nil {
			c.OK, c.Detail, c.Fix = false, err.Error(), p.fix
		}
		checks = append(checks, c)
	}
	return checks
}

// writable writes a file that is gone again when it returns.
func writable(dir string) error {
	for {
		info, err := os.Stat(dir)
		if err == nil {
			if !info.IsDir() {
				return fmt.Errorf("%s is not a directory", dir)
			}
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			return err
		}
		dir = filepath.Dir(dir)
	}
	f, err := os.CreateTemp(dir, ".synapse-doctor-*")
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = fmt.Errorf("write in %s: %w", dir, path.Err)
		}
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func (h *Host) checkJournal(ctx context.Context, set *settings.Settings) Check {
	c := Check{Name: "journal", OK: true}
	if set.StateDir() == "" {
		c.Detail = "kept in memory: there is no state directory"
		return c
	}
	file := filepath.Join(set.StateDir(), journalFile)
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		c.Detail = file + ": nothing has been written yet"
		return c
	}
	if err == nil {
		err = openedAndRead(ctx, file)
	}
	if err != nil {
		c.OK, c.Detail = false, fmt.Sprintf("%s: %v", file, err)
		c.Fix = "move the file away to start a new journal, or set XDG_STATE_HOME to another place; with it away, earlier runs can't be shown or resumed"
		return c
	}
	c.Detail = fmt.Sprintf("%s, %.1f MB", file, float64(info.Size())/1e6)
	return c
}

func openedAndRead(ctx context.Context, file string) error {
	j, err := trace.OpenSQLite(ctx, file, trace.SQLiteOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer j.Close()
	for _, err := range j.Traces(ctx, trace.TraceQuery{Limit: 1}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkShell looks for the programs that tools run, in the PATH that they get.
func (h *Host) checkShell() Check {
	c := Check{Name: "programs", OK: true}
	var path string
	for _, v := range h.opt.Environ {
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			path = value
		}
	}
	for _, name := range []string{"sh", "git"} {
		found := ""
		for _, dir := range filepath.SplitList(path) {
			info, err := os.Stat(filepath.Join(dir, name))
			if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && filepath.IsAbs(dir) {
				found = filepath.Join(dir, name)
				break
			}
		}
		if c.Detail != "" {
			c.Detail += ", "
		}
		if found == "" {
			c.Detail += "no " + name
		} else {
			c.Detail += found
		}
		if name == "sh" && found == "" {
			c.OK, c.Fix = false, "the tool execute runs commands with sh: put the directory that holds it into PATH"
		}
	}
	return c
}

// checkModels looks at the main agent's model, at every provider that is
// configured, and at the servers on this machine, all at once.
func (h *Host) checkModels(ctx context.Context, a *assembly) []Check {
	set, m := a.settings, h.models
	var asks []func() Check
	for _, name := range slices.Sorted(maps.Keys(set.Providers)) {
		asks = append(asks, func() Check { return m.checkProvider(ctx, set, name, set.Providers[name].Origin.String()) })
	}
	for _, row := range remote.Providers() {
		if _, replaced := set.Providers[row.Name]; replaced || row.Local {
			continue
		}
		if origin := configuredBy(set, row); origin != "" {
			asks = append(asks, func() Check { return m.checkProvider(ctx, set, row.Name, origin) })
		}
	}
	checks := make([]Check, len(asks)+1)
	var wg sync.WaitGroup
	for i, ask := range asks {
		wg.Go(func() { checks[i+1] = ask() })
	}
	local := Check{Name: "local servers", OK: true, Detail: "not looked for (probe_local is off)"}
	if set.ProbeLocal.V {
		var found []string
		for _, f := range m.probe(ctx, set) {
			found = append(found, fmt.Sprintf("%s at %s with %d models that call tools", f.Provider, f.BaseURL, len(f.Models)))
		}
		if local.Detail = strings.Join(found, ", "); found == nil {
			local.Detail = "none found (Ollama, LM Studio, llama.cpp)"
		}
	}
	wg.Wait()
	checks[0] = h.checkMain(a, checks[1:])
	return append(checks, local)
}

// configuredBy returns which variable configures a provider, "" when none does.
// Keys that are there for other programs as well don't count.
func configuredBy(set *settings.Settings, row remote.Provider) string {
	for _, name := range []string{row.KeyEnv, row.KeyAlso, row.BaseEnv} {
		if v, ok := set.Secrets.Get(name); ok {
			return v.Origin.String()
		}
	}
	return ""
}

func (m *models) checkProvider(ctx context.Context, set *settings.Settings, name, origin string) Check {
	c := Check{Name: "provider " + name, Detail: "configured by " + origin}
	cfg, err := m.config(set, name)
	if err == nil {
		_, err = remote.New(cfg)
	}
	if err != nil {
		c.Detail += ": " + err.Error()
		c.Fix = "set what the message names, or take the provider out of the settings"
		return c
	}
	ctx, cancel := context.WithTimeoutCause(ctx, reachTimeout, errNoAnswer)
	defer cancel()
	start := time.Now()
	if err := remote.Reach(ctx, cfg); err != nil {
		c.Detail += ": " + err.Error()
		c.Fix = fixFor(err, name)
		return c
	}
	c.OK = true
	c.Detail += fmt.Sprintf(", reached in %d ms", time.Since(start).Milliseconds())
	return c
}

// fixFor says what to do about a provider that does not answer as it should.
func fixFor(err error, name string) string {
	row, _ := remote.Lookup(name)
	var typed *synapse.ProviderError
	if !errors.As(err, &typed) {
		return "see whether the address is right and the network is there"
	}
	switch typed.Kind {
	case synapse.ErrorAuth:
		if row.KeyEnv != "" {
			return "put a valid key into " + row.KeyEnv
		}
		return "put a valid key into the variable that api_key_env names"
	case synapse.ErrorRateLimit, synapse.ErrorOverloaded, synapse.ErrorServer:
		return "the provider is there and busy: try again later, or name fallback_models in the settings"
	case synapse.ErrorNetwork:
		return "see whether the address is right, the network is there and a proxy is needed (HTTPS_PROXY)"
	}
	if row.BaseEnv != "" {
		return "see whether " + row.BaseEnv + " is the root of the API, and not a page or another version"
	}
	return "see whether base_url is the root of the API, for example one that ends in /v1"
}

// checkMain says which model the main agent has, and whether it can be asked.
func (h *Host) checkMain(a *assembly, providers []Check) Check {
	c := Check{Name: "model", OK: true}
	for _, w := range a.warnings {
		if w.Code == WarnNoModel {
			c.OK, c.Detail = false, strings.TrimPrefix(w.Message, "no model for the main agent: ")
			c.Fix = "name a model with -m provider:model or the setting model; `synapse models` lists them"
			return c
		}
	}
	ref := a.program.Entry().Model
	c.Detail = ref.String() + " (" + a.input.MainChoice.ModelOrigin + ")"
	switch {
	case ref.Provider == offline.Provider:
		c.Detail += ": the embedded rules, not a language model"
		if a.settings.Model.V == "" {
			c.Detail += "; set a key such as ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or start Ollama, to have one"
		}
	default:
		if _, err := h.models.model(a.settings, ref); err != nil {
			c.OK, c.Detail = false, c.Detail+": "+err.Error()
			c.Fix = "set what the message names, or choose another model with -m"
			return c
		}
		if i := slices.IndexFunc(providers, func(p Check) bool { return p.Name == "provider "+ref.Provider }); i >= 0 && !providers[i].OK {
			c.OK, c.Detail = false, c.Detail+": its provider can't be used"
			c.Fix = providers[i].Fix
		}
	}
	return c
}
