package agents

import (
	"fmt"
	"slices"
	"strings"

	"github.com/synapse-agents/synapse/policy"
	"go.yaml.in/yaml/v3"
)

// Outcome says what a product does with a file.
type Outcome string

// The outcomes.
const (
	Loads     Outcome = "loads"
	LoadsAll  Outcome = "loads with all tools" // though the file restricts them
	Refuses   Outcome = "refuses"
	ReadsNone Outcome = "does not read" // files in that format
)

// A Fate is what one product would do with a definition file if it lay in its
// directory, from what is documented of it.
type Fate struct {
	Product string  `json:"product"`
	Outcome Outcome `json:"outcome"`
	Why     string  `json:"why,omitempty"`
}

// Elsewhere says what each product would do with a file that was written for
// the product of that origin, or with [Native] for us. Its own product is among
// them. It does no I/O.
func Elsewhere(file string, data []byte, origin string) []Fate {
	own := dialectOf(origin)
	src, _ := decode(file, data)
	seen := fileFacts{toml: own.product.isTOML()}
	seen.gather(src, own)
	fates := make([]Fate, 0, len(products))
	for _, p := range products {
		outcome, why := p.judge.fate(p, &seen)
		fates = append(fates, Fate{p.Name, outcome, why})
	}
	return fates
}

// fileFacts is what decides about a file's fate.
type fileFacts struct {
	toml, head bool
	body       bool
	fault      string     // why the header is not valid, "" if it is
	root       *yaml.Node // of the header, as far as it could be read
	own        *dialect   // of the file
}

func (f *fileFacts) gather(src source, own *dialect) {
	f.own = own
	if f.toml {
		f.head = true
		root, err := parseTOMLTree(strings.Join(src.lines, "\n"))
		if err != nil {
			f.fault = err.Error()
			return
		}
		f.root = root
		return
	}
	doc, ok := splitDocument(src, own)
	if !ok || doc.skipped != "" || doc.odd != "" {
		return
	}
	f.head, f.body = true, doc.body != ""
	root, err := parseYAML(strings.Join(doc.head, "\n"))
	if err != nil {
		f.fault, _ = yamlComplaint(err)
		if h, _ := parseHeader(src, &doc); h != nil {
			f.root = h.root
		}
		return
	}
	f.root = root
}

// each calls fn with the header's keys and values.
func (f *fileFacts) each(fn func(key string, value *yaml.Node)) {
	if f.root == nil || f.root.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(f.root.Content); i += 2 {
		value := f.root.Content[i+1]
		if value.Kind == yaml.AliasNode && value.Alias != nil {
			value = value.Alias
		}
		fn(f.root.Content[i].Value, value)
	}
}

var formatTitles = map[string]string{formatMarkdown: "Markdown", formatTOML: "TOML"}

// fate judges a file.
func (j *judge) fate(p *product, f *fileFacts) (Outcome, string) {
	switch {
	case j.toml != f.toml:
		return ReadsNone, "its files are " + formatTitles[p.Format]
	case !f.head:
		return Refuses, "it begins with no frontmatter that ends in “---”"
	case f.fault != "" && (j.strictYAML || j.toml):
		return Refuses, "the header is not valid: " + f.fault
	}
	if why := j.refusal(p, f); why != "" {
		return Refuses, why
	}
	return j.tooling(p, f)
}

// refusal says why a header that could be read is refused, "" if it is not.
func (j *judge) refusal(p *product, f *fileFacts) string {
	have := map[string]bool{}
	why := ""
	refuse := func(format string, args ...any) {
		if why == "" {
			why = fmt.Sprintf(format, args...)
		}
	}
	f.each(func(key string, v *yaml.Node) {
		have[key] = have[key] || !isNull(v) && (v.Kind != yaml.ScalarNode || trim(v.Value) != "")
		field, _ := p.dialect.lookup(key)
		known := field != nil && field.isOwn(key)
		switch {
		case j.strictKeys && !known:
			refuse("it does not know the key %q", shorten(key, 40))
		case key == "name" && j.slugs && v.Kind == yaml.ScalarNode && !isSlug(v.Value):
			refuse("a name has small letters, digits, - and _ alone")
		case key == j.tools && j.listOnly && v.Kind != yaml.SequenceNode && !isNull(v):
			refuse("tools must be a list")
		case key == j.tools && j.mapOnly && v.Kind != yaml.MappingNode && !isNull(v):
			refuse("tools must be a map of true and false")
		case key == j.tools && j.strictTools:
			for _, name := range toolWords(v) {
				if name != "*" && p.lookupTool(name) == nil && p.mcp.native(name, false) == nil {
					refuse("it has no tool %q", shorten(name, 40))
				}
			}
		}
	})
	for _, key := range j.needs {
		if !have[key] && why == "" {
			return "it has no " + key
		}
	}
	return why
}

// tooling says whether what the file says of tools holds.
func (j *judge) tooling(p *product, f *fileFacts) (Outcome, string) {
	restricted, held, denied, denials := false, false, false, false
	unknown, known := 0, 0
	var lost []string
	f.each(func(key string, v *yaml.Node) {
		field, _ := f.own.lookup(key)
		if field == nil || isNull(v) {
			return
		}
		theirs, _ := p.dialect.lookup(key)
		theyKnow := theirs != nil && theirs.isOwn(key)
		switch field.name {
		case "tools":
			if v.Kind == yaml.ScalarNode && slices.Contains([]string{"", "*", wordAll}, strings.ToLower(trim(v.Value))) {
				return
			}
			restricted = true
			held = theyKnow && key == j.tools && (j.mapOnly == (v.Kind == yaml.MappingNode)) &&
				!(j.emptyIsAll && v.Kind == yaml.SequenceNode && len(v.Content) == 0)
			for _, name := range toolWords(v) {
				if p.lookupTool(name) != nil || p.mcp.native(name, false) != nil || name == "*" {
					known++
				} else {
					unknown++
				}
			}
		case "disallowed_tools":
			denied = true
			denials = denials || theyKnow && key == j.denies
		default:
			if field.restricts && !theyKnow && field.name != "enabled" {
				lost = append(lost, key)
			}
		}
	})
	switch {
	case restricted && !held, !restricted && denied && !denials:
		return LoadsAll, "it does not go by what the file says of tools"
	case held && known == 0 && unknown > 0 && !j.mapOnly:
		return Loads, "it knows none of the tools that are listed"
	case held && unknown > 0 && !j.mapOnly:
		return Loads, "it does not know all of the tools that are listed"
	case denied && !denials:
		return Loads, "it does not know the denials"
	case len(lost) > 0:
		return Loads, "it does not know " + strings.Join(lost[:min(len(lost), 4)], ", ")
	}
	return Loads, ""
}

// toolWords returns the names in a value of tools, whatever its shape.
func toolWords(v *yaml.Node) []string {
	var list []string
	add := func(text string) {
		for _, name := range policy.SplitList(text) {
			if name, _, _ := strings.Cut(name, "("); trim(name) != "" {
				list = append(list, trim(name))
			}
		}
	}
	switch v.Kind {
	case yaml.ScalarNode:
		add(v.Value)
	case yaml.SequenceNode:
		for _, c := range v.Content {
			if c.Kind == yaml.ScalarNode {
				add(c.Value)
			}
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(v.Content); i += 2 {
			add(v.Content[i].Value)
		}
	}
	return list
}
