package host

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/internal/settings"
	"github.com/synapse-agents/synapse/internal/spelling"
	"github.com/synapse-agents/synapse/model/offline"
	"github.com/synapse-agents/synapse/model/remote"
)

// ModelInfo is one model that could be asked, and what is known of it. A size
// of 0 and a nil price are unknown.
type ModelInfo struct {
	Ref   synapse.ModelRef `json:"ref"`
	Title string           `json:"title,omitempty"` // for people
	synapse.ModelSize
	// Price is in US dollars for a million tokens.
	Price     *ModelPrice `json:"price"`
	Reasoning *bool       `json:"reasoning"` // nil: unknown
	// Efforts are the reasoning efforts that make a difference, none where the
	// model does not reason or nothing is known of it.
	Efforts []synapse.Effort `json:"efforts"`
	// Tools reports whether the model can call tools, nil where nobody says so.
	Tools *bool `json:"tools"`
	// Available says that all is there that asking the model takes; Missing
	// names what is not, such as the variable of a key.
	Available bool   `json:"available"`
	Missing   string `json:"missing,omitempty"`
	// InUse is set for the model that the main agent has.
	InUse   bool     `json:"in_use"`
	Aliases []string `json:"aliases"` // in the settings, that mean this model
	Source  string   `json:"source"`
}

// ModelPrice is what a model costs, in US dollars for a million tokens. Cache
// prices are those that hold: of a model that has none, those of its input.
type ModelPrice struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
}

// The sources of a [ModelInfo].
const (
	SourceCatalogue = "catalogue" // the embedded list of models and prices
	SourceSettings  = "settings"  // a setting names it
	SourceLocal     = "local"     // a server on this machine has it
	SourceProgram   = "program"   // Options.Models
	SourceEmbedded  = "embedded"  // the rules
)

// Models lists the models that there are: the main agent's, those that can be
// asked, then the rest, each group in the order of providers. If probe is true
// and the settings allow it, servers on this machine are looked for; nothing
// else is asked.
func (h *Host) Models(ctx context.Context, probe bool) []ModelInfo {
	a := h.current()
	if probe && a.settings.ProbeLocal.V {
		h.models.probe(ctx, a.settings)
	}
	main := a.program.Entry().Model
	return h.models.list(a.settings, main)
}

// KnownModels lists what [Host.Models] would list of a host of these options
// without looking for servers. It opens nothing and no connection.
func KnownModels(opt Options) ([]ModelInfo, error) {
	h := &Host{opt: opt, models: newModels(opt)}
	if err := h.findWorkspace(); err != nil {
		return nil, err
	}
	set, _, err := h.loadSettings()
	if err != nil {
		return nil, err
	}
	return h.models.list(set, synapse.ModelRef{}), nil
}

// list puts the models of all sources together.
func (m *models) list(set *settings.Settings, main synapse.ModelRef) []ModelInfo {
	var all []ModelInfo
	seen := map[synapse.ModelRef]bool{}
	add := func(provider, name, source string) {
		ref := synapse.ModelRef{Provider: provider, Name: name}
		if provider == "" || name == "" || seen[ref] {
			return
		}
		seen[ref] = true
		info := m.info(set, ref, source)
		info.InUse = ref == main
		all = append(all, info)
	}
	for _, name := range slices.Sorted(maps.Keys(m.own)) {
		add(name, "default", SourceProgram)
	}
	for _, name := range slices.Sorted(maps.Keys(set.Providers)) {
		for _, model := range set.Providers[name].V.Models {
			add(name, model, SourceSettings)
		}
	}
	for _, found := range m.found() {
		for _, name := range found.Models {
			add(found.Provider, name, SourceLocal)
		}
	}
	for _, row := range remote.Providers() {
		if _, replaced := set.Providers[row.Name]; replaced {
			continue
		}
		if p := catalogued(row.Name); p != nil {
			for i := range p.Models {
				add(row.Name, p.Models[i].ID, SourceCatalogue)
			}
		}
	}
	named := append([]string{main.String(), set.Model.V, set.SubagentDefaultModel.V}, set.FallbackModels.V...)
	named = append(named, slices.Sorted(maps.Keys(set.Models))...)
	for _, alias := range slices.Sorted(maps.Keys(set.ModelAliases)) {
		named = append(named, set.ModelAliases[alias].V)
	}
	for _, name := range named {
		if ref, err := m.resolve(set, name); err == nil && ref.Provider != offline.Provider {
			add(ref.Provider, ref.Name, SourceSettings)
		}
	}
	add(offline.Provider, offline.Name, SourceEmbedded)
	slices.SortStableFunc(all, func(a, b ModelInfo) int { return cmp.Compare(a.rank(), b.rank()) })
	return all
}

