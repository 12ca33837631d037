package agents_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/policy"
)

// checkDefinition holds for every definition, whatever it was read from.
func checkDefinition(t *testing.T, d *agents.Definition, diags []agents.Diagnostic) {
	t.Helper()
	codes := map[string]bool{}
	for _, c := range agents.Codes() {
		codes[c.Code] = true
	}
	failed := false
	for _, diag := range diags {
		if !codes[diag.Code] {
			t.Errorf("unknown code: %s", diag)
		}
		if diag.Message == "" || diag.File == "" {
			t.Errorf("incomplete diagnostic: %#v", diag)
		}
		if diag.Severity == agents.Error {
			failed = true
		}
	}
	if d == nil {
		return
	}
	if failed && (!d.Broken || !d.Disabled) {
		t.Errorf("an error left the definition enabled: %v", diags)
	}
	if d.Broken {
		return
	}
	if d.Name == "" || d.Description == "" || d.Prompt == "" {
		t.Errorf("loads without name, description or body: %+v", d)
	}
	if strings.Contains(d.Name, "..") || len([]rune(d.Name)) > 64 || strings.ContainsFunc(d.Name, func(c rune) bool { return c < ' ' }) {
		t.Errorf("loads with the name %q", d.Name)
	}
	if !slices.Contains([]agents.Mode{agents.ModeAll, agents.ModePrimary, agents.ModeSubagent}, d.Mode) {
		t.Errorf("mode %q", d.Mode)
	}
	switch d.Tools.Mode {
	case agents.ToolsInherit, agents.ToolsFramework:
		if len(d.Tools.Names) > 0 {
			t.Errorf("tools %+v", d.Tools)
		}
	case agents.ToolsExact:
		if slices.Contains(d.Tools.Names, "") {
			t.Errorf("tools %q", d.Tools.Names)
		}
	default:
		t.Errorf("tools %+v", d.Tools)
	}
	for _, r := range d.Permissions {
		if _, err := policy.NewRule(r.Tool, r.Pattern, string(r.Action), 0); err != nil {
			t.Errorf("rule %+v: %v", r, err)
		}
	}
	if d.MaxTurns < 0 || d.Limits.Tokens < 0 || d.Limits.CostUSD < 0 || d.Limits.Time < 0 {
		t.Errorf("limits %d, %+v", d.MaxTurns, d.Limits)
	}
	if d.OutputSchema != nil && !json.Valid(d.OutputSchema) {
		t.Errorf("schema %s", d.OutputSchema)
	}
}

func seedFiles(f *testing.F) {
	entries, err := os.ReadDir("testdata/files")
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join("testdata/files", e.Name()))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

// FuzzParse: nothing panics or hangs, whatever loads is whole, and it can be
// written and read back.
func FuzzParse(f *testing.F) {
	seedFiles(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		start := time.Now()
		d, diags := agents.Parse("x.md", data, agents.ParseOptions{StemName: len(data)%2 == 0})
		if took := time.Since(start); took > time.Minute {
			t.Errorf("took %v for %d bytes", took, len(data))
		}
		checkDefinition(t, d, diags)
		if d == nil || d.Broken {
			return
		}
		text, err := d.Markdown()
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > agents.MaxFileSize {
			return
		}
		back, more := agents.Parse("x.md", text, agents.ParseOptions{})
		if back.Broken {
			t.Fatalf("what was written does not load: %v\n%s", more, text)
		}
		if !cmp.Equal(d.Tools, back.Tools) || !cmp.Equal(d.DisallowedTools, back.DisallowedTools) || len(d.Permissions) != len(back.Permissions) ||
			d.Name != back.Name || d.Mode != back.Mode || d.MaxTurns != back.MaxTurns || d.Limits != back.Limits || d.Disabled != back.Disabled {
			t.Errorf("written and read back: %s", cmp.Diff(d, back, sameContent))
		}
	})
}

// FuzzRestriction puts arbitrary text where a restriction belongs: either the
// definition is disabled, or the restriction is there.
func FuzzRestriction(f *testing.F) {
	for _, s := range []string{
		"[Write, Edit]", "Write, Edit", "[Write", "\n  - Write\n - Edit", "\n\t- Write", "!!set {Write}", "*", "*x", "&a [*a]", "{Write: true}", "true", "7", "'Write", "\"Write\" Edit",
		"Write: all", "|\n  Write", "Bash(rm:*)", "Bash(rm", "@Write", "\nWrite", "Write,\nEdit", "- Write", "\n---\nWrite", "Write # no", "...", "\n...\n", "~x", "'null'", "\n-----\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		d, diags := agents.Parse("x.md", []byte("---\nname: a\ndescription: d\ndisallowed_tools: "+value+"\n---\nbody\n"), agents.ParseOptions{})
		checkDefinition(t, d, diags)
		if d.Broken || len(d.DisallowedTools) > 0 || len(d.Permissions) > 0 {
			return
		}
		// Nothing is denied: then nothing must have been asked for.
		rest := strings.NewReplacer("[", "", "]", "", ",", "", "'", "", `"`, "", "`", "").Replace(value)
		for line := range strings.SplitSeq(strings.NewReplacer("\r", "\n", "\u2028", "\n", "\u2029", "\n", "\u0085", "\n").Replace(rest), "\n") {
			line, _, _ = strings.Cut(line, "#")
			line = strings.TrimSpace(strings.Trim(strings.TrimSpace(line), "-. "))
			if line != "" && line != "~" && !strings.EqualFold(line, "null") && !harmless(line) {
				t.Fatalf("%q denies nothing and loads: %v", value, diags)
			}
			return // what stands in the lines below may be other fields, or the body
		}
	})
}

// harmless reports whether text is one of the things that are no names: YAML's
// own marks for a value that is empty.
func harmless(s string) bool {
	return strings.Trim(s, "!&|>+-0123456789\ufeff\u00a0 \t") == "" ||
		(s[0] == '&' || s[0] == '!') && !strings.ContainsAny(strings.TrimSpace(s), " \t")
}

// FuzzParseJSON: the same for JSON.
func FuzzParseJSON(f *testing.F) {
	for _, s := range []string{
		`{"agents":{"a":{"description":"d","system_prompt":"p","tools":["Bash(git:*)"],"permissions":{"*":"ask"},"limits":{"time":"1m"}}}}`,
		`{"agents":{"a":{"description":"d","system_prompt":"p","tools":null},"a":{}}}`, `{"agents":[]}`, `[]`, `{"agents":{"..":{}}}`, `{"agents":{"a":7}}`,
		`{"agents":{"a":{"output_schema":{"type":"object"},"enabled":"no"}}} x`, "\xef\xbb\xbf{}", `{"agents":{"a":{"tools":{"x":true}}}`, strings.Repeat("[", 500),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defs, diags := agents.ParseJSON("x.json", data, agents.ParseOptions{})
		for _, d := range defs {
			if d == nil {
				t.Fatal("a nil definition")
			}
			checkDefinition(t, d, nil)
			if d.Broken {
				continue
			}
			text, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			var back agents.Definition
			if err := json.Unmarshal(text, &back); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if !cmp.Equal(d.Tools, back.Tools) || !cmp.Equal(d.DisallowedTools, back.DisallowedTools) || d.Name != back.Name || d.Prompt != back.Prompt {
				t.Errorf("written and read back: %s", cmp.Diff(d, &back, sameContent))
			}
		}
		checkDefinition(t, nil, diags)
	})
}
