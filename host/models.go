package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/compile"
	"github.com/synapse-agents/synapse/internal/settings"
	"github.com/synapse-agents/synapse/model/offline"
	"github.com/synapse-agents/synapse/model/remote"
)

// models makes models of references, and finds the main agent's when the user
// names none.
type models struct {
	def  string // Options.DefaultModel
	own  map[string]synapse.Model
	home string                            // "": no file of the user's is read
	now  atomic.Pointer[settings.Settings] // those that prices are read from

	mu     sync.Mutex
	made   map[madeKey]synapse.Model
	local  []remote.Found // servers on loopback, once they were looked for
	probed bool
}

// madeKey tells connections apart: the same provider may get another endpoint
// when settings change.
type madeKey struct{ provider, baseURL, key, rest string }

func newModels(opt Options) *models {
	return &models{def: opt.DefaultModel, own: opt.Models, home: opt.Home, made: map[madeKey]synapse.Model{}}
}

// known reports whether there is a provider of that name.
func (m *models) known(set *settings.Settings, name string) bool {
	if _, ok := m.own[name]; ok || name == offline.Provider {
		return true
	}
	if _, ok := set.Providers[name]; ok {
		return true
	}
	_, ok := remote.Lookup(name)
	return ok
}

// model returns the model of a reference.
func (m *models) model(set *settings.Settings, ref synapse.ModelRef) (synapse.Model, error) {
	if own, ok := m.own[ref.Provider]; ok {
		return own, nil
	}
	if ref.Provider == offline.Provider {
		return offline.New(), nil
	}
	cfg, err := m.config(set, ref.Provider)
	if err != nil {
		return nil, err
	}
	m.now.Store(set)
	m.mu.Lock()
	defer m.mu.Unlock()
	key := madeKey{cfg.Provider, cfg.BaseURL, cfg.APIKey, fmt.Sprint(cfg.Wire, cfg.Cloud)}
	if made, ok := m.made[key]; ok {
		return made, nil
	}
	cfg.Price = func(name string) (remote.Price, bool) {
		return m.price(synapse.ModelRef{Provider: cfg.Provider, Name: name})
	}
	made, err := remote.New(cfg)
	if err != nil {
		return nil, configErrorf("%w", err)
	}
	m.made[key] = made
	return made, nil
}

// config finds out where a provider is and how to ask it.
func (m *models) config(set *settings.Settings, name string) (remote.Config, error) {
	cfg := remote.Config{Provider: name}
	if p, ok := set.Providers[name]; ok {
		cfg.BaseURL = p.V.BaseURL
		if p.V.Kind != "" {
			var err error
			if cfg.Wire, err = remote.ParseWire(p.V.Kind); err != nil {
				return cfg, configErrorf("provider %s: kind (%s): %w", name, p.Origin, err)
			}
		}
		if env := p.V.APIKeyEnv; env != "" {
			secret, ok := set.Secrets.Get(env)
			if !ok {
				return cfg, configErrorf("provider %s: %s is not set; it holds the key (%s)", name, env, p.Origin)
			}
			cfg.APIKey = secret.Reveal()
		}
		return cfg, nil
	}
	row, ok := remote.Lookup(name)
	if !ok {
		return cfg, configErrorf("there is no provider %q: there are %s; further ones are named in the setting providers", name, strings.Join(m.names(set), ", "))
	}
	secret := func(name string) string {
		s, _ := set.Secrets.Get(name)
		return s.Reveal()
	}
	cfg.APIKey, cfg.BaseURL = secret(row.KeyEnv), secret(row.BaseEnv)
	if cfg.APIKey == "" {
		cfg.APIKey = secret(row.KeyAlso)
	}
	switch row.Name {
	case "openai":
		cfg.Headers = map[string]string{}
		for header, env := range map[string]string{"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"} {
			if v := secret(env); v != "" {
				cfg.Headers[header] = v
			}
		}
	case "ollama":
		cfg.APIKey = secret("OLLAMA_API_KEY")
		if cfg.BaseURL != "" {
			cfg.BaseURL = ollamaURL(cfg.BaseURL)
		}
	}
	if row.Local {
		for _, f := range m.found() {
			if f.Provider == row.Name && cfg.BaseURL == "" {
				cfg.BaseURL = f.BaseURL
			}
		}
	}
	var err error
	if cfg.Cloud, err = m.cloud(set, row.Name); err != nil {
		return cfg, configErrorf("provider %s: %w", name, err)
	}
	if cfg.APIKey == "" && cfg.BaseURL == "" && row.BaseURL != "" && row.KeyEnv != "" {
		also := ""
		if row.KeyAlso != "" {
			also = " (nor " + row.KeyAlso + ")"
		}
		return cfg, configErrorf("provider %s: %s is not set%s", name, row.KeyEnv, also)
	}
	return cfg, nil
}

func (m *models) names(set *settings.Settings) []string {
	var names []string
	for _, p := range remote.Providers() {
		names = append(names, p.Name)
	}
	for name := range set.Providers {
		names = append(names, name)
	}
	for name := range m.own {
		names = append(names, name)
	}
	names = append(names, offline.Provider)
	slices.Sort(names)
	return slices.Compact(names)
}

func (m *models) found() []remote.Found {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.local
}

