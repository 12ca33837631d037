package tui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/internal/display"
)

type itemKind int

// The kinds of items of a transcript.
const (
	itemUser      itemKind = iota
	itemText               // a reply
	itemReasoning          // folded unless opened
	itemCall               // a tool call and what came of it
	itemNotice             // a warning, a retry, an error, an end
)

// An item is one thing in a transcript. What is drawn of it is kept until it
// changes or is looked at in another way.
type item struct {
	kind   itemKind
	text   string  // whole; of a reply or reasoning once it has ended
	live   *stream // of a reply or reasoning that is still coming
	style  func(*theme) style
	sign   string
	call   *synapse.ToolCall
	intent string
	result *synapse.ToolResult
	output tail // what a running tool prints
	took   time.Duration
	denied string
	child  *run // that the call has started
	opened bool // by the user; the other way round from what is usual
	turn   int

	lines []string
	look  look
}

// look is all that decides how an item is drawn, besides the item.
type look struct {
	width int
	th    *theme
	open  bool // everything is shown whole
	child runState
}

// changed makes the item be drawn anew.
func (it *item) changed() { it.lines = nil }

// draw returns the item's lines.
func (it *item) draw(l look) []string {
	if it.opened {
		l.open = !l.open
	}
	if it.child != nil {
		l.child = it.child.state()
	}
	if it.lines != nil && it.look == l {
		return it.lines
	}
	it.look = l
	switch it.kind {
	case itemUser:
		it.lines = marked(l.th.user.paint("❯ "), "  ", wrapText(it.text, l.th.user, l.width-2))
	case itemText:
		if it.live != nil {
			it.lines = it.live.lines("● ", "  ", l.width-2, l.th)
		} else {
			it.lines = marked("● ", "  ", markdown(it.text, l.width-2, l.th))
		}
	case itemReasoning:
		it.lines = it.reasoning(l)
	case itemCall:
		it.lines = it.drawCall(l)
	case itemNotice:
		st := it.style(l.th)
		it.lines = marked(st.paint(it.sign+" "), "  ", wrapText(it.text, st, l.width-2))
	}
	if len(it.lines) == 0 {
		it.lines = []string{""}
	}
	return it.lines
}

// marked puts a sign before the first line and blanks before the others.
func marked(sign, indent string, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		switch {
		case i == 0:
			out[i] = sign + l
		case l != "":
			out[i] = indent + l
		}
	}
	return out
}

// whole is the text of a reply or of reasoning so far.
func (it *item) whole() string {
	if it.live != nil {
		return it.live.text.String()
	}
	return it.text
}

func (it *item) reasoning(l look) []string {
	text := strings.TrimSpace(it.whole())
	if !l.open {
		first, _, more := strings.Cut(text, "\n")
		if it.live != nil { // the latest thought is what is of interest
			first = text[strings.LastIndexByte(text, '\n')+1:]
		}
		if more || it.live != nil {
			first += " …"
		}
		return []string{l.th.faint.paint(cut("✻ "+strings.TrimLeft(first, "#* "), l.width))}
	}
	return marked(l.th.faint.paint("✻ "), "  ", wrapText(text, l.th.faint, l.width-2))
}

// How much is shown of what is folded.
const (
	foldedDiff   = 14 // lines
	foldedResult = 1
	foldedOutput = 4
	openResult   = 400
)

func (it *item) drawCall(l look) []string {
	sign, st := "◌", l.th.accent
	switch {
	case it.result == nil:
	case it.denied != "":
		sign, st = "⊘", l.th.warn
	case it.result.IsError:
		sign, st = "✗", l.th.bad
	default:
		sign, st = "✓", l.th.good
	}
	about := it.subject()
	title := it.intent
	tool := oneLine(it.call.Name)
	if it.child != nil {
		if sign, st = it.child.sign(0, l.th); l.child == runRunning { // nothing moves up here
			sign = "◌"
		}
		title, tool, about = it.child.agent, "", it.child.what
	} else if title == "" {
		title, tool = tool, ""
	}
	head := []span{{sign + " ", st}, {title, l.th.strong}}
	if tool != "" {
		head = append(head, span{"  " + tool, l.th.faint})
	}
	if about != "" {
		head = append(head, span{" " + about, l.th.faint})
	}
	line := join(cells(head))
	right := ""
	if it.child != nil && it.child.ended() {
		right = l.th.faint.paint(it.child.figures(it.child.end))
	} else if it.child == nil && it.took >= time.Second {
		right = l.th.faint.paint(display.Seconds(it.took))
	}
	out := []string{sides(line, right, l.width)}
	if l.open {
		out = append(out, indented(it.arguments(l), l.width)...)
	}
	return append(out, indented(it.outcome(l), l.width)...)
}

