package host

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/internal/settings"
	"github.com/synapse-agents/synapse/model/offline"
	"github.com/synapse-agents/synapse/model/remote"
)

// ModelInfo is one model that could be asked, and what is known of it. A zero
// number and a nil price are unknown.
type ModelInfo struct {
	Ref      synapse.ModelRef `json:"ref"`
	Provider string           `json:"provider"`
	Name     string           `json:"name"` // for people
	// Window is how many tokens a conversation may have, MaxOutput how many a
	// reply.
	Window    int64 `json:"window,omitempty"`
	MaxOutput int64 `json:"max_output,omitempty"`
	// Prices are in US dollars for a million tokens.
	InputPrice  *float64 `json:"input_price"`
	OutputPrice *float64 `json:"output_price"`
	// Efforts are the reasoning efforts that make a difference. None: the model
	// does not reason, or nothing is known of it.
	Efforts []synapse.Effort `json:"efforts,omitempty"`
	// KeyEnv is the variable that holds the provider's key, KeySet whether
	// everything is there that asking the model takes.
	KeyEnv string `json:"key_env,omitempty"`
	KeySet bool   `json:"key_set"`
	// Default is set for the model that the main agent has.
	Default bool   `json:"default,omitempty"`
	Source  string `json:"source"`
}

// The sources of a ModelInfo.
const (
	SourceCatalogue = "catalogue"    // the embedded list of models and prices
	SourceSettings  = "settings"     // the setting providers
	SourceLocal     = "local server" // a server on this machine said so
	SourceProgram   = "the program"  // Options.Models
	SourceEmbedded  = "embedded"     // the rules
	SourceChosen    = "chosen"       // the user named it; nothing more is known
)

// Models lists the models that there are: those that can be asked at once
// first, the catalogue's after them by provider and as the catalogue has them.
// Nothing is asked but servers on this machine, and those only if the setting
// probe_local says so.
func (h *Host) Models(ctx context.Context) []ModelInfo {
	set := h.current().settings
	m := h.models
	var all []ModelInfo
	for _, name := range slices.Sorted(maps.Keys(m.own)) {
		all = append(all, ModelInfo{Ref: synapse.ModelRef{Provider: name, Name: "default"}, Name: name, KeySet: true, Source: SourceProgram})
	}
	if set.ProbeLocal.V {
		for _, found := range m.probe(ctx, set) {
			for _, name := range found.Models {
				free := 0.0
				info := ModelInfo{Ref: synapse.ModelRef{Provider: found.Provider, Name: name}, Name: name, KeySet: true, Source: SourceLocal}
				if !strings.HasSuffix(name, "cloud") { // what it passes on is not for free
					info.InputPrice, info.OutputPrice = &free, &free
				}
				all = append(all, info)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(set.Providers)) {
		p := set.Providers[name].V
		_, err := m.config(set, name)
		for _, model := range p.Models {
			all = append(all, ModelInfo{Ref: synapse.ModelRef{Provider: name, Name: model}, Name: model, KeyEnv: p.APIKeyEnv, KeySet: err == nil, Source: SourceSettings})
		}
	}
	for _, row := range remote.Providers() {
		if _, replaced := set.Providers[row.Name]; !replaced {
			all = append(all, m.catalogued(set, row)...)
		}
	}
	all = append(all, ModelInfo{Ref: synapse.ModelRef{Provider: offline.Provider, Name: offline.Name}, Name: "rules, not a language model", KeySet: true, Source: SourceEmbedded})

	main := h.Main().Model
	if main != (synapse.ModelRef{}) && !slices.ContainsFunc(all, func(i ModelInfo) bool { return i.Ref == main }) {
		_, err := m.config(set, main.Provider)
		all = append(all, ModelInfo{Ref: main, Name: main.Name, KeySet: err == nil, Source: SourceChosen})
	}
	for i := range all {
		all[i].Provider = all[i].Ref.Provider
		all[i].Default = all[i].Ref == main
	}
	slices.SortStableFunc(all, func(a, b ModelInfo) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

func rank(i ModelInfo) int {
	switch {
	case i.Default:
		return 0
	case i.Source == SourceEmbedded:
		return 2
	case i.KeySet:
		return 1
	}
	return 3
}

// catalogued lists what the catalogue has of a provider.
func (m *models) catalogued(set *settings.Settings, row remote.Provider) []ModelInfo {
	list := facts(row)
	if len(list) == 0 {
		return nil
	}
	ready := m.ready(set, row)
	var out []ModelInfo
	for _, f := range list {
		info := ModelInfo{
			Ref: synapse.ModelRef{Provider: row.Name, Name: f.id}, Name: cmp.Or(f.title, f.id), Window: f.window, MaxOutput: f.maxOutput,
			Efforts: efforts(row, f), KeyEnv: row.KeyEnv, KeySet: ready, Source: SourceCatalogue,
		}
		if f.price != nil {
			info.InputPrice, info.OutputPrice = &f.price.Input, &f.price.Output
		}
		out = append(out, info)
	}
	return out
}

// ready reports whether everything is there that asking a provider takes.
func (m *models) ready(set *settings.Settings, row remote.Provider) bool {
	cfg, err := m.config(set, row.Name)
	if err != nil {
		return false
	}
	_, err = remote.New(cfg)
	return err == nil
}

// efforts are the words of this program for the levels that the catalogue says
// a model has. Off is left out where the levels are told and none is not among
// them, except for Claude, which takes it beside its levels.
func efforts(row remote.Provider, f fact) []synapse.Effort {
	if !f.reasons {
		return nil
	}
	if len(f.levels) == 0 {
		return []synapse.Effort{synapse.EffortOff, synapse.EffortMinimal, synapse.EffortLow, synapse.EffortMedium, synapse.EffortHigh, synapse.EffortMax}
	}
	words := map[string]synapse.Effort{"none": synapse.EffortOff, "xhigh": synapse.EffortMax}
	var out []synapse.Effort
	if row.Wire == remote.WireAnthropic {
		out = append(out, synapse.EffortOff)
	}
	for _, level := range f.levels {
		word := cmp.Or(words[level], synapse.Effort(level))
		if slices.Contains(synapse.Efforts(), word) && !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out
}
