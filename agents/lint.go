package agents

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/synapse-agents/synapse/policy"
)

// The budgets that descriptions are held against, in tokens.
const (
	DescriptionBudget    = 4000 // of all together, as subagent_description_budget
	maxDescriptionTokens = 200  // of one
)

// LintOptions say what is known of the host that definitions are meant for. The
// zero value knows the tools that are always there.
type LintOptions struct {
	// Tools are further tools: those of servers, and of a program's own.
	Tools []string
	// Budget is how many tokens all descriptions may take, by default
	// [DescriptionBudget].
	Budget int
}

// lintRule is one rule of [Lint].
type lintRule struct {
	code  string
	check func(l *linter)
}

var lintRules = []lintRule{
	{CodeDescVague, (*linter).vague},
	{CodeDescCollision, (*linter).collisions},
	{CodeDescCost, (*linter).cost},
	{CodeToolUnknown, (*linter).unknownTools},
	{CodeDenialUnneeded, (*linter).denials},
	{CodeRuleOverridden, (*linter).overridden},
}

// Lint looks for what is odd in definitions beyond what reading them tells:
// descriptions that no one is routed by, names of tools that there are not,
// rules without effect. It judges those that load, together: the collisions are
// between them. The diagnostics are ordered by place.
func Lint(defs []*Definition, opt LintOptions) []Diagnostic {
	if opt.Budget == 0 {
		opt.Budget = DescriptionBudget
	}
	l := &linter{opt: opt}
	for _, d := range defs {
		if d != nil && !d.Broken {
			l.defs = append(l.defs, d)
		}
	}
	for _, rule := range lintRules {
		l.code = rule.code
		rule.check(l)
	}
	sortDiagnostics(l.diags)
	return l.diags
}

// LintFile says where another product would refuse a file, or run its agent
// with all tools: [Elsewhere] as diagnostics.
func LintFile(file string, data []byte, origin string) []Diagnostic {
	var diags []Diagnostic
	for _, f := range Elsewhere(file, data, origin) {
		if f.Outcome != Refuses && f.Outcome != LoadsAll || f.Product == origin && f.Outcome == Refuses {
			continue
		}
		diags = append(diags, Diagnostic{
			Pos: Pos{File: file, Line: 1, Column: 1}, Severity: Info, Code: CodeElsewhere,
			Message: fmt.Sprintf("%s %s this file: %s", findProduct(f.Product).Title, f.Outcome, f.Why),
		})
	}
	return diags
}

type linter struct {
	opt   LintOptions
	defs  []*Definition
	code  string
	diags []Diagnostic
}

func (l *linter) warn(d *Definition, field, hint, format string, args ...any) {
	l.diags = append(l.diags, Diagnostic{
		Pos: d.at(field), Severity: Warn, Code: l.code, Message: fmt.Sprintf(format, args...), Hint: hint,
	})
}

// offered reports whether others can be routed to the agent.
func offered(d *Definition) bool {
	return !d.Disabled && d.Mode != ModePrimary && d.Ownership != OwnershipHandoff
}

// emptyWords say nothing of when an agent is to be called.
var emptyWords = func() map[string]bool {
	words := map[string]bool{}
	for _, w := range strings.Fields(`a an the and or of for to in on with by is are be it its this that you your use used when any all
		agent agents subagent assistant helper expert specialist tool task tasks general ai claude code does do work works`) {
		words[w] = true
	}
	return words
}()

// contentWords are the words of a text that say something. Of scripts without
// blanks between words, pairs of characters stand for them.
func contentWords(text string) map[string]bool {
	words := map[string]bool{}
	var word []rune
	flush := func() {
		if w := string(word); len(word) > 1 && !emptyWords[w] {
			words[w] = true
		}
		word = word[:0]
	}
	var last rune
	for _, c := range strings.ToLower(text) {
		switch {
		case unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
			flush()
			if last != 0 {
				words[string([]rune{last, c})] = true
			}
			last = c
			continue
		case unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c):
			word = append(word, c)
		default:
			flush()
		}
		last = 0
	}
	flush()
	return words
}

// vague finds descriptions that say nothing beyond the name.
func (l *linter) vague() {
	for _, d := range l.defs {
		if !offered(d) {
			continue
		}
		words, name := contentWords(d.Description), contentWords(strings.NewReplacer("-", " ", "_", " ").Replace(d.Name))
		for w := range name {
			delete(words, w)
		}
		if len(words) < 2 {
			l.warn(d, "description", "say when to delegate to it, and for what: “Use after …”, “Use when …”",
				"the description of %q hardly says when to call it, so it will seldom be called", d.Name)
		}
	}
}

// alike is how much two descriptions must share to be confused, of 1.
const alike = 0.8

// collisions finds agents that are called for the same things.
func (l *linter) collisions() {
	words := make([]map[string]bool, len(l.defs))
	for i, d := range l.defs {
		words[i] = contentWords(d.Description)
	}
	for i, d := range l.defs {
		for j := range i {
			if !offered(d) || !offered(l.defs[j]) || d.Name == l.defs[j].Name || len(words[i]) < 3 || len(words[j]) < 3 {
				continue
			}
			// A pair whose sizes differ too much can't be alike.
			if a, b := float64(len(words[i])), float64(len(words[j])); a < alike*b || b < alike*a {
				continue
			}
			common := 0
			for w := range words[i] {
				if words[j][w] {
					common++
				}
			}
			if union := len(words[i]) + len(words[j]) - common; float64(common) >= alike*float64(union) {
				l.warn(d, "description", "say what each of them is for that the other is not",
					"%q and %q (%s) have nearly the same description, so which of them is called is left to chance", d.Name, l.defs[j].Name, l.defs[j].Place())
				break
			}
		}
	}
}

