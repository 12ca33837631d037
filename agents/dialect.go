package agents

import (
	"slices"
	"strings"
)

// A dialect is what the keys of one kind of file mean: the native one, or that
// of another product. Everything that takes files apart asks it which lines
// are fields.
type dialect struct {
	product *product // nil for the native dialect
	table   []*field // in the order in which they are read
	// exact finds a field by each of its spellings, folded by what is left of
	// them without letter case and separators.
	exact, folded map[string]*field
}

func newDialect(p *product, table []*field) *dialect {
	d := &dialect{product: p, table: table, exact: map[string]*field{}, folded: map[string]*field{}}
	for _, f := range table {
		for _, s := range append([]string{f.name}, f.also...) {
			if d.exact[s] == nil {
				d.exact[s] = f
			}
			if key := foldKey(s); d.folded[key] == nil {
				d.folded[key] = f
			}
		}
	}
	return d
}

var native = newDialect(nil, fieldTable)

// nativeJSON is the native dialect in JSON, where there is no body, and the
// files of others call the system prompt "prompt".
var nativeJSON = func() *dialect {
	table := slices.Clone(fieldTable)
	for i, f := range table {
		if f.name == "system_prompt" {
			c := *f
			c.also = append(slices.Clone(f.also), "prompt")
			table[i] = &c
		}
	}
	return newDialect(nil, table)
}()

// dialectOf returns the dialect of files of that origin. An origin that is no
// product's name is only a label on a native file.
func dialectOf(origin string) *dialect {
	if p := findProduct(origin); p != nil {
		return p.dialect
	}
	return native
}

func foldKey(key string) string { return foldName(strings.ReplaceAll(key, ".", "")) }

// lookup returns the field that a key means, nil if none, and whether the key
// is one of its spellings to the letter.
func (d *dialect) lookup(key string) (f *field, exact bool) {
	if f := d.exact[key]; f != nil {
		return f, true
	}
	return d.folded[foldKey(key)], false
}

// suggest returns the spelling that a key unknown here was likely meant to be,
// "" if there is none.
func (d *dialect) suggest(key string) string {
	var words []string
	for _, f := range d.table {
		words = append(words, f.name)
		words = append(words, f.also...)
	}
	return nearest(strings.ToLower(key), words)
}
