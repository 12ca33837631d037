package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/synapse-agents/synapse/agents"
)

// snippetWidth is how much of a line is shown.
const snippetWidth = 100

// writeSnippet shows a line of a file with a mark under the column.
func writeSnippet(w io.Writer, lines []string, line, column int) {
	if line < 1 || line > len(lines) {
		return
	}
	number := fmt.Sprintf("%5d | ", line)
	runes := []rune(strings.ReplaceAll(clean(strings.TrimRight(lines[line-1], "\r")), "\t", " "))
	at := min(max(column-1, 0), len(runes))
	from := 0
	if at > snippetWidth*3/4 { // keep the place in sight
		from = at - snippetWidth/2
	}
	lead := ""
	if from > 0 {
		lead = "…"
	}
	fmt.Fprintln(w, ansi.Truncate(number+lead+string(runes[from:]), len(number)+snippetWidth, "…"))
	if column > 0 {
		fmt.Fprintln(w, strings.Repeat(" ", len(number)-2)+"| "+strings.Repeat(" ", ansi.StringWidth(lead+string(runes[from:at])))+"^")
	}
}

// readText returns what a file holds for showing it, nothing where there is no
// such file or where it is too large for a definition anyway.
func readText(path string) []byte {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > agents.MaxJSONSize {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return data
}

// textLines are the lines of a text for snippets.
func textLines(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	text := strings.TrimPrefix(strings.ToValidUTF8(string(data), "\uFFFD"), "\uFEFF")
	return strings.Split(text, "\n")
}
