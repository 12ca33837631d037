package host

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

// The files hold what charm.land/catwalk knows of the providers that there are,
// a file for each: to read its whole list takes longer than all else before a
// first request. A test makes them and keeps them up to date.
//
//go:embed catalog/*.json
var catalogFiles embed.FS

// A catalogProvider is a provider's file, read.
type catalogProvider struct {
	Models []catalogModel

	byName  map[string]*catalogModel // in lower case; the first of a name
	undated func() map[string]*catalogModel
}

// catalogModel is a line of a file. Prices are in dollars for a million tokens.
type catalogModel struct {
	ID              string   `json:"id"`
	Name            string   `json:"name"`
	PriceIn         float64  `json:"in,omitempty"`
	PriceOut        float64  `json:"out,omitempty"`
	PriceInCached   float64  `json:"in_cached,omitempty"`
	PriceOutCached  float64  `json:"out_cached,omitempty"`
	Window          int64    `json:"window,omitempty"`
	MaxOutput       int64    `json:"max_output,omitempty"`
	Reasons         bool     `json:"reasons,omitempty"`
	ReasoningLevels []string `json:"levels,omitempty"`
}

// catalogFile reads the file of a provider, once; nil where there is none.
func catalogFile(provider string) *catalogProvider {
	read, _ := catalogReads.LoadOrStore(provider, sync.OnceValue(func() *catalogProvider { return readCatalog(provider) }))
	return read.(func() *catalogProvider)()
}

var catalogReads sync.Map // from a provider's name to what reads its file

func readCatalog(provider string) *catalogProvider {
	data, err := catalogFiles.ReadFile("catalog/" + provider + ".json")
	if err != nil {
		return nil // not one of those that the catalogue has
	}
	p := &catalogProvider{}
	if err := json.Unmarshal(data, &p.Models); err != nil {
		panic(fmt.Sprintf("the embedded catalogue of %s: %v", provider, err)) // a test reads them all
	}
	index := func(form func(string) string) map[string]*catalogModel {
		names := make(map[string]*catalogModel, len(p.Models))
		for i := range p.Models {
			if name := form(p.Models[i].ID); names[name] == nil {
				names[name] = &p.Models[i]
			}
		}
		return names
	}
	p.byName = index(strings.ToLower)
	p.undated = sync.OnceValue(func() map[string]*catalogModel { return index(undated) })
	return p
}

// model finds a model by its name, or by its name without a date, as providers
// write it in their replies; nil if there is none.
func (p *catalogProvider) model(name string) *catalogModel {
	if p == nil {
		return nil
	}
	if m := p.byName[strings.ToLower(name)]; m != nil {
		return m
	}
	return p.undated()[undated(name)]
}
