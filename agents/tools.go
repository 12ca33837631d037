package agents

import (
	"errors"
	"slices"
	"strings"
	"unicode"

	"github.com/synapse-agents/synapse/policy"
	"go.yaml.in/yaml/v3"
)

// grant is what stands in brackets behind a tool's name: "git:*" in
// "Bash(git:*)".
type grant struct {
	tool, pattern string
	node          *yaml.Node
}

// grant adds what a pattern in brackets means here.
func (r *reader) grant(list []grant, tool, pattern string, action policy.Action, n *yaml.Node) ([]grant, error) {
	patterns, err := r.patterns(tool, pattern, action, n)
	for _, p := range patterns {
		list = append(list, grant{tool, p, n})
	}
	if len(patterns) == 0 && err == nil && action == policy.Allow {
		// What can't be granted here must not become a grant of everything.
		list = append(list, grant{tool, noCall, n})
	}
	return list, err
}

const noToolsHint = "write [] for the framework's own tools, none for no tool"

func readTools(r *reader, n *yaml.Node) error {
	if n.Kind == yaml.MappingNode && !customTag(n) {
		return r.toolsMap(n)
	}
	if n.Kind == yaml.ScalarNode && !customTag(n) && n.Tag != tagUnreadable {
		if on, ok := boolOf(n); ok && n.ShortTag() == "!!bool" {
			if !on {
				return r.bad(n, noToolsHint, "is false")
			}
			r.warn(n, CodeToolsShape, "leave tools out", "tools is true, read as if it were absent")
			return nil
		}
		word := strings.ToLower(trim(n.Value))
		switch {
		case word == "" && n.ShortTag() == "!!str":
			r.warn(n, CodeToolsShape, "leave tools out, or "+noToolsHint, "tools is empty text, read as if it were absent")
			return nil
		case word == wordAll:
			r.d.Tools = ToolRule{Mode: ToolsExact, Names: []string{"*"}}
			return nil
		case word == wordNone:
			r.d.Tools = ToolRule{Mode: ToolsExact}
			return nil
		}
	}
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 && !customTag(n) {
		r.d.Tools = ToolRule{Mode: ToolsFramework}
		if p := r.dialect.product; p != nil {
			r.d.Tools = ToolRule{Mode: ToolsExact}
			if p.emptyTools != "" {
				r.warn(n, CodeStricter, "leave tools out", "tools is an empty list: %s; here the agent has no tool", p.emptyTools)
			}
		}
		return nil
	}
	items, err := r.toolItems(n, false)
	if err != nil {
		return err
	}
	rule := ToolRule{Mode: ToolsExact}
	var written []string
	bare := map[string]bool{}
	var grants []grant
	for _, it := range items {
		tool, patterns, err := r.specifier(it)
		if err != nil {
			return err
		}
		if !slices.Contains(written, it.text) {
			written = append(written, it.text)
		}
		for _, tool := range r.toolNames(tool, false) {
			if !slices.Contains(rule.Names, tool) {
				rule.Names = append(rule.Names, tool)
			}
			if len(patterns) == 0 {
				bare[policy.Canonical(tool, nil)] = true
			}
			for _, p := range patterns {
				if grants, err = r.grant(grants, tool, p, policy.Allow, it.node); err != nil {
					return err
				}
			}
		}
	}
	if len(rule.Names) == 1 && strings.EqualFold(rule.Names[0], wordAll) {
		rule.Names[0] = "*"
	}
	if len(rule.Names) == 0 {
		return r.bad(n, noToolsHint, "names no tool")
	}
	for _, g := range grants { // a tool named without brackets too is had whole
		if !bare[policy.Canonical(g.tool, nil)] {
			r.grants = append(r.grants, g)
		}
	}
	r.d.Tools = rule
	if len(r.grants) > 0 || !slices.Equal(written, rule.Names) && (r.dialect.product != nil || len(written) != len(rule.Names)) {
		r.d.ToolEntries = written
	}
	return nil
}

