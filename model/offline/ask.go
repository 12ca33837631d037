package offline

import (
	"regexp"
	"strconv"
	"strings"
)

// A kind is what a part asks for; each has one rule that serves it.
type kind string

const (
	kindNone     kind = ""
	kindRefuse   kind = "refuse"
	kindHelp     kind = "help"
	kindList     kind = "list files"
	kindFile     kind = "locate a file"
	kindDefine   kind = "definition"
	kindUses     kind = "uses"
	kindImports  kind = "imports"
	kindGrep     kind = "search"
	kindMarks    kind = "marker comments"
	kindShow     kind = "show"
	kindOutline  kind = "outline"
	kindPackages kind = "packages"
	kindCount    kind = "count"
	kindSummary  kind = "summary"
	kindTopic    kind = "topic in a document"
	kindPassages kind = "passages"
	kindTest     kind = "run tests"
	kindHowTo    kind = "how to"
	kindCovers   kind = "tests of"
	kindGit      kind = "git"
	kindCommand  kind = "command"
	kindFacts    kind = "project facts"
	kindEach     kind = "for each"
	kindTool     kind = "tool"
	kindAgents   kind = "agents"
	kindTools    kind = "tools"
)

// hints are words that descriptions of fitting agents tend to have.
func (k kind) hints() string {
	switch k {
	case kindTest:
		return "test run failing tests report failures"
	case kindCommand:
		return "run command execute"
	case kindGit:
		return "review change diff history"
	case kindCovers, kindList, kindFile, kindGrep, kindMarks, kindDefine, kindUses, kindImports, kindOutline, kindCount:
		return "find files search code read-only explore quick locate"
	case kindPackages:
		return "research gather map structure codebase documentation"
	case kindSummary, kindTopic, kindPassages, kindHowTo, kindFacts, kindShow:
		return "research read documentation gather information"
	}
	return ""
}

// An ask is a part, understood.
type ask struct {
	kind    kind
	text    string // as it was asked
	subject string // an identifier, a pattern, a file, a topic
	scope   string // a path to stay in, "" for all
	exts    []string
	lang    string // as it is written in answers
	from    int    // lines or counts, where the kind has them
	to      int
	flags   map[string]bool
	command string
	items   []string // kindEach: what is known to be gone through
}

// needs returns the role without which the part can't be done.
func (a ask) needs() role {
	switch a.kind {
	case kindTest, kindGit, kindCommand:
		return roleExec
	case kindList, kindFile:
		return roleFind
	case kindShow:
		if !a.flags["symbol"] {
			return roleRead
		}
	case kindSummary:
		if e := ext(a.subject); e == "md" || e == "txt" || e == "rst" || a.subject == "" {
			return roleRead
		}
	case kindRefuse, kindNone, kindHelp, kindTool, kindEach, kindAgents, kindTools:
		return ""
	}
	return roleSearch
}

// A rule recognises one form of a request. Named groups: x the subject, p a
// path, n a number, m a second number.
type rule struct {
	kind  kind
	re    func() *regexp.Regexp
	flags string
}

// name matches what a request can mean as an identifier, a file or a phrase.
const name = "(?P<x>.+?)"

// noun matches a word for what is defined, which is not part of its name.
const noun = `(?:function|func|method|type|struct|interface|class|constant|const|variable|var|macro|enum|trait|symbol|identifier|module|package)`

func en(k kind, re string, flags ...string) rule {
	return rule{k, lazily(`(?i)^(?:` + re + `)$`), strings.Join(flags, " ")}
}

