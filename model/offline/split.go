package offline

import (
	"regexp"
	"strings"
)

// A part is one thing that a request asks for.
type part struct {
	text  string
	stage int    // parts of a later stage wait for the earlier ones
	agent string // who is asked to do it, as the request names them
	// linked says that it is about what the part before is about.
	linked bool
}

// A request is what a user's message asks for, taken apart.
type request struct {
	parts    []part
	parallel bool // in so many words
	passed   int  // parts beyond maxParts, which nobody looks at
}

const (
	maxParts = 24   // of one request
	maxPart  = 1000 // bytes of a part that can be understood; what is longer is material
)

// howToReport starts the paragraph that a prompt for a sub-agent ends with. It
// tells a language model how to answer; these rules answer like that anyway,
// and pass over it.
const howToReport = "How to report:"

var (
	listItem    = lazily(`^\s*(?:\d{1,2}[.)、]|[-*•])\s+(.*)$`)
	inlineItem  = lazily(`(?:^|[\s,;:])\(?\d{1,2}[.)]\s+`)
	inParallel  = lazily(`(?i)^(?:please\s+)?(?:do (?:this|these|the following) )?(?:in parallel|concurrently|at the same time|simultaneously|(?:请)?(?:同时|并行)(?:地)?(?:执行|完成|处理)?)\s*[,:，：]?\s*`)
	endParallel = lazily(`(?i)[,，]?\s*(?:all )?(?:in parallel|concurrently|at the same time)\s*[.!]?$`)
	polite      = lazily(`(?i)^(?:(?:please|pls|kindly|hey|hi|hello|ok|okay|now|also|first|finally|lastly|next|and|then)\b[,\s]*|` +
		`(?:can|could|would|will) you (?:please )?|i(?:'d| would) like (?:you )?to (?:know )?|i (?:want|need) (?:you )?to (?:know )?|(?:tell|show) me (?:about )?(?:what|which|where|who|how)\b|let me know\s+|tell me\s+|give me\s+|` +
		`(?:请你|请|麻烦|帮我|帮忙|给我|我想知道|告诉我|首先|最后|另外)[,，]?\s*)`)
	stages  = lazily(`(?i)\s*[,;，；。.]?\s*(?:\b(?:and then|after that|then)\b,?|然后|接着|之后再)\s*`)
	breaks  = lazily(`[;；\n]+|[。？！]\s*|[.?!]\s+`)
	commas  = lazily(`(?i)\s*,\s*(?:and|&)\s+|\s*[，、,]\s*(?:并且?|以及|同时)\s*|\s*[,，、]\s*|\s+(?:and|&)\s+|(?:以及|并且|并)`)
	starter = lazily(`(?i)^(?:please |also )?(?:list|find|count|show|run|search|grep|look|locate|outline|summari[sz]e|describe|read|print|open|display|quote|check|execute|tell|ask|have|use|get|` +
		`what(?:'s)?|where(?:'s)?|who|which|how|does|do|is|are|write|fix|explain|translate|refactor|implement|add|review|report)\b|^(?:` +
		`让|叫|列出|查找|搜索|统计|数|显示|打开|运行|执行|跑|总结|概述|谁|哪|查看|找|解释|翻译|写|修复)`)
	backRef = lazily(`(?i)^(?:what|which|how|who|where)\b.*\b(?:each|they|them|its|their)\b`)
	pronoun = lazily(`(?i)\b(?:it|them)\b`)
	toAgent = []func() *regexp.Regexp{
		lazily(`(?i)^(?:use|using|with|via)\s+(?:the\s+)?@?["'` + "`" + `]?([\w][\w-]*(?: [\w-]+)?)["'` + "`" + `]?\s+(?:sub-?)?agent\s*(?:to|for|and|,|:)\s*(.+)$`),
		lazily(`(?i)^(?:ask|tell|have|let|get)\s+(?:the\s+)?@?["'` + "`" + `]?([\w][\w-]*)["'` + "`" + `]?\s+(?:(?:sub-?)?agent\s+)?(?:to\s+)?(.+)$`),
		lazily(`(?i)^delegate\s+to\s+(?:the\s+)?@?([\w][\w-]*)(?:\s+(?:sub-?)?agent)?\s*[:,]?\s*(?:to\s+)?(.+)$`),
		lazily(`(?i)^(?:use|using|with|via)\s+(?:the\s+)?@?["'` + "`" + `]?([\w][\w-]*)["'` + "`" + `]?\s+(?:to|for)\s+(.+)$`),
		lazily(`^@([\w][\w-]*)[,:]?\s+(.+)$`),
		lazily(`^(?:让|请|叫|用|使用|派)\s*@?([\w][\w-]*|\p{Han}{1,8}?)\s*(?:子代理|代理|agent)?\s*(?:去|来|帮忙|，)?\s*((?:运行|查|搜|列|统计|总结|找|跑|显示|执行|数|看|分析|审查).+)$`),
	}
	forEach = lazily(`(?i)^\s*(?:please )?for (?:each|every|all)\b|^\s*对(?:于)?(?:每|所有)`)
	holder  = lazily("\x01.\x02")
	quoted  = lazily("`[^`\n]+`|\"[^\"\n]+\"|“[^”\n]+”|「[^」\n]+」")
)