// choose decides the main agent's model and effort: what the user has set, else
// what is configured, else a local server that can call tools, else the rules.
// The rules are never taken when something is configured that doesn't work.
func (m *models) choose(ctx context.Context, set *settings.Settings) (compile.Choice, error) {
	c := compile.Choice{Effort: set.ReasoningEffort.V, EffortOrigin: originOf(set.ReasoningEffort.Origin)}
	if c.Effort == synapse.EffortInherit || c.Effort == "" {
		c.Effort, c.EffortOrigin = "", compile.OriginDefault
	}
	if name := set.Model.V; name != "" {
		ref, err := m.resolve(set, name)
		if err != nil {
			return c, configErrorf("%s: %w", set.Model.Origin, err)
		}
		c.Model, c.ModelOrigin = ref, originOf(set.Model.Origin)
		return c, nil
	}
	if m.def != "" {
		ref, err := m.resolve(set, m.def)
		if err != nil {
			return c, configErrorf("the default model: %w", err)
		}
		c.Model, c.ModelOrigin = ref, "the program"
		return c, nil
	}
	ref, origin, err := m.configured(ctx, set)
	c.Model, c.ModelOrigin = ref, origin
	return c, err
}

// originOf tells what was said on the command line from everything else: a
// definition's own model gives way to a flag alone.
func originOf(o settings.Origin) string {
	if o.Layer == settings.LayerFlag {
		return compile.OriginFlag
	}
	return o.String()
}

// resolve reads "provider:model" or an alias.
func (m *models) resolve(set *settings.Settings, name string) (synapse.ModelRef, error) {
	for range 8 {
		alias, ok := set.ModelAliases[name]
		if !ok {
			break
		}
		name = alias.V
	}
	ref, err := synapse.ParseModelRef(name)
	if err != nil {
		return ref, err
	}
	if !m.known(set, ref.Provider) {
		return ref, fmt.Errorf("model %q: there is no provider %q: there are %s", name, ref.Provider, strings.Join(m.names(set), ", "))
	}
	return ref, nil
}

// configured finds a model when the user names none.
func (m *models) configured(ctx context.Context, set *settings.Settings) (synapse.ModelRef, string, error) {
	if names := slices.Sorted(maps.Keys(m.own)); len(names) > 0 {
		return synapse.ModelRef{Provider: names[0], Name: "default"}, "the program", nil
	}
	for _, p := range remote.Providers() {
		origin, own, ok := m.chosen(set, p)
		if !ok {
			continue
		}
		if own {
			if p.Model == "" {
				return synapse.ModelRef{}, "", configErrorf("%s is set, but no model is named: name one with -m %s:MODEL", origin, p.Name)
			}
			return synapse.ModelRef{Provider: p.Name, Name: p.Model}, origin.String(), nil
		}
		cfg, err := m.config(set, p.Name)
		if err != nil {
			return synapse.ModelRef{}, "", err
		}
		listed, err := listModels(ctx, cfg)
		if err != nil {
			return synapse.ModelRef{}, "", configErrorf("%s is set, but no model is named and the endpoint doesn't list any (%w): name one with -m %s:MODEL", origin, err, p.Name)
		}
		return synapse.ModelRef{Provider: p.Name, Name: listed[0].Name}, origin.String(), nil
	}
	if names := slices.Sorted(maps.Keys(set.Providers)); len(names) > 0 {
		name, p := names[0], set.Providers[names[0]]
		if len(p.V.Models) == 0 {
			return synapse.ModelRef{}, "", configErrorf("provider %s (%s) names no models: add them, or choose one with -m %s:MODEL", name, p.Origin, name)
		}
		return synapse.ModelRef{Provider: name, Name: p.V.Models[0]}, p.Origin.String(), nil
	}
	if set.ProbeLocal.V {
		if found := m.probe(ctx, set); len(found) > 0 {
			return synapse.ModelRef{Provider: found[0].Provider, Name: found[0].Models[0]}, "found at " + found[0].BaseURL, nil
		}
	}
	return synapse.ModelRef{Provider: offline.Provider, Name: offline.Name}, "nothing else is configured", nil
}

// chosen reports whether the environment says that a provider is to be used:
// by its key, or by an address. Own says that it is asked at its own address.
// The variables of a large cloud say nothing: they are there for many programs,
// and models of theirs are named.
func (m *models) chosen(set *settings.Settings, p remote.Provider) (origin settings.Origin, own, ok bool) {
	if p.Local {
		return origin, false, false // what runs here is looked for
	}
	base, hasBase := set.Secrets.Get(p.BaseEnv)
	for _, name := range []string{p.KeyEnv, p.KeyAlso} {
		if key, ok := set.Secrets.Get(name); ok {
			return key.Origin, !hasBase || p.BaseURL == "", true
		}
	}
	if p.Name == "bedrock" || p.Name == "vertex" {
		return origin, false, false
	}
	return base.Origin, p.BaseURL == "", hasBase
}

// probe looks for model servers on this machine, once.
func (m *models) probe(ctx context.Context, set *settings.Settings) []remote.Found {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.probed {
		return m.local
	}
	m.probed = true
	var opt remote.ProbeOptions
	for name, to := range map[string]*string{"OLLAMA_HOST": &opt.Ollama, "LMSTUDIO_BASE_URL": &opt.LMStudio, "LLAMACPP_BASE_URL": &opt.LlamaCpp} {
		if v, ok := set.Secrets.Get(name); ok {
			*to = v.Reveal()
		}
	}
	m.local, _ = remote.Probe(ctx, nil, opt) // an address that can't be asked has no server
	return m.local
}

// ollamaURL makes an API root of what OLLAMA_HOST holds.
func ollamaURL(host string) string {
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	return strings.TrimSuffix(host, "/") + "/v1"
}

// listModels asks an endpoint for the models it has.
func listModels(ctx context.Context, cfg remote.Config) ([]remote.Listed, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	list, err := remote.List(ctx, cfg)
	if err == nil && len(list) == 0 {
		err = errors.New("an empty list")
	}
	return list, err
}
