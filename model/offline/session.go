package offline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/synapse-agents/synapse"
)

const (
	maxTurns    = 8   // replies to one request, the last without calls
	maxCalls    = 24  // in one reply
	maxChildren = 16  // sub-agents for one request
	maxLines    = 200 // of an answer
)

// A session works out one reply. Rules ask it for results as if every tool
// answered at once; what is not known yet becomes a call of this turn, and the
// rule runs again, from the start, when the result is in the conversation.
type session struct {
	conv   *conversation
	box    *toolbox
	agents []agent
	system string
	final  bool // no tools are offered: the answer is due
	calls  []*synapse.ToolCall
	asked  map[string]bool
	used   map[string]bool // tools that a call has been made to, for the record
}

func newSession(req *synapse.Request) *session {
	s := &session{
		conv: readConversation(req), box: openToolbox(req.Tools), system: req.System,
		final: len(req.Tools) == 0, asked: map[string]bool{}, used: map[string]bool{},
	}
	if s.final {
		s.box = recall(req.Messages)
	}
	s.agents = roster(s.box.role(roleTask))
	return s
}

// recall returns the tools that a conversation has used, with what its calls
// show of their arguments, so that results are still found when no tools are
// offered any more. Nothing is called with it.
func recall(messages []synapse.Message) *toolbox {
	b := &toolbox{offers: map[string]*offer{}}
	for _, m := range messages {
		for _, c := range m.Calls() {
			args, ok := decode(c.Args)
			if !ok {
				continue
			}
			o := b.offers[c.Name]
			if o == nil {
				o = &offer{def: synapse.ToolDef{Name: c.Name}, props: map[string]property{}}
				b.offers[c.Name] = o
				b.names = append(b.names, c.Name)
			}
			for name, v := range args {
				p := o.props[name]
				p.known = true
				switch v := v.(type) {
				case string:
					p.Types = []string{"string"}
					if slices.Contains(argNames["mode"], name) {
						p.Enum = append(p.Enum, v)
					}
				case float64:
					p.Types = []string{"integer"}
				case bool:
					p.Types = []string{"boolean"}
				default:
					p.Types = []string{"array"}
				}
				o.props[name] = p
			}
		}
	}
	return b
}

// use returns the result of a call by role.
func (s *session) use(r role, w want, why string) outcome {
	o := s.box.role(r)
	if o == nil {
		return outcome{state: missing, text: fmt.Sprintf("no tool to %s is offered", verbs[r])}
	}
	return s.call(o, w, why)
}

// by names the tool that does a role's work here.
func (s *session) by(r role) string {
	if o := s.box.role(r); o != nil {
		return o.def.Name
	}
	if o := s.box.role(roleExec); o != nil {
		return map[role]string{roleFind: "find", roleSearch: "grep"}[r]
	}
	return roleTools[roleSearch][0]
}

var verbs = map[role]string{
	roleFind: "find files", roleSearch: "search files", roleRead: "read files",
	roleExec: "run commands (execute)", roleTask: "delegate (task)",
}

// call returns the result of a call, or asks for it.
func (s *session) call(o *offer, w want, why string) outcome {
	args, ok := o.fill(w, why)
	if !ok {
		return outcome{state: missing, text: fmt.Sprintf("the arguments of %s are not ones these rules know", o.def.Name)}
	}
	text := compact(args)
	key, _ := callKey(o.def.Name, text)
	if out, ok := s.conv.results[key]; ok {
		s.used[o.def.Name] = true
		out.tool = o.def.Name
		return out
	}
	switch {
	case s.final:
		return outcome{state: missing, text: "no tools are available any more"}
	case s.conv.turns >= maxTurns-1:
		return outcome{state: missing, text: fmt.Sprintf("it takes more than %d turns", maxTurns)}
	case s.asked[key]:
		return outcome{state: waiting}
	case len(s.calls) >= maxCalls:
		return outcome{state: waiting} // next turn
	}
	s.asked[key] = true
	s.calls = append(s.calls, &synapse.ToolCall{
		ID:   fmt.Sprintf("call_%s_%d", s.conv.origin, s.conv.calls+len(s.calls)+1),
		Name: o.def.Name,
		Args: text,
	})
	return outcome{state: waiting}
}

// A section is what one part of the request came to.
type section struct {
	title   string
	by      string   // the sub-agent that reported it
	lead    string   // what was looked for and how much was found
	lines   []string // quotes
	left    []string // what was not done, and why
	waiting bool
	failed  bool // nothing of it could be done
}

// wait is the section of a part that has calls under way.
func wait() section { return section{waiting: true} }

// undone is the section of a part that could not be served.
func undone(why string) section { return section{left: []string{why}, failed: true} }

// from turns outcomes that stop a rule into its section, false if none does.
func stopped(outs ...outcome) (section, bool) {
	for _, o := range outs {
		if o.state == waiting {
			return wait(), true
		}
	}
	for _, o := range outs {
		if !o.ok() {
			return undone(o.why()), true
		}
	}
	return section{}, false
}

var wantsJSON = lazily(`(?is)(final|last|your) (message|answer|reply|result|response)[^.\n]{0,80}\bJSON\b|output schema|JSON Schema`)

