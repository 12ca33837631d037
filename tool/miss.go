package tool

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

const (
	missLines  = 12     // of the file, shown in an explanation
	missWindow = 60     // lines of old_string that are compared one by one
	missFile   = 50_000 // lines of a file that are looked through for something alike
	tellingLen = 10     // bytes from which a text found again is no coincidence
)

// A likeness is a way in which two lines may be the same for a reader.
type likeness struct {
	differ string // "differ only in ..."
	fold   func(string) string
}

var likenesses = []likeness{
	{"blanks at line ends", func(s string) string { return strings.TrimRight(s, " \t\r\u00a0") }},
	{"indentation", strings.TrimSpace},
	{"blanks", func(s string) string { return strings.Join(strings.Fields(s), " ") }},
	{"the kind of quotes, dashes or blanks", func(s string) string { return strings.Join(strings.Fields(plainPunctuation.Replace(s)), " ") }},
	{"upper and lower case", func(s string) string {
		return strings.ToLower(strings.Join(strings.Fields(plainPunctuation.Replace(s)), " "))
	}},
}

// plainPunctuation writes typographic characters as a keyboard has them, and
// all quotes alike.
var plainPunctuation = strings.NewReplacer(
	`"`, "'", "“", "'", "”", "'", "„", "'", "«", "'", "»", "'", "‘", "'", "’", "'", "‚", "'", "′", "'", "`", "'", "´", "'",
	"–", "-", "—", "-", "‐", "-", "‑", "-", "−", "-", "…", "...", "\u00a0", " ", "\u202f", " ", "\u3000", " ",
	"\u200b", "", "\u200d", "", "\ufeff", "",
)

var numberedLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*\d+\t`) })

// missTerms are what an explanation calls the texts that a caller gave.
type missTerms struct {
	old, replacement, replaced string
	wholeLines                 bool // what is looked for can't begin or end within a line
}

var editTerms = missTerms{old: "old_string", replacement: "new_string stands", replaced: "the edit may have been made before"}

// explainMiss says why old was not found in a file, and shows what comes
// nearest.
func explainMiss(p place, file, old, replacement string, terms missTerms) string {
	lead := fmt.Sprintf("%s was not found in %s", terms.old, p.show())
	if strings.TrimSpace(old) == "" {
		return lead + ": it holds nothing but blanks; give the text around them too"
	}
	if plain, ok := withoutNumbers(old); ok && strings.Contains(file, plain) {
		return lead + ": it holds the line numbers that read_file shows; leave them out"
	}
	if plain := unescape.Replace(old); plain != old && strings.Contains(file, plain) {
		return lead + `: it holds backslash escapes (\n, \t, \") where the file has the characters themselves`
	}
	lines := splitLines(file)
	oldLines := strings.Split(strings.TrimSuffix(old, "\n"), "\n")
	var out strings.Builder
	out.WriteString(lead)
	for _, l := range likenesses {
		if at := windows(lines, oldLines, l.fold, terms.wholeLines); len(at) > 0 {
			fmt.Fprintf(&out, ". %s only in %s", spanDiffers(at[0], len(oldLines)), l.differ)
			if len(at) > 1 {
				fmt.Fprintf(&out, " (so do %s)", count(len(at)-1, "other place"))
			}
			out.WriteString(firstDifference(lines, at[0], oldLines, terms.old))
			out.WriteString(":\n")
			writeNumbered(&out, lines, at[0], len(oldLines))
			out.WriteString("Copy the text from there.")
			return out.String()
		}
	}
	if at, n := brokenDifferently(lines, old); n > 0 && !terms.wholeLines {
		fmt.Fprintf(&out, ". %s only in where the lines break:\n", spanDiffers(at, n))
		writeNumbered(&out, lines, at, n)
		out.WriteString("Copy the text from there.")
		return out.String()
	}
	if n := strings.Index(file, replacement); len(strings.TrimSpace(replacement)) >= tellingLen && n >= 0 {
		fmt.Fprintf(&out, "; %s there already, at line %d: %s", terms.replacement, 1+strings.Count(file[:n], "\n"), terms.replaced)
		return out.String()
	}
	if at, n := nearest(lines, oldLines); n > 0 {
		fmt.Fprintf(&out, ". Shown are the nearest lines%s:\n", firstDifference(lines, at, oldLines, terms.old))
		writeNumbered(&out, lines, at, n)
		out.WriteString("Read the file again if it may have changed.")
		return out.String()
	}
	fmt.Fprintf(&out, ", nor anything like it, in its %s; read the file first", count(len(lines), "line"))
	return out.String()
}

