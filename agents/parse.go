package agents

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Native is the [Definition.Origin] of the formats of this package.
const Native = "synapse"

// ParseOptions says how a file is to be read. The zero value reads a native
// file that stands alone.
type ParseOptions struct {
	// StemName takes a file without a name by its file's stem, as other
	// products do. A native file must have a name.
	StemName bool
	// Stem is what a file without a name goes by, by default its own stem.
	Stem  string
	Layer LayerKind
	// Origin is the product whose file it is, one of [ProductNames]: its keys
	// mean what they mean there, and StemName is implied. Any other name is
	// only kept as the definition's origin. Default [Native].
	Origin string
	// ReadFile reads a file that a definition points to (output_schema). The
	// path is relative to the definition's directory, with slashes, cleaned,
	// and may begin with "..": it is ReadFile that decides what may be read.
	// With nil nothing is.
	ReadFile func(path string) ([]byte, error)
}

// Parse reads a definition file: Markdown with YAML frontmatter, or the format
// of the product that [ParseOptions.Origin] names. It does no I/O but through
// [ParseOptions.ReadFile]; file is the path for messages, and the stem of its
// last element stands in for a name.
//
// The definition is nil only for a file that is documentation. With an error
// among the diagnostics it is [Definition.Broken], and holds what could be read.
func Parse(file string, data []byte, opt ParseOptions) (*Definition, []Diagnostic) {
	r := newReader(file, &opt)
	if len(data) > MaxFileSize {
		r.report(Pos{File: file}, Error, CodeTooLarge, "move what it refers to into files of its own",
			"the file has %d bytes, more than the %d that are read", len(data), MaxFileSize)
		return r.done()
	}
	src, diags := decode(file, data)
	r.diags = append(r.diags, diags...)
	if p := r.dialect.product; p != nil && p.Format == formatTOML {
		return r.toml(src)
	}
	doc, ok := splitDocument(src, r.dialect)
	if !ok {
		if isDocFile(file) {
			return nil, []Diagnostic{{
				Pos: Pos{File: file, Line: 1, Column: 1}, Severity: Info, Code: CodeDocFile,
				Message: "passed over: documentation without frontmatter",
			}}
		}
		r.noFrontmatter(src)
		return r.done()
	}
	r.d.Pos = doc.open
	if doc.skipped != "" {
		r.report(doc.open, Warn, CodeLeadingText, "begin the file with “---”", "%s before the frontmatter skipped", doc.skipped)
	}
	h, diags := parseHeader(src, &doc)
	r.diags = append(r.diags, diags...)
	if doc.odd != "" {
		r.report(Pos{file, doc.oddLine, 1}, Warn, CodeFrontmatterOpen, "end it with a line “---”", "the frontmatter ends %s, taken to end here", doc.odd)
	}
	if doc.stray > 0 {
		r.report(Pos{file, doc.stray, 1}, Error, CodeFrontmatterOpen, "end the frontmatter with a line “---”",
			"the frontmatter ends nowhere, and it is not clear whether %s, which restricts the agent, belongs to it", doc.strayField)
	}
	if h == nil {
		return r.done()
	}
	r.raw = h.raw
	r.fields(h.root)
	if doc.body != "" {
		if r.prompt != "" {
			r.report(r.d.at("system_prompt"), Warn, CodeBodyTwice, "remove the field", "the file has a body and the field system_prompt; the body is used")
		}
		r.prompt = doc.body
	}
	r.stemName(doc.open)
	r.require("write the system prompt below the frontmatter")
	return r.done()
}

func newReader(file string, opt *ParseOptions) *reader {
	origin := opt.Origin
	if origin == "" {
		origin = Native
	}
	dl := dialectOf(origin)
	rule := ToolRule{Mode: ToolsInherit}
	if dl.product != nil { // to every product silence means all there is
		rule = ToolRule{Mode: ToolsExact, Names: []string{"*"}}
	}
	return &reader{
		file: file, opt: opt, dialect: dl, budget: maxNodes, spare: maxExtra,
		d: &Definition{
			Mode: ModeAll, Ownership: OwnershipTask, Tools: rule,
			Layer: opt.Layer, Origin: origin, Pos: Pos{File: file, Line: 1, Column: 1}, Lines: map[string]int{},
		},
	}
}

