package tool

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	htmlMaxText  = 8 << 20 // bytes of Markdown
	htmlMaxLink  = 2 << 10 // bytes of a link's target; a longer one is left out
	htmlMaxDepth = 12      // levels of lists and quotes that indent, and of tables in tables
)

// markdown is what a web page comes to.
type markdown struct {
	title, text string
	cut         bool
}

// toMarkdown turns a web page into Markdown. It reads tags as they come rather
// than building a tree: what it takes is proportional to the page's length,
// whatever is nested in what.
func toMarkdown(page string, base *url.URL) markdown {
	r := &htmlReader{z: html.NewTokenizer(strings.NewReader(page)), base: base}
	r.flow = &htmlFlow{}
	for r.next() {
	}
	cut := r.full()
	r.endPre()
	for r.flat = 0; len(r.tables) > 0; {
		r.endTable()
	}
	r.flow.closeMarks(0)
	return markdown{
		title: strings.Join(strings.Fields(cleanText(r.title.String())), " "),
		text:  strings.TrimSpace(cleanText(strings.ReplaceAll(r.flow.out.String(), "\u00a0", " "))),
		cut:   cut,
	}
}

// An htmlReader walks over the tags of a page.
type htmlReader struct {
	z    *html.Tokenizer
	base *url.URL
	flow *htmlFlow // where text goes: the page, or a cell of a table
	used int       // bytes in flows that are done

	skip      atom.Atom // the element whose content is passed over, 0 for none
	skipDepth int
	title     strings.Builder
	inTitle   bool
	pre       *strings.Builder // the content of <pre>, nil outside
	preLang   string
	tables    []*htmlTable
	flat      int // open tables that are not told apart
}

// An htmlFlow is a run of blocks.
type htmlFlow struct {
	out    strings.Builder
	breaks int  // line ends that come before the next text
	space  bool // a blank that does
	boxes  []htmlBox
	marks  []htmlMark // of inline elements that are open
	line   bool       // text stands on the current line
	last   string     // what that line begins with
}

// An htmlBox is a list item or a quote that text stands in.
type htmlBox struct {
	tag    atom.Atom // Ul, Ol, Li, Blockquote
	number int       // of an Ol: the next item's; of an Li in one: its own
	inOl   bool      // an Li has a number
	marked bool      // the item's bullet has been written
}

// An htmlMark is an inline element: its marks are written around its text, and
// not at all when it has none.
type htmlMark struct {
	tag         atom.Atom
	open, close string
	written     bool
}

func (r *htmlReader) full() bool { return r.used+r.flow.out.Len() > htmlMaxText }

func (r *htmlReader) next() bool {
	switch r.z.Next() {
	case html.ErrorToken:
		return false
	case html.TextToken:
		r.text(string(r.z.Text()))
	case html.StartTagToken:
		r.start(false)
	case html.SelfClosingTagToken:
		r.start(true)
	case html.EndTagToken:
		name, _ := r.z.TagName()
		r.end(atom.Lookup(name))
	}
	return !r.full()
}

// unseen are elements whose content no reader of the page sees as text.
var unseen = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true, atom.Svg: true, atom.Math: true, atom.Iframe: true,
	atom.Object: true, atom.Canvas: true, atom.Audio: true, atom.Video: true, atom.Select: true, atom.Datalist: true, atom.Textarea: true,
	atom.Noembed: true, atom.Noframes: true,
}

// hideable are elements that are always closed, so that hiding one hides
// nothing that follows.
var hideable = map[atom.Atom]bool{
	atom.Div: true, atom.Span: true, atom.Section: true, atom.Article: true, atom.Aside: true, atom.Nav: true, atom.Header: true,
	atom.Footer: true, atom.A: true, atom.Button: true, atom.Ul: true, atom.Ol: true, atom.Table: true, atom.Form: true, atom.Dialog: true,
	atom.I: true, atom.B: true, atom.Em: true, atom.Strong: true, atom.Pre: true, atom.Blockquote: true, atom.Label: true, atom.Small: true,
}

func (r *htmlReader) attributes(more bool) map[string]string {
	attrs := map[string]string{}
	for more {
		var key, value []byte
		key, value, more = r.z.TagAttr()
		if _, ok := attrs[string(key)]; !ok {
			attrs[string(key)] = string(value)
		}
	}
	return attrs
}

