package offline_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/synapse-agents/synapse"
)

// FuzzGenerate lets anything stand in the request and in the tools' results:
// the model must not panic, must call only what is offered with arguments that
// hold what the schema requires, and must come to an end.
func FuzzGenerate(f *testing.F) {
	for _, q := range questions {
		f.Add(q.ask, "", "store/store.go:53:func checkRoad(r Road) error {\nREADME.md\n12\tx", uint8(3))
	}
	f.Add("In parallel: `a`; \"b\" and then 1) x 2) y", "x", "[3 more matches left out, 2 files among them wholly; x]", uint8(255))
	f.Add("for each of a, b and c: run `x`", "sys", "Agent \"explore\" failed: no\nTokens: 1\n\n\n", uint8(7))
	f.Add("\x01\ue001\x02 `q`", "final answer JSON", "-1-\n:::\n\x00", uint8(0))
	f.Add("what does say about in", "", "path-1-x\n1:2\n", uint8(4))

	defs := []synapse.ToolDef{
		{Name: "find_files", Schema: schema("pattern", "path", "intent")},
		{Name: "search_files", Schema: json.RawMessage(`{"properties":{"pattern":{"type":"string"},"path":{"type":"string"},"mode":{"enum":["lines","files","count"]},"intent":{"type":"string"}},"required":["pattern","intent"]}`)},
		{Name: "read_file", Schema: schema("path", "intent")},
		{Name: "execute", Schema: schema("command")},
		{Name: "task", Description: "- explore: looks (Tools: find_files, search_files, read_file)\n- tester: tests (Tools: *)", Schema: schema("description", "prompt", "subagent_type", "intent")},
		{Name: "glob", Schema: json.RawMessage(`{"properties":{"pattern":true}}`)},
		{Name: "odd", Schema: json.RawMessage(`[]`)},
	}
	f.Fuzz(func(t *testing.T, ask, system, result string, mask uint8) {
		if len(ask) > 4096 || len(result) > 1<<16 {
			return
		}
		var offered []synapse.ToolDef
		for i, d := range defs {
			if mask&(1<<i) != 0 {
				offered = append(offered, d)
			}
		}
		messages := []synapse.Message{synapse.UserText(ask)}
		for turn := 1; ; turn++ {
			r, err := collect(&synapse.Request{System: system, Messages: messages, Tools: offered})
			if err != nil {
				var pe *synapse.ProviderError
				if !errors.As(err, &pe) || pe.Kind != synapse.ErrorUnsupported {
					t.Fatal(err)
				}
				return
			}
			calls := r.Message.Calls()
			if len(calls) == 0 {
				if strings.TrimSpace(r.Message.Text()) == "" {
					t.Fatal("an answer without a word")
				}
				return
			}
			if turn >= 8 {
				t.Fatalf("turn %d still calls %s", turn, show(calls))
			}
			res := synapse.Message{Role: synapse.RoleTool}
			for _, c := range calls {
				i := slices.IndexFunc(offered, func(d synapse.ToolDef) bool { return d.Name == c.Name })
				if i < 0 {
					t.Fatalf("%s is not offered", c.Name)
				}
				var s struct{ Required []string }
				if err := json.Unmarshal(offered[i].Schema, &s); err != nil {
					t.Fatalf("%s has no schema to fill: %v", c.Name, err)
				}
				var args map[string]any
				if err := json.Unmarshal([]byte(c.Args), &args); err != nil {
					t.Fatalf("%s: %s: %v", c.Name, c.Args, err)
				}
				for _, n := range s.Required {
					if v, _ := args[n].(string); v == "" {
						t.Fatalf("%s lacks %s: %s", c.Name, n, c.Args)
					}
				}
				res.Parts = append(res.Parts, synapse.Part{Kind: synapse.PartResult, Result: &synapse.ToolResult{CallID: c.ID, Name: c.Name, Text: result, IsError: turn%3 == 0}})
			}
			messages = append(messages, r.Message, res)
		}
	})
}
