package agents_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse/agents"
)

func codesOf(diags []agents.Diagnostic) []string {
	var list []string
	for _, d := range diags {
		list = append(list, d.Code)
	}
	return list
}

// TestFaultsOfOthers holds the faults that users of other products have
// reported about definition files, as behaviours of ours.
func TestFaultsOfOthers(t *testing.T) {
	parse := func(text string) (*agents.Definition, []agents.Diagnostic) {
		return agents.Parse("x.md", []byte(text), agents.ParseOptions{})
	}
	const head = "---\nname: a\ndescription: d\n"
	t.Run("CRLF with a colon in the description loads", func(t *testing.T) {
		d, diags := parse("---\r\nname: a\r\ndescription: Use it: always\r\ntools: Read\r\n---\r\nbody\r\nmore\r\n")
		if d.Broken || d.Description != "Use it: always" || d.Prompt != "body\nmore" || !cmp.Equal(d.Tools.Names, []string{"Read"}) {
			t.Errorf("%+v, %v", d, diags)
		}
	})
	t.Run("a byte order mark loads, without a word", func(t *testing.T) {
		if d, diags := parse("\ufeff" + head + "---\nbody\n"); d.Broken || len(diags) > 0 {
			t.Errorf("%v", diags)
		}
	})
	t.Run("a folded description is whole", func(t *testing.T) {
		for style, want := range map[string]string{
			">":  "First line second line.\nThird: line.",
			">-": "First line second line.\nThird: line.",
			"|":  "First line\nsecond line.\n\nThird: line.",
		} {
			d, diags := parse("---\nname: a\ndescription: " + style + "\n  First line\n  second line.\n\n  Third: line.\ntools: [Read]\n---\nbody\n")
			if d.Broken || d.Description != want || len(diags) > 0 {
				t.Errorf("%s: %q, %v", style, d.Description, diags)
			}
		}
	})
	t.Run("every file registers or gives a reason", func(t *testing.T) {
		root := tree(t, map[string]string{
			"good.md": file("good"), "sub/Good.MD": file("upper"), "nothing.md": "x", "noname.md": "---\ndescription: d\n---\nx",
			"README.md": "x", ".draft.md": file("draft"), "empty.md": "", "loop.md": "-> loop.md",
		})
		layer := agents.LoadDir(root, agents.LayerUser, agents.LoadOptions{})
		told := map[string]bool{}
		for _, d := range layer.Defs {
			told[d.Pos.File] = !d.Broken
		}
		for _, d := range layer.Diagnostics {
			told[d.File] = true
		}
		for _, name := range []string{"good.md", "sub/Good.MD", "nothing.md", "noname.md", "README.md", ".draft.md", "empty.md", "loop.md"} {
			if !told[filepath.Join(root, name)] {
				t.Errorf("nothing is said of %s", name)
			}
		}
	})
	t.Run("two files of one stem are two", func(t *testing.T) {
		root := tree(t, map[string]string{"frontend/dev.md": file("frontend-dev"), "backend/dev.md": file("backend-dev")})
		reg, diags := agents.Merge(agents.LoadDir(root, agents.LayerUser, agents.LoadOptions{}))
		if reg.Len() != 2 || len(diags) > 0 {
			t.Errorf("%v, %v", names(reg.All()), diags)
		}
	})
	t.Run("frontmatter that was lost or can't be read never means all tools", func(t *testing.T) {
		for name, text := range map[string]string{
			"opening gone":          "name: a\ndescription: d\ntools: [Read]\n---\nbody\n",
			"both gone":             "name: a\ndescription: d\ntools: [Read]\n\nbody\n",
			"list not closed":       head + "tools: [Read\n---\nbody\n",
			"list not closed, deny": head + "disallowed_tools: [Bash\n---\nbody\n",
			"a map for a list":      head + "tools: {Read}\n---\nbody\n",
			"a tag":                 head + "tools: !read [Read]\n---\nbody\n",
			"an anchor that is not": head + "disallowed_tools: *bash\n---\nbody\n",
			"rules with a typo":     head + "permissions: {Bash: {\"rm *\": dney}}\n---\nbody\n",
			"rules, badly indented": head + "permissions:\n  Bash:\n   - rm\n  x\n---\nbody\n",
			"a mode that is none":   head + "mode: readonly\n---\nbody\n",
			"tools below the end":   head + "\ntext\n\ntools: [Read]\n",
			"a quote never closed":  "---\nname: a\ndescription: \"d\ntools: [Read]\ncolor: blue\"\n---\nbody\n",
			"no blank":              head + "tools:[Read]\n---\nbody\n",
			"no blank, lenient":     "---\nname: a\ndescription: d: e\ntools:[Read]\n---\nbody\n",
			"a full-width colon":    head + "tools：[Read]\n---\nbody\n",
			"an equals sign":        head + "disallowed_tools = Bash\n---\nbody\n",
			"indented by mistake":   head + " tools: [Read]\n---\nbody\n",
			"under another field":   head + "model:\n  tools: [Read]\n---\nbody\n",
			"between two rules":     head + "---\ntools: [Read]\n---\nbody\n",
		} {
			d, diags := parse(text)
			if name == "an anchor that is not" {
				// Read as text it denies more than was meant, which is as good.
				if !d.Broken && !slices.Contains(d.DisallowedTools, "*bash") {
					t.Errorf("%s: %+v, %v", name, d, diags)
				}
				continue
			}
			if !d.Broken || !d.Disabled || !agents.HasErrors(diags) {
				t.Errorf("%s: loads: %+v, %v", name, d, diags)
			}
			if reg, _ := agents.Merge(agents.Layer{Kind: agents.LayerUser, Defs: []*agents.Definition{d}}); reg.Len() != 0 {
				t.Errorf("%s: is offered", name)
			}
		}
	})
	t.Run("one odd file leaves the list usable", func(t *testing.T) {
		root := tree(t, map[string]string{
			"comma.md": head + "tools: Read, Grep\ncolor: salmon\n---\nbody\n", "mode.md": strings.Replace(head, "name: a", "name: b", 1) + "mode: bogus\n---\nbody\n",
			"inherit.md": strings.Replace(head, "name: a", "name: c", 1) + "model: inherit\n---\nbody\n", "README.md": "# Agents\n",
		})
		reg, diags := agents.Merge(agents.LoadDir(root, agents.LayerProject, agents.LoadOptions{}))
		if want := []string{"a", "c"}; !cmp.Equal(names(reg.All()), want) {
			t.Errorf("got %v, want %v", names(reg.All()), want)
		}
		if d, _ := reg.Get("c"); d.Model != "inherit" {
			t.Errorf("model %q", d.Model)
		}
		if got := codesOf(diags); !cmp.Equal(got, []string{agents.CodeDocFile, agents.CodeBadRestriction}) {
			t.Errorf("got %v", diags)
		}
	})
	t.Run("a missing prompt and an unknown key are told", func(t *testing.T) {
		d, diags := parse(head + "mcpServers: {x: {}}\n---\n\n")
		if !d.Broken || !cmp.Equal(codesOf(diags), []string{agents.CodeMissingBody, agents.CodeUnknownField}) {
			t.Errorf("%v", diags)
		}
	})
	t.Run("names of numbers and keywords are text", func(t *testing.T) {
		for _, name := range []string{"3000", "yes", "true", "1.5", "0x1F", "off", "2026-11-30"} {
			if d, diags := parse("---\nname: " + name + "\ndescription: d\n---\nbody\n"); d.Broken || d.Name != name {
				t.Errorf("%s: %q, %v", name, d.Name, diags)
			}
		}
	})
	t.Run("a bad optional field costs that field only", func(t *testing.T) {
		d, diags := parse(head + "temperature: warm\ntop_p: [1]\nreasoning_effort: 11\nbackground: soon\nskills: {a: b}\noutput_schema: 7\nmodel: {a: b}\ntools: [Read]\n---\nbody\n")
		if d.Broken || !cmp.Equal(d.Tools.Names, []string{"Read"}) || len(diags) != 7 {
			t.Errorf("%+v, %v", d, diags)
		}
		for _, diag := range diags {
			if diag.Severity != agents.Warn || diag.Line < 4 || diag.Column == 0 {
				t.Errorf("%s", diag)
			}
		}
	})
	t.Run("lists are lists, however they are written", func(t *testing.T) {
		want := []string{"Read", "Grep", "mcp__x__*"}
		for _, v := range []string{
			"[Read, Grep, mcp__x__*]", "Read, Grep, mcp__x__*", "\n  - Read\n  - Grep\n  - mcp__x__*", "\n- Read\n- Grep\n- mcp__x__*", `"Read, Grep, mcp__x__*"`,
			`["Read", 'Grep', "mcp__x__*"]`, `'"Read", "Grep", "mcp__x__*"'`, `"Read", 'Grep', mcp__x__*`, "[\"Read, Grep\", mcp__x__*]", "|\n  Read, Grep,\n  mcp__x__*", "Read Grep mcp__x__*",
			"[Read, Grep, Read, mcp__x__*,]", "\n\t- Read\n\t- Grep\n\t- mcp__x__*", "[\n  Read,\n  Grep, # search\n  mcp__x__*\n]",
		} {
			if d, diags := parse(head + "tools: " + v + "\n---\nbody\n"); d.Broken || !cmp.Equal(d.Tools.Names, want) {
				t.Errorf("%q: %q, %v", v, d.Tools.Names, diags)
			}
		}
	})
	t.Run("a star in brackets is not all tools", func(t *testing.T) {
		d, diags := parse(head + "tools: Bash(git:*)\n---\nbody\n")
		if d.Broken || !cmp.Equal(d.Tools.Names, []string{"Bash"}) || len(d.Permissions) != 2 || d.Permissions[0].Pattern != "*" || d.Permissions[0].Action != "deny" {
			t.Errorf("%+v, %v", d, diags)
		}
	})
}