func isHidden(attrs map[string]string) bool {
	if _, ok := attrs["hidden"]; ok {
		return true
	}
	style := strings.ToLower(strings.Join(strings.Fields(attrs["style"]), ""))
	return attrs["aria-hidden"] == "true" || strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden")
}

func (r *htmlReader) start(closed bool) {
	name, more := r.z.TagName()
	tag := atom.Lookup(name)
	if r.skip != 0 {
		if tag == r.skip && !closed {
			r.skipDepth++
		}
		return
	}
	attrs := r.attributes(more)
	if unseen[tag] || hideable[tag] && isHidden(attrs) {
		if closed && (tag == atom.Svg || tag == atom.Math) {
			return // of all elements, only in these the slash counts
		}
		r.skip, r.skipDepth = tag, 1
		return
	}
	f := r.flow
	if r.pre != nil {
		if tag == atom.Code && r.preLang == "" {
			r.preLang = codeLanguage(attrs["class"])
		}
		r.preBreak(tag)
		return
	}
	switch tag {
	case atom.Title:
		r.inTitle = r.title.Len() == 0
	case atom.Base:
		if u, err := r.base.Parse(attrs["href"]); err == nil && attrs["href"] != "" {
			r.base = u
		}
	case atom.Br:
		if len(f.marks) > 0 && strings.HasPrefix(f.marks[0].open, "#") {
			f.space = true // a heading is one line
			return
		}
		f.breaks = min(f.breaks+1, 2)
	case atom.Hr:
		r.block(2)
		r.write("---")
		r.block(2)
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		r.block(2)
		level := int(tag.String()[1] - '0')
		// Before a link that the heading stands in.
		f.marks = slices.Insert(f.marks, 0, htmlMark{tag: tag, open: strings.Repeat("#", level) + " "})
	case atom.Pre:
		r.block(2)
		r.pre, r.preLang = &strings.Builder{}, codeLanguage(attrs["class"])
	case atom.Code, atom.Kbd, atom.Samp, atom.Tt:
		r.mark(tag, "`", "`")
	case atom.B, atom.Strong:
		r.mark(tag, "**", "**")
	case atom.I, atom.Em:
		r.mark(tag, "*", "*")
	case atom.Del, atom.S:
		r.mark(tag, "~~", "~~")
	case atom.A:
		r.endInline(atom.A) // a link can't stand in a link
		if target := r.link(attrs["href"]); target != "" {
			r.mark(tag, "[", "]("+target+")")
		}
	case atom.Img:
		if alt := strings.Join(strings.Fields(attrs["alt"]), " "); alt != "" {
			if target := r.link(attrs["src"]); target != "" {
				alt = "![" + alt + "](" + target + ")"
			}
			r.write(alt)
		}
	case atom.Ul, atom.Ol:
		r.block(r.listBreak())
		n, err := strconv.Atoi(attrs["start"])
		if err != nil {
			n = 1
		}
		f.boxes = append(f.boxes, htmlBox{tag: tag, number: n})
	case atom.Li:
		r.block(1)
		f.closeItem()
		f.openItem()
	case atom.Blockquote:
		r.block(2)
		f.boxes = append(f.boxes, htmlBox{tag: tag})
	case atom.Table:
		r.startTable()
	case atom.Tr, atom.Td, atom.Th, atom.Caption:
		r.startCell(tag)
	default:
		if isBlock(tag) {
			r.block(blockBreak(tag))
		}
	}
}

func (r *htmlReader) end(tag atom.Atom) {
	if r.skip != 0 {
		if tag == r.skip {
			if r.skipDepth--; r.skipDepth == 0 {
				r.skip = 0
			}
		}
		return
	}
	f := r.flow
	if r.pre != nil {
		if tag != atom.Pre {
			r.preBreak(tag)
			return
		}
		r.endPre()
	}
	switch tag {
	case atom.Title:
		r.inTitle = false
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		r.block(2)
	case atom.Ul, atom.Ol:
		f.closeBox(tag)
		r.block(r.listBreak())
	case atom.Li:
		r.block(1)
		f.closeItem()
	case atom.Blockquote:
		r.block(2)
		f.closeBox(tag)
	case atom.Table:
		r.endTable()
	case atom.Td, atom.Th, atom.Tr, atom.Caption:
		r.endCell()
	case atom.Code, atom.Kbd, atom.Samp, atom.Tt, atom.B, atom.Strong, atom.I, atom.Em, atom.Del, atom.S, atom.A:
		r.endInline(tag)
	default:
		if isBlock(tag) {
			r.block(blockBreak(tag))
		}
	}
}

