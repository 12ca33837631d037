package policy

import (
	"slices"
	"strconv"
	"strings"
)

// Allows reports whether the tool may be called at all: it is listed and not
// blocked. Rules are about calls and are not consulted.
func (p Policy) Allows(tool string) bool {
	if _, blocked := p.Block[tool]; blocked {
		return false
	}
	return slices.Contains(p.Allow, tool)
}

// With returns p narrowed by further sources of rules, such as an ancestor's or
// a single call's. It can't loosen anything, since the strictest source wins.
// p is not changed, and neither it nor the result shares rules with src.
func (p Policy) With(src ...Source) Policy {
	rules := slices.Clone(p.Rules)
	for _, s := range src {
		if len(s.Rules) == 0 {
			continue
		}
		s.Rules = slices.Clone(s.Rules)
		rules = append(rules, s)
	}
	p.Rules = rules
	return p
}

// Check judges a call. A blocked tool is denied whatever else holds, and so is
// one that is neither allowed nor blocked: it does not exist. What is left is
// judged by the rules, for every subject of the call; the strictest outcome
// wins. A rule that can't be read (an unknown action, a broken pattern) acts as
// one that denies or asks, never as one that allows.
func (p Policy) Check(c Call) Decision {
	if r, blocked := p.Block[c.Tool]; blocked {
		if r.Code == "" {
			r.Code = NotListed
		}
		return Decision{Action: Deny, Code: r.Code, Reason: r.Code.sentence(), Origin: r.Origin}
	}
	if !slices.Contains(p.Allow, c.Tool) {
		return Decision{Action: Deny, Code: UnknownTool, Reason: UnknownTool.sentence()}
	}
	concerned, specific := p.concerned(c.Tool)
	if !concerned {
		return Decision{Action: Allow, Reason: "no rule is about this tool"}
	}
	return p.judge(c, specific)
}

// judge answers a call of a tool that some rule is about.
func (p Policy) judge(c Call, specific *Source) Decision {
	v := verdict{policy: &p, call: &c, action: Allow}
	v.judge(specific)
	return v.decision()
}

// sentence returns the code and what it means.
func (c Code) sentence() string {
	why := ""
	switch c {
	case ExcludedTools:
		why = "settings exclude this tool"
	case MinimalFilesystem:
		why = "settings leave out this file tool"
	case ReadOnly:
		why = "only tools known to change nothing may run"
	case DisallowedTools:
		why = "this agent's definition rules the tool out"
	case TodoIsolation:
		why = "the to-do list belongs to the main agent"
	case BuiltinSearch:
		why = "other search tools replace this one"
	case NoSpawn:
		why = "this agent may not delegate"
	case NotListed:
		why = "this agent's tool list does not name it"
	case FrameworkOnly:
		why = "this agent has the basic tools only"
	case NotInherited:
		why = "this tool must be named to be had"
	case UnknownTool:
		why = "no such tool exists"
	default:
		return string(c)
	}
	return string(c) + " (" + why + ")"
}

// rank orders actions by strictness. A word that is no action is a restriction
// that can't be read, and counts as the strictest.
func (a Action) rank() int {
	switch a {
	case Allow:
		return 0
	case Ask:
		return 1
	}
	return 2
}

// readable returns the action that a rule's word stands for.
func (a Action) readable() Action {
	if a == Allow || a == Ask {
		return a
	}
	return Deny
}

// about reports whether a rule is for calls of tool. A rule may name a tool by
// another product's word, unless a tool of that very name exists here.
func (p *Policy) about(r *Rule, tool string) bool {
	if r.Tool == tool || r.Tool == "*" {
		return true
	}
	if IsGlob(r.Tool) && wildcard(r.Tool, tool) {
		return true
	}
	if native, ok := aliases[r.Tool]; ok {
		return native == tool && !p.exists(r.Tool)
	}
	// A name that can't be read might have meant this tool.
	return r.Action != Allow && !namePattern(r.Tool)
}

// exists reports whether the policy knows a tool of this name.
func (p *Policy) exists(tool string) bool {
	_, blocked := p.Block[tool]
	return blocked || slices.Contains(p.Allow, tool)
}

// whole reports whether the rule covers every call of its tool.
func (r *Rule) whole() bool { return r.Pattern == "*" }

// A verdict collects the strictest outcome of one call.
type verdict struct {
	policy *Policy
	call   *Call

	action  Action
	source  *Source // nil when no rule has decided yet
	rule    *Rule   // nil when source's rules as such made the call uncertain
	subject string
	detail  string // what within the subject decided, or why it is uncertain
	sure    bool   // false: the rule may be about the subject
}

