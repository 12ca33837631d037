package offline

import (
	"fmt"
	"strings"
)

// compose writes the answer: for every part what was found, then plainly what
// was left. Whatever has substance in it is a quote.
func compose(sections []section) string {
	var b strings.Builder
	const around = 8 // lines of a section besides what it quotes
	share := max(1, maxLines/max(len(sections), 1)-around)
	several := len(sections) > 1
	for i, sec := range sections {
		switch {
		case several:
			if i > 0 {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "## %d. %s\n", i+1, clip(strings.Join(strings.Fields(sec.title), " "), 160))
			if sec.by != "" {
				fmt.Fprintf(&b, "%s reports:\n", sec.by)
			}
			b.WriteString("\n")
		case sec.by != "":
			fmt.Fprintf(&b, "%s reports:\n\n", sec.by)
		}
		writeSection(&b, sec, share)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func writeSection(b *strings.Builder, sec section, share int) {
	if sec.lead != "" {
		b.WriteString(sec.lead + "\n")
		if len(sec.lines) > 0 {
			b.WriteString("\n")
		}
	}
	for _, l := range head(sec.lines, share) {
		b.WriteString(l + "\n")
	}
	if len(sec.left) > 0 && (sec.lead != "" || len(sec.lines) > 0) {
		b.WriteString("\n")
	}
	for _, l := range sec.left {
		if l == beyond {
			l = beyond + " (these are " + Label + "); connect one with `-m provider:model`"
		}
		fmt.Fprintf(b, "Not done: %s.\n", strings.TrimRight(l, ". \n"))
	}
	if sec.lead == "" && len(sec.lines) == 0 && len(sec.left) == 0 {
		b.WriteString("Nothing came back.\n")
	}
}

// head returns the first n lines, with a last one that says how many are left.
func head(lines []string, n int) []string {
	if len(lines) <= n {
		return lines
	}
	n = max(n, 1)
	out := append([]string{}, lines[:n]...)
	left := 0
	for _, l := range lines[n:] {
		if m := furtherLines().FindStringSubmatch(l); m != nil {
			left += atoi(strings.ReplaceAll(m[1], ",", "")) // cut once already
		} else if strings.TrimSpace(l) != "" {
			left++
		}
	}
	return append(out, fmt.Sprintf("… %s more", count(max(left, 1), "line")))
}

var furtherLines = lazily(`^… ([\d,]+) \w+ more$`)

// quotes writes hits as answer lines, at most n of them.
func quotes(hits []hit, n int) []string {
	var out []string
	for i, h := range hits {
		if i == n {
			out = append(out, fmt.Sprintf("… %s more", count(len(hits)-i, "line")))
			break
		}
		out = append(out, h.quote())
	}
	return out
}