// rulebook is tried in order; the first that matches decides.
var rulebook = []rule{
	en(kindHelp, `help|hello|hi|what can you do(?: for me)?|who are you|what are you|how can you help(?: me)?|你好|帮助|你能做什么|你会什么|你是谁`),
	en(kindAgents, `(?:which|what|list|show)(?: me| are)?(?: the| all| your)*(?: available| built-?in| builtin)* (?:sub-?)?agents?(?: are there| are available| are built-?in| do you have| does it have| come with it| exist| can you use| can i use| can be used)?|有哪些(?:内置的?)?(?:子)?代理|列出(?:所有)?(?:内置的?)?(?:子)?代理`),
	en(kindTools, `(?:which|what) tools (?:can you (?:use|call)|do you have|are (?:offered|available)(?: to you)?)|(?:list|show)(?: me)? (?:your|the|all)(?: available)? tools(?: you have)?|(?:你)?有哪些工具`),
	en(kindEach, `for (?:each|every|all)(?: of)?(?: the)? (?P<x>[^:]+?)\s*:\s*(?P<y>.+)`),
	en(kindEach, `for (?:each|every|all)(?: of)?(?: the)? (?P<x>.+?)(?:\s*[,:]\s*|\s+)(?P<y>(?:list|find|count|show|run|search|outline|summari[sz]e|print|quote|say|tell|report|display|describe|check|what|who|where)\b.+)`),
	en(kindEach, `(?P<y>(?:list|find|count|show|run|search|outline|summari[sz]e|print|quote|display)\b.+?) (?:for|of|in) (?:each|every)(?: of)?(?: the)? (?P<x>.+)`),
	en(kindEach, `对(?:于)?(?:每个|每一个|所有)\s*(?P<x>.+?)\s*[,，:：]?\s*(?P<y>(?:列出|查找|统计|显示|总结|运行|搜索|概述).+)`),

	// Running things comes before asking about them.
	en(kindCommand, "(?:run|execute|运行|执行)(?: the)?(?: shell)?(?: command)?(?:命令)?\\s*[:：]?\\s*`(?P<c>[^`]+)`"),
	en(kindCommand, `(?:run|execute|运行|执行)(?: the command)?\s*:?\s*(?P<c>(?:go|npm|npx|yarn|pnpm|make|cargo|python3?|pytest|git|node|ls|cat|wc|head|tail|grep|rg|find|uname|date|pwd|echo) .+|pytest|make|date|pwd|ls)`),
	en(kindHowTo, `(?:how (?:do|can|could|should|would|to)\b|what is the (?:command|way)|which command).*\btests?\b.*|(?:如何|怎么|怎样).*测试.*`, "test"),
	en(kindHowTo, `(?:where|how) (?:do|should|can|could) (?:i|we|you|one) (?:start|begin|get started)`, "build"),
	en(kindHowTo, `(?:how (?:do|can|could|should|would) (?:i|you|we|one|people|users?)|how to)\b.*\b(?:build|compile|install|set ?up|start|run|launch|use|try)\b.*|(?:如何|怎么|怎样).*(?:安装|构建|编译|启动|运行|使用).*`, "build"),
	en(kindTest, `(?:re-?)?run\b.*\b(?:tests?|test suite|specs)\b.*|test (?:the |this )?(?:project|repo(?:sitory)?|package|code|everything)\b.*|(?:do|does|are|is|will)(?: all)?(?: the| its| these| your)? ?.*\btests?(?: suite)?\b.*\b(?:pass(?:ing)?|green|fail(?:ing)?|ok)\b.*|(?:which|what|are any) tests? (?:are )?fail(?:ing)?|check (?:that|whether|if) (?:all )?(?:the )?.*tests? pass.*|(?:运行|跑|执行)(?:一下|一遍)?.*(?:测试|单测).*|测试.*(?:能|是否|有没有)?通过.*`),
	en(kindCommand, `(?:build|compile)(?: the| this)?(?: project| repo| code| it)?|does (?:it|the (?:project|code)|this) (?:build|compile)|(?:构建|编译)(?:一下)?(?:项目)?`, "build"),
	en(kindCommand, `(?:run )?(?:lint|vet|the linter|go vet)(?: the| this)?(?: project| repo| code)?`, "lint"),
	en(kindTool, `(?:use|call|run|invoke)(?: the)? (?P<x>[\w.-]+) tool(?: (?:with|on|for|to)?\s*(?P<y>.+))?`),
	en(kindTool, `(?:use|load|run)(?: the)? (?P<x>[\w.-]+) (?P<k>skill|workflow)(?: (?:to|for|on|with)\s+(?P<y>.+))?|(?:fetch|download|open) (?P<u>https?://\S+)|(?:transfer|hand)(?: me| this| it)?(?: over)? to(?: the)? (?P<t>[\w-]+)(?: agent)?|search the web for (?P<w>.+)`),

	en(kindGit, `(?:what|which)(?: files?| has| have)? (?:has |have |is |are )?(?:been )?(?:uncommitted|unstaged|modified|untracked)\b.*|(?:show|print|run|what is|give)?(?: me)?(?: the)? ?git status|.*\buncommitted changes\b.*|is the (?:working )?tree clean|(?:显示|查看)?\s*git ?状态|.*未提交.*`, "status"),
	en(kindGit, `(?:show|print|run|what is|display)?(?: me)?(?: the)?(?: current| whole| full)? ?(?:git )?diff(?: (?:of|in|for) (?P<p>\S+))?|(?:what|show)(?: are| the| me)* (?:current |local )?changes(?: in (?P<p2>\S+))?|(?:显示|查看)?(?:当前)?(?:的)?\s*(?:diff|改动|差异)`, "diff"),
	en(kindGit, `(?:what (?:has )?changed|show what changed)(?: in the last commit| last|in HEAD)|(?:show|what is|what's|describe|print)(?: me)? (?:the )?(?:last|latest|most recent|head) commit(?: about)?|(?:最后|最近)一次提交.*`, "last"),
	en(kindGit, `who (?:are the (?:authors?|contributors?)|contributed|has contributed|wrote (?:this|the code|it))\b.*|(?:list|show|count|how many)(?: me)?(?: the)? (?:authors|contributors)\b.*|(?:有哪些)?贡献者.*|作者有哪些`, "authors"),
	en(kindGit, `who (?:wrote|last changed|changed|touched|edited|modified|last edited|authored|maintains) (?:the )?(?:file )?(?P<p>\S+)(?: last)?(?: line (?P<n>\d+))?|(?:git )?blame (?P<p2>\S+)(?: line (?P<n2>\d+))?|when (?:was|did) (?P<p3>\S+) (?:last )?(?:changed?|modified|edited)|谁(?:写了|修改了|改了)\s*(?P<p4>\S+)`, "who"),
	en(kindGit, `(?:when was|what is|what was|which is|show|list)(?: me)?(?: the)?(?: last| latest| newest| current)? (?:releases?|tags?|version)\b(?: of (?:this|the) \w+)?|(?:最新|最近)(?:的)?(?:版本|发布).*`, "tags"),
	en(kindGit, `what(?:'s| is) new(?: here| in (?:the|this) \w+)?|(?:最近)?有什么(?:新|变化).*`, "log"),
	en(kindGit, `how many commits\b.*|(?:count|统计)(?: the| all)? ?(?:commits|提交数?)`, "commits"),
	en(kindGit, `(?:which|what|show|list)(?: is| are| the| me)*(?: current| git)? (?:branch(?:es)?|tags?)\b.*|(?:当前)?分支.*`, "branch"),
	en(kindGit, `(?:show|list|print|run|what are|what is|display|give|read)?(?: me)?(?: the)?(?: last| latest| recent| most recent| newest)?(?: (?P<n>\d+))?(?: last| latest| recent)? ?(?:git (?:log|history)|commits?(?: messages| log| history)?|history)(?: (?:of|for|in|on|to|touching) (?P<p>\S+))?|what (?:has )?(?:changed|happened)(?: recently| lately)?(?: (?:in|to) (?P<p2>\S+))?|(?:显示|列出|查看)?(?:最近|最新)?的?\s*(?P<n2>\d+)?\s*(?:次|条|个)?\s*(?:提交(?:记录|历史)?|git ?(?:log|日志|历史))`, "log"),

	en(kindCovers, `(?:which|what|list|find|show|where are)(?: me)?(?: all)?(?: the)?(?: unit)? tests?(?: files?| functions?| cases?)?(?: are there| that| which)? (?:cover|covers|covering|test|tests|testing|exercise|exercises|check|checks|for|of|about|in)(?: the)? `+name+`|(?:is|are)(?: the)? `+strings.Replace(name, "<x>", "<x2>", 1)+` (?:tested|covered(?: by (?:a |any )?tests?)?)|tests? (?:for|of|covering) (?:the )?(?P<x3>.+?)|(?:哪些|什么)测试(?:覆盖|涉及|测)了?\s*(?P<x4>.+?)|(?P<x5>.+?)\s*(?:有|的)(?:哪些)?测试(?:有哪些|用例)?`),

	en(kindCount, `how many (?:times|places)(?: does| is| do)?(?: the)?(?: word| string)? `+name+` (?:appears?|occurs?|used|mentioned|found)\b.*|count (?:the |all )?(?:occurrences|uses|mentions|matches|appearances) of `+strings.Replace(name, "<x>", "<x2>", 1)+`|统计\s*(?P<x3>\S+)\s*出现(?:的)?(?:次数|多少次)|(?P<x4>\S+)\s*出现了?(?:多少|几)次`, "matches"),
	en(kindCount, `(?:which|what)(?: is| are)?(?: the)? (?P<n>\d+ )?(?:largest|longest|biggest) (?P<k>\w+ )?(?:source )?files?\b.*|(?:which|what) (?P<k2>\w+ )?files? (?:is|are)(?: the)? (?:largest|longest|biggest)\b.*|(?:list|show|find)(?: me)?(?: the)? (?P<n2>\d+ )?(?:largest|longest|biggest) (?P<k3>\w+ )?(?:source )?files?\b.*|最(?:大|长)的\s*(?P<k4>\w+)?\s*文件.*|(?:哪个|哪些)\s*(?P<k5>\w+)?\s*文件最(?:大|长)`, "largest"),
	en(kindCount, `(?:how many|how much|count|number of|what is the number of|统计|数一?下?|一共|总共)\b?.*|有多少.*|.*(?:有多少|多少个|多少行|几个文件).*|how (?:big|large|long) is .*|(?:lines of code|loc)`),

	en(kindImports, `(?:who|what|which packages?) (?:may|can|must|is allowed to|are allowed to) imports? (?:what|whom|who|which|(?:the )?(?:package )?(?P<x>[\w./-]+))|what (?:may|can)(?: the)?(?: package)? (?P<p>[\w./-]+)(?: package)? import|(?:what|which)(?: are)?(?: the)? imports?(?: rules)? (?:are )?(?:allowed|permitted)|(?:what are |show |list )?(?:the )?(?:import|dependency|layering) rules|哪些包可以(?:导入|引用)(?:哪些包?|什么)|谁可以(?:导入|引用)(?:谁|什么)`, "rules"),
	en(kindPackages, `(?:list|show|describe|print|outline|summari[sz]e|quote|find|give)(?: me)?(?: all)?(?: of)?(?: the)?(?: go| python| rust| js)? ?(?:packages|modules|crates)\b.*|(?:what|which)(?: are)?(?: the| go| python)* (?:packages|modules|crates)\b.*|what (?:does|is) each (?:package|module|folder|directory|crate)\b.*|(?:what is|show|describe|explain)?(?: me)?(?: the)?(?: overall| package| directory| folder| high.level)? ?(?:structure|layout|architecture)(?: of (?:this|the) (?:project|repo(?:sitory)?|code(?:base)?))?|how is (?:this|the) (?:project|repo(?:sitory)?|code(?:base)?) (?:organi[sz]ed|structured|laid out)|.*(?:有哪些|列出|所有)的?\s*(?:go\s*)?(?:包|模块).*|(?:项目|代码)(?:的)?(?:结构|架构).*`),

	en(kindFacts, `(?:what|which|where)(?: is| are)?(?: the| this| its)? ?.*\blicen[cs]e\b.*|under (?:what|which) licen[cs]e.*|(?:show|find)(?: me)? the licen[cs]e|.*许可证.*`, "license"),
	en(kindFacts, `(?:what|which|list|show|find)(?: me)?(?: are)?(?: all)?(?: the| its| this| direct)* (?:dependencies|deps|requirements|third.party (?:libraries|modules|packages))\b.*|what does (?:it|this (?:project|repo|module)|the project) depend on|.*依赖.*`, "deps"),
	en(kindFacts, `(?:what|which)(?: is the| minimum)*(?: version of)? (?:go|python|node|rust|java)(?: version| release)?(?: is| does| do)?.*(?:need|require|use|version|supported|written).*|(?:what|which) (?:minimum )?(?:go|python|node|rust) version\b.*|.*(?:go|python|node)\s*版本.*`, "version"),
	en(kindFacts, `(?:what|which) (?:is the )?(?:module|import) (?:path|name)\b.*|what is the (?:name of the )?module(?: called)?`, "module"),

	en(kindImports, `(?:who|what|which (?:files?|packages?|code))(?: in .+?)? imports?(?: the)?(?: package| module)? `+name+`|where is(?: the)?(?: package| module)? `+strings.Replace(name, "<x>", "<x2>", 1)+` imported|importers of (?P<x3>.+?)|(?:谁|哪些文件)(?:导入|引入|引用)了?\s*(?P<x4>.+?)`),
	en(kindImports, `what (?:does|do)(?: the)?(?: package| file| module)? `+name+` import|imports of `+strings.Replace(name, "<x>", "<x2>", 1), "of"),
	en(kindUses, `(?:who|what|which (?:functions?|files?|code|packages?|methods?|places?)) (?:calls?|invokes?|uses?|references?|relies on|depends on)(?: the)?(?: `+noun+`)? `+name+`|where (?:is|are)(?: the)?(?: `+noun+`)? `+strings.Replace(name, "<x>", "<x2>", 1)+`(?: `+noun+`)? (?:called|used|referenced|invoked|instantiated)\b.*|(?:find |list |show )?(?:all )?(?:the )?(?:callers|usages?|uses|references|call sites|calls)(?: of| to)(?: the)?(?: `+noun+`)? (?P<x3>.+?)|(?:谁|哪里|哪些(?:函数|地方|文件))(?:调用|使用|用到|引用)了?\s*(?P<x4>.+?)|(?P<x5>\S+)\s*在哪(?:里|儿)?(?:被)?(?:调用|使用|用到)了?|(?:查找|找到?|列出)(?:所有)?\s*(?P<x6>\S+?)\s*的(?:所有)?(?:调用者?|调用处|引用|使用处|用法)`),

	en(kindMarks, `.*\b(?:TODO|FIXME|HACK|XXX)s?\b.*`),

	en(kindTopic, `what (?:does|do)(?: the)? (?P<p>[\w./-]+(?:\.md)?|docs?|documentation|readme|spec)(?: (?:file|document|docs?))? (?:say|says|state|specify|tell(?: us)?|mention|write)(?: about| on)(?: the)? `+name+`|what is (?:said|written)(?: about| on)(?: the)? `+strings.Replace(name, "<x>", "<x2>", 1)+` in(?: the)? (?P<p2>[\w./-]+)|quote what(?: the)? (?P<p3>[\w./-]+) says (?:about|on)(?: the)? (?P<x3>.+?)|(?:find|quote|show)(?: me)?(?: what| the (?:section|part|passages?))?(?: is said)? (?:about|on)(?: the)? (?P<x4>.+?) in(?: the)? (?P<p4>[\w/-]+\.md|readme|spec|docs)|(?P<p5>[\w./-]+)\s*(?:里|中|文档)?\s*(?:关于|对)\s*(?P<x5>.+?)\s*(?:说了什么|怎么说|的(?:说明|内容|规定))`),

	en(kindSummary, `(?:summari[sz]e|sum up|(?:give (?:me )?)?(?:an? |the )?(?:short |brief )?(?:summary|overview) of|describe)(?: the)?(?: file| package| document| contents? of)? ?`+name+`|what is (?:this|the) (?:project|repo(?:sitory)?|program|code(?:base)?|tool|library)(?: about| for)?|what(?:'s| is) (?P<p>[\w./-]+\.(?:md|txt|rst)) about|what does (?:this|the) (?:project|repo(?:sitory)?|program|code(?:base)?|tool|library) do|(?:总结|概述|概括|介绍)(?:一下)?\s*(?P<x2>.*?)|这个?(?:项目|仓库)是(?:什么|做什么的|干什么的).*`),
	en(kindSummary, `what (?:is|does)(?: the)? (?P<x>[\w./-]+) (?:package|file|folder|directory|module|script)(?: for| do| about)?|what(?: is|'s)(?: the)? (?:package|file|folder|module) (?P<x2>[\w./-]+)(?: for| about)?|what (?:does|do)(?: the)?(?: package| file| folder)? (?P<x3>[\w.-]+/[\w./-]+|[\w-]+\.(?:go|py|js|ts|rs|java|c|h|md)) do|what(?: is|'s)(?: there)? in(?: the)? (?P<x4>[\w./-]+)(?: package| folder| directory| module)|about(?: the)? (?P<x5>[\w./-]+)(?: package| folder| directory| module| file)?|(?P<x6>[\w./-]+)\s*(?:包|目录|文件)(?:是)?(?:做什么|干什么|什么)(?:的|用的)?`),

	en(kindRefuse, `(?:find|look for|search for|are there|spot|report)(?: me)?(?: any| all| the| some)* (?:bugs?|security (?:holes?|issues?|problems?|bugs?)|vulnerabilit(?:y|ies)|problems?|mistakes?|code smells?|dead code)\b.*|(?:查找|找出?|有没有)\s*(?:bug|漏洞|问题|错误).*`),
	en(kindDefine, `(?:where|in which file|in what file|which file)(?: is| are| does|'s)?(?: the)?(?: `+noun+`)? ?`+name+`(?: `+noun+`)? (?:get |gets |being )?(?:defined|declared|implemented|located|live|come from|coded|(?P<v>written|handled|created|set|built|computed|calculated|checked|enforced|parsed|decided|read|loaded|stored|kept|registered|compiled|resolved|started|run|executed|validated|retried|counted|limited|merged|streamed|encoded|decoded|sent|rendered|printed|produced|returned|emitted|raised|thrown|logged|reported|generated|formed|said))(?: in.*)?|(?:find |show |locate |give )?(?:me )?(?:the )?(?:definition|declaration|implementation|source)(?: of| for)(?: the)?(?: `+noun+`)? `+strings.Replace(name, "<x>", "<x2>", 1)+`|(?:find|locate)(?: the)? `+noun+` (?P<x3>\S+)|(?:which|what) (?:file|package)s? (?:defines?|declares?|implements?|contains? the definition of|holds?|has)(?: the)?(?: `+noun+`)? (?P<x4>.+?)|where is the (?:code|implementation|logic) (?:for|of|that (?:does|handles|implements))(?: the)? (?P<x5>.+?)|(?:where is|find|locate)(?: the)? (?P<x6>\S+) `+noun+`|(?P<x7>.+?)\s*(?:是)?在(?:哪里|哪儿|哪个文件|什么地方)(?:里|中)?(?:被)?(?:定义|实现|声明)的?|(?:哪里|哪个文件)(?:定义|实现|声明)了?\s*(?P<x8>.+?)|(?:查找|找到|找)\s*(?P<x9>\S+)\s*的?(?:定义|实现)`),
	en(kindShow, `(?:what|which) (?:fields|members|values) (?:does|do|has|have|are in|are there in|make up)(?: an?| the)?(?: `+noun+`)? (?P<x>[\w.]+)(?: `+noun+`)?(?: have| hold| contain)?|(?:list|show|what are)(?: me)?(?: all)?(?: the)? (?:fields|members) (?:of|in)(?: an?| the)?(?: `+noun+`)? (?P<x2>[\w.]+)(?: `+noun+`)?|what (?:does|do)(?: an?| the)?(?: `+noun+`)? (?P<x3>(?-i:[A-Z])\w*)(?: `+noun+`)? (?:hold|contain|consist of|carry|look like|have)s?(?: in it)?|what is (?:in|inside)(?: an?| the)?(?: `+noun+`)? (?P<x4>(?-i:[A-Z][a-z]\w*))(?: `+noun+`)?|(?P<x5>\w+)\s*(?:有|包含)(?:哪些|什么)(?:字段|成员)`, "symbol"),
	en(kindOutline, `(?:what|which|list|show|find)(?: me)?(?: are)?(?: all| every)?(?: of)?(?: the)? (?P<k>interfaces?|traits?|structs?|classe?s?)(?: are| is)?(?: there| defined| declared)?(?: in (?:the|this) (?:project|repo(?:sitory)?|code(?:base)?))?|(?:what|which|list|show)(?: me)?(?: are)?(?: all)?(?: the)? make(?:file)? (?P<k2>targets)(?: are)?(?: there)?|(?:what|which|list|show)(?: me)?(?: are)?(?: all)?(?: the)? (?P<k3>targets)(?: are)?(?: there)? (?:in|of)(?: the)? makefile|(?:列出|显示|查找)?\s*(?:所有|全部|有哪些)的?\s*(?:接口|结构体)|(?:接口|结构体)有哪些`),
	en(kindOutline, `(?:outline|give (?:me )?an outline of|list the outline of|(?:show|list|print)(?: me)? the (?:outline|structure|headings|sections|table of contents|symbols) (?:of|in))(?: the)?(?: file| package)? `+name+`|(?:what|which|list|show|find)(?: me)?(?: are)?(?: all)?(?: of)?(?: the)? ?(?P<v>exported |public )?(?P<k>functions?|funcs|types?|methods?|classes|structs?|interfaces?|symbols?|definitions?|identifiers?|headings|sections|constants?|names)(?: are| is)?(?: there| defined| declared| exported| exist)? (?:in|of|from|by)(?: the)?(?: file| package| module| document)? (?P<x2>.+?)|what (?:does|is)(?: the)?(?: package| file| module)? (?P<x3>[\w./-]+)(?: package| file| module)? (?P<e>export|define|declare|contain)s?|what is in(?: the)? (?P<x4>\S+)(?: package| file)?|(?:public |exported )?api of(?: the)?(?: package)? (?P<x5>\S+)(?: package)?|(?P<x6>[\w./-]+)\s*(?:包|文件|目录)?(?:里|中|下)?(?:有|定义了)(?:哪些|什么)(?:函数|类型|方法|类|标题|章节)|(?:列出|概览)\s*(?P<x7>[\w./-]+)\s*(?:的|里的|中的)(?:函数|类型|大纲|结构|标题|定义)`),

	en(kindShow, `(?:show|read|print|cat|open|display|view|quote|see)(?: me)?(?: the)?(?: first (?P<f>\d+))? ?lines?(?: (?P<n>\d+)\s*(?:-|–|to|through|and)\s*(?P<m>\d+)| (?P<n2>\d+))?(?: of| from| in)(?: the)?(?: file)? `+name+`|(?:show|read|print|cat|open|display|view|quote|see|what is in|what's in)(?: me)?(?: the)?(?: file| contents? of(?: the)?(?: file)?)? ?(?P<x2>[\w./-]*\.\w+|readme|license|makefile|changelog|spec)(?:(?::| lines? )(?P<n3>\d+)(?:\s*(?:-|–|to)\s*(?P<m3>\d+))?)?(?: file)?|(?:显示|打开|读取?|查看|看看)\s*(?:文件)?\s*(?P<x3>[\w./-]+)\s*(?:的)?(?:第)?\s*(?:(?P<n4>\d+)\s*(?:-|到|至|~)\s*(?P<m4>\d+)\s*行)?(?:的内容|文件)?`),
	en(kindShow, `(?:show|print|display|view|read|quote|see)(?: me)?(?: the)?(?: (?:body|code|source) of(?: the)?)?(?: `+noun+`) (?P<x>\S+)|(?:show|print|display)(?: me)?(?: the)? (?P<x2>\S+) `+noun+`|(?:show|print|display|quote)(?: me)?(?: the)? (?:code|source|body) of (?P<x3>\S+)`, "symbol"),

	en(kindList, `(?:list|show|find|print|display|get|give)(?: me)?(?: all)?(?: of)?(?: the)? ?(?P<k>.*?)\b(?:files?|folders?|director(?:y|ies)|tree)\b(?: (?:in|under|inside|of|from|within)(?: the)? (?P<p>\S+)(?: (?:folder|directory|package))?)?|(?:what|which) (?P<k2>.*?)files?(?: are| exist)?(?: there)?(?: (?:in|under|inside)(?: the)? (?P<p2>\S+)(?: (?:folder|directory|package))?)?|(?:list|ls) (?P<p3>\S+/\S*)|(?:列出|显示|查找|找出?)(?:所有|全部)?的?\s*(?P<k3>\S*?)\s*(?:的)?文件|(?:有哪些|哪些)\s*(?P<k4>\S*?)\s*文件|(?P<p4>[\w./-]+)\s*(?:目录|文件夹|包)?(?:下|里|中|内)?有(?:哪些|什么)文件|列出\s*(?P<p5>[\w./-]+)\s*(?:目录|文件夹|包)?(?:下|里|中|内)?的?(?:所有|全部)?\s*(?P<k5>\w*)\s*文件`),
	en(kindFile, `(?:is|are) there (?:an? )?(?P<x>readme|makefile|dockerfile|licen[cs]e|changelog|contributing|[\w-]+\.\w+)(?: file| guide)?`),
	en(kindFile, `(?:where (?:is|are|can i find|do i find)|find|locate|look for)(?: the)?(?: files?)?(?: (?:named|called))? ?(?P<x>["`+"`"+`]?[\w*./-]+\.[\w*]+["`+"`"+`]?|readme|makefile|dockerfile|license|changelog)(?: file)?|(?:where is|find|locate)(?: the)? (?P<x2>\S+) file|(?:find|locate)(?: the)? files? (?:named|called|matching) (?P<x3>\S+)|(?P<x4>[\w.-]+\.\w+)\s*(?:文件)?在(?:哪里|哪儿)`),
	en(kindGrep, `(?:search|grep|look|scan)(?: the (?:code|repo(?:sitory)?|project|files?|docs?))?(?: for)?(?: the)?(?: (?:word|string|text|pattern|phrase))? `+name+`|(?:find|list|show|quote)(?: me)?(?: all)?(?: of)?(?: the)? (?:occurrences?|mentions?|matches|lines|appearances|instances)(?: of| for| with| containing| matching| that (?:contain|mention|match))(?: the)?(?: (?:word|string|text))? (?P<x2>.+?)|(?:which|what|find|list)(?: all)?(?: the)? (?P<k>\S+ )?(?:files?|lines?|places?|docs?)(?: that)? (?:mentions?|contains?|match(?:es)?|includes?|has|have|with|containing|mentioning)(?: the)?(?: (?:word|string|text))? (?P<x3>.+?)|where is (?P<x4>.+?) (?:mentioned|documented|described|discussed)|(?:搜索|查找|检索|搜)(?:一下)?\s*(?P<x5>.+?)|哪些文件(?:包含|提到)了?\s*(?P<x6>.+?)`),
	en(kindDefine, `(?:find|locate|where(?: is|'s))(?: the)?(?: code (?:for|of))? `+name+`|(?P<x2>[\w.]+)\s*在哪(?:里|儿)?`, "loose"),
	en(kindDefine, "(?:what (?:is|are|does)(?: an?| the)?(?: "+noun+")? (?P<x>`[^`]+`|(?-i:[A-Z][a-z]\\w+)|[A-Za-z]+(?:[A-Z_]\\w+|\\.\\w+)|[\\w.]+\\(\\))(?: do| mean| for| "+noun+")?|(?:doc(?:umentation)?s?|doc comment) (?:of|for) (?P<x2>[\\w.]+))", "doc"),
	en(kindDefine, `(?P<x>[A-Za-z][\w.]*)\s*是(?:什么|做什么的|干什么的|干嘛的|啥)`, "doc"),
	en(kindRefuse, `(?:write|implement|fix|refactor|rewrite|edit|change|update|add|remove|delete|rename|create|generate|translate|improve|optimi[sz]e|design|suggest|recommend|review|explain|why|should|debug|compare|think|plan|convert|draft|compose|port|migrate|deploy|commit|push|merge|make|evaluate|judge|rate|critique|argue|prove|predict|guess|imagine|invent|analy[sz]e|brainstorm|tell a|is (?:it|this|the .*) (?:good|better|safe|correct|right|worth)|(?:do|what do) you (?:think|like|prefer|recommend)|为什么|解释|翻译|写|修复|重构|优化|建议|评价|修改|实现|创建|删除|添加|设计|改)(?:\b.*|.*)`),
	en(kindPassages, `(?:what|which|where|who|whose|how|when|does|do|is|are|can|list|find|show|quote|look up|has|have)\b\s*`+name+`|(?P<x2>.*(?:什么|哪些|哪个|哪里|如何|怎么|是否|多久|谁).*)`),
}

