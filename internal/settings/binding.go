package settings

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/synapse-agents/synapse/policy"
)

// A binding joins a key to its field of [Settings]: how a value is read, how
// the values of several layers become one, how the result is shown.
type binding interface {
	describe(*Key)                // fills in what the key says of itself
	reset(*Settings)              // sets the default
	apply(*loader, *Key, *given)  // adds one layer's value
	rows(*Settings, string) []Row // the value as "config show" has it
}

// A guard judges a value from a workspace that is not trusted. It returns what
// may be used of it, whether that is anything at all, and why not everything.
type guard[T any] func(l *loader, cur, next T) (T, bool, string)

// single is a key with one value.
type single[T any] struct {
	codec    codec[T]
	def      T
	at       func(*Settings) *Value[T]
	combine  Combine            // "": CombineReplace
	narrower func(T, T) T       // the stricter of two; for CombineAdd and CombineNarrow
	finish   func(*loader, T) T // what is done to a value that was read
	guard    guard[T]           // nil: the workspace may set it
	show     func(T) any        // nil: as it is
}

func (b single[T]) describe(k *Key) {
	k.Kind, k.Takes, k.Combine = b.codec.kind, b.codec.takes, b.combine
	if k.Combine == "" {
		k.Combine = CombineReplace
	}
	k.Restricts = k.Combine != CombineReplace
	def, _ := json.Marshal(b.def)
	k.Default = string(def)
}

func (b single[T]) reset(s *Settings) {
	*b.at(s) = Value[T]{V: b.def, Origin: Origin{Layer: LayerDefault}}
}

func (b single[T]) apply(l *loader, k *Key, g *given) {
	v, f := read(b.codec, g)
	if f != nil {
		l.fault(k, g, f)
		return
	}
	if b.codec.silent != nil && b.codec.silent(v) {
		return
	}
	if b.finish != nil {
		v = b.finish(l, v)
	}
	cur := b.at(l.s)
	if b.guard != nil && l.guarded(g) {
		kept, some, why := b.guard(l, cur.V, v)
		if !some || why != "" {
			l.drop(g, k.Name, why)
		}
		if !some {
			return
		}
		v = kept
	}
	if b.combine == CombineAdd || b.combine == CombineNarrow && !g.layer.owned {
		strict := b.narrower(cur.V, v)
		if cur.IsSet() && reflect.DeepEqual(strict, cur.V) || !reflect.DeepEqual(strict, v) {
			if !reflect.DeepEqual(v, cur.V) {
				l.noEffect(k, g, v, cur.V, cur.Origin)
			}
			return
		}
	}
	*cur = Value[T]{V: v, Origin: g.origin}
}

func (b single[T]) rows(s *Settings, name string) []Row {
	v := b.at(s)
	var shown any = v.V
	if b.show != nil {
		shown = b.show(v.V)
	}
	return []Row{{Key: name, Value: shown, Origin: v.Origin}}
}

// merged is a key with named entries; the highest layer wins for each of them.
type merged[T any] struct {
	codec codec[[]entry[T]]
	at    func(*Settings) *map[string]Value[T]
	guard guard[T]
	show  func(T) any
}

func (b merged[T]) describe(k *Key) {
	k.Kind, k.Takes, k.Combine, k.Default = b.codec.kind, b.codec.takes, CombineMerge, "{}"
}

func (b merged[T]) reset(s *Settings) { *b.at(s) = map[string]Value[T]{} }

func (b merged[T]) apply(l *loader, k *Key, g *given) {
	entries, f := read(b.codec, g)
	if f != nil {
		l.fault(k, g, f)
		return
	}
	for _, e := range entries {
		v, m := e.v, *b.at(l.s)
		if b.guard != nil && l.guarded(g) {
			kept, some, why := b.guard(l, m[e.name].V, v)
			if !some || why != "" {
				l.drop(&given{layer: g.layer, origin: g.at(e.at)}, k.Name+"."+e.name, why)
			}
			if !some {
				continue
			}
			v = kept
		}
		m[e.name] = Value[T]{V: v, Origin: g.at(e.at)}
	}
}

func (b merged[T]) rows(s *Settings, name string) []Row {
	m := *b.at(s)
	if len(m) == 0 {
		return []Row{{Key: name, Value: struct{}{}, Origin: Origin{Layer: LayerDefault}}}
	}
	var rows []Row
	for _, n := range slices.Sorted(maps.Keys(m)) {
		var shown any = m[n].V
		if b.show != nil {
			shown = b.show(m[n].V)
		}
		rows = append(rows, Row{Key: name + "." + n, Value: shown, Origin: m[n].Origin})
	}
	return rows
}