var unescape = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\'`, `'`, `\\`, `\`)

// withoutNumbers removes read_file's line numbers if every line has one.
func withoutNumbers(s string) (string, bool) {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i, l := range lines {
		loc := numberedLine().FindStringIndex(l)
		if loc == nil {
			return "", false
		}
		lines[i] = l[loc[1]:]
	}
	return strings.Join(lines, "\n"), true
}

// windows returns the lines from which the file reads like old. The first and
// the last line of old may be parts of the file's lines, unless whole is set.
func windows(lines, old []string, fold func(string) string, whole bool) []int {
	want := make([]string, len(old))
	blank := true
	for i, l := range old {
		want[i] = fold(l)
		blank = blank && want[i] == ""
	}
	if blank {
		return nil
	}
	have := make([]string, len(lines))
	for i, l := range lines {
		have[i] = fold(l)
	}
	last := len(want) - 1
	var at []int
	for i := 0; i+last < len(have); i++ {
		if whole {
			if slices.Equal(have[i:i+last+1], want) {
				at = append(at, i)
			}
			continue
		}
		ok := strings.HasSuffix(have[i], want[0])
		if last == 0 {
			ok = strings.Contains(have[i], want[0])
		}
		for j := 1; ok && j < last; j++ {
			ok = have[i+j] == want[j]
		}
		if ok && (last == 0 || strings.HasPrefix(have[i+last], want[last])) {
			at = append(at, i)
		}
	}
	return at
}

// brokenDifferently finds old in the file when only the line breaks (and
// blanks) differ. n is the number of lines it spans, 0 for none.
func brokenDifferently(lines []string, old string) (at, n int) {
	want := strings.Fields(old)
	var have []string
	var on []int // the line of each word
	for i, l := range lines {
		for _, f := range strings.Fields(l) {
			have = append(have, f)
			on = append(on, i)
		}
	}
	for i := 0; i+len(want) <= len(have); i++ {
		j := 0
		for j < len(want) && have[i+j] == want[j] {
			j++
		}
		if j == len(want) {
			return on[i], on[i+j-1] - on[i] + 1
		}
	}
	return 0, 0
}

// nearest finds the lines most like old: where most of its lines stand, or
// else around the line most like its longest one. n is 0 when nothing is.
func nearest(lines, old []string) (at, n int) {
	lines = lines[:min(len(lines), missFile)]
	old = old[:min(len(old), missWindow)]
	spots := make(map[string][]int) // the places of each line of old in old
	longest := 0
	for i, l := range old {
		l = strings.TrimSpace(l)
		if len(l) > 2 { // a lone brace says nothing
			spots[l] = append(spots[l], i)
		}
		if len(l) > len(strings.TrimSpace(old[longest])) {
			longest = i
		}
	}
	votes := make(map[int]int) // for the line where old would begin
	best := -1
	for i, l := range lines {
		for _, j := range spots[strings.TrimSpace(l)] {
			start := max(0, i-j)
			votes[start]++
			if best < 0 || votes[start] > votes[best] {
				best = start
			}
		}
	}
	if best >= 0 {
		return best, min(len(old), len(lines)-best)
	}
	want := pairs(strings.TrimSpace(old[longest]))
	top := 0.5
	for i, l := range lines {
		if s := similarity(want, pairs(strings.TrimSpace(cut(l, 400)))); s > top {
			top, best = s, max(0, i-longest)
		}
	}
	if best < 0 {
		return 0, 0
	}
	return best, min(len(old), len(lines)-best)
}

// pairs counts the pairs of neighbouring bytes of s.
func pairs(s string) map[string]int {
	m := make(map[string]int, len(s))
	for i := 0; i+1 < len(s); i++ {
		m[s[i:i+2]]++
	}
	return m
}

// similarity is the share of pairs that two texts have in common, 0 to 1.
func similarity(a, b map[string]int) float64 {
	common, total := 0, 0
	for k, n := range a {
		common += min(n, b[k])
		total += n
	}
	for _, n := range b {
		total += n
	}
	if total == 0 {
		return 0
	}
	return 2 * float64(common) / float64(total)
}

func spanDiffers(at, n int) string {
	if n == 1 {
		return fmt.Sprintf("Line %d differs", at+1)
	}
	return fmt.Sprintf("Lines %d-%d differ", at+1, at+n)
}

// firstDifference describes the first line of old that is not in the file as
// it should be, as a clause that begins with a comma.
func firstDifference(lines []string, at int, old []string, name string) string {
	for i, want := range old {
		if at+i >= len(lines) {
			return ", which ends before " + name + " does"
		}
		have := lines[at+i]
		if have == want || i == 0 && strings.HasSuffix(have, want) || i == len(old)-1 && strings.HasPrefix(have, want) {
			continue
		}
		if a, b := leading(have), leading(want); a != b && strings.TrimSpace(have) == strings.TrimSpace(want) {
			return fmt.Sprintf(", line %d begins with %s, %s has %s", at+i+1, blanks(a), name, blanks(b))
		}
		if a, b := trailing(have), trailing(want); a != b && strings.TrimSpace(have) == strings.TrimSpace(want) {
			return fmt.Sprintf(", line %d ends with %s, %s has %s", at+i+1, blanks(a), name, blanks(b))
		}
		return fmt.Sprintf(", line %d is %q, %s has %q", at+i+1, cut(have, 160), name, cut(want, 160))
	}
	return ""
}

func leading(s string) string { return s[:len(s)-len(strings.TrimLeftFunc(s, unicode.IsSpace))] }

func trailing(s string) string { return s[len(strings.TrimRightFunc(s, unicode.IsSpace)):] }

// blanks names white space: "1 tab", "4 spaces", "no blank".
func blanks(s string) string {
	if s == "" {
		return "no blank"
	}
	spaces, tabs := strings.Count(s, " "), strings.Count(s, "\t")
	switch {
	case spaces == len(s):
		return count(spaces, "space")
	case tabs == len(s):
		return count(tabs, "tab")
	default:
		return fmt.Sprintf("%q", s)
	}
}

func writeNumbered(out *strings.Builder, lines []string, at, n int) {
	for i := at; i < min(at+n, len(lines)); i++ {
		if i == at+missLines {
			fmt.Fprintf(out, "[%d more]\n", n-missLines)
			return
		}
		fmt.Fprintf(out, "%d\t%s\n", i+1, strings.ToValidUTF8(cut(lines[i], searchCut), "\uFFFD"))
	}
}
