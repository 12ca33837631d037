package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/synapse-agents/synapse"
)

// ConvertOptions say how a definition is converted.
type ConvertOptions struct {
	// Source is the file that the definition was read from. With it the body is
	// kept to the byte, and the comments of the frontmatter are kept too. It is
	// not needed.
	Source []byte
	// Force writes the file even where that loses a restriction.
	Force bool
}

// A WideningError says that a definition can't be converted without loss of
// something that restricts it.
type WideningError struct {
	Name, Product string
	Losses        []string
}

// Error names the agent, the product and what would be lost.
func (e *WideningError) Error() string {
	return fmt.Sprintf("convert %q to %s: the agent could do more there: %s", e.Name, e.Product, strings.Join(e.Losses, "; "))
}

// ConvertTargets lists what [Convert] writes.
func ConvertTargets() []string {
	list := []string{Native}
	for _, p := range products {
		if p.writer != nil {
			list = append(list, p.Name)
		}
	}
	return list
}

// Convert writes a definition in the format of a product, or with [Native] in
// ours, and says under which name its file belongs into the product's
// directory. The diagnostics say what the format can't say. What restricts the
// agent is not lost silently: then the error is a *[WideningError] unless
// [ConvertOptions.Force] is set, and the diagnostics about it are of severity
// [Error]. What is written is read again to be sure of that.
func Convert(d *Definition, product string, opt ConvertOptions) (data []byte, filename string, diags []Diagnostic, err error) {
	if !slices.Contains(ConvertTargets(), product) {
		return nil, "", nil, fmt.Errorf("convert to %q: there are %s", product, strings.Join(ConvertTargets(), ", "))
	}
	if d.Broken {
		return nil, "", nil, fmt.Errorf("convert %q: %s has errors; mend it first", d.Name, d.Place())
	}
	c := &converter{d: d, p: findProduct(product), w: &writer{}, src: readSource(d, opt.Source)}
	if c.p != nil {
		c.w = c.p.writer
	}
	c.fields()
	if data, err = c.write(); err != nil {
		return nil, "", nil, err
	}
	filename = c.filename()
	if err := c.check(product, filename, data); err != nil {
		return nil, "", c.diags, err
	}
	sortDiagnostics(c.diags)
	if !opt.Force && len(c.losses) > 0 {
		return nil, "", c.diags, &WideningError{d.Name, product, c.losses}
	}
	return data, filename, c.diags, nil
}

// converter writes one definition.
type converter struct {
	d     *Definition
	p     *product // nil for our own format
	w     *writer
	src   *sourceParts
	out   []keyText
	diags []Diagnostic
	// losses are the restrictions that are lost.
	losses []string
	// servers are the names that the file has for tools of servers. Read as
	// those of a program's own tools they would be new ones.
	servers []string
	// delegates says that the file lets the agent delegate.
	delegates bool
}

// keyText is one key of the file, with its value as YAML or TOML.
type keyText struct {
	field string // our name of it, by which comments find it
	key   string
	text  string
}

// lost reports what is not said in the file. Where it restricted the agent that
// is an error.
func (c *converter) lost(field string, restricts bool, format string, args ...any) {
	d := Diagnostic{Pos: c.d.at(field), Severity: Warn, Code: CodeNotSaid, Message: fmt.Sprintf(format, args...)}
	if restricts {
		d.Severity, d.Code = Error, CodeWidened
		c.losses = append(c.losses, d.Message)
	}
	c.diags = append(c.diags, d)
}

// put adds a key whose value has the given JSON form.
func (c *converter) put(field, key string, value any) {
	text := c.value(value)
	c.out = append(c.out, keyText{field, key, text})
}

// value writes a value as YAML or TOML. JSON is YAML; and TOML too but for
// maps, of which none is written there.
func (c *converter) value(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return `""`
	}
	text := bytes.TrimSpace(b.Bytes())
	switch s, isText := v.(string); {
	case c.toml() && isText:
		return tomlString(s)
	case c.toml():
		return string(text)
	case isText:
		return yamlScalar(s, true)
	}
	return yamlFlow(text)
}

func (c *converter) toml() bool { return c.p != nil && c.p.Format == formatTOML }

// key returns the product's spelling of one of our fields.
func (c *converter) key(field string) string { return c.p.dialect.exact[field].spelling() }