// stemName takes the file's name for one that is missing.
func (r *reader) stemName(at Pos) {
	if r.d.Name != "" || !r.opt.StemName && r.dialect.product == nil {
		return
	}
	stem := r.opt.Stem
	if stem == "" {
		stem = fileStem(r.file)
	}
	if stem != "" {
		r.d.Name = stem
		r.report(at, Warn, CodeNameFromFile, "add name: "+stem, "the file has no name; that of the file is used, %q", stem)
	}
}

// done returns what was read. A definition with an error is disabled.
func (r *reader) done() (*Definition, []Diagnostic) {
	r.d.Prompt = r.prompt
	if HasErrors(r.diags) {
		r.d.Broken, r.d.Disabled = true, true
	}
	sortDiagnostics(r.diags)
	r.diags = bounded(r.diags)
	return r.d, r.diags
}

// maxDiagnostics is how much is said of one file.
const maxDiagnostics = 150

// bounded leaves out what is too much to be read, errors last, and says how much
// that is.
func bounded(diags []Diagnostic) []Diagnostic {
	more := len(diags) - maxDiagnostics
	if more <= 0 {
		return diags
	}
	isError := func(d Diagnostic) bool { return d.Severity == Error }
	errs := 0
	for _, d := range diags {
		if isError(d) {
			errs++
		}
	}
	room := max(maxDiagnostics-errs, 0) // for those that are none
	left := maxDiagnostics
	kept := make([]Diagnostic, 0, maxDiagnostics)
	for _, d := range diags {
		switch {
		case left == 0, !isError(d) && room == 0:
			continue
		case !isError(d):
			room--
		}
		left--
		kept = append(kept, d)
	}
	kept[len(kept)-1].Message += fmt.Sprintf("; %d more findings in this file are left out", more)
	return kept
}

// noFrontmatter says what the file begins with instead.
func (r *reader) noFrontmatter(src source) {
	at := Pos{File: r.file, Line: 1, Column: 1}
	line := ""
	for i, l := range src.lines {
		if strings.TrimSpace(l) != "" {
			line, at.Line = l, i+1
			break
		}
	}
	msg, hint := "the file does not begin with frontmatter", "begin it with “---”, name: …, description: …, “---”"
	k, isKey := cutKey(line)
	switch {
	case line == "":
		msg = "the file is empty"
	case isKey && r.isField(k.name):
		msg, hint = "the line “---” above the frontmatter is missing", "put “---” above this line"
	case isLongRule(strings.TrimSpace(line)):
		msg, hint = "the frontmatter begins with a rule of more than three dashes", "write “---”"
	case slices.ContainsFunc(src.lines, func(l string) bool { return strings.TrimSpace(l) == "---" }):
		msg = fmt.Sprintf("the file begins with %q, not with frontmatter", shorten(strings.TrimSpace(line), 40))
		hint = "the frontmatter must be the first thing in the file"
	}
	r.report(at, Error, CodeNoFrontmatter, hint, "%s", msg)
}

func (r *reader) isField(key string) bool {
	f, _ := r.dialect.lookup(key)
	return f != nil
}

// set is one key that means a field, with its value.
type set struct {
	pair
	exact bool // the field's own name
}