func (i ModelInfo) rank() int {
	switch {
	case i.InUse:
		return 0
	case i.Available:
		return 1
	}
	return 2
}

// info says what is known of one model.
func (m *models) info(set *settings.Settings, ref synapse.ModelRef, source string) ModelInfo {
	f := m.factsOf(set, ref)
	info := ModelInfo{Ref: ref, Title: f.title, ModelSize: f.size, Efforts: append([]synapse.Effort{}, f.efforts...), Aliases: []string{}, Source: source}
	if f.priced {
		p := f.price
		info.Price = &ModelPrice{p.Input, p.Output, cmp.Or(p.CacheRead, p.Input), cmp.Or(p.CacheWrite, p.Input)}
	}
	if f.title != "" || len(f.efforts) > 0 {
		info.Reasoning = &f.reasons
	}
	if source == SourceLocal || source == SourceEmbedded { // servers are asked for those alone that can
		yes := true
		info.Tools = &yes
	}
	for _, alias := range slices.Sorted(maps.Keys(set.ModelAliases)) {
		if target, err := m.resolve(set, alias); err == nil && target == ref {
			info.Aliases = append(info.Aliases, alias)
		}
	}
	if _, err := m.model(set, ref); err != nil {
		info.Missing = m.missing(set, ref.Provider, err)
	}
	info.Available = info.Missing == ""
	return info
}

// missing names the variable that a provider's key is read from, or else says
// what keeps it from being asked.
func (m *models) missing(set *settings.Settings, provider string, err error) string {
	if p, ok := set.Providers[provider]; ok {
		return cmp.Or(p.V.APIKeyEnv, err.Error())
	}
	row, _ := remote.Lookup(provider)
	if _, set := set.Secrets.Get(row.KeyEnv); set || len(row.Env) > 0 { // there is more to it than a key
		return err.Error()
	}
	return cmp.Or(row.KeyEnv, err.Error())
}

// WarnModelUnknown is the code of the warning that the catalogue has no model
// of that name, but one of a name that is near to it.
const WarnModelUnknown = "model-unknown"

// nameWarning says which model the main agent's was probably meant to be. The
// catalogue is older than the newest models: a name of its own is no error.
func (m *models) nameWarning(set *settings.Settings, ref synapse.ModelRef) []settings.Warning {
	_, own := m.own[ref.Provider]
	_, replaced := set.Providers[ref.Provider]
	if _, said := set.Models[ref.String()]; own || replaced || said || m.elsewhere(set, ref.Provider) {
		return nil
	}
	p := catalogued(ref.Provider)
	if p == nil || p.model(ref.Name) != nil {
		return nil
	}
	var names []string
	for i := range p.Models {
		names = append(names, p.Models[i].ID)
	}
	near := spelling.Nearest(ref.Name, names)
	if near == "" {
		return nil
	}
	return []settings.Warning{{Code: WarnModelUnknown, Message: fmt.Sprintf(
		"the catalogue has no model %s: did you mean %s:%s? `synapse models` lists them", ref, ref.Provider, near)}}
}