// understand reads one part of a request.
func understand(text string) ask {
	a := ask{kind: kindNone, text: text, flags: map[string]bool{}}
	if len(text) > maxPart {
		return a
	}
	text = direct(text)
	if noun := definite().ReplaceAllString(text, "show the "); noun != text && len(noun) < maxPart {
		if b := understand(noun); b.kind != kindPassages && able(b) {
			b.text = text
			return b
		}
	}
	for _, r := range rulebook {
		m := r.re().FindStringSubmatch(text)
		if m == nil {
			continue
		}
		a.kind = r.kind
		for f := range strings.FieldsSeq(r.flags) {
			a.flags[f] = true
		}
		g := groups(r.re(), m)
		a.subject = unquote(g["x"])
		a.scope = cleanPath(g["p"])
		a.from, a.to = atoi(g["n"]), atoi(g["m"])
		a.command = strings.TrimSpace(g["c"])
		if f := atoi(g["f"]); f > 0 {
			a.from, a.to = 1, f
		}
		a.complete(g)
		return a
	}
	return a
}

// definite begins a request that has no verb ("the git log").
var definite = lazily(`(?i)^the `)

var indirect = lazily(`(?i)^(where|who|what|how)(?: the)? (.+?) (is|are) (defined|declared|implemented|used|called|located|referenced|for|about)$`)

