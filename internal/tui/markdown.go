package tui

import (
	"strconv"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// markdownParser is made when the first text is drawn: a command that draws none
// does not pay for it.
var markdownParser = sync.OnceValue(func() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList, extension.Linkify)).Parser()
})

// Lists and quotes are indented as long as this many columns are left, and no
// deeper than maxNesting.
const (
	minText    = 12
	maxNesting = 8
)

// markdown draws a Markdown text. The text must be foreign already.
func markdown(src string, width int, th *theme) []string {
	source := []byte(src)
	d := &drawer{src: source, th: th}
	return d.blocks(markdownParser().Parse(text.NewReader(source)), max(width, 8), 0)
}

// A drawer draws the parts of one Markdown text.
type drawer struct {
	src []byte
	th  *theme
}

// blocks draws the children of a block, with a blank line between them where
// they are not a tight list's.
func (d *drawer) blocks(parent ast.Node, width, depth int) []string {
	var out []string
	tight := false
	if item, ok := parent.(*ast.ListItem); ok {
		if list, ok := item.Parent().(*ast.List); ok {
			tight = list.IsTight
		}
	}
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		lines := d.block(n, width, depth)
		if len(lines) == 0 {
			continue
		}
		if len(out) > 0 && !tight {
			out = append(out, "")
		}
		out = append(out, lines...)
	}
	return out
}

func (d *drawer) block(n ast.Node, width, depth int) []string {
	switch n := n.(type) {
	case *ast.Heading:
		return wrap(d.inlines(n, d.th.heading), width)
	case *ast.Paragraph, *ast.TextBlock:
		return wrap(d.inlines(n, ""), width)
	case *ast.ThematicBreak:
		return []string{d.th.border.paint(strings.Repeat("─", min(width, 40)))}
	case *ast.FencedCodeBlock:
		return d.code(d.raw(n), string(n.Language(d.src)), width)
	case *ast.CodeBlock:
		return d.code(d.raw(n), "", width)
	case *ast.HTMLBlock:
		raw := d.raw(n)
		if n.HasClosure() {
			raw += string(n.ClosureLine.Value(d.src))
		}
		return wrapText(strings.TrimRight(raw, "\n"), d.th.faint, width)
	case *ast.Blockquote:
		if depth >= maxNesting || width-2 < minText {
			return d.blocks(n, width, depth)
		}
		lines := d.blocks(n, width-2, depth+1)
		for i, l := range lines {
			lines[i] = d.th.border.paint("▏") + " " + l
		}
		return lines
	case *ast.List:
		return d.list(n, width, depth)
	case *east.Table:
		return d.table(n, width)
	}
	return d.blocks(n, width, depth)
}

// raw returns a block's lines as they were written.
func (d *drawer) raw(n ast.Node) string {
	var b strings.Builder
	lines := n.Lines()
	for i := range lines.Len() {
		seg := lines.At(i)
		b.Write(seg.Value(d.src))
	}
	return b.String()
}

func (d *drawer) list(n *ast.List, width, depth int) []string {
	var out []string
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if n.IsOrdered() {
			mark = strconv.Itoa(number) + ". "
			number++
		}
		indent := len(mark)
		if mark == "• " {
			indent = 2
		}
		if depth >= maxNesting || width-indent < minText {
			mark, indent = "", 0
		}
		lines := d.blocks(item, width-indent, depth+1)
		if len(lines) == 0 {
			lines = []string{""}
		}
		if len(out) > 0 && !n.IsTight {
			out = append(out, "")
		}
		for i, l := range lines {
			switch {
			case i == 0:
				l = d.th.accent.paint(mark) + l
			case l != "":
				l = strings.Repeat(" ", indent) + l
			}
			out = append(out, l)
		}
	}
	return out
}

// code draws a block of code, coloured where its language is known. Lines that
// are too long go on below: what stands to the right of the screen is not there.
func (d *drawer) code(code, language string, width int) []string {
	code = strings.TrimRight(code, "\n")
	var out []string
	for _, line := range highlight(code, language, d.th) {
		for _, l := range wrap(line, width-2) {
			out = append(out, "  "+l)
		}
	}
	return out
}

// inlines draws what is in a block, in the style of the block.
func (d *drawer) inlines(parent ast.Node, st style) []span {
	var out []span
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		out = append(out, d.inline(n, st)...)
	}
	return out
}

func (d *drawer) inline(n ast.Node, st style) []span {
	switch n := n.(type) {
	case *ast.Text:
		out := []span{{string(unescape(n.Segment.Value(d.src), n.IsRaw())), st}}
		if n.SoftLineBreak() || n.HardLineBreak() {
			out = append(out, span{"\n", ""}) // models break lines where they mean it
		}
		return out
	case *ast.String:
		return []span{{string(n.Value), st}}
	case *ast.CodeSpan:
		return d.inlines(n, d.th.code)
	case *ast.Emphasis:
		if n.Level > 1 {
			return d.inlines(n, st+d.th.strong)
		}
		return d.inlines(n, st+d.th.italic)
	case *east.Strikethrough:
		return d.inlines(n, st+d.th.struck)
	case *ast.AutoLink:
		return []span{{string(n.Label(d.src)), d.th.link}}
	case *ast.Link:
		return d.linked(d.inlines(n, d.th.link), string(n.Destination))
	case *ast.Image:
		return d.linked([]span{{"[image: " + text1(d.inlines(n, "")) + "]", d.th.link}}, string(n.Destination))
	case *east.TaskCheckBox:
		if n.IsChecked {
			return []span{{"☑ ", d.th.good}}
		}
		return []span{{"☐ ", st}}
	case *ast.RawHTML:
		var b strings.Builder
		for i := range n.Segments.Len() {
			seg := n.Segments.At(i)
			b.Write(seg.Value(d.src))
		}
		return []span{{b.String(), d.th.faint}}
	}
	return d.inlines(n, st)
}

// linked adds where a link leads, unless that is what it says: a link whose
// target can't be seen could lead anywhere.
func (d *drawer) linked(shown []span, target string) []span {
	if target == "" || strings.TrimPrefix(target, "mailto:") == text1(shown) {
		return shown
	}
	return append(shown, span{" (" + oneLine(target) + ")", d.th.faint})
}

// text1 is the text of spans without their styles.
func text1(spans []span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.text)
	}
	return b.String()
}

// unescape takes backslashes and entities out of a text.
func unescape(raw []byte, verbatim bool) []byte {
	if verbatim {
		return raw
	}
	return resolve(raw)
}
