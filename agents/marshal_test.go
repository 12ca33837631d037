package agents_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/policy"
)

// sameContent compares definitions without where they come from.
var sameContent = cmp.Options{
	cmpopts.IgnoreFields(agents.Definition{}, "Layer", "Origin", "Pos", "Lines", "ToolEntries"),
	cmpopts.IgnoreFields(policy.Rule{}, "Line"),
}

func TestToolRuleJSON(t *testing.T) {
	tests := []struct {
		json string
		rule agents.ToolRule
	}{
		{`null`, agents.ToolRule{Mode: agents.ToolsInherit}},
		{`[]`, agents.ToolRule{Mode: agents.ToolsFramework}},
		{`["a","b"]`, agents.ToolRule{Mode: agents.ToolsExact, Names: []string{"a", "b"}}},
		{`["*"]`, agents.ToolRule{Mode: agents.ToolsExact, Names: []string{"*"}}},
		{`"none"`, agents.ToolRule{Mode: agents.ToolsExact}},
	}
	for _, tt := range tests {
		text, err := json.Marshal(struct{ R agents.ToolRule }{tt.rule})
		if err != nil || string(text) != `{"R":`+tt.json+`}` {
			t.Errorf("marshal %+v: %s, %v", tt.rule, text, err)
		}
		var got struct{ R agents.ToolRule }
		if err := json.Unmarshal(text, &got); err != nil || !cmp.Equal(got.R, tt.rule) {
			t.Errorf("unmarshal %s: %+v, %v", text, got.R, err)
		}
	}
	if text, err := json.Marshal(agents.ToolRule{}); err != nil || string(text) != "null" {
		t.Errorf("the zero value: %s, %v", text, err)
	}
	for _, bad := range []string{`"all"`, `7`, `{}`, `[7]`, `[""]`, `true`} {
		var r agents.ToolRule
		if err := json.Unmarshal([]byte(bad), &r); err == nil {
			t.Errorf("unmarshal %s: %+v, want an error", bad, r)
		}
	}
	if text, err := json.Marshal(agents.ToolRule{Mode: "odd"}); err == nil {
		t.Errorf("an unknown mode: %s, want an error", text)
	}
}

// randomDefinition returns a definition as a parser could have read it.
func randomDefinition(r *rand.Rand) *agents.Definition {
	words := []string{
		"a", "read_file", "mcp__x__*", "潮汐", "yes", "null", "3000", "1.5", "~", "true", "a: b", "# c", "'q'", `"q"`, `back\slash`, "- dash", "[x]", "{y}", "&z", "*w",
		"!tag", "%d", "@at", "`tick`", "tab\there", "two\nlines", "three\n\nlines: x", "  \u00e9dge", "<b>&amp;</b>", "emoji 🔐", "line\u2028sep", "del\u007f", "c1\u0085x", "bom\ufeffx",
		"a|b", "> folded", "|- block", "key:", "--- rule", "...", "x #y", "C:\\dir", "\u200dzwj", "=", "<<", "0x1F", "1_000", "2026-11-30", "trailing\\", "\\\"",
	}
	word := func() string { return strings.TrimSpace(words[r.IntN(len(words))]) }
	text := func() string {
		parts := make([]string, 1+r.IntN(4))
		for i := range parts {
			parts[i] = word()
		}
		return strings.Trim(strings.Join(parts, []string{" ", "\n", ", ", "\n  "}[r.IntN(4)]), " \n\t\ufeff\u0085\u2028")
	}
	tool := func() string {
		return []string{"read_file", "execute", "Bash", "edit_file", "mcp__db__*", "fetch_url", "x"}[r.IntN(7)]
	}
	list := func(one func() string) []string {
		var l []string
		seen := map[string]bool{}
		for range r.IntN(4) {
			if v := one(); !seen[v] {
				seen[v] = true
				l = append(l, v)
			}
		}
		return l
	}
	nameable := func() string {
		return strings.Map(func(c rune) rune {
			if c < ' ' || c == 0x7f || c == 0x85 || c == 0x2028 || c == 0xfeff {
				return '_'
			}
			return c
		}, strings.ReplaceAll(word(), "..", "_"))
	}
	d := &agents.Definition{
		Name: nameable(), Description: text(), Prompt: text(),
		Mode: agents.ModeAll, Ownership: agents.OwnershipTask, Tools: agents.ToolRule{Mode: agents.ToolsInherit},
	}
	maybe := func() bool { return r.IntN(2) == 0 }
	if maybe() {
		d.Mode = agents.ModeSubagent
	}
	if maybe() {
		d.Ownership = agents.OwnershipHandoff
	}
	if maybe() {
		d.Model = text()
	}
	if maybe() {
		d.ReasoningEffort = synapse.Efforts()[r.IntN(7)]
	}
	if maybe() {
		v := r.Float64() * 2
		d.Temperature = &v
	}
	if maybe() {
		v := []float64{0, 1, 0.5, 1e-9}[r.IntN(4)]
		d.TopP = &v
	}
	switch r.IntN(5) {
	case 0:
		d.Tools.Mode = agents.ToolsFramework
	case 1, 2:
		d.Tools = agents.ToolRule{Mode: agents.ToolsExact, Names: list(tool)}
	case 3:
		d.Tools = agents.ToolRule{Mode: agents.ToolsExact, Names: []string{"*"}}
	}
	d.DisallowedTools = list(tool)
	for range r.IntN(5) {
		pattern := []string{"*", "git *", "npm test"}[r.IntN(3)]
		rule, err := policy.NewRule([]string{"execute", "Bash", "*"}[r.IntN(3)], pattern, []string{"allow", "ask", "deny"}[r.IntN(3)], 0)
		if err != nil {
			panic(err)
		}
		d.Permissions = append(d.Permissions, rule)
	}
	if maybe() {
		d.MaxTurns = 1 + r.IntN(100)
	}
	if maybe() {
		d.Limits = synapse.Limits{
			Tokens: r.Int64N(1 << 40), CostUSD: r.Float64(), Time: synapse.Duration(time.Duration(1 + r.Int64N(1e15))),
			ToolCalls: r.IntN(9), Spawns: r.IntN(9),
		}
	}
	d.CanSpawn, d.Background, d.Disabled = maybe(), maybe(), maybe()
	d.Skills = list(tool)
	if maybe() {
		d.Handoffs = append([]string{}, list(tool)...)
	}
	if maybe() {
		d.OutputSchema = json.RawMessage(`{"type":"object","properties":{"a":{"enum":[1,2.50,"<x>",null,true,1e3],"description":"q\"\\ ü"}}}`)
	}
	if maybe() {
		d.Color = text()
	}
	for range r.IntN(4) {
		if d.Extra == nil {
			d.Extra = map[string]any{}
		}
		d.Extra["x-"+word()] = []any{int64(7), 0.25, text(), nil, false, []any{}, map[string]any{}, map[string]any{text(): text()}, int64(1) << 60}[r.IntN(9)]
	}
	return d
}

