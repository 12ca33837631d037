package settings

import "strings"

// Show returns every setting with its origin, in the order of [Keys], then the
// sub-agents' model variables and the provider variables. Secrets are redacted.
func (s *Settings) Show() []Row {
	var rows []Row
	for _, k := range Keys() {
		rows = append(rows, k.binding.rows(s, k.Name)...)
	}
	for _, name := range sortedNames(s.SubagentModelVars) {
		v := s.SubagentModelVars[name]
		rows = append(rows, Row{Key: "AGENT_SUBAGENT_" + name + "_MODEL", Value: v.V, Origin: v.Origin})
	}
	return append(rows, secretRows(s)...)
}

// Lookup returns the rows of one key, or of one entry of a key ("limits" gives
// all limits, "subagent_model_overrides.reviewer" one override).
func (s *Settings) Lookup(key string) []Row {
	var rows []Row
	for _, r := range s.Show() {
		if r.Key == key || strings.HasPrefix(r.Key, key+".") {
			rows = append(rows, r)
		}
	}
	return rows
}
