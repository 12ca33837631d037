package offline

import (
	"slices"
	"strings"
)

// A language is what is known of one: how it is called and its files end.
type language struct {
	label string
	words []string
	exts  []string
}

var languages = []language{
	{"Go", []string{"go", "golang"}, []string{"go"}},
	{"Python", []string{"python", "py"}, []string{"py"}},
	{"TypeScript", []string{"typescript", "ts"}, []string{"ts", "tsx"}},
	{"JavaScript", []string{"javascript", "js"}, []string{"js", "jsx", "mjs", "cjs"}},
	{"Rust", []string{"rust", "rs"}, []string{"rs"}},
	{"Java", []string{"java"}, []string{"java"}},
	{"C", []string{"c"}, []string{"c", "h"}},
	{"C++", []string{"c++", "cpp"}, []string{"cpp", "cc", "hpp", "h"}},
	{"Markdown", []string{"markdown", "md", "documentation", "doc", "docs"}, []string{"md"}},
	{"YAML", []string{"yaml", "yml"}, []string{"yaml", "yml"}},
	{"JSON", []string{"json"}, []string{"json"}},
	{"TOML", []string{"toml"}, []string{"toml"}},
	{"shell", []string{"shell", "bash", "sh"}, []string{"sh"}},
	{"HTML", []string{"html"}, []string{"html"}},
	{"CSS", []string{"css"}, []string{"css"}},
	{"SQL", []string{"sql"}, []string{"sql"}},
	{"text", []string{"txt"}, []string{"txt"}},
}

// languageOf finds the language that a phrase names, by word or by extension.
func languageOf(phrase string) (language, bool) {
	for _, w := range strings.FieldsFunc(strings.ToLower(phrase), func(r rune) bool {
		return strings.ContainsRune(" ,;\"'`()*", r) || r > 0x2E80
	}) {
		w = strings.TrimPrefix(w, ".")
		for _, l := range languages {
			if slices.Contains(l.words, w) || slices.Contains(l.exts, w) {
				return l, true
			}
		}
	}
	return language{}, false
}

var (
	// inPath is a place at the end of a request; only what looks like a path,
	// or is called one, counts.
	inPath = lazily("(?i)\\s+(?:in|under|inside|within|of|from|across)\\s+(?:the\\s+)?[\"'`]?([\\w.-]*/[\\w./-]*|\\.)[\"'`]?(?:\\s+(?:package|folder|directory|dir|module|tree|files?))?\\s*$" +
		"|\\s+(?:in|under|inside|within|of|from)\\s+(?:the\\s+)?[\"'`]?([\\w.-]+)[\"'`]?\\s+(?:package|folder|directory|dir|module)\\s*$" +
		"|\\s+(?:in|under|inside|within|of|from)\\s+(?:the\\s+)?(?:package|folder|directory|dir)\\s+[\"'`]?([\\w./-]+)[\"'`]?\\s*$" +
		"|\\s+(?:in|under|inside|within)\\s+[\"'`]?([\\w-]+|[\\w-]+\\.\\w{1,4})[\"'`]?\\s*$")
	hereabouts = lazily(`(?i)\s+(?:in|of|from|across|throughout|for|to|under)\s+(?:the|this|our|my|that|its)\s+(?:whole |entire |current )?(?:repo(?:sitory)?|project|code ?base|code|workspace|source(?: code)?|tree|clone|files?)\s*$|\s+(?:are )?(?:there|here)\s*$|\s+in (?:total|all)\s*$|\s+(?:in|across) (?:all|every) (?:the )?(?:files?|packages?)\s*$|\s+and (?:where|quote|say|show|list)\b.*$`)
	langTail   = lazily(`(?i)\s+in\s+(?:the\s+)?(\S+)(?:\s+(?:code|files?|sources?))?\s*$`)
	adjunct    = lazily(`(?i)\s+(?:with|including|together with|and quote|along with|by)\s+(?:their|its|the|a|all|path|line|file)\b.*$`)
)

