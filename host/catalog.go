package host

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"

	"github.com/synapse-agents/synapse/model/remote"
)

// catalogue reads the embedded list of models and prices, once, and not before
// somebody asks: it costs 20 ms, which no command pays that doesn't need it.
var catalogue = sync.OnceValue(func() map[string]*catwalk.Provider {
	all := map[string]*catwalk.Provider{}
	for _, p := range embedded.GetAll() {
		all[string(p.ID)] = &p
	}
	return all
})

// fact is what the catalogue says of one model.
type fact struct {
	id, title   string
	window      int64
	maxOutput   int64
	price       *remote.Price // nil: unknown
	reasons     bool
	levels      []string
	recommended bool // the provider's default
}

// facts returns the catalogue's models of a provider.
func facts(row remote.Provider) []fact {
	p := catalogue()[row.Catalog]
	if p == nil {
		return nil
	}
	out := make([]fact, 0, len(p.Models))
	for i := range p.Models {
		m := &p.Models[i]
		out = append(out, fact{
			id: m.ID, title: m.Name, window: m.ContextWindow, maxOutput: m.DefaultMaxTokens,
			price: priceOf(m), reasons: m.CanReason, levels: m.ReasoningLevels, recommended: m.ID == p.DefaultLargeModelID,
		})
	}
	return out
}

// factOf finds a model by its name as users and providers write it.
func factOf(row remote.Provider, name string) (fact, bool) {
	list := facts(row)
	for _, form := range []func(string) string{func(s string) string { return s }, undated, plain} {
		i := slices.IndexFunc(list, func(f fact) bool { return form(f.id) == form(name) })
		if i >= 0 {
			return list[i], true
		}
	}
	return fact{}, false
}

var (
	dateEnd   = regexp.MustCompile(`[-@](20\d{6}|20\d{2}-\d{2}-\d{2}|latest)$`)
	bedrockID = regexp.MustCompile(`^(?:(?:us|eu|apac|jp|au|global|us-gov)\.)?anthropic\.|-v\d+(?::\d+)?$`)
)

// undated takes the date off a model's name: gpt-5-2025-08-07 is gpt-5, and
// claude-sonnet-4-5@20250929 is claude-sonnet-4-5.
func undated(name string) string { return dateEnd.ReplaceAllString(strings.ToLower(name), "") }

// plain takes off, too, what Bedrock puts around it.
func plain(name string) string {
	return undated(bedrockID.ReplaceAllString(strings.ToLower(name), ""))
}

// priceOf reads a model's prices. The catalogue writes 0 for "unknown", and its
// two cache prices come in either order: what costs less than fresh input is
// the price of reading the cache, what costs more (up to twice as much) that of
// writing it. Without either, cached input counts as fresh.
func priceOf(m *catwalk.Model) *remote.Price {
	if m.CostPer1MIn <= 0 && m.CostPer1MOut <= 0 {
		return nil
	}
	p := remote.Price{Input: m.CostPer1MIn, Output: m.CostPer1MOut}
	for _, cached := range []float64{m.CostPer1MInCached, m.CostPer1MOutCached} {
		switch {
		case cached <= 0:
		case cached < p.Input && (p.CacheRead == 0 || cached < p.CacheRead):
			p.CacheRead = cached
		}
	}
	if m.CostPer1MInCached > p.Input && m.CostPer1MInCached <= 2*p.Input {
		p.CacheWrite = m.CostPer1MInCached
	}
	return &p
}

// defaultModel is the model taken of a provider of which the user has said
// nothing but a key, "" where that can't be known.
func defaultModel(row remote.Provider, region string) string {
	if row.Name == "azure" {
		return "" // its models have names of the user's
	}
	if row.Name == "bedrock" && !strings.HasPrefix(region, "us-") {
		if !strings.HasPrefix(region, "eu-") {
			return ""
		}
		row.Catalog = "bedrock-europe"
	}
	for _, f := range facts(row) {
		if f.recommended {
			return f.id
		}
	}
	return row.Model
}
