package agents

// judge is what is documented, or can be seen, of how a product reads a file:
// enough to say what it would do with one that was written for another.
type judge struct {
	needs      []string // keys without which the file is refused
	anyName    bool     // the file's name stands in for a missing one
	slugs      bool     // other names are refused
	strictYAML bool     // frontmatter that is not valid YAML is refused
	strictKeys bool     // so is a key that it does not know
	toml       bool     // nothing but TOML is read
	// tools is the key of the list of tools, "" where there is none and every
	// agent has all of them. denies is that of the denials.
	tools, denies string
	listOnly      bool // tools that are no YAML list are refused
	mapOnly       bool // tools that are no map of booleans are refused
	strictTools   bool // so is the name of a tool that it does not know
	emptyIsAll    bool // an empty list of tools means all of them
	allFail       bool // a file that is refused takes all others with it
}