// preBreak ends a line of <pre> where an element in it does.
func (r *htmlReader) preBreak(tag atom.Atom) {
	if tag == atom.Br || isBlock(tag) && r.pre.Len() > 0 && !strings.HasSuffix(r.pre.String(), "\n") {
		r.pre.WriteByte('\n')
	}
}

// isBlock reports whether an element begins on a line of its own.
func isBlock(tag atom.Atom) bool { return blockBreak(tag) > 0 }

// blockBreak returns how many line ends part an element from its neighbours.
func blockBreak(tag atom.Atom) int {
	switch tag {
	case atom.P, atom.Dl, atom.Figure, atom.Details, atom.Fieldset, atom.Article, atom.Section, atom.Main, atom.Form,
		atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Pre, atom.Table, atom.Ul, atom.Ol, atom.Blockquote, atom.Hr:
		return 2
	case atom.Div, atom.Li, atom.Dt, atom.Dd, atom.Header, atom.Footer, atom.Nav, atom.Aside, atom.Address, atom.Summary,
		atom.Figcaption, atom.Legend, atom.Tr, atom.Td, atom.Th, atom.Caption, atom.Thead, atom.Tbody, atom.Tfoot, atom.Body,
		atom.Center, atom.Menu, atom.Option, atom.Hgroup, atom.Dialog:
		return 1
	}
	return 0
}

// listBreak parts a list from what is around it: a list in a list follows on.
func (r *htmlReader) listBreak() int {
	for _, b := range r.flow.boxes {
		if b.tag == atom.Li {
			return 1
		}
	}
	return 2
}

// codeLanguage reads the language from a class such as "language-go".
func codeLanguage(class string) string {
	for c := range strings.FieldsSeq(class) {
		for _, prefix := range []string{"language-", "lang-", "highlight-source-"} {
			if lang, ok := strings.CutPrefix(c, prefix); ok && !strings.ContainsAny(lang, "`\n") {
				return cut(lang, 20)
			}
		}
	}
	return ""
}

// link returns a link's target in full, "" for one that leads nowhere else.
func (r *htmlReader) link(href string) string {
	href = strings.TrimSpace(href)
	if href == "" || href[0] == '#' || len(href) > htmlMaxLink {
		return ""
	}
	u, err := r.base.Parse(href)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
		return ""
	}
	s := u.String()
	if len(s) > htmlMaxLink {
		return ""
	}
	return linkEscapes.Replace(s)
}

// linkEscapes writes what would end a link's target early.
var linkEscapes = strings.NewReplacer("(", "%28", ")", "%29")

func (r *htmlReader) text(s string) {
	switch {
	case r.skip != 0:
	case r.inTitle:
		if r.title.Len() < 1000 {
			r.title.WriteString(s)
		}
	case r.pre != nil:
		r.pre.WriteString(s)
	default:
		for s != "" {
			i := strings.IndexFunc(s, isBlank)
			if i < 0 {
				r.write(s)
				return
			}
			r.write(s[:i])
			r.flow.space = true
			s = strings.TrimLeftFunc(s[i:], isBlank)
		}
	}
}

func isBlank(c rune) bool { return c != '\u00a0' && unicode.IsSpace(c) }

// write appends text without blanks at its ends, after the breaks, prefixes
// and marks that are due.
func (r *htmlReader) write(s string) {
	if s == "" {
		return
	}
	f := r.flow
	f.startText()
	for i := range f.marks {
		if m := &f.marks[i]; !m.written {
			m.written = true
			f.out.WriteString(m.open)
		}
	}
	f.out.WriteString(s)
}

// startText writes what parts the next text from the last.
func (f *htmlFlow) startText() {
	if f.out.Len() > 0 && f.breaks > 0 {
		f.out.WriteByte('\n')
		if f.breaks > 1 {
			// The boxes that go on have their marks on the blank line too.
			f.out.WriteString(strings.TrimRight(commonPrefix(f.last, f.prefix()), " "))
			f.out.WriteByte('\n')
		}
		f.line = false
	}
	if !f.line {
		f.last = f.prefix()
		f.out.WriteString(f.markedPrefix())
		f.line = true
	} else if f.space {
		f.out.WriteByte(' ')
	}
	f.breaks, f.space = 0, false
}

