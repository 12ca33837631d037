package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/internal/settings"
	"github.com/synapse-agents/synapse/model/offline"
	"github.com/synapse-agents/synapse/model/remote"
	"github.com/synapse-agents/synapse/trace"
)

// CheckState says how something is that was looked at.
type CheckState string

// The states of a [Check].
const (
	CheckOK      CheckState = "ok"
	CheckWarning CheckState = "warning" // worth knowing; requests can be run
	CheckFault   CheckState = "fault"   // something that was configured is broken
)

// A Check is one thing that was looked at. No secret is in it.
type Check struct {
	Name   string     `json:"name"`
	State  CheckState `json:"state"`
	Detail string     `json:"detail"`
	Fix    string     `json:"fix,omitempty"` // what to do about it; set unless it is ok
}

// DoctorOptions say how [Examine] looks.
type DoctorOptions struct {
	// Offline asks nobody: neither providers nor servers on this machine.
	Offline bool
	// Timeout is how long an endpoint may take to answer. 0 means 4 s.
	Timeout time.Duration
}

// Examine looks at what has to be right for requests of a host of these options
// to run: settings, trust, definitions, directories, the journal, the shell and
// the models that are configured. Endpoints are asked for their list of models,
// all at once; keys go where they belong, and nothing else leaves the machine.
// What keeps a host from being opened is a check, not an error.
func Examine(ctx context.Context, opt Options, how DoctorOptions) []Check {
	opt.Inspect = true
	if how.Offline {
		opt.Settings = append(slices.Clone(opt.Settings), Setting{Flag: "--offline", Key: "probe_local", Value: "false"})
	}
	if how.Timeout <= 0 {
		how.Timeout = 4 * time.Second
	}
	h, err := Open(ctx, opt)
	if err != nil {
		fix := "correct what the message names; `synapse config show` prints every setting with where it was set"
		if !IsConfig(err) {
			fix = "make what the message names readable"
		}
		checks := []Check{versions(), {"settings", CheckFault, err.Error(), fix}}
		return append(checks, checkJournal(ctx, opt))
	}
	defer h.Close()
	d := doctor{Host: h, a: h.current(), how: how}
	checks := append([]Check{versions()}, d.checkSettings()...)
	checks = append(checks, d.checkTrust(), d.checkDefinitions())
	checks = append(checks, d.checkDirs()...)
	checks = append(checks, checkJournal(ctx, h.opt), d.checkShell())
	return append(checks, d.checkModels(ctx)...)
}

// doctor is one examination.
type doctor struct {
	*Host
	a   *assembly
	how DoctorOptions
}

func versions() Check {
	detail := fmt.Sprintf("%s on %s/%s, %s", runtime.Version(), runtime.GOOS, runtime.GOARCH, trace.Engine())
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == "charm.land/catwalk" {
				detail += ", models and prices of " + dep.Version
			}
		}
	}
	return Check{Name: "versions", State: CheckOK, Detail: detail}
}

// checkModels looks at the main agent's model, at every provider that is
// configured, and at the servers on this machine, all at once.
func (d doctor) checkModels(ctx context.Context) []Check {
	set, m := d.a.settings, d.models
	main := d.a.program.Entry().Model
	type place struct{ name, origin string }
	var places []place
	for _, name := range slices.Sorted(maps.Keys(set.Providers)) {
		places = append(places, place{name, set.Providers[name].Origin.String()})
	}
	for _, row := range remote.Providers() {
		if _, replaced := set.Providers[row.Name]; replaced {
			continue
		}
		if origin, _, ok := m.chosen(set, row); ok {
			places = append(places, place{row.Name, origin.String()})
		} else if row.Name == main.Provider {
			places = append(places, place{row.Name, d.a.input.MainChoice.ModelOrigin})
		}
	}
	checks := make([]Check, 1+len(places))
	lists := make([][]remote.Listed, len(places))
	var wg sync.WaitGroup
	for i, p := range places {
		wg.Go(func() { checks[1+i], lists[i] = d.checkProvider(ctx, p.name, p.origin) })
	}
	local := Check{Name: "local servers", State: CheckOK, Detail: "not looked for: probe_local is off"}
	switch {
	case d.how.Offline:
		local.Detail = "not looked for (--offline)"
	case set.ProbeLocal.V:
		var found []string
		for _, f := range m.probe(ctx, set) {
			found = append(found, fmt.Sprintf("%s at %s, %d models that call tools", f.Provider, f.BaseURL, len(f.Models)))
		}
		if local.Detail = strings.Join(found, "; "); found == nil {
			local.Detail = "none found (Ollama, LM Studio, llama.cpp)"
		}
	}
	wg.Wait()
	var own *Check
	var list []remote.Listed
	if i := slices.IndexFunc(places, func(p place) bool { return p.name == main.Provider }); i >= 0 {
		own, list = &checks[1+i], lists[i]
	}
	checks[0] = d.checkMain(main, own, list)
	return append(checks, local)
}

