package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A SyntaxError is a permission rule that can't be read.
type SyntaxError struct {
	// Line and Column count from 1, columns in characters; 0 means unknown.
	Line, Column int
	Message      string
	Hint         string // the way out, "" where there is none
}

// Error returns the place, what is wrong and the way out, in one line.
func (e *SyntaxError) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d", e.Line)
		if e.Column > 0 {
			fmt.Fprintf(&b, ", column %d", e.Column)
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Message)
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// NewRule returns a rule for calls of tool (a name, another product's name for
// it, or a glob over names) whose subject matches pattern. line is where it
// stands in its file, 0 when unknown. What can't be a rule is refused with a
// [*SyntaxError], since a rule that never matches would be a restriction lost.
func NewRule(tool, pattern, action string, line int) (Rule, error) {
	fail := func(hint, format string, args ...any) (Rule, error) {
		return Rule{}, &SyntaxError{Line: line, Message: fmt.Sprintf(format, args...), Hint: hint}
	}
	a, hint, ok := parseAction(action)
	if !ok {
		return fail(hint, "permission %q: want allow, ask or deny", action)
	}
	tool, pattern = strings.TrimSpace(tool), strings.TrimSpace(pattern)
	if !namePattern(tool) {
		hint := ""
		if name, inner, ok := ParseSpecifier(tool); ok {
			hint = fmt.Sprintf(`write {%q: {%q: %q}}`, name, inner, action)
		}
		return fail(hint, "permissions for tool %q: want a tool's name, in which * stands for any characters", tool)
	}
	kind := SubjectText
	if !IsGlob(tool) {
		kind = kinds[Canonical(tool, func(name string) bool { _, native := kinds[name]; return native })]
	}
	if why, hint := badPattern(kind, pattern, a); why != "" {
		return fail(hint, "permissions for %s: pattern %q %s", tool, pattern, why)
	}
	return Rule{Tool: tool, Pattern: pattern, Action: a, Line: line}, nil
}

// Overridden returns the indexes of the rules that can never decide, since a
// later rule of the same source is about all of their calls too: in
// {"git *": "allow", "*": "ask"} the first one, for the last rule that matches
// wins. Whoever reads rules from a file should warn of them.
func Overridden(rules []Rule) []int {
	var dead []int
	for i, r := range rules {
		for _, later := range rules[i+1:] {
			sameTool := later.Tool == r.Tool || IsGlob(later.Tool) && wildcard(later.Tool, r.Tool) ||
				!IsGlob(r.Tool) && !IsGlob(later.Tool) && Canonical(later.Tool, nil) == Canonical(r.Tool, nil)
			if sameTool && (later.whole() || later.Pattern == r.Pattern) && later.Action != r.Action {
				dead = append(dead, i)
				break
			}
		}
	}
	return dead
}

// badPattern says what is wrong with a pattern over subjects of a kind.
func badPattern(kind SubjectKind, pattern string, a Action) (why, hint string) {
	switch {
	case pattern == "":
		return "is empty", `use "*" for every call`
	case pattern == "*":
		return "", ""
	case !plainText(pattern):
		return "holds control characters", ""
	}
	switch kind {
	case SubjectPath:
		if _, ok := pathPattern(pattern); !ok {
			return "is not a valid glob", "close every [ and {, or put a backslash before them"
		}
	case SubjectURL:
		if _, ok := parseURLPattern(pattern); !ok {
			return "is not a URL pattern", "write scheme, host and path, for example https://example.com/*"
		}
	case SubjectCommand:
		// Every simple command is judged by itself, so a restriction over
		// several would silently match nothing.
		if a != Allow && strings.ContainsAny(pattern, "|;&<>\n") {
			return "is about more than one simple command, which a rule never sees", "write one rule for each program; writing to files asks anyway"
		}
	}
	return "", ""
}

// actionWords maps words that people write for an action to the action.
var actionWords = map[string]Action{
	"allowed": Allow, "accept": Allow, "permit": Allow, "grant": Allow, "yes": Allow, "true": Allow, "on": Allow, "always": Allow,
	"denied": Deny, "block": Deny, "blocked": Deny, "forbid": Deny, "reject": Deny, "refuse": Deny, "no": Deny, "false": Deny, "off": Deny, "never": Deny, "none": Deny,
	"asked": Ask, "prompt": Ask, "confirm": Ask, "approve": Ask, "approval": Ask,
}

func parseAction(s string) (a Action, hint string, ok bool) {
	switch a := Action(s); a {
	case Allow, Ask, Deny:
		return a, "", true
	}
	low := strings.ToLower(strings.TrimSpace(s))
	best, found := actionWords[low]
	if !found {
		for _, a := range []Action{Deny, Ask, Allow} {
			if near(low, string(a)) {
				best, found = a, true
				break
			}
		}
	}
	if found {
		hint = "did you mean " + string(best) + "?"
	}
	return "", hint, false
}

