package agents_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/policy"
)

// FuzzProducts: no reader panics or hangs, what loads is whole, mending a file
// twice is mending it once, and no conversion widens what was read.
func FuzzProducts(f *testing.F) {
	names := agents.ProductNames()
	for i, dir := range productDirs() {
		files, err := filepath.Glob(filepath.Join(dir, "*.*"))
		if err != nil || len(files) == 0 {
			f.Fatalf("%s: no examples: %v", dir, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data, byte(i), byte(i+1))
		}
	}
	targets := agents.ConvertTargets()
	f.Fuzz(func(t *testing.T, data []byte, product, target byte) {
		origin := names[int(product)%len(names)]
		d, diags := agents.Parse("x.md", data, agents.ParseOptions{Origin: origin})
		checkDefinition(t, d, diags)
		if d != nil && d.Origin != origin {
			t.Errorf("origin %q", d.Origin)
		}
		checkFix(t, "x.md", data, origin)
		agents.Elsewhere("x.md", data, origin)
		defs, diags := agents.ParseJSON("x.json", data, agents.ParseOptions{Origin: origin})
		checkDefinition(t, nil, diags)
		for _, d := range defs {
			checkDefinition(t, d, nil)
		}
		if d == nil || d.Broken {
			return
		}
		agents.Lint([]*agents.Definition{d}, agents.LintOptions{})
		to := targets[int(target)%len(targets)]
		out, name, _, err := agents.Convert(d, to, agents.ConvertOptions{Source: data})
		var wide *agents.WideningError
		if errors.As(err, &wide) || err != nil && len(data) > 10_000 {
			return
		}
		if err != nil {
			t.Fatalf("convert to %s: %v", to, err)
		}
		back, diags := agents.Parse(name, out, agents.ParseOptions{Origin: to})
		if back == nil || back.Broken {
			t.Fatalf("convert to %s: does not load: %v\n%s", to, diags, out)
		}
		if w := widened(back, d); len(w) > 0 {
			t.Fatalf("convert to %s: %v\n%s", to, w, out)
		}
	})
}

// restriction is a field of a product that may restrict, with the values that
// don't.
type restriction struct {
	product, key string
	harmless     []string
}

var restrictions = []restriction{
	{"claude", "permissionMode", []string{"default", "manual", "acceptEdits", "auto", "bypassPermissions"}},
	{"claude", "disallowedTools", nil},
	{"claude", "isolation", nil},
	{"qwen", "approvalMode", []string{"default", "bubble", "auto", "auto-edit", "yolo"}},
	{"qwen", "disallowedTools", nil},
	{"yome", "disallowedTools", nil},
	{"cursor", "readonly", []string{"false", "no", "off"}},
	{"opencode", "permission", []string{"allow"}},
	{"gemini", "timeout_mins", nil},
	{"copilot", "user-invocable", []string{"true", "yes", "on"}},
	{"copilot", "disable-model-invocation", []string{"false", "no", "off"}},
	{"codex", "sandbox_mode", []string{"danger-full-access"}},
	{"codex", "approval_policy", []string{"on-request", "on-failure", "never"}},
}

// FuzzProductRestriction puts arbitrary text where a product's word for a
// restriction belongs: the definition is disabled, or restricted, or the text
// says in so many words that it is not.
func FuzzProductRestriction(f *testing.F) {
	for _, s := range []string{
		"plan", "Plan", " plan ", "'plan'", "read-only", "readonly", "true", "1", "[plan]", "{a: b}", "!x plan", "&a plan", "*a", "plan # no", "~", "null", "",
		"deny", "{edit: deny}", `{bash: {"*": deny}}`, `{"*": "ask", read: allow}`, "{edit: dny}", "Write, Edit", "[Write", "\n  - Write", "5", "soon", "-1", "0",
		"untrusted", `"never"`, "worktree", "yes", "no\n", "|\n  plan", ">-\n  plan", "\tplan", "…",
	} {
		for i := range restrictions {
			f.Add(s, byte(i))
		}
	}
	f.Fuzz(func(t *testing.T, value string, which byte) {
		r := restrictions[int(which)%len(restrictions)]
		text := "---\nname: a\ndescription: d\n" + r.key + ": " + value + "\n---\nbody\n"
		if r.product == "codex" {
			if strings.ContainsAny(value, "\n\r") {
				return // further keys
			}
			text = "name = 'a'\ndescription = 'd'\ndeveloper_instructions = 'p'\n" + r.key + " = " + value + "\n"
		}
		d, diags := agents.Parse("x", []byte(text), agents.ParseOptions{Origin: r.product})
		checkDefinition(t, d, diags)
		if d.Broken || d.Disabled || d.Mode != agents.ModeAll || len(d.DisallowedTools) > 0 || d.Limits.Time > 0 ||
			slices.ContainsFunc(d.Permissions, func(r policy.Rule) bool { return r.Action != policy.Allow }) {
			return
		}
		// Nothing is restricted: then the text must say so, or nothing.
		line := strings.NewReplacer("\r", "\n", "\u2028", "\n", "\u2029", "\n", "\u0085", "\n").Replace(value)
		line, _, _ = strings.Cut(strings.TrimLeft(line, "\n"), "\n")
		line, _, _ = strings.Cut(line, "#")
		word := strings.TrimSpace(strings.Trim(strings.TrimSpace(line), "\"'`[],.-\ufeff\u00a0"))
		if word == "" || word == "~" || strings.EqualFold(word, "null") || harmless(word) ||
			slices.ContainsFunc(r.harmless, func(h string) bool { return strings.EqualFold(h, word) }) {
			return
		}
		if r.key == "permission" && strings.Contains(value, "allow") || strings.Contains(value, "{}") || strings.HasPrefix(strings.TrimSpace(value), "{") && strings.Trim(value, "{} \t\n") == "" {
			return
		}
		if strings.ContainsAny(value, "\n\r|>&!{") {
			return // what it means takes a parser of YAML to say
		}
		t.Fatalf("%s: %s: %q restricts nothing and loads: %v", r.product, r.key, value, diags)
	})
}