// checkProvider asks one provider for its models.
func (d doctor) checkProvider(ctx context.Context, name, origin string) (Check, []remote.Listed) {
	c := Check{Name: "provider " + name, State: CheckFault, Detail: "configured by " + origin}
	cfg, err := d.models.config(d.a.settings, name)
	if err == nil {
		_, err = remote.New(cfg)
	}
	if err != nil {
		c.Detail += ": " + err.Error()
		c.Fix = "set what the message names, or take the provider out of the settings"
		return c, nil
	}
	if d.how.Offline {
		c.State, c.Detail = CheckOK, c.Detail+", not asked (--offline)"
		return c, nil
	}
	asked, cancel := context.WithTimeoutCause(ctx, d.how.Timeout, fmt.Errorf("no answer within %s", d.how.Timeout))
	defer cancel()
	start := time.Now()
	list, err := remote.List(asked, cfg)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		c.State, c.Detail = CheckOK, c.Detail+", which keeps no list of models to ask for"
	case err != nil:
		c.State, c.Fix = fixFor(err, name)
		c.Detail += ": " + err.Error()
	default:
		c.State = CheckOK
		c.Detail += fmt.Sprintf(", answered in %d ms with %d models", time.Since(start).Milliseconds(), len(list))
	}
	return c, list
}

// fixFor says how bad a failure of a provider is and what to do about it.
func fixFor(err error, name string) (CheckState, string) {
	row, _ := remote.Lookup(name)
	var typed *synapse.ProviderError
	if !errors.As(err, &typed) {
		return CheckFault, "see whether the address is right and the network is there; --offline asks nobody"
	}
	switch typed.Kind {
	case synapse.ErrorAuth:
		if row.KeyEnv != "" {
			return CheckFault, "put a valid key into " + row.KeyEnv
		}
		return CheckFault, "put a valid key into the variable that api_key_env names"
	case synapse.ErrorRateLimit, synapse.ErrorOverloaded, synapse.ErrorServer:
		return CheckWarning, "the provider is there and busy: try again later, or name fallback_models in the settings"
	case synapse.ErrorNetwork:
		return CheckFault, "see whether the address is right, the network is there and a proxy is needed (HTTPS_PROXY); --offline asks nobody"
	}
	if row.BaseEnv != "" {
		return CheckWarning, "the endpoint answers, but lists no models: see whether " + row.BaseEnv + " is the root of its API"
	}
	return CheckWarning, "the endpoint answers, but lists no models: see whether base_url is the root of its API, such as one that ends in /v1"
}

// checkMain says which model the main agent has, and whether it can be asked.
func (d doctor) checkMain(ref synapse.ModelRef, provider *Check, list []remote.Listed) Check {
	c := Check{Name: "model", State: CheckOK}
	for _, w := range d.a.warnings {
		if w.Code == WarnNoModel {
			c.State, c.Detail = CheckFault, strings.TrimPrefix(w.Message, noModel)
			c.Fix = "name a model with -m provider:model or the setting model; `synapse models` lists them"
			return c
		}
	}
	c.Detail = ref.String() + " (" + d.a.input.MainChoice.ModelOrigin + ")"
	if ref.Provider == offline.Provider {
		c.Detail += ": the embedded rules, not a language model"
		if d.a.settings.Model.V == "" {
			c.Detail += "; set a key such as ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or start Ollama, to have one"
		}
		return c
	}
	if _, err := d.models.model(d.a.settings, ref); err != nil {
		c.State, c.Detail = CheckFault, c.Detail+": "+err.Error()
		c.Fix = "set what the message names, or choose another model with -m"
		return c
	}
	switch {
	case provider == nil:
	case provider.State != CheckOK:
		c.State, c.Detail, c.Fix = provider.State, c.Detail+": see its provider below", provider.Fix
	case len(list) > 0 && !slices.ContainsFunc(list, func(l remote.Listed) bool { return l.Name == ref.Name }):
		c.State, c.Detail = CheckWarning, c.Detail+": its provider does not list it"
		c.Fix = "see whether the name is right: `synapse models " + ref.Provider + "` lists those of the catalogue"
	}
	return c
}

// settingsFix is what to do about a warning of the settings.
func settingsFix(w settings.Warning) string {
	if w.Code == settings.WarnUntrusted {
		return "`synapse trust` if the workspace is yours"
	}
	return "correct or remove what the warning names; `synapse config show` prints where each setting was set"
}
