package agents

import (
	"path"
	"slices"
	"strings"
)

// A product is another coding agent whose definition files are read where they
// lie. All that is known of it is in its table: the code that reads, writes and
// checks files knows no product by name.
type product struct {
	Product
	dialect *dialect
	// names maps the product's names for tools, folded where it ignores letter
	// case, to what they are here.
	names map[string]*ProductTool
	// foldNames says that the product ignores the letter case of tool names.
	foldNames bool
	// mcp says how the product names the tools of MCP servers.
	mcp mcpForm
	// paths is how its file patterns read.
	paths pathForm
	// emptyTools is said of a file with an empty list of tools, where the
	// product takes that for something wider than no tool.
	emptyTools string
	// config is the key under which a JSON file of the product's own holds
	// agents, "" where there is no such file.
	config string
	// passedOver are names under that key which set up agents that are part of
	// the product.
	passedOver []string
	// finish completes a definition when all its keys are read.
	finish func(r *reader)
	// writer says what can be said in the product's format.
	writer *writer
	// judge says what the product does with a file that is not its own.
	judge judge
}

// A Product describes another coding agent whose definition files are read, for
// documentation.
type Product struct {
	Name  string `json:"name"`  // in import_sources, as the origin, and before the colon of "claude:reviewer"
	Title string `json:"title"` // for people
	// Format is "markdown" or "toml".
	Format string  `json:"format"`
	Places []Place `json:"places"`
	// Nested says that directories below a place are read too.
	Nested bool `json:"nested"`
	// PassOver is how the names of files begin that are no definitions, "" for
	// none but the dot.
	PassOver string `json:"pass_over,omitempty"`
	// Suffix is an ending of names by which a file is the product's wherever
	// it lies, "" where there is none.
	Suffix string `json:"suffix,omitempty"`
	// PathNames says that a file without a name goes by its path below the
	// place ("team/reviewer"), not by its own stem.
	PathNames bool `json:"path_names,omitempty"`
	// Twice says what the product does with two agents of one name.
	Twice string `json:"twice"`
	// AbsentTools and EmptyTools say what the product makes of a file without
	// tools and of one whose list is empty.
	AbsentTools string         `json:"absent_tools"`
	EmptyTools  string         `json:"empty_tools"`
	Fields      []ProductField `json:"fields"`
	Tools       []ProductTool  `json:"tools"`
	// Differs says in sentences where an agent runs differently here.
	Differs []string `json:"differs"`
}

// A Place is where a product keeps definitions, below a level's directory.
type Place struct {
	// Level is LayerHome or LayerWorkspace.
	Level LayerKind `json:"level"`
	Path  string    `json:"path"` // with slashes; a directory, or a JSON file
}

// A ProductField is a key that a product knows.
type ProductField struct {
	Key       string   `json:"key"`
	Also      []string `json:"also,omitempty"` // the product's own other spellings
	As        string   `json:"as"`             // our field, "" where nothing comes of it here
	Restricts bool     `json:"restricts"`
	About     string   `json:"about"`
}

// A ProductTool is a product's name for tools.
type ProductTool struct {
	Name string   `json:"name"`
	Also []string `json:"also,omitempty"`
	// Grants are the tools that naming it in a list gives here.
	Grants []string `json:"grants"`
	// Covers are the tools that it stands for when it is denied, and all that
	// it can do: at least Grants.
	Covers []string `json:"covers"`
}

// Products lists the products whose files are read, those first whose agents
// win where two have one name on the same level.
func Products() []Product {
	var list []Product
	for _, p := range products {
		c := p.Product
		c.Places = slices.Clone(c.Places)
		c.Tools = slices.Clone(c.Tools)
		c.Fields = slices.Clone(c.Fields)
		c.Differs = slices.Clone(c.Differs)
		list = append(list, c)
	}
	return list
}

// ProductNames lists the names of the products, in the same order.
func ProductNames() []string {
	var names []string
	for _, p := range products {
		names = append(names, p.Name)
	}
	return names
}

func findProduct(name string) *product {
	for _, p := range products {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// isFile reports whether the place is a single file.
func (p Place) isFile() bool {
	ext := path.Ext(p.Path)
	return ext == ".json" || ext == ".jsonc"
}

// extension is how the names of the product's files end.
func (p *product) extension() string {
	if p.Format == formatTOML {
		return ".toml"
	}
	return ".md"
}

// reads reports whether a file's name ends like one of the product's.
func (p *product) reads(file string) bool { return strings.EqualFold(path.Ext(file), p.extension()) }

// The formats of files.
const (
	formatMarkdown = "markdown"
	formatTOML     = "toml"
)

// products holds the table of each product. Its order is that of precedence.
var products = []*product{
	claude(), opencode(), gemini(), copilot(), cursor(), codex(), qwen(), yome(),
}

// build completes a product's table: what its fields are in documentation, and
// how its keys and tools are found.
func (p *product) build(own ...*field) *product {
	p.Fields = nil
	taken := map[string]bool{}
	for _, f := range own {
		taken[f.name] = true
		info := ProductField{Key: f.spelling(), Also: slices.Clone(f.own), As: f.name, Restricts: f.restricts, About: f.about}
		if f.name == "tools" && f.about == native.exact["tools"].about {
			info.About = "names of tools: just those, and what is said above where there is none"
		}
		if f.ignored != "" || f.as != "" {
			info.As, info.About = f.as, cmpText(f.about, f.ignored)
		}
		p.Fields = append(p.Fields, info)
	}
	table := slices.Clone(own)
	for _, f := range fieldTable {
		if !taken[f.name] {
			c := *f
			c.foreign = true
			table = append(table, &c)
		}
	}
	p.dialect = newDialect(p, table)
	p.names = map[string]*ProductTool{}
	for i := range p.Tools {
		t := &p.Tools[i]
		for _, n := range append([]string{t.Name}, t.Also...) {
			if p.foldNames {
				n = strings.ToLower(n)
			}
			p.names[n] = t
		}
	}
	return p
}

func cmpText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// take is a field of ours under the product's own spellings.
func take(name, key string, also ...string) *field {
	f := *native.exact[name]
	f.key, f.own = key, also
	f.also = append(slices.Clone(native.exact[name].also), also...)
	if key != name {
		f.also = append(f.also, key)
	}
	return &f
}

// about gives a field words of its own in documentation.
func (f *field) says(about string) *field {
	f.about = about
	return f
}

// with gives a field a reading of its own.
func (f *field) with(read readFunc) *field {
	f.read = read
	return f
}

// ignored is a key of the product from which nothing comes here. It is kept
// with the unknown ones, and the reason is told where told says so.
func ignored(key, why string, also ...string) *field {
	return &field{name: key, own: also, also: also, ignored: why}
}

// own is a key that our format does not have, with what is made of it.
func own(key, as, about string, read readFunc, also ...string) *field {
	return &field{name: key, also: also, own: also, as: as, about: about, restricts: true, read: read}
}