// takeScope takes a place off the end of s.
func (a *ask) takeScope(s string) string {
	s = hereabouts().ReplaceAllString(s, "")
	if m := langTail().FindStringSubmatchIndex(s); m != nil && m[0] > 0 {
		if l, ok := languageOf(s[m[2]:m[3]]); ok && !strings.Contains(s[m[2]:m[3]], "/") && !strings.HasPrefix(strings.ToLower(s[m[2]:m[3]]), "doc") {
			a.exts, a.lang = l.exts, l.label
			s = s[:m[0]]
		}
	}
	if m := inPath().FindStringSubmatchIndex(s); m != nil && m[0] > 0 {
		for i := 2; i < len(m); i += 2 {
			if m[i] >= 0 {
				if p := cleanPath(s[m[i]:m[i+1]]); p != "" {
					a.scope = p
				}
				return hereabouts().ReplaceAllString(s[:m[0]], "")
			}
		}
	}
	return s
}

// complete works out what the groups of a rule leave open.
func (a *ask) complete(g map[string]string) {
	switch a.kind {
	case kindEach:
		a.subject, a.command = g["x"], tidy(g["y"])
		if m := goesOn().FindStringSubmatch(a.text); m != nil {
			a.subject, a.command = strings.TrimSpace(m[1]), tidy(m[2])
			g["x"] = a.subject
		}
		a.items = listed(g["x"])
	case kindTool:
		a.flags["skill"] = strings.EqualFold(g["k"], "skill")
		a.flags["workflow"] = strings.EqualFold(g["k"], "workflow")
		a.command = g["y"]
		switch {
		case g["u"] != "":
			a.subject, a.command = "fetch_url", g["u"]
		case g["t"] != "":
			a.subject = "transfer_to_" + g["t"]
		case g["w"] != "":
			a.subject, a.command = "web_search", g["w"]
		}
	case kindTest:
		a.takeScope(a.text)
		if m := testScope().FindStringSubmatch(a.text); m != nil && a.scope == "" {
			switch strings.ToLower(m[1]) {
			case "the", "all", "of", "its", "these", "go", "project", "project's", "unit", "whole", "full", "python", "every", "any", "your", "repo":
			default:
				a.scope = cleanPath(m[1])
			}
		}
		if m := testTail().FindStringSubmatch(a.text); m != nil && a.scope == "" {
			a.scope = cleanPath(m[1])
		}
		if m := testScopeZh().FindStringSubmatch(a.text); m != nil {
			a.scope = cleanPath(m[1])
		}
		if m := testName().FindString(a.text); m != "" {
			if a.subject = m; a.scope == m {
				a.scope = ""
			}
		}
	case kindCount:
		a.completeCount(g)
	case kindOutline:
		a.subject = cleanPath(a.subject)
		if p := g["p"]; p != "" {
			a.subject = cleanPath(p)
		}
		a.flags["exported"] = g["v"] != "" || g["e"] == "export"
		if a.command = strings.ToLower(strings.TrimSuffix(g["k"], "s")); strings.HasPrefix(a.command, "class") {
			a.command = "class"
		}
		for zh, en := range map[string]string{"函数": "function", "类型": "type", "方法": "method", "标题": "heading", "章节": "section", "接口": "interface", "结构体": "struct"} {
			if a.command == "" && strings.HasSuffix(a.text, zh) {
				a.command = en
			}
		}
	case kindList:
		a.takeScope(a.text)
		k := g["k"]
		if strings.Contains(strings.ToLower(a.text), "test file") {
			a.flags["tests"] = true
		}
		if l, ok := languageOf(k); ok {
			a.exts, a.lang = l.exts, l.label
		} else if m := extension().FindStringSubmatch(k); m != nil {
			a.exts, a.lang = []string{m[1]}, "."+m[1]
		} else if w := content(k); len(w) > 0 && !a.flags["tests"] {
			a.subject = strings.Join(strings.Fields(k), " ")
		}
		if a.scope == "" {
			a.scope = cleanPath(g["p"])
		}
	case kindMarks:
		m := markers().FindAllStringSubmatch(a.text, -1)
		var marks []string
		for _, w := range m {
			if up := strings.ToUpper(w[1]); !slices.Contains(marks, up) {
				marks = append(marks, up)
			}
		}
		a.subject = strings.Join(marks, "|")
		a.takeScope(a.text)
		if strings.HasPrefix(strings.ToUpper(a.scope), "TODO") {
			a.scope = ""
		}
	case kindGrep, kindDefine, kindUses, kindCovers, kindPassages, kindImports:
		if a.flags["rules"] {
			a.subject = cleanPath(a.subject)
			break
		}
		quotedSubject := unquote(a.subject) != a.subject || len(quoted().FindString(a.text)) > 0
		s := a.subject
		if q := quoted().FindString(a.text); q != "" && a.kind != kindPassages {
			s = unquote(q)
		}
		if !quotedSubject || quoted().FindString(a.subject) == "" {
			rest := a.takeScope(a.text)
			if rest != a.text && strings.HasSuffix(a.text, a.subject) && len(a.subject) > len(a.text)-len(rest) {
				s = strings.TrimSpace(a.subject[:len(a.subject)-(len(a.text)-len(rest))])
			}
			s = adjunct().ReplaceAllString(s, "")
		}
		a.flags["quoted"] = quotedSubject
		s = article().ReplaceAllString(s, "")
		a.subject = unquote(s)
		a.command = g["v"] // what is done with it, where that was said
		if a.kind == kindGrep && g["k"] != "" {
			if l, ok := languageOf(g["k"]); ok {
				a.exts, a.lang = l.exts, l.label
			}
		}
	case kindTopic:
		a.scope = cleanPath(g["p"])
		a.subject = hereabouts().ReplaceAllString(a.subject, "")
	case kindSummary:
		if p := cleanPath(g["p"]); p != "" {
			a.subject, a.scope = p, ""
		}
		a.subject = hereabouts().ReplaceAllString(a.subject, "")
		if s := kindTail().ReplaceAllString(a.subject, ""); s != "" {
			a.subject = s
		}
		a.subject = cleanPath(a.subject)
	case kindFacts, kindPackages:
		a.takeScope(a.text)
	case kindShow:
		a.subject = cleanPath(a.subject)
		if a.from > 0 && a.to == 0 {
			a.to = a.from
		}
	}
}

