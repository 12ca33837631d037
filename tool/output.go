package tool

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	outputHead = 10 << 10 // kept of a long output's start
	outputTail = 20 << 10 // and of its end, where errors stand
)

// An output takes what a command prints, cleans it, passes it on and keeps its
// start and its end.
type output struct {
	emit  func(string) // may be nil
	clean cleaner

	head  []byte
	tail  []byte
	total int64 // bytes after cleaning
	lost  int64 // of them overwritten by a carriage return
}

func (o *output) write(b []byte) { o.take(o.clean.feed(b)) }

// close takes what waited for more.
func (o *output) close() { o.take(o.clean.flush()) }

func (o *output) take(b []byte) {
	if len(b) == 0 {
		return
	}
	if o.emit != nil {
		o.emit(strings.ReplaceAll(string(b), "\r", "\n"))
	}
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\r')
		if i < 0 {
			o.keep(b)
			return
		}
		o.keep(b[:i])
		o.overwrite()
		b = b[i+1:]
	}
}

func (o *output) keep(b []byte) {
	o.total += int64(len(b))
	if len(o.tail) == 0 {
		n := min(outputHead-len(o.head), len(b))
		o.head = append(o.head, b[:n]...)
		b = b[n:]
	}
	o.tail = append(o.tail, b...)
	if len(o.tail) > 4*outputTail {
		n := copy(o.tail, o.tail[len(o.tail)-2*outputTail:])
		o.tail = o.tail[:n]
	}
}

// overwrite forgets the unfinished line: a carriage return was printed to
// write another over it, as progress bars do.
func (o *output) overwrite() {
	kept := &o.tail
	if len(o.tail) == 0 {
		kept = &o.head
	}
	start := bytes.LastIndexByte(*kept, '\n') + 1
	o.lost += int64(len(*kept) - start)
	*kept = (*kept)[:start]
}

// text returns what is kept, and how many bytes are not in it.
func (o *output) text() (string, int64) {
	tail := o.tail
	if len(tail) > outputTail {
		tail = tail[len(tail)-outputTail:]
		// From the next line on, or at least from a whole character.
		if i := bytes.IndexByte(tail, '\n'); i >= 0 && i < outputTail/4 {
			tail = tail[i+1:]
		} else {
			for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
				tail = tail[1:]
			}
		}
	}
	left := o.total - o.lost - int64(len(o.head)) - int64(len(tail))
	if left <= 0 {
		return string(o.head) + string(tail), 0
	}
	head := o.head
	if i := bytes.LastIndexByte(head, '\n'); i > outputHead*3/4 {
		head = head[:i+1]
	} else {
		for len(head) > 0 { // a character cut in two
			if r, n := utf8.DecodeLastRune(head); r != utf8.RuneError || n > 1 {
				break
			}
			head = head[:len(head)-1]
		}
	}
	left += int64(len(o.head) - len(head))
	return fmt.Sprintf("%s\n[%s left out here]\n%s", strings.TrimSuffix(string(head), "\n"), bytesText(left), tail), left
}

// A cleaner removes what would move a terminal's cursor or change its state:
// escape sequences, control characters, broken UTF-8. It keeps tabs and line
// ends, turns CRLF into LF and leaves other carriage returns to its reader. A
// sequence may come in pieces.
type cleaner struct {
	state   cleanerState
	pending []byte // the start of a character
	cr      bool   // a carriage return waits for what follows
}

type cleanerState byte

const (
	inText     cleanerState = iota
	inEscape                // after ESC
	inCSI                   // after ESC [
	inString                // after ESC ] P X ^ or _, up to BEL or ESC \
	inStringST              // after ESC in such a string
	inCharset               // after ESC ( and the like: one byte more
)

// feed returns what is clean of b and of what waited before.
func (c *cleaner) feed(b []byte) []byte {
	if len(c.pending) > 0 {
		b = append(c.pending, b...)
		c.pending = nil
	}
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		r, n := rune(b[0]), 1
		if r >= utf8.RuneSelf {
			if !utf8.FullRune(b) {
				c.pending = bytes.Clone(b)
				break
			}
			r, n = utf8.DecodeRune(b)
		}
		out = c.step(out, r)
		b = b[n:]
	}
	return out
}

// flush returns what waits at the end of the output.
func (c *cleaner) flush() []byte {
	var out []byte
	if len(c.pending) > 0 && c.state == inText {
		out = utf8.AppendRune(out, utf8.RuneError)
	}
	c.pending = nil
	return out
}

func (c *cleaner) step(out []byte, r rune) []byte {
	switch c.state {
	case inEscape:
		switch {
		case r == '[':
			c.state = inCSI
		case r == ']' || r == 'P' || r == 'X' || r == '^' || r == '_':
			c.state = inString
		case r >= 0x20 && r <= 0x2f:
			c.state = inCharset
		case r == 0x1b: // begins anew
		default:
			c.state = inText
		}
		return out
	case inCSI:
		switch {
		case r >= 0x40 && r <= 0x7e:
			c.state = inText
		case r == 0x1b:
			c.state = inEscape
		case r == '\n': // broken off: the line end is worth more
			c.state = inText
			return c.text(out, r)
		}
		return out
	case inString:
		switch r {
		case 0x07, 0x9c:
			c.state = inText
		case 0x1b:
			c.state = inStringST
		case '\n':
			c.state = inText
			return c.text(out, r)
		}
		return out
	case inStringST:
		if r == '\\' {
			c.state = inText
			return out
		}
		c.state = inEscape
		return c.step(out, r)
	case inCharset:
		if r < 0x20 || r > 0x2f {
			c.state = inText
		}
		return out
	}
	return c.text(out, r)
}

func (c *cleaner) text(out []byte, r rune) []byte {
	if c.cr {
		if r == '\r' {
			return out
		}
		c.cr = false
		if r != '\n' {
			out = append(out, '\r')
		}
	}
	switch {
	case r == 0x1b:
		c.state = inEscape
	case r == 0x9b:
		c.state = inCSI
	case r == 0x90 || r == 0x98 || r >= 0x9d && r <= 0x9f:
		c.state = inString
	case r == '\r':
		c.cr = true
	case r == '\t' || r == '\n':
		out = append(out, byte(r))
	case r < 0x20 || r >= 0x7f && r < 0xa0:
	default:
		out = utf8.AppendRune(out, r)
	}
	return out
}