// toolsMap reads {read: true, bash: false}.
func (r *reader) toolsMap(n *yaml.Node) error {
	var yes, no []string
	for _, p := range r.pairs(n) {
		name := trim(p.key.Value)
		on, ok := boolOf(r.follow(p.value))
		if !ok || p.key.Kind != yaml.ScalarNode || name == "" || badToolName(name) {
			return r.bad(p.key, `write a list of names`, "is a map that gives %q neither true nor false", shorten(name, 40))
		}
		if on {
			yes = append(yes, r.toolNames(name, false)...)
			continue
		}
		denied := r.toolNames(name, true)
		no = append(no, denied...)
		if more := bypass(denied); more != nil && r.dialect.product != nil {
			r.limit(p.key.Line, policy.Deny, more)
		}
	}
	switch {
	case r.budget < 0:
		return r.bad(n, "write a list of names", "has too many aliases")
	case len(yes) > 0:
		r.d.Tools = ToolRule{Mode: ToolsExact, Names: yes}
	case len(no) == 0:
		return r.bad(n, noToolsHint, "is an empty map")
	}
	for _, name := range no {
		if !slices.Contains(r.d.DisallowedTools, name) {
			r.d.DisallowedTools = append(r.d.DisallowedTools, name)
		}
	}
	r.warn(n, CodeToolsMap, "write tools: [names] and disallowed_tools: [names]",
		"tools is a map; its %d true entries are read as the list, its %d false ones as denials", len(yes), len(no))
	return nil
}

func readDisallowed(r *reader, n *yaml.Node) error {
	items, err := r.toolItems(n, true)
	if err != nil {
		return err
	}
	for _, it := range items {
		tool, patterns, err := r.specifier(it)
		if err != nil {
			return err
		}
		tools := r.toolNames(tool, true)
		if r.dialect.product != nil {
			more := bypass(tools)
			if len(patterns) == 0 && more != nil {
				r.limit(it.node.Line, policy.Deny, more)
			} else {
				tools = append(slices.Clone(tools), more...)
			}
		}
		for _, tool := range tools {
			for _, p := range patterns {
				if r.denials, err = r.grant(r.denials, tool, p, policy.Deny, it.node); err != nil {
					return err
				}
			}
			if len(patterns) == 0 && !slices.Contains(r.d.DisallowedTools, tool) {
				if strings.EqualFold(tool, wordAll) {
					tool = "*"
				}
				r.d.DisallowedTools = append(r.d.DisallowedTools, tool)
			}
		}
	}
	return nil
}

// toolItems reads a list of tools in any of its shapes to one item a tool. In
// a list of denials every item must be the name of a tool, for one that is not
// would deny nothing.
func (r *reader) toolItems(n *yaml.Node, deny bool) ([]item, error) {
	items, err := r.items(n)
	if err != nil {
		return nil, err
	}
	var list []item
	full := r.bad(n, "use a glob", "names more than %d tools", maxNames)
	var open *item // an item that YAML has cut at a comma inside brackets
	for _, it := range items {
		if open != nil {
			open.text += ", " + it.text
			it = *open
		}
		if depth := bracketDepth(it.text); depth > 0 {
			open = &it
			continue
		} else if depth < 0 {
			return nil, r.bad(it.node, "see to the brackets", "holds %q, whose brackets do not match", shorten(it.text, 40))
		}
		open = nil
		text := it.text
		if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
			text = text[1 : len(text)-1]
			r.warn(it.node, CodeToolsShape, "leave the quotes around the list out", "%s is a list in quotes", r.field.name)
		}
		for _, name := range policy.SplitList(text) {
			name = unquote(name)
			if name == "" {
				continue
			}
			if len(list) >= maxNames {
				return nil, full
			}
			words := []string{name}
			if fields := outerFields(name); len(fields) > 1 && (deny ||
				n.Kind == yaml.ScalarNode && name == text && !slices.ContainsFunc(fields, notAWord)) {
				if len(fields) > maxNames {
					return nil, full
				}
				words = fields
				r.warn(it.node, CodeToolsShape, "put commas between the names", "%s has blanks between names", r.field.name)
			}
			for _, w := range words {
				if badToolName(w) || deny && notAWord(w) {
					return nil, r.bad(it.node, "write the names of tools, with commas between", "holds %q, which is no tool's name", shorten(w, 40))
				}
				list = append(list, item{w, it.node})
			}
			if deny && len(words) > 1 && !strings.ContainsFunc(name, unicode.IsControl) {
				list = append(list, item{name, it.node}) // or is the blank part of the name?
			}
		}
	}
	if open != nil {
		return nil, r.bad(open.node, "close the bracket", "holds %q, whose bracket is not closed", shorten(open.text, 40))
	}
	return list, nil
}

// bracketDepth counts brackets that are open at the end; it is negative when
// one closes that was not open.
func bracketDepth(s string) int {
	depth := 0
	for _, c := range s {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				return depth
			}
		}
	}
	return depth
}

