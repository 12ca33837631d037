package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/synapse-agents/synapse/agents"
)

// The workflow commands of GitHub Actions end at the end of the line; what
// stands in a property ends at a comma too.
var (
	annotationText     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	annotationProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

var annotationKinds = map[agents.Severity]string{agents.Error: "error", agents.Warn: "warning", agents.Info: "notice"}

// annotate prints what was found as annotations of GitHub Actions.
func (v *validation) annotate(w io.Writer) error {
	for _, f := range v.files {
		for _, d := range f.Diagnostics {
			properties := "file=" + annotationProperty.Replace(filepath.ToSlash(f.Path))
			if d.Line > 0 {
				properties += fmt.Sprintf(",line=%d", d.Line)
				if d.Column > 0 {
					properties += fmt.Sprintf(",col=%d", d.Column)
				}
			}
			text := d.Message
			if d.Hint != "" {
				text += "\nway out: " + d.Hint
			}
			_, err := fmt.Fprintf(w, "::%s %s,title=%s::%s\n", annotationKinds[d.Severity], properties, annotationProperty.Replace(d.Code), annotationText.Replace(text))
			if err != nil {
				return fmt.Errorf("write the result: %w", err)
			}
		}
	}
	return nil
}
