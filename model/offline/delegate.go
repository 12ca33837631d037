package offline

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/synapse-agents/synapse"
)

const reportForm = howToReport + " quote every line you rely on as path:line: text, name the command where there is one, " +
	"say what you could not find, and add nothing that is not in a file or an output."

// delegate hands a part to a sub-agent and returns its report as a section.
func (s *session) delegate(p part, a ask, plan []string) ([]section, []string) {
	if a.kind == kindEach && p.agent == "" || a.kind == kindEach && able(understand(a.command)) {
		return s.delegateEach(p, a, plan)
	}
	sec, note := s.send(p.text, p.agent, a)
	return []section{sec}, append(plan, note)
}

// send has one sub-agent do one thing.
func (s *session) send(text, name string, a ask) (section, string) {
	var who agent
	var ok bool
	switch {
	case name != "":
		if who, ok = named(s.agents, name); !ok {
			return section{title: text, failed: true, left: []string{fmt.Sprintf("there is no agent %q; there are: %s", name, s.agentNames())}}, "no agent " + name
		}
		if need := a.needs(); need != "" && able(a) && !who.serves(need) {
			return section{title: text, failed: true, left: []string{fmt.Sprintf("the agent %s has no tool to %s", who.name, verbs[need])}}, who.name + " lacks tools"
		}
	default:
		if who, ok = pick(s.agents, a); !ok {
			sec := s.serve(a) // nobody else has the tools
			return sec, "rule: " + string(a.kind)
		}
	}
	prompt := sentenceCase(text) + "\n\n" + reportForm
	out := s.use(roleTask, want{
		"+prompt": prompt, "+agent": who.name, "description": a.label(),
		"background": false, // the answer is made of the reports, so it waits for them
	}, "part of the request: "+clip(text, 60))
	note := fmt.Sprintf("%s → %s", string(a.kind), who.name)
	switch out.state {
	case waiting:
		return wait(), note
	case missing:
		return section{title: text, failed: true, left: []string{out.text}}, note
	}
	sec := readReport(out)
	sec.title, sec.by = text, who.name
	return sec, note
}

var question = lazily(`(?i)^(?:what|where|who|which|how|does|do|is|are|can|when|whose)\b`)

// sentenceCase writes a part as a sentence of its own.
func sentenceCase(s string) string {
	r := []rune(s)
	r[0] = unicode.ToUpper(r[0])
	if question().MatchString(s) {
		return string(r) + "?"
	}
	return string(r) + "."
}

// label names a part in a few words, for people.
func (a ask) label() string {
	switch a.kind {
	case kindPackages:
		return "list the packages"
	case kindMarks:
		return "find " + strings.ReplaceAll(a.subject, "|", ", ") + " comments"
	case kindTest:
		if a.scope != "" {
			return "run the tests in " + a.scope
		}
		return "run the tests"
	case kindCount:
		if !a.flags["matches"] {
			var what []string
			for _, f := range []string{"files", "lines", "tests", "functions", "types"} {
				if a.flags[f] {
					what = append(what, f)
				}
			}
			if a.scope != "" {
				return "count " + strings.Join(what, " and ") + " in " + a.scope
			}
			return "count " + strings.Join(what, " and ")
		}
	case kindDefine, kindUses, kindCovers, kindOutline, kindSummary:
		if a.subject != "" && len(strings.Fields(a.subject)) < 4 {
			joint := " of "
			if a.kind == kindCovers {
				joint = " "
			}
			return clip(string(a.kind)+joint+a.subject, 60)
		}
	}
	return clip(strings.Join(firstWords(a.text, 5), " "), 60)
}

func firstWords(s string, n int) []string {
	w := strings.Fields(s)
	return w[:min(n, len(w))]
}

func (s *session) agentNames() string {
	var names []string
	for _, a := range s.agents {
		names = append(names, a.name)
	}
	return strings.Join(names, ", ")
}

