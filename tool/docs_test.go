package tool_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/tool"
)

// TestDocumentedTools keeps the table of docs/tools.md true. With -update it is
// written anew.
func TestDocumentedTools(t *testing.T) {
	const page = "../docs/tools.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), "<!-- tools -->\n")
	_, after, ok2 := strings.Cut(rest, "<!-- /tools -->\n")
	if !ok || !ok2 {
		t.Fatalf("%s has no lines <!-- tools --> and <!-- /tools -->", page)
	}
	b := open(t, tool.Options{WebSearch: tool.WebSearch{Kind: tool.WebSearchBrave}}, nil)
	var table strings.Builder
	table.WriteString("| tool | what it does | arguments | again | parallel | judged by |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, x := range append(b.Tools(), b.LibraryTools()...) {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s | %s |\n", x.Name, firstSentence(x), arguments(t, x), again(x), yes(x.Parallel), judgedBy(x))
	}
	want := before + "<!-- tools -->\n" + table.String() + "<!-- /tools -->\n" + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s is not up to date; go test ./tool -run Documented -update writes it (-tools +page):\n%s", page, diff)
	}
}

// firstSentence returns what a tool's description begins with, for a cell of a
// table.
func firstSentence(x synapse.Tool) string {
	s := strings.ReplaceAll(x.Description, "\n", " ")
	for _, end := range []string{". ", ": ", "; "} {
		if head, _, ok := strings.Cut(s, end); ok && len(head) > 20 {
			s = head
		}
	}
	return strings.TrimRight(strings.ReplaceAll(s, "|", `\|`), ".:; ")
}

// arguments lists a tool's arguments; those that may be left out have a
// question mark.
func arguments(t *testing.T, x synapse.Tool) string {
	t.Helper()
	var schema struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	if err := json.Unmarshal(x.Schema, &schema); err != nil {
		t.Fatalf("%s: %v", x.Name, err)
	}
	var optional []string
	for name := range schema.Properties {
		if !slices.Contains(schema.Required, name) {
			optional = append(optional, name)
		}
	}
	slices.Sort(optional)
	var all []string
	for _, name := range schema.Required {
		all = append(all, "`"+name+"`")
	}
	for _, name := range optional {
		all = append(all, "`"+name+"`?")
	}
	return strings.Join(all, ", ")
}

func again(x synapse.Tool) string {
	switch x.Effect() {
	case synapse.EffectRead:
		return "reads"
	case synapse.EffectKeyed:
		return "keyed"
	}
	return "never"
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

func judgedBy(x synapse.Tool) string {
	switch {
	case x.Subjects != nil:
		return string(x.Subject.Kind) + ": all that it names"
	case x.Subject.Kind == "":
		return "name alone"
	}
	return fmt.Sprintf("%s: `%s`", x.Subject.Kind, strings.Join(x.Subject.Args, "`, `"))
}