func indented(lines []string, width int) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = "  " + l
	}
	return out
}

// subject is what a call is about: its most telling argument.
func (it *item) subject() string {
	var args map[string]any
	if json.Unmarshal([]byte(it.call.Args), &args) != nil {
		return oneLine(it.call.Args)
	}
	for _, name := range []string{"command", "path", "file_path", "pattern", "query", "url", "name", "task_id", "subagent_type", "reason"} {
		if s, ok := args[name].(string); ok && s != "" {
			return oneLine(s)
		}
	}
	return ""
}

// arguments shows the whole of what the model wrote.
func (it *item) arguments(l look) []string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(it.call.Args), "", "  ") != nil {
		return wrapText(foreign(it.call.Args), l.th.faint, l.width-2)
	}
	var lines []string
	for _, line := range highlight(foreign(out.String()), "json", l.th) {
		lines = append(lines, wrap(line, l.width-2)...)
	}
	return lines
}

// outcome shows what came of a call.
func (it *item) outcome(l look) []string {
	w := l.width - 2
	if it.denied != "" {
		return wrapText("denied: "+it.denied, l.th.warn, w)
	}
	if it.result == nil {
		lines := it.output.lines(foldedOutput)
		for i, s := range lines {
			lines[i] = l.th.faint.paint(cut(s, w))
		}
		return lines
	}
	var out []string
	if changes := changesOf(it.result); len(changes) > 0 {
		for i := range changes {
			c := &changes[i]
			out = append(out, l.th.faint.paint(cut(c.summary(), w)))
			lines := c.draw(w, l.th)
			if !l.open {
				var more int
				if lines, more = clipped(lines, foldedDiff); more > 0 {
					lines = append(lines, l.th.faint.paint(fmt.Sprintf("     … %s more", display.Count(int64(more), "line"))))
				}
			}
			out = append(out, lines...)
		}
		return out
	}
	for _, m := range it.result.Media {
		out = append(out, l.th.faint.paint(cut(mediaName(&m), w)))
	}
	text := strings.TrimRight(foreign(it.result.Text), "\n ")
	if text == "" {
		return out
	}
	st := l.th.faint
	if it.result.IsError {
		st = l.th.bad
	}
	if it.child != nil { // the report has a view of its own
		if !l.open {
			return out
		}
		return append(out, markdown(text, w, l.th)...)
	}
	if l.open {
		lines, more := clipped(wrapText(text, st, w), openResult)
		if more > 0 {
			lines = append(lines, l.th.faint.paint(fmt.Sprintf("… %s more", display.Count(int64(more), "line"))))
		}
		return append(out, lines...)
	}
	first, rest, _ := strings.Cut(text, "\n")
	if n := strings.Count(rest, "\n") + 1; rest != "" {
		return append(out, sides(st.paint(cut(first, w-16)), l.th.faint.paint(fmt.Sprintf("+%s", display.Count(int64(n), "line"))), w))
	}
	return append(out, st.paint(cut(first, w)))
}

// mediaName names a picture or a document that can't be shown.
func mediaName(m *synapse.Media) string {
	kind, _, _ := strings.Cut(m.Type, "/")
	name := oneLine(m.Name)
	if name == "" {
		name = oneLine(m.Type)
	}
	return fmt.Sprintf("[%s: %s, %s]", oneLine(kind), name, bytesOf(len(m.Data)))
}

func bytesOf(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return display.Count(int64(n), "byte")
}

// A tail keeps the end of what a tool prints.
type tail struct {
	text string
}

const tailBytes = 2 << 10

func (t *tail) add(s string) {
	t.text += foreign(s)
	if len(t.text) > 2*tailBytes {
		t.text = strings.ToValidUTF8(t.text[len(t.text)-tailBytes:], "")
	}
}

// lines returns the last lines.
func (t *tail) lines(most int) []string {
	text := strings.TrimRight(t.text, "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	return append([]string{}, lines[max(0, len(lines)-most):]...)
}