// Whatever a definition holds, writing it and reading it back gives the same.
func TestRoundTrips(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range few(1000) {
		d := randomDefinition(r)
		if d.Name == "" || d.Description == "" || d.Prompt == "" {
			continue
		}
		text, err := d.Markdown()
		if err != nil {
			t.Fatal(err)
		}
		got, diags := agents.Parse("x.md", text, agents.ParseOptions{})
		if diff := cmp.Diff(d, got, sameContent); diff != "" {
			t.Fatalf("definition %d through Markdown (-want +got):\n%s\n%s\n%v", i, diff, text, diags)
		}
		for _, diag := range diags {
			if diag.Code != agents.CodeUnknownField {
				t.Fatalf("definition %d: %s\n%s", i, diag, text)
			}
		}
		again, err := got.Markdown()
		if err != nil || string(again) != string(text) {
			t.Fatalf("definition %d is written differently a second time:\n%s\n%s", i, text, again)
		}
		asJSON, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var back agents.Definition
		if err := json.Unmarshal(asJSON, &back); err != nil {
			t.Fatalf("definition %d: %v\n%s", i, err, asJSON)
		}
		if diff := cmp.Diff(d, &back, sameContent); diff != "" {
			t.Fatalf("definition %d through JSON (-want +got):\n%s\n%s", i, diff, asJSON)
		}
	}
}

// What brackets in tools mean survives, though it is written as permissions.
func TestRoundTripOfBrackets(t *testing.T) {
	for _, head := range []string{
		"tools: Bash(git:*), Read",
		"tools: [Bash(git:*), Bash(npm test), WebFetch(domain:example.com)]\npermissions: {Bash: {\"git push *\": deny}, Read: deny}",
		"disallowed_tools: Bash(rm:*), Write\ntools: Bash(rm:*)",
		"disallowed_tools: Bash(rm:*)\npermissions: {Bash: {\"rm *\": allow}, edit_file: ask, execute: {\"*\": ask}}",
		"tools: none", "tools: all", "tools: {read: true, bash: false}",
	} {
		d, diags := agents.Parse("x.md", fmt.Appendf(nil, "---\nname: a\ndescription: d\n%s\n---\np\n", head), agents.ParseOptions{})
		if d.Broken {
			t.Errorf("%s: %v", head, diags)
			continue
		}
		text, err := d.Markdown()
		if err != nil {
			t.Fatal(err)
		}
		got, diags := agents.Parse("x.md", text, agents.ParseOptions{})
		if diff := cmp.Diff(d, got, sameContent); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s\n%v", head, diff, text, diags)
		}
	}
}

func TestMarkdownLooksLikeOneWouldWriteIt(t *testing.T) {
	d := &agents.Definition{
		Name: "tides", Description: "Use for harbours: high water, low water.\nNot for rivers.", Prompt: "You keep the tide tables.",
		Model: "openai:gpt-5", Tools: agents.ToolRule{Mode: agents.ToolsExact, Names: []string{"read_file", "execute"}},
		Permissions: []policy.Rule{{Tool: "execute", Pattern: "git *", Action: policy.Allow}, {Tool: "execute", Pattern: "*", Action: policy.Ask}},
		MaxTurns:    5, Limits: synapse.Limits{Tokens: 1000, Time: synapse.Duration(time.Minute)},
	}
	text, err := d.Markdown()
	if err != nil {
		t.Fatal(err)
	}
	want := `---
name: tides
description: |-
  Use for harbours: high water, low water.
  Not for rivers.
model: openai:gpt-5
tools: ["read_file", "execute"]
permissions: {"execute": {"git *": "allow", "*": "ask"}}
max_turns: 5
limits: {"tokens": 1000, "time": "1m0s"}
---

You keep the tide tables.
`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUnmarshalDefinition(t *testing.T) {
	tests := []struct{ json, err string }{
		{`{"name":"a","description":"d","system_prompt":"p"}`, ""},
		{`{"name":"a","description":"d","system_prompt":"p","temperature":"hot"}`, ""}, // dropped
		{`{"name":"a","description":"d"}`, "no body"},
		{`{"name":"a","description":"d","system_prompt":"p","tools":7}`, "tools is the number 7"},
		{`{"name":"..","description":"d","system_prompt":"p"}`, "holds “..”"},
		{`[]`, "is not a map"},
	}
	for _, tt := range tests {
		var d agents.Definition
		err := json.Unmarshal([]byte(tt.json), &d)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v, want %q", tt.json, err, tt.err)
		}
	}
}