// run decides what this turn says or calls.
func (s *session) run() reply {
	if s.conv.request == "" {
		return reply{refusal: "There is no request to serve."}
	}
	if wantsJSON().MatchString(s.system) {
		return reply{refusal: "The answer has to be JSON of a given form, which takes a model that understands the question."}
	}
	if s.final {
		if out, ok := s.reports(); ok {
			return reply{text: compose(out)}
		}
	}
	names := make([]string, len(s.agents))
	for i, a := range s.agents {
		names[i] = a.name
	}
	req := split(s.conv.request, names)
	if len(req.parts) == 0 { // a greeting
		return reply{text: compose([]section{s.serve(ask{kind: kindHelp})})}
	}
	req.parts = s.carry(req.parts)

	asks := make([]ask, len(req.parts))
	independent, askedFor := 0, req.parallel
	for i, p := range req.parts {
		asks[i] = understand(p.text)
		if able(asks[i]) && !p.linked {
			independent++
		}
		askedFor = askedFor || p.agent != "" || asks[i].kind == kindEach
	}
	fanOut := len(s.agents) > 0 && (askedFor || independent > 1)

	var sections []section
	var plan []string
	for i, p := range req.parts {
		if i > 0 && p.stage > req.parts[i-1].stage && len(s.calls) > 0 {
			break // a later stage starts when the earlier ones are done
		}
		var got []section
		switch {
		case fanOut && (p.agent != "" || able(asks[i]) && !aboutItself(asks[i].kind)):
			got, plan = s.delegate(p, asks[i], plan)
		default:
			got = []section{s.serve(asks[i])}
			plan = append(plan, "rule: "+string(asks[i].kind))
		}
		for j := range got {
			if got[j].title == "" {
				got[j].title = p.text
			}
		}
		sections = append(sections, got...)
	}
	if len(s.calls) > 0 {
		out := reply{calls: s.calls}
		if s.conv.turns == 0 {
			out.plan = Label + "; " + strings.Join(plan, "; ")
		}
		return out
	}
	if why, all := allFailed(sections); all {
		return reply{refusal: why}
	}
	return reply{text: compose(fewRefusals(sections, req.passed))}
}

// aboutItself reports whether only the agent that is asked can answer.
func aboutItself(k kind) bool { return k == kindHelp || k == kindAgents || k == kindTools }

// able reports whether a part is one that rules serve.
func able(a ask) bool { return a.kind != kindNone && a.kind != kindRefuse }

// carry gives a request that says "it" what the request before was about.
func (s *session) carry(parts []part) []part {
	if len(s.conv.earlier) == 0 || !pronoun().MatchString(parts[0].text) {
		return parts
	}
	before := split(s.conv.earlier[len(s.conv.earlier)-1], nil).parts
	if len(before) > 0 {
		parts[0].text = resolve(parts[0].text, before[len(before)-1].text)
	}
	return parts
}

// allFailed reports whether nothing was done at all because the rules don't
// reach that far, and why. A tool that is denied is not such a case: there the
// answer is what the tool said.
func allFailed(sections []section) (string, bool) {
	var whys []string
	for _, sec := range sections {
		if !sec.failed || sec.by != "" || !slices.Contains(sec.left, beyond) {
			return "", false
		}
		if len(whys) < 4 {
			whys = append(whys, fmt.Sprintf("“%s”", clip(sec.title, 120)))
		}
	}
	return "Can't do " + strings.Join(whys, ", ") + ": " + beyond + ".", len(whys) > 0
}

// fewRefusals keeps the first refused parts and counts the others: text that
// came with a request (a log, a diff) is not a request, line by line.
func fewRefusals(sections []section, passed int) []section {
	const shown = 3
	var out []section
	refusals := 0
	for _, sec := range sections {
		if sec.failed && slices.Contains(sec.left, beyond) {
			if refusals++; refusals > shown {
				passed++
				continue
			}
		}
		out = append(out, sec)
	}
	if passed > 0 {
		out = append(out, section{title: "The rest", failed: true, left: []string{count(passed, "further part") + " of the request: " + beyond}})
	}
	return out
}

const beyond = "it takes a language model"

// serve runs the rule for one part.
func (s *session) serve(a ask) section {
	switch a.kind {
	case kindHelp:
		return section{lead: ability, lines: []string{wayOut}}
	case kindAgents:
		return s.listAgents()
	case kindTools:
		return s.listTools()
	case kindList:
		return s.listFiles(a)
	case kindFile:
		return s.locateFile(a)
	case kindDefine:
		return s.define(a)
	case kindUses:
		return s.usesOf(a)
	case kindImports:
		return s.importsOf(a)
	case kindGrep, kindMarks:
		return s.grep(a)
	case kindShow:
		return s.show(a)
	case kindOutline:
		return s.outline(a)
	case kindPackages:
		return s.packages(a)
	case kindCount:
		return s.count(a)
	case kindSummary:
		return s.summary(a)
	case kindTopic, kindPassages:
		return s.passages(a)
	case kindTest:
		return s.runTests(a)
	case kindHowTo:
		return s.howTo(a)
	case kindCovers:
		return s.testsOf(a)
	case kindGit:
		return s.git(a)
	case kindCommand:
		return s.command(a)
	case kindFacts:
		return s.facts(a)
	case kindEach:
		return s.each(a)
	case kindTool:
		return s.namedTool(a)
	}
	return undone(beyond)
}