var findOut = lazily(`(?i)^(?:find(?: out)?|look up|check|report|say|quote|show|list)\s+((?:where|who)\b.*)$`)

var (
	report   = lazily(`(?i)^(?:find out|say|report|determine|tell)\s+((?:what|which|how|when)\b.*)$`)
	shortIs  = lazily(`(?i)^(what|where|who)['’]s\b`)
	listOf   = lazily(`(?i)^(?:show|give|report|get|list|print)(?: me)? (?:an?|the)(?: full| complete| short)? (?:list|number|count) of (.+)$`)
	endsInIs = lazily(`(?i)^(where|who|what)(?: the)? (.+?) (is|are)$`)
	ofWhat   = lazily(`(?i)\b(number|count) of\b`)
)

// direct turns an indirect question ("find out where X is defined") around.
func direct(text string) string {
	text = shortIs().ReplaceAllString(text, "$1 is")
	text = findOut().ReplaceAllString(text, "$1")
	text = report().ReplaceAllString(text, "$1")
	if m := listOf().FindStringSubmatch(text); m != nil {
		verb := "list "
		if ofWhat().MatchString(text) {
			verb = "count "
		}
		text = verb + m[1]
	}
	text = endsInIs().ReplaceAllString(text, "$1 $3 $2")
	return indirect().ReplaceAllString(text, "$1 $3 $2 $4")
}

