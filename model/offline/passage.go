package offline

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
)

// A passage is what a document or a comment says in one go: a paragraph, an
// item of a list, a row of a table, a paragraph of a comment.
type passage struct {
	under hit   // the heading it stands under; line 0 if none
	lines []hit // its own, consecutive
	after []hit // what it introduces: a block of code, or what it documents
	words []string
}

const (
	passageRunes = 600 // of a joined paragraph
	passageRows  = 14  // lines of what it introduces
	answerRows   = 45  // lines of all passages
)

var (
	fence    = lazily("^\\s*(```|~~~)")
	listMark = lazily(`^\s*([-*+]|\d{1,2}[.)])\s`)
	ruleRow  = lazily(`^\|[\s|:-]+\|?$`)
	markup   = lazily(`^\s*<!--`)
)

// docPassages takes a document apart.
func docPassages(lines []hit) []passage {
	var out []passage
	var under hit
	open := false // the last passage goes on with the next line
	fenced, adopted := false, false
	table := -1 // the passage that is the head of the table we are in
	for _, l := range lines {
		t := strings.TrimSpace(l.text)
		last := len(out) - 1
		switch {
		case fence().MatchString(l.text):
			if fenced = !fenced; fenced {
				// A block belongs to the paragraph in front of it.
				adopted = last >= 0 && out[last].under == under && len(out[last].after) == 0
			}
			open = false
		case fenced:
			if t == "" {
				break
			}
			if adopted {
				out[last].after = append(out[last].after, l)
				break
			}
			out = append(out, passage{under: under, lines: []hit{l}})
		case ruleRow().MatchString(t):
			table = last
		case markup().MatchString(t):
		case heading().MatchString(l.text):
			under, open = l, false
		case t == "" || t == "---":
			open = false
		case open && !listMark().MatchString(l.text) && !strings.HasPrefix(t, "|"):
			out[last].lines = append(out[last].lines, l)
		default:
			row := strings.HasPrefix(t, "|")
			if row && table >= 0 && out[table].under == under {
				out[table].after = append(out[table].after, l)
			}
			out, open = append(out, passage{under: under, lines: []hit{l}}), !row
		}
	}
	for i := range out {
		p := &out[i]
		p.words = tokens(text(p.lines) + " " + p.under.text)
	}
	return out
}

// text returns lines as one string, for counting words.
func text(lines []hit) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text)
		b.WriteByte(' ')
	}
	return b.String()
}

// commentPassages takes the comment around a line apart, with what it
// documents; the line may be that definition itself. lines are the file's
// lines around it.
func commentPassages(lines []hit, at int) []passage {
	i := slices.IndexFunc(lines, func(l hit) bool { return l.line == at })
	if i < 0 {
		return nil
	}
	first, end := i, i
	for end < len(lines) && isComment(lines[end].text) {
		end++
	}
	for first > 0 && isComment(lines[first-1].text) {
		first--
	}
	var about []hit // what is documented
	if end < len(lines) && strings.TrimSpace(lines[end].text) != "" && !opening().MatchString(lines[end].text) {
		about = lines[end : end+1]
		if strings.HasSuffix(strings.TrimSpace(lines[end].text), "(") { // a group: its members are what it says
			n := bodyLen(lines[end:], ext(lines[end].path))
			about = slices.DeleteFunc(slices.Clone(lines[end:end+n]), func(l hit) bool { return strings.TrimSpace(l.text) == "" })
		}
	}
	stem := strings.TrimSuffix(path.Base(lines[i].path), path.Ext(lines[i].path))
	context := " " + stem
	if len(about) > 0 {
		context += " " + definedName(about[0].text)
	}
	var out []passage
	for _, l := range lines[first:end] {
		switch t := bare(l.text); {
		case t == "" || directive().MatchString(l.text):
			out = append(out, passage{})
		case len(out) == 0:
			out = append(out, passage{lines: []hit{l}})
		default:
			p := &out[len(out)-1]
			p.lines = append(p.lines, l)
		}
	}
	out = slices.DeleteFunc(out, func(p passage) bool { return len(p.lines) == 0 })
	if len(out) == 0 && len(about) > 0 {
		out = []passage{{lines: about}}
		about = nil
	}
	for i := range out {
		out[i].after = about
		out[i].words = tokens(text(out[i].lines) + context)
	}
	return out
}

