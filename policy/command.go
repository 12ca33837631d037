package policy

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// What a script may be and still be judged. More asks.
const (
	maxScript  = 64 << 10 // bytes
	maxNesting = 500      // opening brackets that are not yet closed, quotes aside
	maxUnwrap  = 12       // wrappers and scripts inside each other
	maxSimple  = 2000     // commands, the unwrapped ones included
)

// A simple is one simple command of a script: a program and its arguments.
type simple struct {
	text string // what rules see
	// also are further spellings that a restriction may be written for: the
	// program without its folder, the words as written. They never make an
	// allowance match.
	also []string
	show string // as written, for messages
	// guess says that this may be a command or may be plain arguments; only
	// restrictions look at it, and they ask.
	guess bool
}

// A script is what a command line would run.
type script struct {
	simples []simple
	// unread is why the script can't be read, "" if it can. It asks whatever
	// the rules are.
	unread string
	// doubts are what keeps the script from being known for certain. They
	// ask where rules depend on the command.
	doubts []string
}

// command judges a shell command. It is read the way bash reads it; where
// another shell would read it differently, the answer is at least to ask.
func (v *verdict) command(s string, specific *Source) {
	sc := readScript(s)
	if sc.unread != "" {
		src := specific
		if src == nil {
			src = v.firstSource()
		}
		v.uncertain(src, s, sc.unread)
	}
	if specific == nil {
		// Every rule is about the whole tool: what the command does is all the
		// same to them.
		v.rules(s, "", func(r *Rule) grade { return hit })
		return
	}
	if sc.unread != "" {
		v.rules(s, "", func(r *Rule) grade {
			if r.whole() {
				return hit
			}
			return miss
		})
		return
	}
	for _, cmd := range sc.simples {
		v.rules(s, cmd.show, func(r *Rule) grade { return r.commandGrade(&cmd) })
	}
	for _, why := range sc.doubts {
		v.uncertain(specific, s, why)
	}
}

// firstSource returns the first source with a rule about the call's tool.
func (v *verdict) firstSource() *Source {
	for i := range v.policy.Rules {
		src := &v.policy.Rules[i]
		if slices.ContainsFunc(src.Rules, func(r Rule) bool { return v.policy.about(&r, v.call.Tool) }) {
			return src
		}
	}
	return nil
}

// commandGrade grades a rule against one simple command.
func (r *Rule) commandGrade(cmd *simple) grade {
	if cmd.guess && (r.whole() || r.Action == Allow) {
		return miss
	}
	if r.whole() {
		return hit
	}
	pattern, ok := commandPattern(r.Pattern)
	if !ok {
		return broken(r)
	}
	g := matchCommandText(pattern, cmd.text)
	if cmd.guess {
		return min(g, may)
	}
	if r.Action == Allow || g == hit {
		return g
	}
	for _, text := range cmd.also {
		switch matchCommandText(pattern, text) {
		case hit:
			return partly
		case may:
			g = max(g, may)
		}
	}
	return g
}

// guesses adds every tail of a program's arguments as a command that it may
// run, for programs whose options are too many to tell where it starts.
func (x *reader) guesses(args []word) {
	const most = 16
	for i := range args[:min(len(args), most)] {
		if len(x.out.simples) < maxSimple {
			x.out.simples = append(x.out.simples, simple{text: joinText(args[i:]), show: joinRaw(args[i:]), guess: true})
		}
	}
}

// commandPattern brings a command pattern into the form of the commands it is
// matched against: single blanks, none at the ends. It reports whether the
// pattern is valid.
func commandPattern(s string) (string, bool) {
	if !plainText(s) {
		return "", false
	}
	if strings.ContainsAny(s, "\t\n") || strings.Contains(s, "  ") || strings.HasPrefix(s, " ") || strings.HasSuffix(s, " ") {
		s = strings.Join(strings.Fields(s), " ")
	}
	return s, s != ""
}

// readScript finds all simple commands that s would run.
func readScript(s string) *script {
	sc := &script{}
	if strings.TrimSpace(s) == "" {
		sc.unread = "the command is empty"
		return sc
	}
	if why := unreadable(s); why != "" {
		sc.unread = why
		return sc
	}
	x := reader{src: s, out: sc}
	if why := x.parse(); why != "" {
		sc.unread = why
		return sc
	}
	if len(sc.simples) == 0 && sc.unread == "" {
		// Assignments, tests, redirections: nothing runs, but a rule for the
		// text as a whole can still be about it.
		text := strings.Join(strings.Fields(s), " ")
		if strings.HasPrefix(text, "#") {
			sc.unread = "the command is empty"
			return sc
		}
		sc.simples = append(sc.simples, simple{text: text, show: text})
	}
	return sc
}