var (
	ending = lazily(`^Agent "([^"\n]*)" (.*)$`)
	meta   = lazily(`^(Tokens|Task|Cost|Model|Turns|Report|Full report): `)
)

// readReport reads a task's result: how the sub-agent ended, what it used, and
// its own words.
func readReport(out outcome) section {
	lines := strings.Split(strings.TrimSpace(out.text), "\n")
	var sec section
	i := 0
	if m := ending().FindStringSubmatch(lines[0]); m != nil {
		i = 1
		// A refusal goes on with what rules can do; that is said once, by the
		// one who refuses the user.
		how, _, _ := strings.Cut(m[2], " "+ability[:len("These are "+Label)])
		if how = strings.TrimSuffix(how, "."); how != "completed" {
			sec.left = append(sec.left, fmt.Sprintf("the agent %s %s", m[1], clip(how, 300)))
		}
		for i < len(lines) && (meta().MatchString(lines[i]) || strings.TrimSpace(lines[i]) == "") {
			i++
		}
	} else if out.state == failed {
		sec.left = append(sec.left, clip(lines[0], 300))
		i = 1
	}
	for _, l := range lines[i:] {
		sec.lines = append(sec.lines, strings.TrimRight(l, " \t\r"))
	}
	if out.state == failed {
		sec.failed = true
		// The way to connect a model is said once, not by every child.
		if slices.ContainsFunc(sec.left, func(l string) bool { return strings.Contains(l, string(synapse.ErrorUnsupported)) }) {
			sec.lines = nil
		}
	}
	return sec
}

// delegateEach hands out one task for every item.
func (s *session) delegateEach(p part, a ask, plan []string) ([]section, []string) {
	items, sec := s.itemsOf(a)
	if items == nil {
		return []section{sec}, append(plan, "for each "+a.subject)
	}
	var out []section
	for i, it := range items {
		if i == maxChildren {
			out = append(out, section{title: p.text, failed: true, left: []string{fmt.Sprintf(
				"%s not asked about: at most %d sub-agents serve one request", count(len(items)-i, "item was", "items were"), maxChildren)}})
			break
		}
		text := about(a.command, it)
		sec, note := s.send(text, p.agent, understand(text))
		if sec.title == "" {
			sec.title = text
		}
		out, plan = append(out, sec), append(plan, note)
	}
	return out, plan
}

// each serves "for each X do Y" without sub-agents.
func (s *session) each(a ask) section {
	items, sec := s.itemsOf(a)
	if items == nil {
		return sec
	}
	var out section
	limit := min(len(items), maxChildren)
	for _, it := range items[:limit] {
		text := about(a.command, it)
		sub := understand(text)
		if sub.kind == kindEach || !able(sub) {
			return undone(beyond)
		}
		one := s.serve(sub)
		out.waiting = out.waiting || one.waiting
		if len(out.lines) > 0 {
			out.lines = append(out.lines, "")
		}
		out.lines = append(out.lines, it+": "+one.lead)
		out.lines = append(out.lines, head(one.lines, maxLines/limit)...)
		for _, l := range one.left {
			out.left = append(out.left, it+": "+l)
		}
	}
	if n := len(items) - limit; n > 0 {
		out.left = append(out.left, count(n, "item was", "items were")+" passed over")
	}
	out.lead = count(len(items), "item")
	return out
}

var (
	theThing = lazily(`(?i)\b(?:the|that|this|each) (?:package|folder|directory|file|module|one)$`)
	itsThing = lazily(`(?i)\b(?:its|their)\s+(\w[\w ]*)$`)
	each     = lazily(`(?i)\b(?:it|them|each one|each|that one)\b`)
)

// about writes what is to be done for one item.
func about(do, item string) string {
	switch {
	case itsThing().MatchString(do):
		m := itsThing().FindStringSubmatchIndex(do)
		what := do[m[2]:m[3]]
		joint := " of "
		if fileThing().MatchString(what) {
			joint = " in "
		}
		return do[:m[0]] + "the " + what + joint + item
	case theThing().MatchString(do):
		return theThing().ReplaceAllLiteralString(do, item)
	case each().MatchString(do):
		return each().ReplaceAllLiteralString(do, item)
	case bareVerb().MatchString(do):
		return do + " " + item
	}
	return do + " in " + item
}