// fields writes everything but the body.
func (c *converter) fields() {
	d, w := c.d, c.w
	if c.p == nil {
		c.native()
		return
	}
	if name := c.name(); !w.noName || c.stem() != name {
		c.put("name", "name", name)
	}
	c.put("description", "description", d.Description)
	c.mode()
	c.model()
	number := func(field string, ok bool, v *float64) {
		switch {
		case v == nil:
		case ok:
			c.put(field, c.key(field), *v)
		default:
			c.lost(field, false, "%s can't be said for %s", field, c.p.Title)
		}
	}
	number("temperature", w.temperature, d.Temperature)
	number("top_p", w.topP, d.TopP)
	c.tools()
	c.limits()
	if len(d.Skills) > 0 {
		if w.skills != "" {
			c.put("skills", w.skills, d.Skills)
		} else {
			c.lost("skills", false, "preloaded skills can't be said for %s", c.p.Title)
		}
	}
	switch {
	case !d.Background:
	case w.background != "":
		c.put("background", w.background, true)
	default:
		c.lost("background", false, "that it runs in the background can't be said for %s", c.p.Title)
	}
	if d.CanSpawn && !c.delegates {
		c.lost("can_spawn_subagent", false, "that it may delegate can't be said for %s", c.p.Title)
	}
	if d.Ownership == OwnershipHandoff {
		c.lost("ownership", true, "%s delegates to the agent, which here only takes a conversation over", c.p.Title)
	}
	if d.Handoffs != nil {
		c.lost("handoffs", false, "whom it may hand over to can't be said for %s", c.p.Title)
	}
	if len(d.OutputSchema) > 0 {
		c.lost("output_schema", false, "the shape of its result can't be said for %s", c.p.Title)
	}
	switch {
	case d.Color == "":
	case w.color && d.Origin == c.p.Name:
		c.put("color", "color", d.Color)
	default:
		c.lost("color", false, "the color is left out: %s has colors of its own", c.p.Title)
	}
	c.extra()
}

// native writes every field of ours as it is.
func (c *converter) native() {
	list, err := c.d.members()
	if err != nil {
		return // check finds that it can't be read
	}
	for _, m := range list {
		var v any
		if m.key == "tools" && string(m.value) == "null" || json.Unmarshal(m.value, &v) != nil {
			continue
		}
		if s, ok := v.(string); ok {
			c.put(m.key, yamlScalar(m.key, false), s)
			continue
		}
		c.out = append(c.out, keyText{m.key, yamlScalar(m.key, false), yamlFlow(m.value)})
	}
}

// extra keeps the keys without effect here where the file goes back to the
// product that it is from.
func (c *converter) extra() {
	var names []string
	for key := range c.d.Extra {
		names = append(names, key)
	}
	slices.Sort(names)
	for _, key := range names {
		if f, _ := c.p.dialect.lookup(key); c.d.Origin == c.p.Name && !c.toml() && (f == nil || f.ignored != "") {
			c.put(key, yamlScalar(key, false), c.d.Extra[key])
			continue
		}
		c.lost(key, false, "%q is left out: it has no meaning here, and none that is known for %s", shorten(key, 40), c.p.Title)
	}
}

// name is the agent's name as the product takes it.
func (c *converter) name() string {
	if !c.w.slugs || isSlug(c.d.Name) {
		return c.d.Name
	}
	name := slug(c.d.Name)
	c.lost("name", false, "the name is written %q: %s takes small letters, digits, - and _ alone", name, c.p.Title)
	return name
}

