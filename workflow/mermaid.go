package workflow

import (
	"fmt"
	"strings"

	"github.com/synapse-agents/synapse"
)

// Mermaid draws the workflow as a Mermaid flowchart.
func Mermaid(d *Definition) string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	fmt.Fprintf(&b, "    start([%s])\n", mermaidText(d.Name))
	ids := map[string]string{synapse.FlowStart: "start", synapse.FlowEnd: "finish"}
	for i, n := range d.Flow.Nodes {
		id := fmt.Sprintf("n%d", i+1)
		ids[n.Name] = id
		open, end := "[", "]"
		switch n.Kind {
		case synapse.NodeApprove:
			open, end = "{{", "}}"
		case synapse.NodeWorkflow:
			open, end = "[[", "]]"
		case synapse.NodeFunction:
			open, end = "[/", "/]"
		}
		fmt.Fprintf(&b, "    %s%s%s%s\n", id, open, mermaidText(strings.Join(label(&n), "\n")), end)
	}
	b.WriteString("    finish([end])\n")
	for _, a := range arrows(d) {
		line := "-->"
		if a.failure {
			line = "-.->"
		}
		if a.label != "" {
			line += "|" + mermaidText(a.label) + "|"
		}
		fmt.Fprintf(&b, "    %s %s %s\n", ids[a.from], line, ids[a.to])
	}
	return b.String()
}

func mermaidText(s string) string {
	s = strings.NewReplacer("#", "#35;", `"`, "#quot;", "&", "#amp;", "<", "#lt;", ">", "#gt;", "\n", "<br>").Replace(s)
	return `"` + s + `"`
}

// label is what stands in a node's box: its name, what it runs, and how often.
func label(n *synapse.FlowNode) []string {
	lines := []string{n.Name}
	switch {
	case n.Kind == synapse.NodeApprove:
		lines = append(lines, "asks the user")
	case n.Use != n.Name:
		lines = append(lines, string(n.Kind)+" "+n.Use)
	}
	if n.ForEach != "" {
		lines = append(lines, "for each of "+n.ForEach)
	}
	if n.WaitAll {
		lines = append(lines, "waits for all")
	}
	return lines
}

// An arrow is an edge as it is drawn.
type arrow struct {
	from, to, label string
	failure         bool // taken when the node fails
}

func arrows(d *Definition) []arrow {
	var out []arrow
	for _, e := range d.Flow.Edges {
		out = append(out, arrow{from: e.From, to: e.To, label: e.When})
	}
	for _, n := range d.Flow.Nodes {
		if n.Then == synapse.ThenGoto {
			out = append(out, arrow{from: n.Name, to: n.Goto, label: "on error", failure: true})
		}
	}
	return out
}