var fileThing = lazily(`(?i)\b(?:files?|lines?|tests?|todos?|functions?|types?|packages?)\b`)

// itemsOf returns what "for each" goes through: what the request lists, or what
// a look at the files finds. Without items, the section says why.
func (s *session) itemsOf(a ask) ([]string, section) {
	if len(a.items) > 0 {
		return a.items, section{}
	}
	subject := strings.ToLower(a.subject)
	pattern, dirs := "", false
	sub := ask{text: "in " + a.subject, flags: map[string]bool{}}
	rest := sub.takeScope("x " + a.subject)
	switch {
	case folders().MatchString(subject):
		pattern, dirs = "**/*", true
		if strings.Contains(subject, "package") || strings.Contains(subject, "包") {
			pattern = "**/*.go"
		}
	default:
		l, ok := languageOf(rest)
		if !ok || !strings.Contains(subject, "file") && !strings.Contains(subject, "文件") && !strings.Contains(subject, "document") {
			return nil, undone("what to go through (“" + a.subject + "”) is not a list these rules can find: name the items, or say files or packages")
		}
		pattern = globFor(l.exts)
	}
	out := s.find(pattern, sub.scope)
	if sec, stop := stopped(out); stop {
		return nil, sec
	}
	var items []string
	for _, p := range readPaths(out.text) {
		if inData(p) || dirs && isTest(p) {
			continue
		}
		if dirs {
			i := strings.LastIndex(p, "/")
			if i < 0 {
				continue
			}
			p = p[:i] + "/"
		}
		if !slices.Contains(items, p) {
			items = append(items, p)
		}
	}
	if len(items) == 0 {
		return nil, section{lead: "no " + a.subject + " found"}
	}
	return items, section{}
}

// reports returns the sub-agents' reports of a conversation that has to end
// now, false if there are none.
func (s *session) reports() ([]section, bool) {
	o := s.box.role(roleTask)
	if o == nil {
		return nil, false
	}
	var out []section
	for _, r := range s.conv.order {
		if r.tool != o.def.Name {
			continue
		}
		var args map[string]json.RawMessage
		var prompt, who string
		if json.Unmarshal([]byte(r.args), &args) == nil {
			for _, n := range argNames["prompt"] {
				_ = json.Unmarshal(args[n], &prompt)
			}
			for _, n := range argNames["agent"] {
				_ = json.Unmarshal(args[n], &who)
			}
		}
		sec := section{failed: true, left: []string{"no report came back in time"}}
		if res, ok := s.conv.results[r.key]; ok {
			sec = readReport(res)
		}
		sec.title, sec.by = strings.TrimSuffix(firstLine(prompt), "."), who
		if sec.by == "" {
			sec.by = "a sub-agent"
		}
		out = append(out, sec)
	}
	return out, len(out) > 0
}

func firstLine(s string) string {
	l, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return l
}

// listAgents quotes the agents that can be asked.
func (s *session) listAgents() section {
	if len(s.agents) == 0 {
		return undone("no tool to delegate (task) is offered, so there are no agents to ask")
	}
	sec := section{lead: count(len(s.agents), "agent") + " can be delegated to (from the task tool's text)"}
	for _, a := range s.agents {
		sec.lines = append(sec.lines, fmt.Sprintf("%s: %s (tools: %s)", a.name, a.about, strings.Join(a.tools, ", ")))
	}
	return sec
}

// bareVerb takes its object right behind it.
var bareVerb = lazily(`(?i)^(?:outline|summari[sz]e|show|read|print)$`)

// folders are words for what lies in a directory of its own.
var folders = lazily(`\b(?:package|module|folder|director(?:y|ies)|dir)s?\b|包|目录`)