var countable = lazily(`(?i)\b(files?|lines?|loc|tests?|functions?|funcs|types?|packages?|modules?|todos?|fixmes?|directories|folders|methods|classes|structs|interfaces)\b|(文件|行|测试|函数|类型|包)`)

// completeCount finds what is to be counted.
func (a *ask) completeCount(g map[string]string) {
	if a.flags["matches"] {
		a.subject = unquote(wordFor().ReplaceAllString(a.subject, ""))
		a.takeScope(a.text)
		return
	}
	if a.flags["largest"] {
		a.takeScope(a.text)
		if l, ok := languageOf(g["k"]); ok {
			a.exts, a.lang = l.exts, l.label
		}
		return
	}
	rest := a.takeScope(a.text)
	if m := owner().FindStringSubmatchIndex(rest); m != nil && a.scope == "" {
		a.scope, rest = cleanPath(rest[m[2]:m[3]]), rest[:m[0]]
	}
	for _, w := range countable().FindAllString(rest, -1) {
		switch w = strings.ToLower(w); {
		case strings.HasPrefix(w, "file") || w == "文件":
			a.flags["files"] = true
		case strings.HasPrefix(w, "line") || w == "loc" || w == "行":
			a.flags["lines"] = true
		case strings.HasPrefix(w, "test") || w == "测试":
			a.flags["tests"] = true
		case strings.HasPrefix(w, "func") || w == "函数" || w == "methods":
			a.flags["functions"] = true
		case strings.HasPrefix(w, "type") || strings.HasPrefix(w, "struct") || strings.HasPrefix(w, "interface") || strings.HasPrefix(w, "class") || w == "类型":
			a.flags["types"] = true
		case strings.HasPrefix(w, "package") || strings.HasPrefix(w, "module") || strings.HasPrefix(w, "director") || strings.HasPrefix(w, "folder") || w == "包":
			a.flags["packages"] = true
		case strings.HasPrefix(w, "todo") || strings.HasPrefix(w, "fixme"):
			a.flags["marks"] = true
			a.subject = strings.ToUpper(strings.TrimSuffix(w, "s"))
		}
	}
	if a.flags["tests"] && a.flags["files"] {
		delete(a.flags, "tests")
		a.flags["testfiles"] = true
	}
	if l, ok := languageOf(rest); ok {
		a.exts, a.lang = l.exts, l.label
	} else if ofCode().MatchString(rest) {
		a.exts, a.lang = sourceExts, "source"
	}
	if a.flags["marks"] && len(a.flags) == 1 {
		a.kind = kindMarks // counted as they are found, sample data apart
		return
	}
	if a.flags["packages"] && len(a.flags) == 1 && !dirWords().MatchString(rest) {
		a.kind = kindPackages
		return
	}
	if strings.Contains(strings.ToLower(a.text), "how big") || strings.Contains(strings.ToLower(a.text), "how large") {
		a.flags["files"], a.flags["lines"] = true, true
	}
	if m := howLong().FindStringSubmatch(a.text); m != nil {
		a.flags["lines"], a.scope = true, cleanPath(m[1])
	}
	for _, f := range []string{"files", "lines", "tests", "functions", "types", "packages", "testfiles"} {
		if a.flags[f] {
			return
		}
	}
	// Something else is to be counted: its mentions.
	s := howMany().ReplaceAllString(rest, "")
	s = strings.TrimSpace(existing().ReplaceAllString(s, ""))
	switch {
	case s == "":
		a.kind = kindNone
	case len(strings.Fields(s)) == 1 || unquote(s) != s:
		a.flags["matches"], a.subject = true, unquote(s)
	default: // a question that a document may answer
		a.kind, a.subject = kindPassages, a.text
	}
}