// tokensOf estimates how many tokens a text takes.
func tokensOf(text string) int {
	quarter := 0
	for _, c := range text {
		if c < 0x2e80 {
			quarter++
		} else {
			quarter += 4
		}
	}
	return (quarter + 3) / 4
}

// DescriptionCost estimates how many tokens of every prompt the descriptions
// take of those agents that can be delegated to, and says how many they are.
func DescriptionCost(defs []*Definition) (agents, tokens int) {
	for _, d := range defs {
		if !d.Broken && offered(d) {
			agents, tokens = agents+1, tokens+tokensOf(d.Description)
		}
	}
	return agents, tokens
}

// cost finds descriptions that take much of every prompt.
func (l *linter) cost() {
	var largest *Definition
	for _, d := range l.defs {
		if !offered(d) {
			continue
		}
		t := tokensOf(d.Description)
		if largest == nil || t > tokensOf(largest.Description) {
			largest = d
		}
		if t > maxDescriptionTokens {
			l.warn(d, "description", "move examples into the body", "the description takes about %d tokens of every prompt", t)
		}
	}
	if n, sum := DescriptionCost(l.defs); sum > l.opt.Budget {
		l.warn(largest, "description", "shorten the longest, or disable agents that are not needed",
			"the descriptions of %d agents take about %d tokens, more than the %d that are kept whole; this is the longest", n, sum, l.opt.Budget)
	}
}

// unknownTools finds names of tools that mean nothing here or in the file's own
// product.
func (l *linter) unknownTools() {
	for _, d := range l.defs {
		for _, use := range []struct {
			field, effect string
			names         []string
		}{
			{"tools", "gives nothing", d.Tools.Names},
			{"disallowed_tools", "denies nothing", d.DisallowedTools},
			{"permissions", "is about nothing", ruleTools(d.Permissions)},
		} {
			for _, name := range use.names {
				if l.knows(d, name) {
					continue
				}
				hint := ""
				if s := l.meant(d, name); s != "" {
					hint = fmt.Sprintf("did you mean %q?", s)
				}
				l.warn(d, use.field, hint, "%s: there is no tool %q, so it %s", use.field, shorten(name, 40), use.effect)
			}
		}
	}
}

func ruleTools(rules []policy.Rule) []string {
	var names []string
	for _, r := range rules {
		if !slices.Contains(names, r.Tool) {
			names = append(names, r.Tool)
		}
	}
	return names
}

// knows reports whether a name can mean a tool. Which servers there are is not
// known here, so every name of theirs can.
func (l *linter) knows(d *Definition, name string) bool {
	if strings.HasPrefix(name, "mcp__") || knownTool(name) || slices.Contains(l.opt.Tools, name) {
		return true
	}
	if p := findProduct(d.Origin); p != nil {
		group, _, _ := strings.Cut(name, "/")
		if p.lookupTool(name) != nil || p.lookupTool(group) != nil {
			return true
		}
	}
	match := func(tool string) bool { return policy.MatchName(name, tool) }
	return policy.IsGlob(name) && (slices.ContainsFunc(builtinTools, match) || slices.ContainsFunc(l.opt.Tools, match) || strings.Contains(name, "mcp"))
}

// meant returns the tool that a name was likely meant to be, "" if none.
func (l *linter) meant(d *Definition, name string) string {
	words := slices.Concat(builtinTools, l.opt.Tools)
	if p := findProduct(d.Origin); p != nil {
		for _, t := range p.Tools {
			words = append(append(words, t.Name), t.Also...)
		}
	}
	for _, w := range words {
		if foldName(w) == foldName(name) {
			return w
		}
	}
	return nearest(name, words)
}

// denials finds denials of what the agent has not got anyway.
func (l *linter) denials() {
	for _, d := range l.defs {
		if d.Tools.Mode != ToolsExact || d.hasAll() {
			continue
		}
		for _, name := range d.DisallowedTools {
			if !slices.ContainsFunc(d.Tools.Names, func(listed string) bool { return overlap(listed, name) }) {
				l.warn(d, "disallowed_tools", "leave it out", "disallowed_tools: %q is not in tools, so denying it changes nothing", shorten(name, 40))
			}
		}
	}
}

// overridden finds rules that never decide.
func (l *linter) overridden() {
	for _, d := range l.defs {
		for _, i := range policy.Overridden(d.Permissions) {
			r := d.Permissions[i]
			at := d.at("permissions")
			if r.Line > 0 && d.Pos.File != "" {
				at = Pos{File: d.Pos.File, Line: r.Line, Column: 1}
			}
			l.diags = append(l.diags, Diagnostic{
				Pos: at, Severity: Warn, Code: l.code, Hint: "the last rule that fits decides: put the general ones first",
				Message: fmt.Sprintf("the rule %s %q: %s never decides, as a later one is about all of its calls", r.Tool, shorten(r.Pattern, 40), r.Action),
			})
		}
	}
}