// weigh scores passages for a topic; where the topic is empty, their language
// does not count.
func weigh(all []passage, stems []string, topic string) []float64 {
	docs := make([][]string, len(all))
	covers := make([]int, len(all))
	most := 0
	for i := range all {
		docs[i] = all[i].words
		for _, st := range stems {
			if slices.Contains(docs[i], st) {
				covers[i]++
			}
		}
		most = max(most, covers[i])
	}
	scores := rank(stems, docs)
	for i := range all {
		p := &all[i]
		first := p.lines[0]
		// Covering more of the topic's words matters more than repeating one.
		scores[i] *= float64(covers[i]) / float64(len(stems))
		title := isAbout(p.title(), stems)
		if covers[i]*2 < most && !title {
			scores[i] = 0
		}
		switch {
		case ext(first.path) == "md":
			if title {
				scores[i] = scores[i]*2 + 1
			}
			if p.under.line > 0 && isAbout(p.under.text, stems) {
				scores[i] = scores[i]*2 + 2 // what the section is about
			}
			scores[i] /= 1 + 0.2*float64(strings.Count(first.path, "/"))
		case !isComment(first.text): // a name says less than a sentence
			scores[i] *= 0.4
		case packageDoc().MatchString(first.text):
			scores[i] *= 1.5
		case len(p.after) > 0:
			if title {
				scores[i] *= 2
			}
			if hidden(p.after[0].text) {
				scores[i] *= 0.8
			}
		}
		if topic != "" && hanText(first.text) != hanText(topic) {
			scores[i] *= 0.4 // the same document in another language
		}
	}
	return scores
}

// isAbout reports whether a title names just what the topic does.
func isAbout(title string, stems []string) bool {
	words := content(title)
	for _, w := range words {
		if !slices.Contains(stems, w) {
			return false
		}
	}
	return len(words) > 0 && len(words)*2 > len(stems)
}

var boldLead = lazily(`^\s*(?:[-*+]\s+)?\*\*(.+?)\*\*`)

// title is what a passage begins with in bold, or the name of what it documents.
func (p *passage) title() string {
	if m := boldLead().FindStringSubmatch(p.lines[0].text); m != nil {
		return m[1]
	}
	if ext(p.lines[0].path) != "md" && len(p.after) > 0 && nameAfter().MatchString(p.after[0].text) {
		return definedName(p.after[0].text)
	}
	return ""
}

func hanText(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(unicode.Han, r) })
}

// write quotes passages in the given order, each heading and each definition
// once. What a paragraph introduces is quoted for the first, and where the
// section is about the topic.
func write(all []passage, order []int, stems []string) []string {
	var out []string
	shown := map[string]bool{}
	once := func(h hit, indent string) {
		if key := fmt.Sprintf("%s:%d", h.path, h.line); h.line > 0 && !shown[key] {
			shown[key] = true
			out = append(out, indent+h.quote())
		}
	}
	for k, i := range order {
		p := all[i]
		if len(out) >= answerRows {
			break
		}
		indent := ""
		if p.under.line > 0 {
			once(p.under, "")
			indent = "  "
		}
		if key := fmt.Sprintf("%s:%d", p.lines[0].path, p.lines[0].line); !shown[key] {
			shown[key] = true
			out = append(out, indent+p.quote())
		}
		if k > 1 && p.under.line > 0 && !isAbout(p.under.text, stems) {
			continue
		}
		rows := p.after[:min(len(p.after), passageRows)]
		for _, l := range rows {
			once(l, indent)
		}
		if n := len(p.after) - len(rows); n > 0 {
			out = append(out, fmt.Sprintf("… %s more", count(n, "line")))
		}
	}
	return out
}

// quote writes a passage as one line.
func (p *passage) quote() string {
	if len(p.lines) == 1 {
		h := p.lines[0]
		return fmt.Sprintf("%s:%d: %s", h.path, h.line, clip(strings.TrimSpace(h.text), passageRunes))
	}
	parts := make([]string, len(p.lines))
	for i, l := range p.lines {
		if parts[i] = strings.TrimSpace(l.text); ext(l.path) != "md" {
			parts[i] = bare(l.text)
		}
	}
	return fmt.Sprintf("%s:%d-%d: %s", p.lines[0].path, p.lines[0].line, p.lines[len(p.lines)-1].line, clip(strings.Join(parts, " "), passageRunes))
}
