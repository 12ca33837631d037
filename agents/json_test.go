package agents_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse/agents"
)

func TestParseJSON(t *testing.T) {
	tests := []struct{ name, json string }{
		{"all fields", `{
  "$schema": "https://synapse.example/agents.json",
  "agents": {
    "tides": {
      "description": "Knows the tides.",
      "system_prompt": "You keep the tide tables.\nIn UTC.",
      "mode": "subagent",
      "model": "openai:gpt-5",
      "effort": "low",
      "temperature": 0.2,
      "top_p": 1,
      "tools": ["read_file", "Bash(git log:*)"],
      "denied_tools": "write_file, edit_file",
      "permissions": {"edit_file": {"docs/**": "allow", "*": "deny"}},
      "max_iterations": 7,
      "limits": {"time": "90s", "tokens": 1e5},
      "skills": ["almanac"],
      "can_spawn_subagent": true,
      "ownership": "handoff",
      "handoffs": [],
      "output_schema": {"type": "object", "b": 1, "a": 2},
      "background": true,
      "color": "teal"
    },
    "framework": {"description": "d", "system_prompt": "p", "tools": []},
    "inherits": {"description": "d", "system_prompt": "p", "tools": null},
    "off": {"description": "d", "system_prompt": "p", "enabled": false}
  }
}`},
		{"places of what is wrong", `{
  "agents": {
    "ä": {"ü": 1, "description": "d",
      "system_prompt": "p", "tools": 7, "temprature": 1,
      "temperature": "hot"},
    "b": {"description": "d", "prompt": "p"},
    "c": [],
    "../d": {"description": "d", "system_prompt": "p"},
    "e": {"name": "E", "description": "d", "system_prompt": "p", "max_turns": "5"}
  },
  "version": 2
}`},
		{"the same name twice", `{"agents": {"a": {"description": "1", "system_prompt": "p"}, "a": {"description": "2", "system_prompt": "p"}}}`},
		{"agents twice", `{"agents": {"a": {"description": "1", "system_prompt": "p"}}, "agents": {}}`},
		{"not JSON", "{\"agents\": {\n  \"a\": {,}}}"},
		{"cut off", `{"agents": {"a": {"description": "d"`},
		{"text after it", `{"agents": {}} {}`},
		{"empty", ``},
		{"a list", `[{"name": "a"}]`},
		{"agents is a list", `{"agents": [{"name": "a"}]}`},
		{"one agent", `{"name": "a", "system_prompt": "p"}`},
		{"no agents", `{"agents": {}}`},
		{"surrogates and escapes", `{"agents": {"\ud83d\udd10": {"description": "a\/b \u00e9", "system_prompt": "\ud83d\udd10"}}}`},
		{"a byte order mark", "\ufeff" + `{"agents": {"a": {"description": "d", "system_prompt": "p"}}}`},
		{"nested too deeply", `{"agents": ` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`},
	}
	var b strings.Builder
	for _, tt := range tests {
		fmt.Fprintf(&b, "-- %s --\n", tt.name)
		defs, diags := agents.ParseJSON("x.json", []byte(tt.json), agents.ParseOptions{Layer: agents.LayerFlag})
		for _, d := range defs {
			if d.Layer != agents.LayerFlag || d.Origin != agents.Native {
				t.Errorf("%s: %s has layer %q and origin %q", tt.name, d.Name, d.Layer, d.Origin)
			}
			b.WriteString(show(t, d, nil))
		}
		b.WriteString(show(t, nil, diags))
		b.WriteByte('\n')
	}
	golden(t, "json.golden", b.String())
}

func TestParseJSONTooLarge(t *testing.T) {
	text := `{"agents": {"a": {"description": "` + strings.Repeat("x", agents.MaxJSONSize) + `"}}}`
	defs, diags := agents.ParseJSON("x.json", []byte(text), agents.ParseOptions{})
	if len(defs) != 0 || len(diags) != 1 || diags[0].Code != agents.CodeTooLarge {
		t.Errorf("got %d definitions, %v", len(defs), diags)
	}
}

// Markdown and JSON are read with the same table: what one says of a value, the
// other does too.
func TestMarkdownAndJSONAgree(t *testing.T) {
	values := []string{
		`"tools": ["a", "b"]`, `"tools": []`, `"tools": null`, `"tools": "a, b"`, `"tools": "*"`, `"tools": 7`, `"tools": {"a": true}`, `"tools": ["Bash(git:*)"]`,
		`"disallowed_tools": {"a": 1}`, `"mode": "subagent"`, `"mode": "sub"`, `"max_turns": 0`, `"max_turns": "9"`, `"limits": {"tokens": -1}`, `"limits": {"time": "1h"}`,
		`"enabled": "no"`, `"can_spawn_subagent": 1`, `"permissions": {"execute": "maybe"}`, `"permissions": "deny"`, `"ownership": "mine"`, `"handoffs": 7`,
		`"output_schema": {"type": "object"}`, `"output_schema": 7`, `"temperature": 3e-1`, `"top_p": 2`, `"unknown": [1, 2.5, {"a": null}]`, `"model": ["a", "b"]`,
	}
	for _, v := range values {
		md, mdDiags := agents.Parse("x", fmt.Appendf(nil, "---\nname: a\ndescription: d\n%s\n---\np\n", v), agents.ParseOptions{})
		defs, jsDiags := agents.ParseJSON("x", fmt.Appendf(nil, `{"agents": {"a": {"description": "d", "system_prompt": "p", %s}}}`, v), agents.ParseOptions{})
		if diff := cmp.Diff(md, defs[0], sameContent); diff != "" {
			t.Errorf("%s (-Markdown +JSON):\n%s", v, diff)
		}
		say := func(diags []agents.Diagnostic) (list []string) {
			for _, d := range diags {
				list = append(list, fmt.Sprint(d.Severity, d.Code, d.Message, d.Hint))
			}
			return list
		}
		if diff := cmp.Diff(say(mdDiags), say(jsDiags)); diff != "" {
			t.Errorf("%s: diagnostics (-Markdown +JSON):\n%s", v, diff)
		}
	}
}

// TestJSONComments: a product's JSON may have comments and commas at the end;
// places are those of the file as it is.
func TestJSONComments(t *testing.T) {
	text := "// a\n{/* b */ \"x\": \"// no, /* no */\", // c\n  \"agent\": {\n    /* d\n */ \"a\": {\"description\": \"d\", \"prompt\": \"p\\\"//\", \"mode\": \"odd\",},\n  },\n}\n"
	defs, diags := agents.ParseJSON("opencode.json", []byte(text), agents.ParseOptions{Origin: "opencode"})
	if len(defs) != 1 || defs[0].Prompt != `p"//` || len(diags) != 1 || diags[0].Line != 5 || diags[0].Column != 58 {
		t.Errorf("%+v, %v", defs, diags)
	}
	if _, diags := agents.ParseJSON("x.json", []byte("// no\n{}"), agents.ParseOptions{}); !agents.HasErrors(diags) {
		t.Error("our own JSON has comments now")
	}
	start := time.Now()
	agents.ParseJSON("opencode.json", []byte("{"+strings.Repeat("/**/", few(1_000_000))+"}"), agents.ParseOptions{Origin: "opencode"})
	if took := time.Since(start); took > time.Minute {
		t.Errorf("took %v", took)
	}
	// Many patterns with many stars are not as many rules as they like.
	var b strings.Builder
	b.WriteString(`{"agent": {"a": {"description": "d", "prompt": "p", "permission": {"edit": {`)
	for i := range 300 {
		fmt.Fprintf(&b, `"%d*a*b*c*d": "deny",`, i)
	}
	b.WriteString(`"x": "deny"}}}}}`)
	defs, _ = agents.ParseJSON("opencode.json", []byte(b.String()), agents.ParseOptions{Origin: "opencode"})
	if len(defs) != 1 || !defs[0].Broken {
		t.Error("thousands of rules load")
	}
}
