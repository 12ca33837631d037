package settings

import (
	"strconv"
	"strings"

	"github.com/synapse-agents/synapse"
)

// A Model is an entry of the models key: what the user knows of a model, above
// what the built-in catalogue says. A nil price is one the user says nothing of;
// 0 is a price. Prices are in US dollars for a million tokens.
type Model struct {
	InputPrice      *float64         `json:"input_price,omitempty"`
	OutputPrice     *float64         `json:"output_price,omitempty"`
	CacheReadPrice  *float64         `json:"cache_read_price,omitempty"`
	CacheWritePrice *float64         `json:"cache_write_price,omitempty"`
	Window          int64            `json:"window,omitempty"`     // tokens, 0: nothing said
	MaxOutput       int64            `json:"max_output,omitempty"` // tokens, 0: nothing said
	Efforts         []synapse.Effort `json:"efforts,omitempty"`    // nil: nothing said
}

// modelFields are the fields of an entry of models.
var modelFields = []string{"input_price", "output_price", "cache_read_price", "cache_write_price", "window", "max_output", "efforts"}

// modelFactsCodec reads an entry of models. A name that is none of the fields
// is refused: a misspelt price would pass for an unknown one.
func modelFactsCodec() codec[Model] {
	c := codec[Model]{takes: `an object, such as {"input_price": 1.25, "output_price": 10, "window": 400000}`}
	c.json = func(d *document, n *node) (Model, *fault) {
		var m Model
		if n.kind != objectNode {
			return m, c.wrong(n, "")
		}
		price := moneyCodec()
		price.takes = "US dollars for a million tokens, such as 1.25"
		prices := map[string]**float64{
			"input_price": &m.InputPrice, "output_price": &m.OutputPrice,
			"cache_read_price": &m.CacheReadPrice, "cache_write_price": &m.CacheWritePrice,
		}
		counts := map[string]*int64{"window": &m.Window, "max_output": &m.MaxOutput}
		for _, member := range n.members {
			if member.value.kind == nullNode {
				continue
			}
			var f *fault
			switch name := member.key; {
			case prices[name] != nil:
				var v float64
				if v, f = price.json(d, member.value); f == nil {
					*prices[name] = &v
				}
			case counts[name] != nil:
				*counts[name], f = countCodec().json(d, member.value)
			case name == "efforts":
				m.Efforts, f = effortsOf(d, member.value)
			default:
				f = &fault{at: n, found: "the field " + quote(name), takes: strings.Join(modelFields, ", ")}
			}
			if f != nil {
				f.key = "." + member.key + f.key
				return m, f
			}
		}
		if (m.InputPrice == nil) != (m.OutputPrice == nil) {
			return m, &fault{at: n, found: "one of input_price and output_price", takes: "both, or neither"}
		}
		return m, nil
	}
	return c
}

func effortsOf(d *document, n *node) ([]synapse.Effort, *fault) {
	c := effortCodec()
	list := listCodec(KindStrings, `["low", "high"]`, textCodec("a reasoning effort"))
	words, f := list.json(d, n)
	if f != nil {
		return nil, f
	}
	efforts := []synapse.Effort{}
	for i, word := range words {
		e, f := c.text(word)
		if f == nil && e == "" {
			f = &fault{found: quote(word), takes: "an effort other than inherit"}
		}
		if f != nil {
			f.at, f.key = n.elems[i], "["+strconv.Itoa(i)+"]"
			return nil, f
		}
		efforts = append(efforts, e)
	}
	return efforts, nil
}