// Where brackets and permissions meet, neither may loosen the other.
func TestBracketsAndPermissions(t *testing.T) {
	tests := []struct{ name, head, want string }{
		{"only what is in brackets", "tools: Bash(git:*), Read", "Bash *=deny, Bash git *=allow"},
		{"named without brackets too", "tools: Bash(git:*), Bash", ""},
		{"the other name for it", "tools: Bash(git:*), execute", ""},
		{"a star is not the tool's name", `tools: ["*", "Bash(git:*)"]`, "Bash *=deny, Bash git *=allow"},
		{"everything in brackets", "tools: Bash(*)", ""},
		{"denials stay last", "tools: Bash(git:*)\ndisallowed_tools: Bash(git push:*)", "Bash *=deny, Bash git *=allow, Bash git push *=deny"},
		{"a denial of the same", "tools: Bash(git:*)\ndisallowed_tools: Bash(git:*)", "Bash *=deny, Bash git *=allow, Bash git *=deny"},
		{"denials after permissions", "permissions: {execute: {\"rm *\": allow}}\ndisallowed_tools: Bash(rm:*)", "execute rm *=allow, Bash rm *=deny"},
		{"permissions that deny", "tools: Bash(git:*)\npermissions: {Bash: {\"git push *\": deny}}", "Bash *=deny, Bash git *=allow, Bash git push *=deny"},
		{"permissions that allow more", "tools: Bash(git:*)\npermissions: {Bash: {\"npm *\": allow}}", "error"},
		{"permissions that ask", "tools: Bash(git:*)\npermissions: {\"*\": ask}", "error"},
		{"permissions for another tool", "tools: Bash(git:*)\npermissions: {edit_file: ask}", "Bash *=deny, Bash git *=allow, edit_file *=ask"},
		{"a pattern that can't be one", "disallowed_tools: Bash(a | b)", "error"},
	}
	for _, tt := range tests {
		d, diags := agents.Parse("x.md", []byte("---\nname: a\ndescription: d\n"+tt.head+"\n---\nbody\n"), agents.ParseOptions{})
		var rules []string
		for _, r := range d.Permissions {
			rules = append(rules, r.Tool+" "+r.Pattern+"="+string(r.Action))
		}
		got := strings.Join(rules, ", ")
		if d.Broken {
			got = "error"
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s; %v", tt.name, got, tt.want, diags)
		}
	}
}