// outerFields splits at blanks outside brackets.
func outerFields(s string) []string {
	depth := 0
	return strings.FieldsFunc(s, func(c rune) bool {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
		return depth == 0 && unicode.IsSpace(c)
	})
}

// notAWord reports whether s is no plain name with an optional bracket.
func notAWord(s string) bool {
	name, _, _ := strings.Cut(s, "(")
	return name == "" || strings.HasSuffix(name, ":") || strings.ContainsFunc(name, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_-*.:/@", c)
	}) || !strings.ContainsFunc(name, func(c rune) bool { return unicode.IsLetter(c) || c == '*' })
}

// badToolName reports whether s is what is left of a list that went wrong, not
// a name.
func badToolName(s string) bool {
	name, _, _ := strings.Cut(s, "(")
	return strings.TrimSpace(name) == "" || strings.ContainsFunc(name, func(c rune) bool {
		return unicode.IsControl(c) || strings.ContainsRune("\"'`[]{}<>|", c)
	})
}

// unquote takes off the quotes around a name.
func unquote(s string) string {
	s = trim(s)
	for len(s) >= 2 && strings.IndexByte("\"'`", s[0]) >= 0 && s[len(s)-1] == s[0] {
		s = trim(s[1 : len(s)-1])
	}
	return s
}

// specifier takes "Bash(git:*)" apart. Without patterns the tool is meant
// whole.
func (r *reader) specifier(it item) (tool string, patterns []string, err error) {
	if !strings.Contains(it.text, "(") {
		return it.text, nil, nil
	}
	tool, patterns, ok := policy.ParseSpecifiers(it.text)
	if !ok {
		return "", nil, r.bad(it.node, "write it like Bash(git:*)", "holds %q, which is no tool with a pattern", shorten(it.text, 40))
	}
	if policy.Canonical(tool, nil) == "task" { // whose brackets hold names of agents
		var names []string
		for _, p := range patterns {
			names = append(names, policy.SplitList(p)...)
		}
		patterns = names
	}
	if slices.Contains(patterns, "*") {
		patterns = nil
	}
	return tool, patterns, nil
}

// newRule makes a rule that stands at key.
func (r *reader) newRule(key *yaml.Node, tool, pattern string, action policy.Action) (policy.Rule, error) {
	rule, err := policy.NewRule(tool, pattern, string(action), key.Line)
	if err == nil {
		return rule, nil
	}
	msg, hint := err.Error(), ""
	var e *policy.SyntaxError
	if errors.As(err, &e) {
		msg, hint = e.Message, e.Hint
	}
	return rule, r.bad(key, hint, "can't be read: %s", msg)
}

func readPermissions(r *reader, n *yaml.Node) error {
	const hint = `write permissions: {execute: {"git *": allow, "*": ask}}`
	var rules []policy.Rule
	var err error
	switch {
	case n.Tag == tagUnreadable:
		return r.bad(n, hint, "can't be read")
	case customTag(n):
		return r.bad(n, hint, "is %s", kindOf(n))
	case n.Kind == yaml.ScalarNode: // one action for everything
		rules, err = r.rule(nil, n, "*", "*", n)
	case n.Kind == yaml.SequenceNode:
		rules, err = r.ruleList(n, hint)
	default:
		rules, err = r.ruleMap(n, hint)
	}
	if err == nil && r.budget < 0 {
		err = r.bad(n, hint, "has too many aliases")
	}
	if err != nil {
		return err
	}
	r.d.Permissions = rules
	return nil
}

func (r *reader) ruleMap(n *yaml.Node, hint string) (rules []policy.Rule, err error) {
	entries := r.ruleEntries(n)
	if key := twice(entries); key != nil {
		return nil, r.bad(key, "join the two", "has the key %q twice", shorten(key.Value, 40))
	}
	for _, p := range entries {
		tool, v := trim(p.key.Value), r.follow(p.value)
		if p.key.Kind != yaml.ScalarNode || p.key.Tag == "!!merge" {
			return nil, r.bad(p.key, hint, "has a key that is no tool's name")
		}
		if v.Kind != yaml.MappingNode || customTag(v) {
			if rules, err = r.rule(rules, p.key, tool, "*", v); err != nil {
				return nil, err
			}
			continue
		}
		patterns := r.ruleEntries(v)
		if key := twice(patterns); key != nil {
			return nil, within(tool, r.bad(key, "keep one of the two", "has the pattern %q twice", shorten(key.Value, 40)))
		}
		for _, q := range patterns {
			if q.key.Kind != yaml.ScalarNode || q.key.Tag == "!!merge" {
				return nil, r.bad(q.key, hint, "has a key that is no pattern")
			}
			if rules, err = r.rule(rules, q.key, tool, q.key.Value, r.follow(q.value)); err != nil {
				return nil, err
			}
		}
	}
	return rules, nil
}

