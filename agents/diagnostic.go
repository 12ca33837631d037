package agents

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Pos is a place in a file. Line and Column count from 1, columns in
// characters; 0 means unknown.
type Pos struct {
	File   string `json:"path"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// String returns "file:line:column", leaving out what is unknown.
func (p Pos) String() string {
	s := p.File
	if p.Line > 0 {
		s = fmt.Sprintf("%s:%d", s, p.Line)
		if p.Column > 0 {
			s = fmt.Sprintf("%s:%d", s, p.Column)
		}
	}
	return s
}

// Severity grades a diagnostic.
type Severity string

// The severities. An error disables the definition it is about.
const (
	Error Severity = "error"
	Warn  Severity = "warning"
	Info  Severity = "info"
)

// A Diagnostic says what is wrong with a definition. Code is stable; [Codes]
// lists every one.
type Diagnostic struct {
	Pos
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"` // the way out, where there is one
}

// String returns the diagnostic in one line: place, severity, message, way out
// and code.
func (d Diagnostic) String() string {
	var b strings.Builder
	if p := d.Pos.String(); p != "" {
		b.WriteString(p + ": ")
	}
	fmt.Fprintf(&b, "%s: %s", d.Severity, d.Message)
	if d.Hint != "" {
		b.WriteString("; " + d.Hint)
	}
	fmt.Fprintf(&b, " [%s]", d.Code)
	return b.String()
}

// HasErrors reports whether one of the diagnostics is an error.
func HasErrors(diags []Diagnostic) bool {
	return slices.ContainsFunc(diags, func(d Diagnostic) bool { return d.Severity == Error })
}

// sortDiagnostics orders by file and place, keeping the order of what is said
// about one place.
func sortDiagnostics(diags []Diagnostic) {
	slices.SortStableFunc(diags, func(a, b Diagnostic) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
		)
	})
}