func TestSuggestions(t *testing.T) {
	tests := []struct{ line, want string }{
		{"disalowed_tools: [a]", `did you mean "disallowed_tools"?`},
		{"dissallowed_tool: [a]", `did you mean "disallowed_tools"?`},
		{"allowed_tool: [a]", `did you mean "allowed_tools"?`},
		{"desciption: x", `did you mean "description"?`},
		{"maxturn: 1", `did you mean "max_turns"?`},
		{"temprature: 1", `did you mean "temperature"?`},
		{"prompt: x", `did you mean "system_prompt"?`},
		{"version: 1", ""},
		{"mode: subagnet", `did you mean "subagent"?`},
		{"reasoning_effort: hihg", `did you mean "high"?`},
		{"ownership: handof", `did you mean "handoff"?`},
		{"limits: {tokns: 5}", `did you mean "tokens"?`},
		{"permissions: {execute: alow}", `did you mean "allow"?`},
	}
	for _, tt := range tests {
		_, diags := agents.Parse("x.md", []byte("---\nname: a\ndescription: d\n"+tt.line+"\n---\nbody\n"), agents.ParseOptions{})
		if len(diags) != 1 || !strings.HasPrefix(diags[0].Hint, tt.want) || tt.want == "" && diags[0].Hint != "" {
			t.Errorf("%s: %v, want the hint %q", tt.line, diags, tt.want)
		}
	}
}

func TestCodesAndFields(t *testing.T) {
	var last string
	for _, c := range agents.Codes() {
		if c.Code <= last {
			t.Errorf("%q after %q", c.Code, last)
		}
		last = c.Code
		if c.About == "" || !strings.HasSuffix(c.About, ".") || c.Severity == "" {
			t.Errorf("%+v", c)
		}
	}
	seen := map[string]bool{}
	for _, f := range agents.Fields() {
		if f.About == "" || f.Value == "" {
			t.Errorf("%+v", f)
		}
		for _, s := range append([]string{f.Name}, f.Also...) {
			if seen[s] {
				t.Errorf("two fields are spelled %q", s)
			}
			seen[s] = true
		}
	}
	for _, name := range []string{"tools", "disallowed_tools", "permissions", "mode", "ownership", "enabled", "can_spawn_subagent", "limits", "max_turns"} {
		if i := slices.IndexFunc(agents.Fields(), func(f agents.FieldInfo) bool { return f.Name == name }); i < 0 || !agents.Fields()[i].Restricts {
			t.Errorf("%s does not restrict", name)
		}
	}
}
