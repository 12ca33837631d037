package tui

import "strings"

// maxTail bounds how much of a growing text is drawn anew with each piece that
// joins it, in bytes.
const maxTail = 4 << 10

// A stream draws a Markdown text while it grows. What can't change any more is
// drawn once: the blocks before the last blank line at which a new block begins.
// When the text is whole it is to be drawn with markdown, which sees all of it.
type stream struct {
	text    strings.Builder
	scanned int    // up to here lines are known
	from    int    // where the tail begins
	bound   int    // the last place where the tail may be parted
	fence   string // the line that opened the code block that bound is in, "" outside
	open    string // the same for scanned
	reopen  string // the same for from
	blank   bool   // the last line was

	frozen []string
	width  int
	th     *theme
}

// add joins a piece to the text. It must be foreign already.
func (s *stream) add(piece string) { s.text.WriteString(piece) }

// scan looks for places where the text may be parted.
func (s *stream) scan() {
	text := s.text.String()
	for {
		end := strings.IndexByte(text[s.scanned:], '\n')
		if end < 0 {
			return
		}
		line := text[s.scanned : s.scanned+end]
		if s.open == "" && s.blank && startsBlock(line) {
			s.bound, s.fence = s.scanned, ""
		}
		trimmed := strings.TrimLeft(line, " ")
		mark := fenceOf(trimmed)
		switch {
		case mark == "":
		case s.open == "":
			s.open = line
		case strings.HasPrefix(mark, fenceOf(strings.TrimLeft(s.open, " "))) && strings.TrimSpace(trimmed[len(mark):]) == "":
			s.open = ""
		}
		s.blank = strings.TrimSpace(line) == ""
		s.scanned += end + 1
		if s.scanned-s.from > maxTail && s.bound <= s.from {
			s.bound, s.fence = s.scanned, s.open
		}
	}
}

// fenceOf returns the run of marks that opens or closes a block of code.
func fenceOf(line string) string {
	for _, c := range "`~" {
		if n := len(line) - len(strings.TrimLeft(line, string(c))); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

// startsBlock reports whether a line after a blank one can't belong to what was
// before: it is neither indented nor part of a list, a quote or a table.
func startsBlock(line string) bool {
	if line == "" {
		return false
	}
	switch c := line[0]; {
	case c == ' ', c == '\t', c == '>', c == '|', c == '-', c == '*', c == '+', c >= '0' && c <= '9':
		return false
	}
	return true
}

// lines returns the text as it is so far, each line after the indent and the first
// one after the sign, which is as wide. What was returned before is overwritten.
func (s *stream) lines(sign, indent string, width int, th *theme) []string {
	if s.width != width || s.th != th {
		*s = stream{text: s.text, width: width, th: th}
	}
	s.scan()
	text := s.text.String()
	draw := func(part, reopen string) {
		if strings.TrimSpace(part) == "" && reopen == "" {
			return
		}
		if reopen != "" {
			part = reopen + "\n" + part
		} else if len(s.frozen) > 0 {
			s.frozen = append(s.frozen, "")
		}
		for _, l := range markdown(part, width, th) {
			switch {
			case len(s.frozen) == 0:
				l = sign + l
			case l != "":
				l = indent + l
			}
			s.frozen = append(s.frozen, l)
		}
	}
	if s.bound > s.from {
		draw(text[s.from:s.bound], s.reopen)
		s.from, s.reopen = s.bound, s.fence
	}
	n := len(s.frozen)
	draw(text[s.from:], s.reopen)
	out := s.frozen
	s.frozen = s.frozen[:n]
	return out
}