// unreadable says what in a script keeps it from being judged, "" if nothing.
func unreadable(s string) string {
	switch {
	case len(s) > maxScript:
		return "the command is too long to be judged"
	case !utf8.ValidString(s):
		return "the command is not valid UTF-8"
	}
	depth := 0
	for _, r := range s {
		switch {
		case unicode.IsControl(r) && r != '\t' && r != '\n':
			return "the command holds control characters"
		case unicode.Is(unicode.Bidi_Control, r):
			return "the command holds characters that change the direction of text"
		case r == '(' || r == '{' || r == '[' || r == '`':
			depth++
		case r == ')' || r == '}' || r == ']':
			depth = max(0, depth-1)
		}
		if depth > maxNesting {
			return "the command is nested too deeply to be judged"
		}
	}
	return ""
}

// A reader walks one script, and the scripts inside it with further readers.
type reader struct {
	src   string
	depth int
	out   *script
	vars  numbers
}

// doubt notes why what runs is not known for certain.
func (x *reader) doubt(why string) {
	const most = 32 // one is enough to ask; the first is the one that is told
	if len(x.out.doubts) < most && !slices.Contains(x.out.doubts, why) {
		x.out.doubts = append(x.out.doubts, why)
	}
}

// parse reads the script into x.out; it returns why it can't.
func (x *reader) parse() (why string) {
	defer func() {
		// The parser's own mistakes must neither end the process nor pass as
		// a script that was read.
		if recover() != nil {
			why = "the command can't be parsed"
		}
	}()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(x.src), "")
	if err != nil {
		return "the command can't be parsed"
	}
	x.vars.collect(x, file)
	x.walk(file)
	return ""
}

// script reads a script that is given as an argument.
func (x *reader) script(s string) {
	if strings.TrimSpace(s) == "" {
		return
	}
	if x.depth >= maxUnwrap {
		x.doubt("the command is nested too deeply to be judged")
		return
	}
	if why := unreadable(s); why != "" {
		x.doubt(why)
		return
	}
	inner := reader{src: s, depth: x.depth + 1, out: x.out}
	if why := inner.parse(); why != "" {
		x.doubt(why)
	}
}

func (x *reader) walk(n syntax.Node) {
	syntax.Walk(n, x.visit)
}

// visit looks at one node of the syntax tree; commands in the words below it
// are found by going on.
func (x *reader) visit(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.CallExpr:
		if len(n.Args) == 0 {
			break
		}
		words := make([]word, len(n.Args))
		for i, w := range n.Args {
			words[i] = x.word(w)
		}
		var assigns []string
		for _, a := range n.Assigns {
			assigns = append(assigns, x.source(a))
		}
		x.command(words, assigns)
	case *syntax.DeclClause:
		words := []word{knownWord(n.Variant.Value)}
		for _, a := range n.Args {
			words = append(words, x.declared(a))
		}
		x.command(words, nil)
	case *syntax.LetClause:
		words := []word{knownWord("let")}
		for _, e := range n.Exprs {
			words = append(words, word{text: string(rune(gap)), raw: x.source(e)})
			x.arithmetic(e)
		}
		x.command(words, nil)
	case *syntax.TimeClause:
		x.keyword("time", n.Stmt)
	case *syntax.CoprocClause:
		x.doubt("a coprocess runs on its own")
		x.keyword("coproc", n.Stmt)
	case *syntax.Assign:
		if n.Name != nil && !n.Naked {
			x.assigned(n.Name.Value)
		}
		x.arithmetic(n.Index)
	case *syntax.ArrayElem:
		x.arithmetic(n.Index)
	case *syntax.Redirect:
		return x.redirect(n)
	case *syntax.WordIter:
		x.assigned(n.Name.Value)
	case *syntax.CStyleLoop:
		x.arithmetic(n.Init)
		x.arithmetic(n.Cond)
		x.arithmetic(n.Post)
	case *syntax.ArithmCmd:
		x.doubt("((...)) is read as commands by other shells")
		x.arithmetic(n.X)
	case *syntax.ArithmExp:
		x.arithmetic(n.X)
	case *syntax.UnaryTest:
		if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
			x.doubt("a test of a variable evaluates its subscript")
		}
	case *syntax.BinaryTest:
		x.testArithmetic(n)
	case *syntax.ParamExp:
		x.parameter(n)
	case *syntax.ExtGlob:
		if strings.ContainsAny(n.Pattern.Value, "$`<>'\"\\") {
			x.doubt("an extended glob with expansions in it can't be judged")
		}
	case *syntax.Lit:
		if hidesCommand(n.Value) {
			x.doubt("a substitution in a place that can't be judged")
		}
	}
	return true
}

// hidesCommand reports whether unquoted text holds the start of a substitution
// that the parser has not taken for one.
func hidesCommand(s string) bool {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == '`', strings.HasPrefix(s[i:], "$("), strings.HasPrefix(s[i:], "${"):
			return true
		}
	}
	return false
}

