package policy_test

import (
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"context"

	"github.com/synapse-agents/synapse/policy"
)

// quote makes one shell word of s.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// spellings write the program "rm" in a way that is still rm.
var spellings = []string{"rm", `\rm`, `r\m`, `"rm"`, `'rm'`, `r""m`, `''rm`, `"r"'m'`, `$'rm'`, `$'\x72m'`, `$'r\155'`, "r\\\nm", "/bin/rm", `/"bin"/rm`}

// wraps put a script into another one that runs it.
var wraps = []func(string) string{
	func(s string) string { return "( " + s + "\n)" },
	func(s string) string { return "{ " + s + "\n}" },
	func(s string) string { return "echo a; " + s },
	func(s string) string { return "echo a\n" + s },
	func(s string) string { return "true && { " + s + "\n}" },
	func(s string) string { return "false || { " + s + "\n}" },
	func(s string) string { return "! { " + s + "\n}" },
	func(s string) string { return "echo a | { " + s + "\n}" },
	func(s string) string { return "{ " + s + "\n} | cat" },
	func(s string) string { return "if true; then " + s + "\nfi" },
	func(s string) string { return "if { " + s + "\n}; then :; fi" },
	func(s string) string { return "if false; then :; else " + s + "\nfi" },
	func(s string) string { return "for i in 1; do " + s + "\ndone" },
	func(s string) string { return "while true; do " + s + "\nbreak; done" },
	func(s string) string { return "case a in *) " + s + "\n;; esac" },
	func(s string) string { return "f() { " + s + "\n}; f" },
	func(s string) string { return "echo $(" + s + "\n)" },
	func(s string) string { return `echo "a $(` + s + "\n" + `) b"` },
	func(s string) string { return "x=$(" + s + "\n)" },
	func(s string) string { return "FOO=$(" + s + "\n) true" },
	func(s string) string { return "cat <(" + s + "\n)" },
	func(s string) string { return "cat <<E_E\na $(" + s + "\n) b\nE_E" },
	func(s string) string { return "cat <<< \"$(" + s + "\n)\"" },
	func(s string) string { return "[[ -n $(" + s + "\n) ]]" },
	func(s string) string { return "echo ${x:-$(" + s + "\n)}" },
	func(s string) string { return "sh -c " + quote(s) },
	func(s string) string { return "bash -ec " + quote(s) },
	func(s string) string { return "bash -o pipefail -c " + quote(s) },
	func(s string) string { return "eval " + quote(s) },
	func(s string) string { return "env A=1 sh -c " + quote(s) },
	func(s string) string { return "command eval " + quote(s) },
	func(s string) string { return "nohup bash -c " + quote(s) },
	func(s string) string { return "timeout -k 1 5 sh -c " + quote(s) },
	func(s string) string { return "nice -n 1 sh -c " + quote(s) },
	func(s string) string { return "echo a | xargs -I{} sh -c " + quote(s) },
	func(s string) string { return "find . -maxdepth 0 -exec sh -c " + quote(s) + " \\;" },
	func(s string) string { return "trap " + quote(s) + " EXIT" },
	func(s string) string { return "exec sh -c " + quote(s) },
	func(s string) string { return "time sh -c " + quote(s) },
}

// wrapped builds a script that runs "rm x" from bytes of choices.
func wrapped(choices []byte) string {
	if len(choices) == 0 {
		choices = []byte{0}
	}
	s := spellings[int(choices[0])%len(spellings)] + " x"
	for _, c := range choices[1:min(len(choices), 8)] {
		s = wraps[int(c)%len(wraps)](s)
	}
	return s
}

func wrappedSeeds(f *testing.F) {
	for i := range wraps {
		f.Add([]byte{byte(i), byte(i)})
		f.Add([]byte{byte(i), byte(i), byte(len(wraps) - 1 - i), byte(i * 7)})
	}
}

// A denied simple command is never allowed, however it is wrapped.
func FuzzWrapped(f *testing.F) {
	wrappedSeeds(f)
	p := shellPolicy(f, "execute", "rm *", "deny")
	lists := shellPolicy(f, "execute", "*", "deny", "execute", "echo *", "allow", "execute", "cat *", "allow", "execute", "true", "allow", "execute", "sh *", "allow", "execute", "bash *", "allow",
		"execute", "eval *", "allow", "execute", "env *", "allow", "execute", "xargs *", "allow", "execute", "find *", "allow", "execute", "f", "allow")
	f.Fuzz(func(t *testing.T, choices []byte) {
		s := wrapped(choices)
		for _, p := range []policy.Policy{p, lists} {
			if d := shell(p, s); d.Action == policy.Allow {
				t.Errorf("allowed: %q", s)
			}
		}
	})
}

// The scripts of FuzzWrapped do run what they wrap, says bash itself: otherwise
// that they are not allowed would prove little.
func TestWrappedScriptsRun(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash")
	}
	dir := t.TempDir()
	for i, wrap := range wraps {
		// The program is a harmless one here.
		s := wrap(`printf '%s' ran-it >&9`)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		cmd := exec.CommandContext(ctx, bash, "-c", "exec 9>&1 1>/dev/null\n"+s)
		cmd.Dir = dir
		out, err := cmd.Output()
		cancel()
		if !strings.Contains(string(out), "ran-it") {
			t.Errorf("wrap %d does not run its script: %q: %v, %q", i, s, err, out)
		}
	}
}