// split takes a message apart. names are the agents that can be asked.
func split(message string, names []string) request {
	var r request
	text := dropReport(message)
	// What is quoted is one word: it may hold any separator.
	var held []string
	text = quoted().ReplaceAllStringFunc(text, func(q string) string {
		held = append(held, q)
		return "\x01" + string(rune(0xE000+len(held)%0x1000)) + "\x02"
	})
	restore := func(s string) string {
		return holder().ReplaceAllStringFunc(s, func(h string) string {
			i := int([]rune(h)[1]) - 0xE000
			if i < 1 || i > len(held) {
				return ""
			}
			return held[i-1]
		})
	}
	if len(held) >= 0x1000 { // nobody asks that; keep the text as it is
		held, text = nil, dropReport(message)
	}

	stage := 0
	for _, block := range blocks(text) {
		if m := inParallel().FindString(block); m != "" && len(m) < len(block) {
			r.parallel, block = true, block[len(m):]
		} else if inParallel().FindString(block+" ") != "" && strings.TrimSpace(inParallel().ReplaceAllString(block, "")) == "" {
			r.parallel = true
			continue
		}
		if loc := endParallel().FindStringIndex(block); loc != nil && loc[0] > 0 {
			r.parallel, block = true, block[:loc[0]]
		}
		for i, leg := range stages().Split(block, -1) {
			if i > 0 && strings.TrimSpace(leg) != "" && len(r.parts) > 0 {
				stage++
			}
			for _, sentence := range breaks().Split(leg, -1) {
				for _, clause := range clauses(sentence) {
					clause = tidy(restore(clause))
					if clause == "" {
						continue
					}
					if len(r.parts) == maxParts {
						r.passed++
						continue
					}
					p := part{text: clause, stage: stage}
					p.agent, p.text = addressee(clause, names)
					if len(r.parts) > 0 && p.text != "" {
						said := p.text
						p.text = resolve(said, r.parts[len(r.parts)-1].text)
						p.linked = p.text != said
					}
					r.parts = append(r.parts, p)
				}
			}
		}
	}
	return r
}

// dropReport takes the paragraph about the report's form off a prompt.
func dropReport(message string) string {
	var keep []string
	for para := range strings.SplitSeq(strings.ReplaceAll(message, "\r\n", "\n"), "\n\n") {
		if !strings.HasPrefix(strings.TrimSpace(para), howToReport) {
			keep = append(keep, para)
		}
	}
	return strings.TrimSpace(strings.Join(keep, "\n\n"))
}

// blocks splits a message into lines and list items. The line that leads into
// a list ("do these:") is kept only for what it says about the list.
func blocks(text string) []string {
	var out []string
	lines := strings.Split(text, "\n")
	if len(lines) == 1 {
		if items := inlineItem().FindAllStringIndex(text, -1); len(items) > 1 {
			lead := strings.TrimSpace(text[:items[0][0]])
			if lead != "" && inParallel().MatchString(lead) {
				out = append(out, strings.TrimRight(lead, " :,"))
			}
			for i, at := range items {
				end := len(text)
				if i+1 < len(items) {
					end = items[i+1][0]
				}
				out = append(out, strings.Trim(text[at[1]:end], " ,;"))
			}
			return out
		}
	}
	for i, line := range lines {
		if m := listItem().FindStringSubmatch(line); m != nil {
			out = append(out, m[1])
			continue
		}
		line = strings.TrimSpace(line)
		leads := strings.HasSuffix(line, ":") || strings.HasSuffix(line, "：")
		if leads && i+1 < len(lines) {
			if m := inParallel().FindString(line + " "); m != "" {
				line = strings.TrimSpace(m)
			} else {
				continue
			}
		}
		if line != "" {
			out = append(out, line)
		}
	}
	return out
}