// concerned reports whether any rule is about a tool, and which source is the
// first to have one that depends on the subject.
func (p *Policy) concerned(tool string) (found bool, specific *Source) {
	for i := range p.Rules {
		src := &p.Rules[i]
		for j := range src.Rules {
			r := &src.Rules[j]
			if !p.about(r, tool) {
				continue
			}
			found = true
			if !r.whole() {
				return true, src
			}
		}
	}
	return found, nil
}

// judge judges all subjects of the call. Where no rule depends on the subject,
// specific is nil.
func (v *verdict) judge(specific *Source) {
	subjects := v.call.Subjects
	if len(subjects) == 0 {
		switch v.call.Kind {
		case SubjectPath:
			v.path(".")
		case SubjectCommand:
			v.command("", specific)
		default:
			v.rules("", "", func(r *Rule) grade {
				if r.whole() {
					return hit
				}
				return miss
			})
		}
		return
	}
	for _, s := range subjects {
		switch v.call.Kind {
		case SubjectPath:
			v.path(s)
		case SubjectCommand:
			v.command(s, specific)
		case SubjectURL:
			v.url(s, specific)
		default:
			v.text(s)
		}
	}
}

// text judges a subject that is matched as it is.
func (v *verdict) text(s string) {
	v.rules(s, "", func(r *Rule) grade {
		switch {
		case r.whole():
			return hit
		case r.Pattern == "" || !plainText(r.Pattern):
			return broken(r)
		case wildcard(r.Pattern, s):
			return hit
		}
		return miss
	})
}

// broken grades a rule whose pattern can't be read.
func broken(r *Rule) grade {
	if r.Action == Allow {
		return miss
	}
	return partly
}

// rules walks every source's rules from the last to the first. The first hit
// ends a source; what matches with less certainty on the way counts with the
// strictest, since any of it may be the one that holds.
func (v *verdict) rules(subject, detail string, match func(*Rule) grade) {
	for i := range v.policy.Rules {
		src := &v.policy.Rules[i]
		for j := len(src.Rules) - 1; j >= 0; j-- {
			r := &src.Rules[j]
			if !v.policy.about(r, v.call.Tool) {
				continue
			}
			switch g := match(r); g {
			case hit:
				v.take(r.Action.readable(), src, r, subject, detail, true)
			case partly:
				v.take(r.Action.readable(), src, r, subject, detail, true)
				continue
			case may:
				if r.Action != Allow {
					v.take(Ask, src, r, subject, detail, false)
				}
				continue
			default:
				continue
			}
			break
		}
	}
}

// take records an outcome if it is stricter than what is known, or the first.
func (v *verdict) take(a Action, src *Source, r *Rule, subject, detail string, sure bool) {
	if v.source != nil && a.rank() <= v.action.rank() {
		return
	}
	v.action, v.source, v.rule = a, src, r
	v.subject, v.detail, v.sure = subject, detail, sure
}

// uncertain records that what a subject does can't be known, for why. The rules
// of src are what makes that matter.
func (v *verdict) uncertain(src *Source, subject, why string) {
	if src == nil {
		src = &Source{}
	}
	v.take(Ask, src, nil, subject, why, true)
}

func (v *verdict) decision() Decision {
	if v.source == nil {
		return Decision{Action: Allow, Reason: "no rule matches"}
	}
	d := Decision{Action: v.action, Origin: v.source.Origin, Subject: v.subject}
	if v.rule == nil {
		d.Reason = v.detail
		return d
	}
	d.Rule = *v.rule
	if v.rule.Line > 0 {
		line := strconv.Itoa(v.rule.Line)
		if d.Origin == "" {
			d.Origin = "line " + line
		} else {
			d.Origin += ":" + line
		}
	}
	var b strings.Builder
	b.WriteString("the rule ")
	b.WriteString(v.rule.Tool)
	b.WriteByte(' ')
	b.WriteString(strconv.Quote(v.rule.Pattern))
	switch {
	case !v.sure:
		b.WriteString(" may be about ")
	case v.action == Allow:
		b.WriteString(" allows ")
	case v.action == Ask:
		b.WriteString(" asks about ")
	default:
		b.WriteString(" denies ")
	}
	switch what := v.detail; {
	case what != "":
		b.WriteString(strconv.Quote(clip(what)))
	case v.subject != "":
		b.WriteString(strconv.Quote(clip(v.subject)))
	default:
		b.WriteString("this tool")
	}
	d.Reason = b.String()
	return d
}

// clip shortens what a reason quotes.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