// Whatever the rules and the call: what is blocked or unknown is never allowed,
// a further source never loosens, and nothing panics.
func FuzzCheck(f *testing.F) {
	for _, subject := range []string{"", "rm x", "ls; rm x", "$(rm x)", "docs/../secret", "https://a.example@b.example/", "echo 'x", "((", "a\x00b", "\xff", "{a,b} ~ $x *", "git -c x=y z"} {
		for kind := range byte(5) {
			f.Add(subject, "rm *", "x", kind, byte(0b1011))
			f.Add(subject, "*", "*", kind, byte(0b0110))
			f.Add(subject, "[", "x*", kind, byte(0xff))
		}
	}
	kinds := []policy.SubjectKind{policy.SubjectNone, policy.SubjectPath, policy.SubjectCommand, policy.SubjectURL, policy.SubjectText}
	actions := []policy.Action{policy.Allow, policy.Ask, policy.Deny, "other"}
	f.Fuzz(func(t *testing.T, subject, pattern, tool string, kind, bits byte) {
		src := func(shift int) policy.Source {
			return policy.Source{Origin: "s", Rules: []policy.Rule{
				{Tool: "*", Pattern: "*", Action: actions[int(bits>>shift)&3]},
				{Tool: tool, Pattern: pattern, Action: actions[int(bits>>(shift+2))&3]},
			}}
		}
		p := policy.Policy{Allow: []string{"x", "y"}, Rules: []policy.Source{src(0)}}
		c := policy.Call{Tool: "x", Kind: kinds[int(kind)%len(kinds)], Subjects: []string{subject}}
		d := p.Check(c)
		if !slices.Contains(actions[:3], d.Action) || d.Reason == "" {
			t.Fatalf("no answer: %+v", d)
		}
		if again := p.Check(c); again != d {
			t.Fatalf("two answers: %+v and %+v", d, again)
		}
		if n := p.With(src(4)).Check(c); strictness(n.Action) < strictness(d.Action) {
			t.Fatalf("a further source loosened %+v to %+v", d, n)
		}
		c.Subjects = append(c.Subjects, "z")
		if n := p.Check(c); strictness(n.Action) < strictness(d.Action) {
			t.Fatalf("a further subject loosened %+v to %+v", d, n)
		}
		blocked := p
		blocked.Block = map[string]policy.Reason{"x": {Code: policy.ReadOnly}}
		if d := blocked.Check(c); d.Action != policy.Deny || d.Code != policy.ReadOnly {
			t.Fatalf("blocked: %+v", d)
		}
		c.Tool = tool
		if d := p.Check(c); tool != "x" && tool != "y" && (d.Action != policy.Deny || d.Code != policy.UnknownTool) {
			t.Fatalf("unknown tool %q: %+v", tool, d)
		}
		// A denial of everything is never outdone by a source of its own.
		none := p.With(policy.Source{Rules: []policy.Rule{{Tool: "x", Pattern: "*", Action: policy.Deny}}})
		c.Tool = "x"
		if d := none.Check(c); d.Action != policy.Deny {
			t.Fatalf("denied: %+v", d)
		}
		// Nor does a command stop being denied for what stands around it.
		if c.Kind == policy.SubjectCommand && !strings.Contains(subject, "<<") {
			rm := policy.Policy{Allow: []string{"x"}, Rules: []policy.Source{{Rules: []policy.Rule{{Tool: "x", Pattern: "rm *", Action: policy.Deny}}}}}
			c.Subjects = []string{"rm x\n" + subject}
			if d := rm.Check(c); d.Action == policy.Allow {
				t.Fatalf("allowed: %q", c.Subjects[0])
			}
		}
	})
}

func FuzzParseJSON(f *testing.F) {
	for _, s := range []string{`null`, `"ask"`, `{"a": "ask"}`, `{"execute": {"git *": "allow", "*": "ask"}}`, `{"a": {"b": "c"}}`, `{"a": [1]}`, `{`, `{"a": "ask"} x`, "{\n\"ä\": {\"x\": \"dney\"}}", `{"a":{"b":{}}}`, `{"a":1e999}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rules, err := policy.ParseJSON(data)
		if err != nil {
			var syntax *policy.SyntaxError
			if !errors.As(err, &syntax) || syntax.Line < 1 || syntax.Column < 1 || rules != nil {
				t.Fatalf("%q: %T %v", data, err, err)
			}
			return
		}
		if !json.Valid(data) {
			t.Fatalf("%q was read", data)
		}
		for _, r := range rules {
			// What was read can be written down and read again.
			again, err := policy.NewRule(r.Tool, r.Pattern, string(r.Action), r.Line)
			if err != nil || again != r {
				t.Fatalf("%q: %+v, %v", data, r, err)
			}
		}
	})
}

func FuzzSplitList(f *testing.F) {
	for _, s := range []string{"", "a, b", "Bash(git:*, x), Read", `"a, b", 'c'`, "[a, b]", "((", "a)b,c", "don't, x", "`a`", `Bash("(", x), y`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		items := policy.SplitList(s)
		for _, item := range items {
			if item == "" || item != strings.TrimSpace(item) || !strings.Contains(s, item) {
				t.Fatalf("%q: item %q", s, item)
			}
			tool, pattern, ok := policy.ParseSpecifier(item)
			if ok && (tool == "" || pattern == "") {
				t.Fatalf("%q: specifier %q %q", item, tool, pattern)
			}
			if _, patterns, many := policy.ParseSpecifiers(item); many != ok || ok && len(patterns) == 0 {
				t.Fatalf("%q: %q %v", item, patterns, many)
			}
		}
		if !strings.ContainsAny(s, "()[]{}\"'`") {
			want := 0
			for _, part := range strings.Split(s, ",") {
				if strings.TrimSpace(part) != "" {
					want++
				}
			}
			if len(items) != want {
				t.Fatalf("%q: %q", s, items)
			}
		}
	})
}
