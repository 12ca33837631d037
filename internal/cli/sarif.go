package cli

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/synapse-agents/synapse/agents"
)

// The parts of SARIF 2.1.0 that are written.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string       `json:"id"`
		Short   sarifText    `json:"shortDescription"`
		Full    sarifText    `json:"fullDescription"`
		Help    sarifHelp    `json:"help"`
		Default sarifDefault `json:"defaultConfiguration"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifHelp struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown"`
	}
	sarifDefault struct {
		Level string `json:"level"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
)

// sarifLevels are the words for severities.
var sarifLevels = map[agents.Severity]string{agents.Error: "error", agents.Warn: "warning", agents.Info: "note"}

// sarif is what was found as a SARIF log of one run.
func (v *validation) sarif() sarifLog {
	index := map[string]int{}
	rules := []sarifRule{}
	for i, r := range agents.Rules() {
		index[r.Code] = i
		short, _, _ := strings.Cut(r.About, ". ")
		rules = append(rules, sarifRule{
			ID: r.Code, Short: sarifText{strings.TrimSuffix(short, ".") + "."}, Full: sarifText{r.About},
			Help: sarifHelp{ruleText(r), ruleMarkdown(r)}, Default: sarifDefault{sarifLevels[r.Severity]},
		})
	}
	results := []sarifResult{}
	for _, f := range v.files {
		for _, d := range f.Diagnostics {
			text := d.Message
			if d.Hint != "" {
				text += "; " + d.Hint
			}
			at := sarifPhysical{Artifact: sarifArtifact{fileURI(f.Path)}}
			if d.Line > 0 {
				at.Region = &sarifRegion{StartLine: d.Line, StartColumn: d.Column}
			}
			results = append(results, sarifResult{
				RuleID: d.Code, RuleIndex: index[d.Code], Level: sarifLevels[d.Severity], Message: sarifText{text},
				Locations: []sarifLocation{{at}},
			})
		}
	}
	return sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0",
		Runs: []sarifRun{{
			Tool:       sarifTool{sarifDriver{Name: "synapse", Version: readVersion().Version, Rules: rules}},
			ColumnKind: "unicodeCodePoints", Results: results,
		}},
	}
}

// fileURI is a path as a URI reference: relative where the path is.
func fileURI(path string) string {
	u := url.URL{Path: filepath.ToSlash(path)}
	if filepath.IsAbs(path) {
		u.Scheme = "file"
		if !strings.HasPrefix(u.Path, "/") { // a drive's letter
			u.Path = "/" + u.Path
		}
	}
	return u.String()
}
