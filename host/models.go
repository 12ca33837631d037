package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/compile"
	"github.com/synapse-agents/synapse/internal/settings"
	"github.com/synapse-agents/synapse/model/offline"
	"github.com/synapse-agents/synapse/model/remote"
)

// defaultModels are the models taken of a provider whose key is all that the
// user has set.
var defaultModels = map[string]string{
	"anthropic": "claude-sonnet-4-5",
	"openai":    "gpt-5",
	"gemini":    "gemini-2.5-pro",
}

// models makes models of references, and finds the main agent's when the user
// names none.
type models struct {
	own map[string]synapse.Model

	mu     sync.Mutex
	made   map[madeKey]synapse.Model
	local  []remote.Found // servers on loopback, once they were looked for
	probed bool
}

// madeKey tells connections apart: the same provider may get another endpoint
// when settings change.
type madeKey struct{ provider, baseURL, key string }

func newModels(opt Options) *models {
	return &models{own: opt.Models, made: map[madeKey]synapse.Model{}}
}

// known reports whether there is a provider of that name.
func (m *models) known(set *settings.Settings, name string) bool {
	if _, ok := m.own[name]; ok || name == offline.Provider {
		return true
	}
	if _, ok := set.Providers[name]; ok {
		return true
	}
	return slices.ContainsFunc(remote.Providers(), func(p remote.Provider) bool { return p.Name == name })
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
	m.mu.Lock()
	defer m.mu.Unlock()
	key := madeKey{cfg.Provider, cfg.BaseURL, cfg.APIKey}
	if made, ok := m.made[key]; ok {
		return made, nil
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
		if env := p.V.APIKeyEnv; env != "" {
			secret, ok := set.Secrets.Get(env)
			if !ok {
				return cfg, configErrorf("provider %s: %s is not set; it holds the key (%s)", name, env, p.Origin)
			}
			cfg.APIKey = secret.Reveal()
		}
		return cfg, nil
	}
	for _, v := range settings.ProviderVars() {
		secret, ok := set.Secrets.Get(v.Name)
		if v.Provider != name || !ok {
			continue
		}
		switch {
		case strings.HasSuffix(v.Name, "_BASE_URL"):
			cfg.BaseURL = secret.Reveal()
		case strings.HasSuffix(v.Name, "_API_KEY"):
			cfg.APIKey = secret.Reveal()
		}
	}
	for _, f := range m.found() {
		if f.Provider == name && cfg.BaseURL == "" {
			cfg.BaseURL = f.BaseURL
		}
	}
	if name == "ollama" && cfg.BaseURL == "" {
		if host, ok := set.Secrets.Get("OLLAMA_HOST"); ok {
			cfg.BaseURL = ollamaURL(host.Reveal())
		}
	}
	i := slices.IndexFunc(remote.Providers(), func(p remote.Provider) bool { return p.Name == name })
	switch {
	case i < 0:
		return cfg, configErrorf("there is no provider %q: there are %s; further ones are named in the setting providers", name, strings.Join(m.names(set), ", "))
	case cfg.APIKey == "" && cfg.BaseURL == "" && remote.Providers()[i].KeyEnv != "":
		return cfg, configErrorf("provider %s: %s is not set", name, remote.Providers()[i].KeyEnv)
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
		key, hasKey := set.Secrets.Get(p.KeyEnv)
		base, hasBase := set.Secrets.Get(strings.TrimSuffix(p.KeyEnv, "_API_KEY") + "_BASE_URL")
		if p.Local || !hasKey && !hasBase {
			continue
		}
		origin := base.Origin
		if hasKey {
			origin = key.Origin
		}
		if name := defaultModels[p.Name]; name != "" && !hasBase {
			return synapse.ModelRef{Provider: p.Name, Name: name}, origin.String(), nil
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
	for _, v := range settings.ProviderVars() {
		if _, ok := set.Secrets.Get(v.Name); ok && v.Secret {
			return synapse.ModelRef{}, "", configErrorf(
				"%s is set, but this version has no provider %s: it speaks to OpenAI-compatible endpoints; choose one with -m openai:MODEL and OPENAI_BASE_URL, or -m %s:%s for the rules",
				v.Name, v.Provider, offline.Provider, offline.Name)
		}
	}
	if set.ProbeLocal.V {
		if found := m.probe(ctx, set); len(found) > 0 {
			return synapse.ModelRef{Provider: found[0].Provider, Name: found[0].Models[0]}, "found at " + found[0].BaseURL, nil
		}
	}
	return synapse.ModelRef{Provider: offline.Provider, Name: offline.Name}, "nothing else is configured", nil
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
