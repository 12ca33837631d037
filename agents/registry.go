package agents

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
)

// A Layer is one place that definitions come from, read: a directory, a JSON
// file, a program.
type Layer struct {
	Kind LayerKind
	Name string // where it comes from, for people: a path, "built-in"
	Root string // the directory, where there is one
	// Defs are the definitions in the order in which they were found, those
	// that are [Definition.Broken] included: a registry never offers them, but
	// says when one would have replaced another.
	Defs        []*Definition
	Diagnostics []Diagnostic
}

// A Registry is the one place that knows which agents there are. It is
// immutable, and safe for use by several goroutines. The definitions it returns
// are shared and must not be changed; [Definition.Clone] gives one that may be.
type Registry struct {
	entries map[string]*entry
	names   []string            // of entries, in byte order
	folded  map[string][]string // the names that are the same for [foldName]
	// aliases are further names of entries: "claude:reviewer" for the agent
	// that goes by the name "reviewer".
	aliases map[string]string
}

func newRegistry(entries map[string]*entry, aliases map[string]string) *Registry {
	r := &Registry{
		entries: entries, names: slices.Sorted(maps.Keys(entries)),
		folded: make(map[string][]string, len(entries)), aliases: map[string]string{},
	}
	note := func(name, entry string) {
		if f := foldName(name); !slices.Contains(r.folded[f], entry) {
			r.folded[f] = append(r.folded[f], entry)
		}
	}
	for _, n := range r.names {
		note(n, n)
	}
	for _, q := range slices.Sorted(maps.Keys(aliases)) {
		if n := aliases[q]; entries[n] != nil && entries[q] == nil {
			r.aliases[q] = n
			note(q, n)
		}
	}
	return r
}

type entry struct {
	def     *Definition
	shadows []*Definition // nearest first
}

// BuiltinAliases returns the further names of built-in agents. Such a name
// holds as long as no definition has it.
func BuiltinAliases() map[string]string {
	return map[string]string{"general": "general-purpose"}
}

// Merge joins layers, given low to high, to a registry. A definition replaces
// one of the same name from a lower layer whole. Of two of one name in the same
// layer the first in byte order of the path counts. What another product
// defines is reached by its qualified name too, and where something else has
// the plain name it is an agent of its own under that ("claude:reviewer"),
// unless both are the same in all but where they lie. The diagnostics are those
// of the layers and of the merging itself, by layer.
func Merge(layers ...Layer) (*Registry, []Diagnostic) {
	entries := map[string]*entry{}
	depth := map[*Definition]int{} // which layer a winner is from
	var all []Diagnostic
	var broken []*Definition
	for i, layer := range layers {
		diags := slices.Clone(layer.Diagnostics)
		defs := slices.Clone(layer.Defs)
		slices.SortStableFunc(defs, func(a, b *Definition) int {
			return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line))
		})
		for _, d := range defs {
			depth[d] = i
			if d.Broken {
				broken = append(broken, d)
				continue
			}
			e := entries[d.Name]
			switch {
			case e == nil:
				entries[d.Name] = &entry{def: d}
			case depth[e.def] == i:
				diags = append(diags, Diagnostic{
					Pos: d.at("name"), Severity: Warn, Code: CodeDuplicateName,
					Message: fmt.Sprintf("%q is defined in %s already, which counts", d.Name, e.def.Place()),
					Hint:    "rename one of the two",
				})
			default:
				e.shadows = slices.Insert(e.shadows, 0, e.def)
				e.def = d
			}
		}
		sortDiagnostics(diags)
		all = append(all, diags...)
	}
	r := newRegistry(entries, qualify(entries))
	for _, d := range broken {
		if diag, ok := r.shadowLost(d, depth); ok {
			all = append(all, diag)
		}
	}
	return r, all
}