// declared reads an argument of export, declare and the like.
func (x *reader) declared(a *syntax.Assign) word {
	raw := x.source(a)
	if a.Naked {
		if a.Name != nil {
			if a.Index != nil {
				return word{text: a.Name.Value + "[" + string(rune(gap)) + "]", raw: raw}
			}
			return knownWord(a.Name.Value)
		}
		return x.word(a.Value)
	}
	w := word{raw: raw, text: a.Name.Value + "="}
	switch {
	case a.Array != nil || a.Index != nil:
		w.text += string(rune(gap))
	case a.Value != nil:
		w.text += x.word(a.Value).text
	}
	return w
}

// keyword notes a shell keyword that runs a command, which is judged by itself
// as well.
func (x *reader) keyword(name string, stmt *syntax.Stmt) {
	words := []word{knownWord(name)}
	if stmt != nil {
		if call, ok := stmt.Cmd.(*syntax.CallExpr); ok {
			for _, w := range call.Args {
				words = append(words, x.word(w))
			}
		} else {
			words = append(words, unknownWords("..."))
		}
	}
	x.emit(words, nil)
}

// redirect looks at a redirection and reports whether to go on below it.
func (x *reader) redirect(r *syntax.Redirect) bool {
	target := x.word(r.Word)
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		for _, p := range r.Word.Parts {
			if lit, ok := p.(*syntax.Lit); !ok || strings.Contains(lit.Value, `\`) {
				return false // a quoted delimiter: the body is text
			}
		}
		if r.Hdoc != nil {
			x.walk(r.Hdoc)
		}
		return false
	case syntax.WordHdoc, syntax.DplIn:
		return true
	case syntax.RdrIn:
		if strings.HasPrefix(target.text, "/dev/tcp/") || strings.HasPrefix(target.text, "/dev/udp/") {
			x.doubt("a redirection opens a network connection")
		}
		return true
	}
	switch {
	case target.known() && slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr"}, target.text):
	case r.Op == syntax.DplOut && target.known() && strings.Trim(strings.TrimSuffix(target.text, "-"), "0123456789") == "":
	default:
		x.doubt("a redirection writes to a file")
	}
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		x.assigned(strings.Trim(r.N.Value, "{}"))
	}
	return true
}

// parameter looks at an expansion for what it does besides expanding.
func (x *reader) parameter(e *syntax.ParamExp) {
	x.arithmetic(e.Index)
	if e.Slice != nil {
		x.arithmetic(e.Slice.Offset)
		x.arithmetic(e.Slice.Length)
	}
	if e.Excl && e.Names == 0 {
		if lit, ok := e.Index.(*syntax.Word); !ok || lit.Lit() != "@" && lit.Lit() != "*" {
			x.doubt("an indirect expansion evaluates what a variable holds")
		}
	}
	if e.Exp == nil {
		return
	}
	switch e.Exp.Op {
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if e.Param != nil {
			x.assigned(e.Param.Value)
		}
	case syntax.OtherParamOps:
		if e.Exp.Word == nil || e.Exp.Word.Lit() == "P" {
			x.doubt("a prompt expansion runs what a variable holds")
		}
	}
}

// assigned notes that a variable is set.
func (x *reader) assigned(name string) {
	if steers(name) {
		x.doubt("setting " + name + " changes which programs run")
	}
}

// emit adds a simple command.
func (x *reader) emit(words []word, assigns []string) {
	if len(x.out.simples) >= maxSimple {
		x.doubt("too many commands to be judged")
		return
	}
	c := simple{text: joinText(words), show: joinRaw(words)}
	also := func(s string) {
		if s != c.text && !slices.Contains(c.also, s) {
			c.also = append(c.also, s)
		}
	}
	if w := words[0]; !w.opt {
		if i := strings.LastIndexByte(w.text, '/'); i >= 0 {
			short := slices.Clone(words)
			short[0].text = w.text[i+1:]
			also(joinText(short))
		}
	}
	if raw := strings.Join(strings.Fields(c.show), " "); plainText(raw) {
		also(raw)
		if len(assigns) > 0 {
			also(strings.Join(append(slices.Clone(assigns), raw), " "))
		}
	}
	x.out.simples = append(x.out.simples, c)
}

// command adds a simple command and what it runs in turn.
func (x *reader) command(words []word, assigns []string) {
	x.emit(words, assigns)
	name := words[0]
	switch {
	case !name.known():
		x.doubt("which program " + clip(name.raw) + " is, is only known when it runs")
		return
	case name.text == "" || strings.ContainsAny(name.text, " \t\n") || strings.HasPrefix(name.text, "="):
		x.doubt("the program's name is unusual")
	}
	if x.depth >= maxUnwrap {
		x.doubt("the command is nested too deeply to be judged")
		return
	}
	x.depth++
	defer func() { x.depth-- }()
	x.unwrap(words)
}