// listed reads an explicit list of items ("a, b and c"), nil if it is none.
func listed(s string) []string {
	s = listLead().ReplaceAllString(s, "")
	items := listJoint().Split(s, -1)
	if len(items) < 2 {
		return nil
	}
	var out []string
	for _, it := range items {
		if it = unquote(it); it != "" && !slices.Contains(out, it) {
			out = append(out, it)
		}
	}
	return out
}

// What requests are taken apart with.
var (
	// goesOn is a list in which a verb is a name ("policy, run and trace").
	goesOn      = lazily(`(?i)^for (?:each|every|all)(?: of)?(?: the)? ([^:]+, *(?:list|find|count|show|run|search|outline|print|quote|report|display|check|test)(?:,| and) [\w./-]+)[,:]?\s+([a-z]+ .+)$`)
	testScope   = lazily(`(?i)\b(?:run|test|do|are)(?: all)?(?: the| just| only)? ([\w./-]+)(?:'s)? (?:package'?s? )?(?:unit )?tests?\b`)
	testTail    = lazily(`(?i)\b(?:tests? )?(?:for|in|of) (?:the )?([\w./-]+)(?: package| folder)?$`)
	testScopeZh = lazily(`(?:运行|跑|执行)(?:一下|一遍)?\s*([\w./-]+)\s*(?:包|目录)?的?(?:单元)?(?:测试|单测)`)
	testName    = lazily(`\b((?:Test|Fuzz)[A-Z_]\w*|test_\w+)\b`)
	extension   = lazily(`\*?\.(\w{1,6})\b`)
	markers     = lazily(`(?i)\b(TODO|FIXME|HACK|XXX)s?\b`)
	article     = lazily(`(?i)^(?:the|a|an|any|all|every)\s+`)
	wordFor     = lazily(`(?i)^(?:the )?(?:word|string|text) `)
	howLong     = lazily(`(?i)^how long is (?:the )?(\S+)`)
	howMany     = lazily(`(?i)^(?:how many|how much|count|number of)(?: the| all| of)*\s*`)
	owner       = lazily(`(?i)\s+(?:does|do|has|have)\s+(?:the\s+)?(?:package\s+|file\s+)?([\w./-]+)(?:\s+(?:package|folder|directory|module|file))?\s*(?:have|has|contain|hold)$`)
	ofCode      = lazily(`(?i)\bof (?:source )?code\b|\bloc\b|代码`)
	dirWords    = lazily(`(?i)director|folder`)
	existing    = lazily(`(?i)\s+(?:are|is|does|do|exist)(?: there| it| they)?$`)
	listLead    = lazily(`(?i)^(?:of )?(?:the )?(?:packages?|files?|folders?|directories|names?)\s+`)
	listJoint   = lazily(`\s*(?:,\s*and\s+|,|、|\s+and\s+|和)\s*`)
)