// qualify gives what other products define its qualified name: as an alias of
// the agent that has the plain name if that is the product's, else as an entry.
func qualify(entries map[string]*entry) (aliases map[string]string) {
	aliases = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e := entries[name]
		if q := e.def.QualifiedName(); q != name {
			aliases[q] = name
		}
		for i, d := range e.shadows {
			q := d.QualifiedName()
			if q == name || q == d.Name || aliases[q] != "" || entries[q] != nil {
				continue // native, or its product has a nearer one
			}
			if e.def.sameAgent(d) {
				aliases[q] = name
				continue
			}
			own := d.Clone()
			own.Name = q
			entries[q] = &entry{def: own}
			for _, below := range e.shadows[i+1:] {
				if below.Origin == d.Origin {
					entries[q].shadows = append(entries[q].shadows, below)
				}
			}
		}
	}
	return aliases
}

// sameAgent reports whether two definitions are the same agent, wherever they
// come from: what tools generate from one source for several products.
func (d *Definition) sameAgent(o *Definition) bool {
	plain := func(d *Definition) *Definition {
		c := d.Clone()
		c.Origin, c.Layer, c.Pos, c.Lines, c.Extra, c.ToolEntries, c.Color = "", "", Pos{}, nil, nil, nil, ""
		for i := range c.Permissions {
			c.Permissions[i].Line = 0
		}
		return c
	}
	a, errA := json.Marshal(plain(d))
	b, errB := json.Marshal(plain(o))
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// shadowLost says whether another agent answers where d would, were it not
// broken.
func (r *Registry) shadowLost(d *Definition, depth map[*Definition]int) (Diagnostic, bool) {
	name, how := d.Name, "could not be loaded"
	if name == "" { // then its file's name is the best guess there is
		name, how = fileStem(d.Pos.File), "could not be loaded, and if its name is that of its file"
	}
	e := r.entries[name]
	if e == nil || depth[e.def] > depth[d] {
		return Diagnostic{}, false
	}
	if depth[e.def] == depth[d] && e.def.Pos.File < d.Pos.File {
		return Diagnostic{}, false // it would have lost anyway
	}
	return Diagnostic{
		Pos: d.Pos, Severity: Warn, Code: CodeShadowLost,
		Message: fmt.Sprintf("this definition %s, another agent answers to %q: the one from %s", how, name, e.def.Place()),
		Hint:    "mend this file, or disable the agent until you have",
	}, true
}

// Len returns how many agents there are, the disabled ones included.
func (r *Registry) Len() int { return len(r.names) }

// All returns every agent in byte order of the names, the disabled ones
// included.
func (r *Registry) All() []*Definition {
	defs := make([]*Definition, len(r.names))
	for i, name := range r.names {
		defs[i] = r.entries[name].def
	}
	return defs
}

// Get returns the agent of exactly that name, disabled or not.
func (r *Registry) Get(name string) (*Definition, bool) {
	e := r.entries[name]
	if e == nil {
		return nil, false
	}
	return e.def, true
}

// Aliases returns the further names by which an agent is reached, in byte
// order: its qualified name if it has another, and those of the same agent in
// other products' files.
func (r *Registry) Aliases(name string) []string {
	var list []string
	for _, q := range slices.Sorted(maps.Keys(r.aliases)) {
		if r.aliases[q] == name {
			list = append(list, q)
		}
	}
	return list
}

// Shadows returns where the definitions come from that the agent of that name
// has replaced, the nearest first.
func (r *Registry) Shadows(name string) []string {
	e := r.entries[name]
	if e == nil {
		return nil
	}
	places := make([]string, len(e.shadows))
	for i, d := range e.shadows {
		places[i] = d.Place()
	}
	return places
}

// A LookupError says why a name reaches no agent.
type LookupError struct {
	Name string
	// Disabled is the agent of that name, if there is one that is switched off.
	Disabled string
	// Candidates are the agents the name could mean, when there are several.
	Candidates []string
	// Known are the agents that can be reached.
	Known []string
}

// Error names the agent, what is wrong, and which agents there are.
func (e *LookupError) Error() string {
	known := "there is none"
	if len(e.Known) > 0 {
		known = "there are " + strings.Join(e.Known, ", ")
	}
	switch {
	case e.Disabled != "":
		return fmt.Sprintf("agent %q is disabled; %s", e.Disabled, known)
	case len(e.Candidates) > 0:
		return fmt.Sprintf("agent %q could be %s; write the name exactly", e.Name, strings.Join(e.Candidates, " or "))
	}
	return fmt.Sprintf("no agent %q; %s", e.Name, known)
}

// Lookup returns the agent that a name reaches: the one of exactly that name or
// qualified name ("claude:reviewer"), else the one whose name is the same but for letter case, blanks, "-" and "_",
// else the one that a built-in alias means. A name that could mean several and
// one whose agent is disabled are errors, of type *[LookupError].
func (r *Registry) Lookup(name string) (*Definition, error) {
	d, err := r.resolve(name)
	if err == nil && d.Disabled {
		err = r.lookupError(LookupError{Name: name, Disabled: d.Name})
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (r *Registry) resolve(name string) (*Definition, error) {
	if d, ok := r.Get(name); ok {
		return d, nil
	}
	if n, ok := r.aliases[name]; ok {
		return r.entries[n].def, nil
	}
	folded := foldName(name)
	found := r.folded[folded]
	switch {
	case folded == "": // nothing but blanks, "-" and "_" means nobody
	case len(found) == 1:
		return r.entries[found[0]].def, nil
	case len(found) > 1:
		return nil, r.lookupError(LookupError{Name: name, Candidates: slices.Clone(found)})
	}
	if alias, ok := BuiltinAliases()[folded]; ok {
		if d, ok := r.Get(alias); ok {
			return d, nil
		}
	}
	return nil, r.lookupError(LookupError{Name: name})
}

func (r *Registry) lookupError(e LookupError) *LookupError {
	for _, n := range r.names {
		if !r.entries[n].def.Disabled {
			e.Known = append(e.Known, n)
		}
	}
	return &e
}

// Find looks several names up, in their order, and returns what it found with
// the errors of the rest joined.
func (r *Registry) Find(names ...string) ([]*Definition, error) {
	var defs []*Definition
	var errs []error
	for _, name := range names {
		d, err := r.Lookup(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		defs = append(defs, d)
	}
	return defs, errors.Join(errs...)
}

// Without returns a registry that lacks the agents of those names, from
// whatever layer they are, and the names that no agent has.
func (r *Registry) Without(names ...string) (*Registry, []string) {
	gone, missing := r.named(names)
	entries := map[string]*entry{}
	for n, e := range r.entries {
		if !gone[n] {
			entries[n] = e
		}
	}
	return newRegistry(entries, r.aliases), missing
}

// Disable returns a registry in which the agents of those names are still
// listed but can't be reached, and the names that no agent has.
func (r *Registry) Disable(names ...string) (*Registry, []string) {
	off, missing := r.named(names)
	entries := maps.Clone(r.entries)
	for n := range off {
		d := r.entries[n].def.Clone()
		d.Disabled = true
		entries[n] = &entry{def: d, shadows: r.entries[n].shadows}
	}
	return newRegistry(entries, r.aliases), missing
}

// named sorts names into those of agents, built-in aliases followed, and those
// of none.
func (r *Registry) named(names []string) (found map[string]bool, missing []string) {
	found = map[string]bool{}
	for _, n := range names {
		if alias, ok := BuiltinAliases()[n]; ok && r.entries[n] == nil {
			n = alias
		}
		if own, ok := r.aliases[n]; ok && r.entries[n] == nil {
			n = own
		}
		if r.entries[n] == nil {
			missing = append(missing, n)
			continue
		}
		found[n] = true
	}
	return found, missing
}

// foldName is what two names share that mean the same agent.
func foldName(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '-' || c == '_' || unicode.IsSpace(c) {
			return -1
		}
		return unicode.ToLower(c)
	}, name)
}

// fileStem is a file's name without the endings that definition files have.
func fileStem(file string) string {
	base := path.Base(strings.ReplaceAll(file, `\`, "/"))
	for _, ext := range []string{".agent.md", ".chatmode.md", ".md", ".toml"} {
		if len(base) > len(ext) && strings.EqualFold(base[len(base)-len(ext):], ext) {
			return base[:len(base)-len(ext)]
		}
	}
	return base
}