// near reports whether one change, or two letters swapped, makes a of b.
func near(a, b string) bool {
	if a == b {
		return true
	}
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	x, y := a[i:], b[i:]
	switch {
	case x == "" || y == "":
		return len(x)+len(y) == 1
	case x[1:] == y, x == y[1:], x[1:] == y[1:]:
		return true
	}
	return len(x) > 1 && len(y) > 1 && x[0] == y[1] && x[1] == y[0] && x[2:] == y[2:]
}

// ParseJSON reads the value of a "permissions" key: an action for every tool
// ("ask"), or an object that gives for each tool an action, or an object from
// patterns to actions. Rules come in the order of the text, repeated keys
// included, since the last one that matches wins; null means no rules. Lines
// count within data. Errors are of type [*SyntaxError].
func ParseJSON(data []byte) ([]Rule, error) {
	p := &jsonParser{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	// Once over the whole first: the decoder tells less about a mistake that
	// it meets token by token.
	var whole json.RawMessage
	first := json.NewDecoder(bytes.NewReader(data))
	if err := first.Decode(&whole); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, p.fail(int(syntax.Offset)-1, "", "permissions are not valid JSON: %v", err)
		}
		return nil, p.fail(len(data), "", "permissions are not valid JSON: unexpected end")
	}
	if rest := bytes.TrimLeft(data[first.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return nil, p.fail(len(data)-len(rest), "", "unexpected text after the permissions")
	}
	p.dec.UseNumber()
	return p.permissions()
}

type jsonParser struct {
	data  []byte
	dec   *json.Decoder
	rules []Rule
}

// position returns the line and column of an offset.
func (p *jsonParser) position(offset int) (line, column int) {
	offset = max(0, min(offset, len(p.data)))
	before := p.data[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

func (p *jsonParser) fail(offset int, hint, format string, args ...any) error {
	line, column := p.position(offset)
	return &SyntaxError{Line: line, Column: column, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// token returns the next token and the offset at which it starts.
func (p *jsonParser) token() (json.Token, int, error) {
	at := int(p.dec.InputOffset())
	for at < len(p.data) && strings.IndexByte(" \t\r\n,:", p.data[at]) >= 0 {
		at++
	}
	t, err := p.dec.Token()
	if err != nil { // the text is valid, so this is not for lack of a token
		return nil, 0, p.fail(at, "", "permissions can't be read: %v", err)
	}
	return t, at, nil
}

func (p *jsonParser) permissions() ([]Rule, error) {
	t, at, err := p.token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case nil:
		return nil, nil
	case string:
		if err := p.rule("*", "*", t, at); err != nil {
			return nil, err
		}
		return p.rules, nil
	}
	if t != json.Delim('{') {
		return nil, p.fail(at, `for example {"execute": {"git *": "allow"}}`, "permissions: found %s, want an object or one action", describe(t))
	}
	for p.dec.More() {
		key, at, err := p.token()
		if err != nil {
			return nil, err
		}
		if err := p.tool(key.(string), at); err != nil {
			return nil, err
		}
	}
	if _, _, err := p.token(); err != nil {
		return nil, err
	}
	return p.rules, nil
}

// tool reads what stands behind a tool's name, which itself stands at keyAt.
func (p *jsonParser) tool(tool string, keyAt int) error {
	t, at, err := p.token()
	if err != nil {
		return err
	}
	switch t := t.(type) {
	case string:
		return p.rule(tool, "*", t, at)
	case json.Delim:
		if t == '[' {
			hint := `give each pattern an action: {"git *": "allow"}`
			switch Action(tool) {
			case Allow, Ask, Deny:
				hint = `group rules by tool, not by action: {"execute": {"git *": "` + tool + `"}}`
			}
			return p.fail(at, hint, "permissions for %q: found a list, want an action or an object from patterns to actions", tool)
		}
	default:
		_, hint, _ := parseAction(fmt.Sprint(t))
		return p.fail(at, hint, "permissions for %q: found %s, want allow, ask or deny, or an object from patterns to actions", tool, describe(t))
	}
	if !p.dec.More() && !namePattern(tool) { // no pattern to report the name with
		return p.rule(tool, "*", string(Deny), keyAt)
	}
	for p.dec.More() {
		key, _, err := p.token()
		if err != nil {
			return err
		}
		pattern := key.(string)
		t, at, err := p.token()
		if err != nil {
			return err
		}
		action, ok := t.(string)
		if !ok {
			_, hint, _ := parseAction(fmt.Sprint(t))
			return p.fail(at, hint, "permissions for %q, pattern %q: found %s, want allow, ask or deny", tool, pattern, describe(t))
		}
		if err := p.rule(tool, pattern, action, at); err != nil {
			return err
		}
	}
	_, _, err = p.token()
	return err
}

// rule adds a rule whose action stands at an offset.
func (p *jsonParser) rule(tool, pattern, action string, at int) error {
	line, column := p.position(at)
	r, err := NewRule(tool, pattern, action, line)
	if err != nil {
		var syntax *SyntaxError
		if errors.As(err, &syntax) {
			syntax.Column = column
		}
		return err
	}
	p.rules = append(p.rules, r)
	return nil
}

// describe names a JSON token.
func describe(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("%q", t)
	case json.Delim:
		if t == '[' {
			return "a list"
		}
		return "an object"
	}
	return fmt.Sprint(t)
}