// fields reads a mapping with the table of fields.
func (r *reader) fields(root *yaml.Node) {
	given := map[*field][]set{}
	for _, p := range r.pairs(root) {
		p.value = r.follow(p.value)
		if p.key.Kind != yaml.ScalarNode {
			r.warn(p.key, CodeUnknownField, "write key: value", "a key is %s", kindOf(p.key))
			continue
		}
		key := trim(p.key.Value)
		f, exact := r.dialect.lookup(key)
		switch {
		case f == nil:
			r.extra(key, p)
			continue
		case f.ignored != "":
			r.ignore(key, p, f)
			continue
		case !exact:
			r.warn(p.key, CodeKeySpelling, "write "+f.spelling(), "the key %q is read as %s", key, f.spelling())
		case r.dialect.product != nil && !f.isOwn(key):
			r.warn(p.key, CodeForeignField, "", "%s does not know %q; it is read as in a file of ours", r.dialect.product.Title, key)
		case f.hidden && f.foreign == (r.dialect.product != nil):
			r.warn(p.key, CodeKeySpelling, "write enabled", "the key %q is read as the opposite of enabled", key)
		}
		given[f] = append(given[f], set{p, key == f.spelling()})
	}
	for _, f := range r.dialect.table {
		if sets := given[f]; len(sets) > 0 {
			r.field = f
			r.readField(f, sets)
		}
	}
	if len(r.grants)+len(r.denials) > 0 {
		r.field = r.dialect.exact["tools"]
		r.failed(r.joinRules(), nil)
	}
	if p := r.dialect.product; p != nil {
		if p.finish != nil {
			p.finish(r)
		}
		r.tightenAll()
	}
}

// ignore keeps a key of another product that has no effect here.
func (r *reader) ignore(key string, p pair, f *field) {
	r.keep(key, p, func(dropped string) {
		r.warn(p.key, CodeFieldIgnored, "", "%s: %s%s", key, f.ignored, dropped)
	})
}

// readField reads a field from the keys that set it.
func (r *reader) readField(f *field, sets []set) {
	r.d.Lines[f.name] = sets[0].key.Line
	sets = slices.DeleteFunc(sets, func(s set) bool { return isNull(s.value) })
	if len(sets) == 0 {
		return
	}
	// The field's own name comes before its other spellings.
	first := max(slices.IndexFunc(sets, func(s set) bool { return s.exact }), 0)
	r.d.Lines[f.name] = sets[first].key.Line
	if v := sets[first].value; !f.restricts && v.Kind == yaml.MappingNode && f.name != "output_schema" {
		r.misplaced(v)
	}
	r.failed(f.read(r, sets[first].value), sets[first].value)
	for i, s := range sets {
		if i != first {
			r.again(f, sets[first], s)
		}
	}
}

// misplaced reports restricting fields inside a map where none belongs: one
// that stands too far to the right ends up in the field above it.
func (r *reader) misplaced(n *yaml.Node) {
	for _, p := range r.pairs(n) {
		if f, _ := r.dialect.lookup(trim(p.key.Value)); f != nil && f.restricts {
			r.report(r.pos(p.key), Error, CodeBadRestriction, "begin the line without blanks",
				"%s stands inside %s; the definition is disabled, as this field restricts it", f.name, r.field.name)
		}
	}
}

// again says that a field was set before. Denials add up; of two different
// permission maps neither may be lost.
func (r *reader) again(f *field, first, s set) {
	line := first.key.Line
	switch f.name {
	case "disallowed_tools":
		r.warn(s.key, CodeDuplicateField, "join the two lists", "disallowed_tools is also set in line %d; both count", line)
		r.failed(f.read(r, s.value), s.value)
	case "permissions":
		a, errA := r.jsonText(first.value)
		b, errB := r.jsonText(s.value)
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			r.report(r.pos(s.key), Error, CodeDuplicateField, "join the two maps", "permissions is also set in line %d, to something else", line)
			return
		}
		fallthrough
	default:
		r.warn(s.key, CodeDuplicateField, "remove one of the two", "%s is also set in line %d, which counts", f.name, line)
	}
}

// failed reports a value that could not be read: an error where it restricts.
func (r *reader) failed(err error, n *yaml.Node) {
	if err == nil {
		return
	}
	e := &valueError{node: n, msg: err.Error()}
	errors.As(err, &e)
	if e.node == nil {
		e.node = &yaml.Node{Line: r.d.Pos.Line, Column: r.d.Pos.Column}
	}
	what := r.field.spelling()
	if e.in != "" {
		what += ": " + shorten(e.in, 40)
	}
	if r.field.restricts {
		r.report(r.pos(e.node), Error, CodeBadRestriction, e.hint, "%s %s; the definition is disabled, as this field restricts it", what, e.msg)
		return
	}
	code := CodeBadValue
	if r.field.name == "output_schema" {
		code = CodeBadSchema
	}
	r.report(r.pos(e.node), Warn, code, e.hint, "%s %s; the field is dropped", what, e.msg)
}