// ruleEntries returns a mapping's entries without merging anything in: the
// order of rules matters, and a merge has none.
func (r *reader) ruleEntries(n *yaml.Node) []pair {
	var list []pair
	for i := 0; i+1 < len(n.Content) && r.budget >= 0; i += 2 {
		list = append(list, pair{r.follow(n.Content[i]), n.Content[i+1]})
	}
	return list
}

// twice returns the first key that a mapping has twice. A map has no order
// that could decide between two rules for one thing.
func twice(entries []pair) *yaml.Node {
	seen := map[string]bool{}
	for _, p := range entries {
		if seen[p.key.Value] {
			return p.key
		}
		seen[p.key.Value] = true
	}
	return nil
}

func (r *reader) ruleList(n *yaml.Node, hint string) (rules []policy.Rule, err error) {
	for _, c := range n.Content {
		c = r.follow(c)
		if c.Kind != yaml.MappingNode || customTag(c) {
			return nil, r.bad(c, hint, "is a list that holds %s", kindOf(c))
		}
		parts := map[string]*yaml.Node{}
		for _, p := range r.ruleEntries(c) {
			switch key := p.key.Value; key {
			case "tool", "pattern", "action":
				if parts[key] != nil {
					return nil, r.bad(p.key, hint, "has a rule that sets %s twice", key)
				}
				parts[key] = r.follow(p.value)
			default:
				return nil, r.bad(p.key, "a rule has tool, pattern and action", "has a rule with the key %q", shorten(key, 40))
			}
		}
		tool, pattern := parts["tool"], "*"
		if tool == nil || tool.Kind != yaml.ScalarNode || parts["action"] == nil {
			return nil, r.bad(c, "a rule has tool, pattern and action", "has a rule without tool or action")
		}
		at := tool
		if p := parts["pattern"]; p != nil {
			if at = p; p.Kind != yaml.ScalarNode || customTag(p) {
				return nil, r.bad(p, hint, "has a pattern that is %s", kindOf(p))
			}
			pattern = p.Value
		}
		if rules, err = r.rule(rules, at, trim(tool.Value), pattern, parts["action"]); err != nil {
			return nil, err
		}
	}
	return rules, nil
}

// rule appends one rule. The key is where its pattern stands.
func (r *reader) rule(rules []policy.Rule, key *yaml.Node, tool, pattern string, action *yaml.Node) ([]policy.Rule, error) {
	word, err := r.word(action, string(policy.Allow), string(policy.Ask), string(policy.Deny))
	if err != nil {
		return nil, within(tool, err)
	}
	rule, err := r.newRule(key, tool, pattern, policy.Action(word))
	if err != nil {
		return nil, err
	}
	return append(rules, rule), nil
}

// joinRules puts the rules that tools and disallowed_tools imply around those
// of permissions, so that the last rule that matches is always the strict one:
// first what tools grants (nothing else of that tool), then permissions, then
// the denials.
func (r *reader) joinRules() error {
	own := r.d.Permissions
	var rules []policy.Rule
	add := func(g grant, pattern string, action policy.Action) error {
		rule, err := r.newRule(g.node, g.tool, pattern, action)
		if err != nil {
			return err
		}
		rules = append(rules, rule)
		return nil
	}
	var shut []string
	for _, g := range r.grants {
		native := policy.Canonical(g.tool, nil)
		if !slices.Contains(shut, native) {
			shut = append(shut, native)
			for _, o := range own {
				if o.Action != policy.Deny && policy.MatchName(policy.Canonical(o.Tool, nil), native) {
					return r.bad(g.node, "set all rules for the tool in permissions", "grants %s(%s) while permissions has rules for the same tool", g.tool, g.pattern)
				}
			}
			if err := add(g, "*", policy.Deny); err != nil {
				return err
			}
		}
		if g.pattern == noCall {
			continue
		}
		if err := add(g, g.pattern, policy.Allow); err != nil {
			return err
		}
	}
	rules = append(rules, own...)
	for _, g := range r.denials {
		if err := add(g, g.pattern, policy.Deny); err != nil {
			return err
		}
	}
	r.d.Permissions = rules
	return nil
}