// listed is a key that gathers names, each with its origin.
type listed struct {
	codec   codec[[]string]
	def     []string
	at      func(*Settings) *Names
	combine Combine // CombineAdd or CombineNarrow
}

func (b listed) describe(k *Key) {
	k.Kind, k.Takes, k.Combine, k.Restricts = b.codec.kind, b.codec.takes, b.combine, true
	def, _ := json.Marshal(append([]string{}, b.def...))
	k.Default = string(def)
}

func (b listed) reset(s *Settings) {
	n := Names{Origin: Origin{Layer: LayerDefault}}
	for _, name := range b.def {
		n.Items = append(n.Items, Value[string]{V: name, Origin: n.Origin})
	}
	*b.at(s) = n
}

func (b listed) apply(l *loader, k *Key, g *given) {
	names, f := read(b.codec, g)
	if f != nil {
		l.fault(k, g, f)
		return
	}
	n := b.at(l.s)
	n.Origin = g.origin
	if b.combine == CombineNarrow && g.layer.owned {
		n.Items = nil
	}
	for i, name := range names {
		if !slices.ContainsFunc(n.Items, func(v Value[string]) bool { return v.V == name }) {
			n.Items = append(n.Items, Value[string]{V: name, Origin: g.elem(i)})
		}
	}
}

// rows has one row for each layer, so that every name's origin shows.
func (b listed) rows(s *Settings, name string) []Row {
	n := b.at(s)
	if len(n.Items) == 0 {
		return []Row{{Key: name, Value: []string{}, Origin: n.Origin}}
	}
	var rows []Row
	for _, v := range n.Items {
		if last := len(rows) - 1; last >= 0 && rows[last].Origin == v.Origin {
			rows[last].Value = append(rows[last].Value.([]string), v.V)
			continue
		}
		rows = append(rows, Row{Key: name, Value: []string{v.V}, Origin: v.Origin})
	}
	return rows
}

// rules is the permissions key: a source of rules for each layer.
type rules struct{}

func (rules) describe(k *Key) {
	k.Kind, k.Combine, k.Default, k.Restricts = KindPermissions, CombineAdd, "{}", true
	k.Takes = `allow, ask, deny, or an object of tool → action or tool → pattern → action`
}

func (rules) reset(s *Settings) { s.Permissions = nil }

func (rules) apply(l *loader, _ *Key, g *given) {
	list, bad := readRules(g)
	if bad != nil {
		l.fail(bad)
		return
	}
	if len(list) == 0 {
		return
	}
	origin := g.origin
	origin.Line = 0 // each rule has its own
	l.s.Permissions = append(l.s.Permissions, policy.Source{Origin: origin.String(), Rules: list})
	l.s.permissionOrigins = append(l.s.permissionOrigins, g.origin)
}

func (rules) rows(s *Settings, name string) []Row {
	if len(s.Permissions) == 0 {
		return []Row{{Key: name, Value: struct{}{}, Origin: Origin{Layer: LayerDefault}}}
	}
	var rows []Row
	for i, source := range s.Permissions {
		rows = append(rows, Row{Key: name, Value: source.Rules, Origin: s.permissionOrigins[i]})
	}
	return rows
}

// hooks is the hooks key: a raw value for each layer.
type hooks struct{}

func hooksCodec() codec[json.RawMessage] {
	return rawCodec(KindRaw, "an object or an array", objectNode, arrayNode)
}

func (hooks) describe(k *Key) {
	k.Kind, k.Takes, k.Combine, k.Default = KindRaw, hooksCodec().takes, CombineMerge, "[]"
}

func (hooks) reset(s *Settings) { s.Hooks = nil }

func (hooks) apply(l *loader, k *Key, g *given) {
	v, f := read(hooksCodec(), g)
	if f != nil {
		l.fault(k, g, f)
		return
	}
	if l.guarded(g) {
		l.drop(g, k.Name, "")
		return
	}
	l.s.Hooks = append(l.s.Hooks, Value[json.RawMessage]{V: v, Origin: g.origin})
}

func (hooks) rows(s *Settings, name string) []Row {
	if len(s.Hooks) == 0 {
		return []Row{{Key: name, Value: []any{}, Origin: Origin{Layer: LayerDefault}}}
	}
	var rows []Row
	for _, h := range s.Hooks {
		rows = append(rows, Row{Key: name, Value: redactJSON(h.V), Origin: h.Origin})
	}
	return rows
}

// read reads a given value with a codec.
func read[T any](c codec[T], g *given) (T, *fault) {
	if g.node != nil {
		return c.json(g.doc, g.node)
	}
	return c.text(g.text)
}
