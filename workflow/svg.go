package workflow

import (
	"fmt"
	"html"
	"strings"

	"github.com/synapse-agents/synapse"
)

// The measures of a drawing, in pixels. A character of the fixed-width font is
// charWidth wide, whatever font there is: textLength keeps it so.
const (
	charWidth  = 7
	lineHeight = 17
	boxPadding = 12
	gapAcross  = 46
	gapDown    = 64
	margin     = 28
	maxChars   = 44
)

// A box is a node as it is drawn.
type box struct {
	name       string
	lines      []string
	kind       synapse.NodeKind
	rank       int
	x, y, w, h int // the middle of the top edge, and the size
}

// SVG draws the workflow as an SVG image that needs nothing else.
func SVG(d *Definition) string {
	boxes, width, height := layout(d)
	byName := map[string]*box{}
	for _, b := range boxes {
		byName[b.name] = b
	}
	var lines strings.Builder
	lanes := 0
	for _, a := range arrows(d) {
		from, to := byName[a.from], byName[a.to]
		dash := ""
		if a.failure {
			dash = ` stroke-dasharray="4 3"`
		}
		x, y := 0, 0
		if to.rank > from.rank {
			x1, y1, x2, y2 := from.x, from.y+from.h, to.x, to.y
			fmt.Fprintf(&lines, `<path d="M%d %d C%d %d %d %d %d %d"%s/>`+"\n", x1, y1, x1, y1+gapDown/2, x2, y2-gapDown/2, x2, y2-1, dash)
			x, y = (x1+x2)/2, (y1+y2)/2
		} else { // back up, in a lane of its own to the right
			lanes++
			lane := width + lanes*22
			x1, y1, x2, y2 := from.x+from.w/2, from.y+from.h/2, to.x+to.w/2, to.y+to.h/2
			if from == to {
				y1, y2 = y1+8, y2-8
			}
			fmt.Fprintf(&lines, `<path d="M%d %d H%d V%d H%d"%s/>`+"\n", x1, y1, lane, y2, x2+1, dash)
			x, y = lane, (y1+y2)/2
		}
		if a.label != "" {
			text := clip(a.label)
			w := len([]rune(text)) * 6
			fmt.Fprintf(&lines, `<text class="when" x="%d" y="%d" text-anchor="middle" textLength="%d"><title>%s</title>%s</text>`+"\n",
				x, y, w, html.EscapeString(a.label), html.EscapeString(text))
		}
	}
	var b strings.Builder
	full := width + lanes*22 + maxChars*3 + margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", full, height, full, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(d.Name))
	b.WriteString(`<style>svg{background:#fff}text{font:12px ui-monospace,monospace;fill:#1b1f24}.when{font-size:10px;fill:#57606a;paint-order:stroke;stroke:#fff;stroke-width:4px}` +
		`path{fill:none;stroke:#57606a;stroke-width:1.3;marker-end:url(#a)}rect{fill:#f6f8fa;stroke:#57606a}.approve{fill:#fff8c5}.workflow{fill:#ddf4ff}.func{fill:#e6ffec}.ends{fill:#1b1f24}.ends+text{fill:#fff}` +
		"</style>\n" +
		`<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" style="fill:#57606a;stroke:none;marker-end:none"/></marker></defs>` + "\n")
	b.WriteString(lines.String())
	for _, n := range boxes {
		class, round := string(n.kind), 4
		if n.kind == "" {
			class, round = "ends", n.h/2
		}
		fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`, class, n.x-n.w/2, n.y, n.w, n.h, round)
		for i, line := range n.lines {
			fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle" textLength="%d">%s</text>`,
				n.x, n.y+boxPadding+i*lineHeight+lineHeight/2, len([]rune(line))*charWidth, html.EscapeString(line))
		}
		b.WriteString("\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// layout puts every node into the row that is its distance from the start, the
// end into the last one.
func layout(d *Definition) (boxes []*box, width, height int) {
	rank := map[string]int{synapse.FlowStart: 0}
	next := map[string][]string{}
	for _, a := range arrows(d) {
		next[a.from] = append(next[a.from], a.to)
	}
	last := 0
	for todo := []string{synapse.FlowStart}; len(todo) > 0; todo = todo[1:] {
		for _, to := range next[todo[0]] {
			if _, seen := rank[to]; !seen && to != synapse.FlowEnd {
				rank[to] = rank[todo[0]] + 1
				last = max(last, rank[to])
				todo = append(todo, to)
			}
		}
	}
	add := func(name string, lines []string, kind synapse.NodeKind, at int) {
		n := &box{name: name, kind: kind, rank: at}
		for _, line := range lines {
			line = clip(line)
			n.lines = append(n.lines, line)
			n.w = max(n.w, len([]rune(line))*charWidth+2*boxPadding)
		}
		n.h = len(lines)*lineHeight + boxPadding
		boxes = append(boxes, n)
	}
	add(synapse.FlowStart, []string{"start"}, "", 0)
	for i := range d.Flow.Nodes {
		n := &d.Flow.Nodes[i]
		at, ok := rank[n.Name]
		if !ok { // Check refuses it; a drawing shows it all the same
			at = last
		}
		add(n.Name, label(n), n.Kind, at)
	}
	add(synapse.FlowEnd, []string{"end"}, "", last+1)
	rows := make([][]*box, last+2)
	for _, n := range boxes {
		rows[n.rank] = append(rows[n.rank], n)
	}
	for _, row := range rows {
		width = max(width, across(row))
	}
	width += 2 * margin
	height = margin
	for _, row := range rows {
		x, tall := (width-across(row))/2, 0
		for _, n := range row {
			n.x, n.y = x+n.w/2, height
			x += n.w + gapAcross
			tall = max(tall, n.h)
		}
		height += tall + gapDown
	}
	return boxes, width, height - gapDown + margin
}

func across(row []*box) int {
	w := -gapAcross
	for _, n := range row {
		w += n.w + gapAcross
	}
	return max(w, 0)
}

func clip(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > maxChars {
		return string(r[:maxChars-1]) + "…"
	}
	return s
}
