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
	passageRows  = 22  // lines of what it introduces
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
		case markup().MatchString(t), ruleRow().MatchString(t):
		case heading().MatchString(l.text):
			under, open = l, false
		case t == "" || t == "---":
			open = false
		case open && !listMark().MatchString(l.text) && !strings.HasPrefix(t, "|"):
			out[last].lines = append(out[last].lines, l)
		default:
			out, open = append(out, passage{under: under, lines: []hit{l}}), !strings.HasPrefix(t, "|")
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
	if end < len(lines) && strings.TrimSpace(lines[end].text) != "" {
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
		case t == "":
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
	for i := range all {
		docs[i] = all[i].words
	}
	scores := rank(stems, docs)
	for i := range all {
		p := &all[i]
		// Covering more of the topic's words matters more than repeating one.
		covered := 0
		for _, st := range stems {
			if slices.Contains(p.words, st) {
				covered++
			}
		}
		scores[i] *= float64(covered) / float64(len(stems))
		switch {
		case ext(p.lines[0].path) == "md":
			scores[i] *= 1.2
			if h := content(p.under.text); p.under.line > 0 && len(h) > 0 && len(h) <= len(stems)+1 && !slices.ContainsFunc(stems, func(st string) bool { return !slices.Contains(h, st) }) {
				scores[i] = max(scores[i]*2, 1) // the section is about just that
			}
			scores[i] /= 1 + 0.25*float64(strings.Count(p.lines[0].path, "/"))
		case !isComment(p.lines[0].text): // a name says less than a sentence
			scores[i] *= 0.6
		case len(p.after) > 0 && slices.ContainsFunc(tokens(definedName(p.after[0].text)), func(w string) bool { return slices.Contains(stems, w) }):
			scores[i] *= 1.3
		}
		if topic != "" && hanText(text(p.lines)) != hanText(topic) {
			scores[i] *= 0.4 // the same document in another language
		}
	}
	return scores
}

func hanText(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(unicode.Han, r) })
}

// write quotes passages in the given order, each heading and each definition
// once.
func write(all []passage, order []int) []string {
	var out []string
	shown := map[string]bool{}
	once := func(h hit, indent string) {
		if key := fmt.Sprintf("%s:%d", h.path, h.line); h.line > 0 && !shown[key] {
			shown[key] = true
			out = append(out, indent+h.quote())
		}
	}
	for _, i := range order {
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
		rows := p.after
		if len(rows) > passageRows {
			rows = rows[:passageRows]
		}
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
