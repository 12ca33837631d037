package compile

import "github.com/synapse-agents/synapse/internal/spelling"

// didYouMean returns a hint for a tool name that nothing answers to, or "".
func (h *host) didYouMean(name string) string {
	known := make([]string, len(h.tools))
	for i, t := range h.tools {
		known[i] = t.Name
	}
	if best := spelling.Nearest(name, known); best != "" {
		return "did you mean `" + best + "`?"
	}
	return ""
}