func isSlug(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// slug makes a file's name of an agent's.
func slug(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	if s := strings.Trim(b.String(), "-"); s != "" {
		return s
	}
	return "agent"
}

// stem is the file's name without its ending.
func (c *converter) stem() string {
	if isSlug(c.d.Name) {
		return c.d.Name
	}
	return slug(c.d.Name)
}

func (c *converter) filename() string {
	switch {
	case c.p == nil:
		return c.stem() + ".md"
	case c.p.Suffix != "":
		return c.stem() + c.p.Suffix
	}
	return c.stem() + c.p.extension()
}

// mode says whether the agent is on, and who may see it.
func (c *converter) mode() {
	d, w := c.d, c.w
	if d.Disabled {
		if w.disable {
			c.put("disable", "disable", true)
		} else {
			c.lost("enabled", true, "that it is switched off can't be said for %s", c.p.Title)
		}
	}
	switch {
	case w.mode: // whose default is ours
		if d.Mode != ModeAll && d.Mode != "" {
			c.put("mode", "mode", string(d.Mode))
		}
	case d.Mode == ModePrimary && w.visibility:
		c.put("mode", hideFromModel, true)
	case d.Mode == ModeSubagent && w.visibility:
		c.put("mode", hideFromUser, false)
	case d.Mode == ModePrimary || d.Mode == ModeSubagent:
		c.lost("mode", true, "mode %s can't be said for %s", d.Mode, c.p.Title)
	}
}

// model writes the model and the effort. The name of a model is only carried
// over where it means the same.
func (c *converter) model() {
	d, w := c.d, c.w
	ref, err := synapse.ParseModelRef(d.Model)
	switch {
	case d.Model == "":
	case d.Origin == c.p.Name, d.Model == string(synapse.EffortInherit) && !w.slashModel && c.p.Format == formatMarkdown:
		c.put("model", "model", d.Model)
	case w.slashModel && err == nil:
		c.put("model", "model", ref.Provider+"/"+ref.Name)
		c.lost("model", false, "the model is written %s/%s, as %s has it", ref.Provider, ref.Name, c.p.Title)
	default:
		c.lost("model", false, "the model %q is left out: it may mean another one for %s", shorten(d.Model, 40), c.p.Title)
	}
	switch e := d.ReasoningEffort; {
	case e == "":
	case w.efforts[e] != "":
		c.put("reasoning_effort", w.effort, w.efforts[e])
	default:
		c.lost("reasoning_effort", false, "the reasoning effort %q can't be said for %s", e, c.p.Title)
	}
}

// limits writes what bounds a run.
func (c *converter) limits() {
	d, w := c.d, c.w
	if d.MaxTurns > 0 {
		if w.turns != "" {
			c.put("max_turns", w.turns, d.MaxTurns)
		} else {
			c.lost("max_turns", true, "a limit of %d turns can't be said for %s", d.MaxTurns, c.p.Title)
		}
	}
	l := d.Limits
	if whole := int64(time.Duration(l.Time) / time.Minute); l.Time > 0 && w.minutes != "" && whole > 0 {
		c.put("limits", w.minutes, whole)
		if time.Duration(whole)*time.Minute != time.Duration(l.Time) {
			c.lost("limits", false, "the limit of time is written in whole minutes, %d", whole)
		}
	} else if l.Time > 0 {
		c.lost("limits", true, "a limit of %s can't be said for %s", l.Time, c.p.Title)
	}
	l.Time, l.Turns = 0, 0
	if l != (synapse.Limits{}) {
		c.lost("limits", true, "limits on tokens, cost, calls and spawns can't be said for %s", c.p.Title)
	}
}

// errRead says that what was written can't be read.
var errRead = errors.New("what was written does not load again")

// check reads what was written with the product's own reading, and reports
// every way in which the agent could do more, or less, than before.
func (c *converter) check(product, filename string, data []byte) error {
	origin := ""
	if c.p != nil {
		origin = c.p.Name
	}
	back, diags := Parse(filename, data, ParseOptions{Origin: origin, Layer: c.d.Layer})
	if back == nil || back.Broken && !c.d.Disabled || back.Prompt == "" {
		for _, d := range diags {
			if d.Severity == Error {
				return fmt.Errorf("convert %q to %s: %w: %s", c.d.Name, product, errRead, d.Message)
			}
		}
		return fmt.Errorf("convert %q to %s: %w", c.d.Name, product, errRead)
	}
	more, less := compareAccess(back, c.d, c.servers)
	if len(more) > 0 && len(c.losses) == 0 {
		c.lost("tools", true, "%s", strings.Join(more, "; "))
	}
	if len(less) > 0 && !slices.ContainsFunc(c.diags, func(d Diagnostic) bool { return d.Code == CodeNarrowed }) {
		c.narrowed("the agent can do less there: %s", strings.Join(less[:min(len(less), 4)], "; "))
	}
	return nil
}

// narrowed reports what the agent can't do any more.
func (c *converter) narrowed(format string, args ...any) {
	c.diags = append(c.diags, Diagnostic{Pos: c.d.at("tools"), Severity: Warn, Code: CodeNarrowed, Message: fmt.Sprintf(format, args...)})
}