func commonPrefix(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// prefix returns what a further line in the open boxes begins with.
func (f *htmlFlow) prefix() string {
	var p strings.Builder
	for _, b := range f.boxes[:min(len(f.boxes), htmlMaxDepth)] {
		switch b.tag {
		case atom.Blockquote:
			p.WriteString("> ")
		case atom.Li:
			p.WriteString(strings.Repeat(" ", len(b.bullet())))
		}
	}
	return p.String()
}

// markedPrefix is prefix for a line that may be an item's first.
func (f *htmlFlow) markedPrefix() string {
	var p strings.Builder
	for i := range f.boxes[:min(len(f.boxes), htmlMaxDepth)] {
		switch b := &f.boxes[i]; {
		case b.tag == atom.Blockquote:
			p.WriteString("> ")
		case b.tag == atom.Li && !b.marked:
			b.marked = true
			p.WriteString(b.bullet())
		case b.tag == atom.Li:
			p.WriteString(strings.Repeat(" ", len(b.bullet())))
		}
	}
	return p.String()
}

func (b *htmlBox) bullet() string {
	if !b.inOl {
		return "- "
	}
	return strconv.Itoa(b.number) + ". "
}

// openItem begins a list item, of the list it is in.
func (f *htmlFlow) openItem() {
	item := htmlBox{tag: atom.Li}
	for i := len(f.boxes) - 1; i >= 0; i-- {
		list := &f.boxes[i]
		if list.tag == atom.Ol {
			item.number, item.inOl = list.number, true
			list.number++
		}
		if list.tag != atom.Blockquote {
			break
		}
	}
	f.boxes = append(f.boxes, item)
}

// closeItem ends the open item of the innermost list.
func (f *htmlFlow) closeItem() {
	for i := len(f.boxes) - 1; i >= 0; i-- {
		switch f.boxes[i].tag {
		case atom.Li:
			f.boxes = f.boxes[:i]
			return
		case atom.Ul, atom.Ol:
			return
		}
	}
}

// closeBox ends the innermost list or quote of that tag and all in it.
func (f *htmlFlow) closeBox(tag atom.Atom) {
	for i := len(f.boxes) - 1; i >= 0; i-- {
		if f.boxes[i].tag == tag {
			f.boxes = f.boxes[:i]
			return
		}
	}
}

// block ends the paragraph: n line ends come before what follows. A link that
// has had no text yet goes on, since headings and blocks may stand in one.
func (r *htmlReader) block(n int) {
	f := r.flow
	var open []htmlMark
	for _, m := range f.marks {
		if m.tag == atom.A && !m.written {
			open = append(open, m)
		}
	}
	f.closeMarks(0)
	f.marks = append(f.marks, open...)
	f.breaks = max(f.breaks, n)
	f.space = false
}

// mark opens an inline element.
func (r *htmlReader) mark(tag atom.Atom, open, close string) {
	if len(r.flow.marks) < htmlMaxDepth {
		r.flow.marks = append(r.flow.marks, htmlMark{tag: tag, open: open, close: close})
	}
}

// endInline closes an inline element, and those that were opened in it.
func (r *htmlReader) endInline(tag atom.Atom) {
	f := r.flow
	for i := len(f.marks) - 1; i >= 0; i-- {
		if f.marks[i].tag == tag {
			f.closeMarks(i)
			return
		}
	}
}

func (f *htmlFlow) closeMarks(from int) {
	for i := len(f.marks) - 1; i >= from; i-- {
		if f.marks[i].written {
			f.out.WriteString(f.marks[i].close)
		}
	}
	f.marks = f.marks[:from]
}

// endPre writes the content of <pre> between fences that it doesn't hold.
func (r *htmlReader) endPre() {
	if r.pre == nil {
		return
	}
	code := strings.Trim(strings.ReplaceAll(r.pre.String(), "\r\n", "\n"), "\n")
	r.pre = nil
	if strings.TrimSpace(code) == "" {
		return
	}
	fence, run := "```", 0
	for _, c := range []byte(code) {
		if run++; c != '`' {
			run = 0
		}
		if run >= len(fence) && run < 1000 {
			fence += "`"
		}
	}
	f := r.flow
	f.startText()
	further := "\n" + f.prefix()
	fmt.Fprintf(&f.out, "%s%s", fence, r.preLang)
	for line := range strings.SplitSeq(code, "\n") {
		f.out.WriteString(further)
		f.out.WriteString(strings.TrimRight(line, " \t"))
		if r.full() {
			break
		}
	}
	f.out.WriteString(further + fence)
	r.block(2)
}
