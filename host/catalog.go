package host

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/internal/settings"
	"github.com/synapse-agents/synapse/model/offline"
	"github.com/synapse-agents/synapse/model/remote"
)

// catalogued returns the catalogue's entry of a provider, nil where it has
// none. A server on this machine has none, whatever its models are called.
func catalogued(provider string) *catalogProvider {
	if row, ok := remote.Lookup(provider); !ok || row.Local {
		return nil
	}
	return catalogFile(provider)
}

// dateEnd is the date at the end of a model's name: gpt-5-2025-08-07 is gpt-5,
// and claude-sonnet-4-5@20250929 is claude-sonnet-4-5.
var dateEnd = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[-@](20\d{6}|20\d{2}-\d{2}-\d{2}|latest)$`) })

func undated(name string) string { return dateEnd().ReplaceAllString(strings.ToLower(name), "") }

// priceOf reads a model's prices. The catalogue writes 0 for "unknown", and its
// two cache prices come in either order: what costs less than fresh input is
// the price of reading the cache, what costs more (up to twice as much) that of
// writing it. Without either, cached input counts as fresh.
func priceOf(m *catalogModel) (remote.Price, bool) {
	if m == nil || m.PriceIn <= 0 && m.PriceOut <= 0 {
		return remote.Price{}, false
	}
	p := remote.Price{Input: m.PriceIn, Output: m.PriceOut}
	for _, cached := range []float64{m.PriceInCached, m.PriceOutCached} {
		if cached > 0 && cached < p.Input && (p.CacheRead == 0 || cached < p.CacheRead) {
			p.CacheRead = cached
		}
	}
	if c := m.PriceInCached; c > p.Input && c <= 2*p.Input {
		p.CacheWrite = c
	}
	return p, true
}

// facts are what is known of a model, from the settings and the catalogue.
type facts struct {
	title   string
	size    synapse.ModelSize
	price   remote.Price
	priced  bool
	reasons bool
	efforts []synapse.Effort
}

// factsOf is the one place that knows a model's price, size and efforts.
func (m *models) factsOf(set *settings.Settings, ref synapse.ModelRef) facts {
	var f facts
	if _, own := m.own[ref.Provider]; own || ref.Provider == offline.Provider {
		f.priced = !own // the rules cost nothing, a program's model says what it costs
		return f
	}
	said := set.Models[ref.String()].V
	row, _ := remote.Lookup(ref.Provider)
	_, replaced := set.Providers[ref.Provider]
	if row.Local && !replaced {
		// A local Ollama passes models of this name on to a paid service.
		f.priced = m.onThisMachine(set, row) && !strings.HasSuffix(ref.Name, "-cloud") && !strings.HasSuffix(ref.Name, ":cloud")
	}
	if !replaced {
		if e := catalogued(ref.Provider).model(ref.Name); e != nil {
			f.title, f.size = e.Name, synapse.ModelSize{Window: e.Window, MaxOutput: e.MaxOutput}
			f.reasons, f.efforts = e.Reasons, effortsOf(row, e)
			// Whoever answers at an address of the user's own may ask another price.
			if !m.elsewhere(set, ref.Provider) {
				f.price, f.priced = priceOf(e)
			}
		}
	}
	f.size.Window, f.size.MaxOutput = cmp.Or(said.Window, f.size.Window), cmp.Or(said.MaxOutput, f.size.MaxOutput)
	if said.Efforts != nil {
		f.efforts, f.reasons = said.Efforts, len(said.Efforts) > 0
	}
	if said.InputPrice != nil {
		f.priced = true
		f.price = remote.Price{Input: *said.InputPrice, Output: *said.OutputPrice}
	}
	if said.CacheReadPrice != nil {
		f.price.CacheRead = *said.CacheReadPrice
	}
	if said.CacheWritePrice != nil {
		f.price.CacheWrite = *said.CacheWritePrice
	}
	return f
}

// elsewhere reports whether a provider is asked at another address than its own.
// One that every customer has an address of is not.
func (m *models) elsewhere(set *settings.Settings, provider string) bool {
	row, _ := remote.Lookup(provider)
	cfg, _ := m.config(set, provider) // a missing key leaves the address as it is
	return row.BaseURL != "" && cfg.BaseURL != "" && strings.TrimRight(cfg.BaseURL, "/") != row.BaseURL
}

// onThisMachine reports whether a provider is asked on loopback.
func (m *models) onThisMachine(set *settings.Settings, row remote.Provider) bool {
	cfg, _ := m.config(set, row.Name)
	u, err := url.Parse(cmp.Or(cfg.BaseURL, row.BaseURL))
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return strings.EqualFold(u.Hostname(), "localhost") || ip != nil && ip.IsLoopback()
}

// effortsOf are the words of this program for the levels that the catalogue
// says a model has. Off is left out where the levels are told and none is not
// among them, except for Claude, which takes it beside its levels.
func effortsOf(row remote.Provider, e *catalogModel) []synapse.Effort {
	if !e.Reasons {
		return nil
	}
	all := synapse.Efforts()
	all = all[:len(all)-1] // without inherit
	if len(e.ReasoningLevels) == 0 {
		return all
	}
	words := map[string]synapse.Effort{"none": synapse.EffortOff, "xhigh": synapse.EffortMax}
	has := map[synapse.Effort]bool{synapse.EffortOff: row.Wire == remote.WireAnthropic}
	for _, level := range e.ReasoningLevels {
		has[cmp.Or(words[level], synapse.Effort(level))] = true
	}
	return slices.DeleteFunc(all, func(e synapse.Effort) bool { return !has[e] })
}

// price is what a reply of a remote model costs, under the settings that hold
// when it comes in.
func (m *models) price(ref synapse.ModelRef) (remote.Price, bool) {
	set := m.now.Load()
	if set == nil {
		return remote.Price{}, false
	}
	f := m.factsOf(set, ref)
	return f.price, f.priced
}

// Size says how much a model takes in and gives out, as the setting models or
// else the catalogue has it.
func (h *Host) Size(ref synapse.ModelRef) synapse.ModelSize {
	return h.models.factsOf(h.current().settings, ref).size
}

// WarnCostLimit is the code of the warning that a limit on cost can't be kept.
const WarnCostLimit = "cost-limit-unpriced"

// costWarnings names the models whose price is unknown though a limit on cost
// holds for them: a run of theirs ends after the first reply.
func (m *models) costWarnings(set *settings.Settings, graph *synapse.Graph) []settings.Warning {
	var out []settings.Warning
	seen := map[synapse.ModelRef]bool{}
	for _, spec := range graph.Specs {
		if spec.Limits.CostUSD <= 0 {
			continue
		}
		for _, ref := range append([]synapse.ModelRef{spec.Model}, spec.Fallback...) {
			_, own := m.own[ref.Provider]
			if seen[ref] || own || ref == (synapse.ModelRef{}) || m.factsOf(set, ref).priced {
				continue
			}
			seen[ref] = true
			out = append(out, settings.Warning{Code: WarnCostLimit, Message: fmt.Sprintf(
				"the limit of $%g can't be kept for %s: its price is unknown, so that a run of %s stops after its first reply; give the price in the setting models: {%q: {\"input_price\": …, \"output_price\": …}}",
				spec.Limits.CostUSD, ref, spec.Agent, ref)})
		}
	}
	return out
}