// groups returns the named groups, digits at the end of a name left out: x2 is
// another place where x can stand.
func groups(re *regexp.Regexp, m []string) map[string]string {
	g := map[string]string{}
	for i, n := range re.SubexpNames() {
		n = strings.TrimRight(n, "0123456789")
		if n != "" && m[i] != "" && g[n] == "" {
			g[n] = strings.TrimSpace(m[i])
		}
	}
	return g
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return min(n, 1_000_000)
}

// unquote takes quotes, call brackets and articles off a subject.
func unquote(s string) string {
	s = strings.TrimSpace(s)
	for _, q := range [][2]string{{"`", "`"}, {`"`, `"`}, {"'", "'"}, {"“", "”"}, {"「", "」"}} {
		if strings.HasPrefix(s, q[0]) && strings.HasSuffix(s, q[1]) && len(s) > len(q[0])+len(q[1]) {
			return s[len(q[0]) : len(s)-len(q[1])]
		}
	}
	return strings.TrimSuffix(s, "()")
}

// cleanPath makes a path relative to the workspace's root; "" is the root.
func cleanPath(s string) string {
	s = strings.TrimRight(unquote(s), "/,.;:")
	s = strings.TrimLeft(strings.TrimPrefix(s, "./"), "/")
	switch strings.ToLower(s) {
	case ".", "here", "it", "repo", "repository", "project", "codebase", "code", "workspace", "root", "this", "there", "total", "all", "each", "the":
		return ""
	}
	return s
}