// maxUnknown is how many unknown keys of one definition are warned about.
const maxUnknown = 50

// extra keeps a key that is no field.
func (r *reader) extra(key string, p pair) {
	if r.unknown++; r.unknown > maxUnknown {
		if r.unknown == maxUnknown+1 {
			r.warn(p.key, CodeUnknownField, "", "there are more than %d keys that are not fields of a definition; the rest is dropped", maxUnknown)
		}
		return
	}
	if _, seen := r.d.Extra[key]; seen {
		r.warn(p.key, CodeDuplicateField, "remove one of the two", "%q is set already", shorten(key, 40))
		return
	}
	hint := ""
	if s := r.dialect.suggest(key); s != "" {
		hint = fmt.Sprintf("did you mean %q?", s)
	} else if s, ok := wordsOfOthers[foldName(key)]; ok && r.dialect.product == nil {
		hint = fmt.Sprintf("did you mean %q?", s)
	}
	r.keep(key, p, func(dropped string) {
		if dropped == "" {
			dropped = "; it is kept and has no effect"
		}
		r.warn(p.key, CodeUnknownField, hint, "%q is not a field of a definition%s", shorten(key, 40), dropped)
	})
}

// keep puts a key without effect among the extra ones, and has said what is to
// be said of it: dropped is why its value is not kept, "" if it is.
func (r *reader) keep(key string, p pair, tell func(dropped string)) {
	// What has no effect gets a small budget of its own, so that it can't use
	// up that of the fields.
	budget := r.budget
	r.budget = r.spare
	value, err := r.anyValue(p.value, 0)
	r.spare, r.budget = r.budget, budget
	if err != nil {
		tell(fmt.Sprintf("; its value %v and is dropped", err))
		return
	}
	if r.d.Extra == nil {
		r.d.Extra = map[string]any{}
	}
	r.d.Extra[key] = value
	tell("")
}

// wordsOfOthers maps keys that other formats have for what is a field here but
// is spelled too differently to be guessed.
var wordsOfOthers = map[string]string{
	"prompt": "system_prompt", "instructions": "system_prompt", "developerinstructions": "system_prompt",
	"iterations": "max_turns", "turns": "max_turns", "timeout": "limits", "timeoutmins": "limits", "maxtokens": "limits",
	"excludetools": "disallowed_tools", "deny": "disallowed_tools", "allow": "tools", "allowlist": "tools", "denylist": "disallowed_tools",
	"thinking": "reasoning_effort", "reasoning": "reasoning_effort", "when": "description", "whentouse": "description",
	"schema": "output_schema", "type": "mode",
}

// require checks what every definition must have. The body is described for the
// message about a missing one.
func (r *reader) require(body string) {
	switch {
	case r.d.Name == "":
		r.report(r.d.at("name"), Error, CodeMissingName, "add name: …", "the definition has no name")
	default:
		if what := checkName(r.d.Name); what != "" {
			r.report(r.d.at("name"), Error, CodeBadName, "a name has up to 64 characters, and neither “..” nor control characters",
				"the name %q %s", shorten(r.d.Name, 70), what)
		}
	}
	if r.d.Description == "" {
		r.report(r.d.at("description"), Error, CodeMissingDesc, "add description: when to delegate to this agent", "the definition has no description")
	}
	if r.prompt == "" {
		r.report(r.d.Pos, Error, CodeMissingBody, body, "the definition has no body")
	}
}

// isDocFile reports whether a file's name says that it is documentation:
// README.md, readme.zh.md, README_CN.md, CHANGELOG.md, AGENTS.md, index.md …
func isDocFile(file string) bool {
	stem := strings.ToLower(path.Base(strings.ReplaceAll(file, `\`, "/")))
	stem, _, _ = strings.Cut(stem, ".")
	for _, word := range []string{"readme", "changelog"} {
		if rest, ok := strings.CutPrefix(stem, word); ok && (rest == "" || rest[0] == '-' || rest[0] == '_') {
			return true
		}
	}
	return slices.Contains([]string{"agents", "claude", "index", "gemini", "license", "contributing"}, stem)
}
