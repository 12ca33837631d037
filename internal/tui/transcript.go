package tui

// A transcript is a column of items of which a part is looked at. Where it stands
// is kept as an item and a line of it, counted from the top, so that nothing has
// to be drawn that is not seen: neither how long the whole is nor what comes
// before is ever asked.
type transcript struct {
	items  []*item
	free   bool // it stands still; otherwise it follows the end
	at     int  // the item in the first row
	skip   int  // of its lines are above the first row
	cursor int  // the item that the user has chosen, -1 for none
	rows   []row
}

// A row is what stands in one row of the screen: which item, or -1.
type row struct{ item int }

func newTranscript() *transcript { return &transcript{cursor: -1} }

func (t *transcript) add(it *item) *item {
	t.items = append(t.items, it)
	return it
}

// height is how many rows an item takes, with the blank one before it.
func (t *transcript) height(i int, l look) int { return len(t.items[i].draw(l)) + t.gap(i) }

// gap is the blank rows before an item: calls stand close together.
func (t *transcript) gap(i int) int {
	if i == 0 || t.items[i].kind == itemCall && t.items[i-1].kind == itemCall {
		return 0
	}
	return 1
}

// view draws the part that is looked at, exactly rows lines, a column wider than
// the look says.
func (t *transcript) view(l look, rows int) []string {
	if !t.free {
		t.at, t.skip = t.endAt(l, rows)
	} else {
		at, skip := t.endAt(l, rows)
		if t.at > at || t.at == at && t.skip > skip { // nothing is left below
			t.free, t.at, t.skip = false, at, skip
		}
	}
	out := make([]string, 0, rows)
	t.rows = t.rows[:0]
	skip := t.skip
	for i := t.at; i < len(t.items) && len(out) < rows; i++ {
		lines := t.items[i].draw(l)
		for n := range t.gap(i) + len(lines) {
			if skip > 0 {
				skip--
				continue
			}
			if len(out) == rows {
				break
			}
			text := ""
			if n >= t.gap(i) {
				text = " " + lines[n-t.gap(i)]
				if i == t.cursor {
					text = l.th.key.paint("▌") + text[1:]
				}
			}
			out = append(out, text)
			t.rows = append(t.rows, row{i})
		}
	}
	for len(out) < rows {
		out = append(out, "")
		t.rows = append(t.rows, row{-1})
	}
	return out
}

// endAt is where the last rows begin.
func (t *transcript) endAt(l look, rows int) (item, skip int) {
	left := rows
	for i := len(t.items) - 1; i >= 0; i-- {
		h := t.height(i, l)
		if h >= left {
			return i, h - left
		}
		left -= h
	}
	return 0, 0
}

// scroll moves by rows, down where by is positive.
func (t *transcript) scroll(by int, l look, rows int) {
	if !t.free {
		t.at, t.skip = t.endAt(l, rows)
		t.free = true
	}
	t.skip += by
	for t.skip < 0 {
		if t.at == 0 {
			t.skip = 0
			break
		}
		t.at--
		t.skip += t.height(t.at, l)
	}
	for t.at < len(t.items)-1 && t.skip >= t.height(t.at, l) {
		t.skip -= t.height(t.at, l)
		t.at++
	}
}

// move chooses another item, and brings it into view.
func (t *transcript) move(by int, l look, rows int) {
	if len(t.items) == 0 {
		return
	}
	if t.cursor < 0 {
		t.cursor = len(t.items)
	}
	t.cursor = min(max(t.cursor+by, 0), len(t.items)-1)
	if !t.free {
		t.at, t.skip = t.endAt(l, rows)
		t.free = true
	}
	if t.cursor < t.at || t.cursor == t.at && t.skip > 0 {
		t.at, t.skip = t.cursor, 0
		return
	}
	below := 0
	for i := t.cursor; i >= t.at && below <= rows; i-- {
		below += t.height(i, l)
	}
	if below -= t.skip; below > rows {
		if t.height(t.cursor, l) >= rows {
			t.at, t.skip = t.cursor, 0
		} else {
			t.scroll(below-rows, l, rows)
		}
	}
}

// chosen returns the item that the user has chosen.
func (t *transcript) chosen() *item {
	if t.cursor < 0 || t.cursor >= len(t.items) {
		return nil
	}
	return t.items[t.cursor]
}