// clauses splits a sentence at commas and "and", but only before a word that
// starts a request of its own: "files and lines" is one thing.
func clauses(sentence string) []string {
	if len(sentence) > 4*maxPart {
		return []string{sentence}
	}
	var out []string
	rest := sentence
	from := 0
	for {
		loc := commas().FindStringIndex(rest[from:])
		if loc == nil {
			break
		}
		head, tail := rest[:from+loc[0]], rest[from+loc[1]:]
		// The start of the tail decides; looking at all of it each time would
		// make long lists slow.
		if strings.TrimSpace(head) != "" && starter().MatchString(tail[:min(len(tail), 32)]) && !backRef().MatchString(tail) && !eachClause(head) {
			out = append(out, head)
			rest, from = tail, 0
			continue
		}
		from += loc[1]
	}
	return append(out, rest)
}

// eachClause reports whether a clause only says for what the next one is done.
func eachClause(head string) bool {
	return forEach().MatchString(head) && !strings.Contains(head, ":")
}

// tidy takes politeness and punctuation off a clause.
func tidy(s string) string {
	s = strings.TrimSpace(s)
	for range 6 {
		m := polite().FindString(s)
		if m == "" {
			break
		}
		// "tell me what": only "tell me" goes.
		if low := strings.ToLower(m); strings.HasPrefix(low, "tell me") || strings.HasPrefix(low, "show me") {
			m = m[:len("tell me")]
		}
		s = strings.TrimSpace(s[len(m):])
	}
	if trimmed := strings.TrimRight(s, " \t.,;!?:。，；！？："); !strings.HasSuffix(trimmed, "/") || !strings.HasPrefix(s[len(trimmed):], "...") {
		s = trimmed // "./..." is a Go pattern
	}
	for _, p := range []string{" please", " for me", " thanks", " thank you"} {
		if len(s) > len(p) && strings.EqualFold(s[len(s)-len(p):], p) {
			s = strings.TrimRight(s[:len(s)-len(p)], " ,")
		}
	}
	return s
}

// addressee returns the agent that a clause asks to do something, and what.
func addressee(clause string, names []string) (agent, rest string) {
	for i, re := range toAgent {
		m := re().FindStringSubmatch(clause)
		if m == nil {
			continue
		}
		for _, n := range names {
			if fold(n) == fold(m[1]) {
				return n, wish(tidy(m[2]))
			}
		}
		if i == 0 || i == 2 { // it says "agent": a name nobody has is still a name
			return m[1], wish(tidy(m[2]))
		}
	}
	return "", clause
}

var wished = lazily(`(?i)^(for|about|whether|if)\s+(.+)$`)

// wish makes a request of what somebody is asked for or about ("the git log").
func wish(s string) string {
	m := wished().FindStringSubmatch(s)
	if m == nil || forEach().MatchString(s) {
		return s
	}
	switch what := m[2]; strings.ToLower(m[1]) {
	case "about":
		return "summarise " + what
	case "for":
		for _, verb := range []string{"show ", "list ", "find "} {
			if a := understand(verb + what); able(a) && a.kind != kindPassages {
				return verb + what
			}
		}
		return "find " + what
	default:
		return "check whether " + what
	}
}

// resolve puts what the clause before was about in the place of a pronoun.
func resolve(clause, before string) string {
	if !pronoun().MatchString(clause) {
		return clause
	}
	prev := understand(before)
	if prev.subject == "" || prev.kind == kindNone || prev.kind == kindRefuse {
		return clause
	}
	done := false
	return pronoun().ReplaceAllStringFunc(clause, func(p string) string {
		if done {
			return p
		}
		done = true
		return prev.subject
	})
}
