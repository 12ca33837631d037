package policy

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// A word is one word of a shell command, as far as it is known before it runs.
type word struct {
	text string // after unquoting, with gaps for what only a run can tell
	raw  string // as written
	opt  bool   // it may turn out as no word, or as several
}

// known reports whether the word is the same in every run.
func (w word) known() bool { return !w.opt && !gapped(w.text) }

// knownWord returns a word that stands for itself.
func knownWord(s string) word { return word{text: s, raw: s} }

// unknownWords stands for any number of words.
func unknownWords(raw string) word { return word{text: string(rune(gap)), raw: raw, opt: true} }

// joinText returns the words as one text with single blanks.
func joinText(words []word) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case w.opt && i > 0:
			b.WriteByte(optWord)
		case w.opt:
			b.WriteByte(gap)
		default:
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(w.text)
		}
	}
	return b.String()
}

// joinRaw returns the words as they are written.
func joinRaw(words []word) string {
	raws := make([]string, len(words))
	for i, w := range words {
		raws[i] = w.raw
	}
	return strings.Join(raws, " ")
}

// word reads a word of the script.
func (x *reader) word(w *syntax.Word) word {
	u := unquoter{reader: x}
	out := word{raw: x.source(w)}
	for i, part := range w.Parts {
		u.part(part, i == 0, len(w.Parts) == 1)
	}
	out.text = u.b.String()
	if u.braces() {
		return unknownWords(out.raw)
	}
	out.opt = u.gaps > 0 && !u.solid
	return out
}

// source returns the text of a node.
func (x *reader) source(n syntax.Node) string {
	from, to := n.Pos().Offset(), n.End().Offset()
	if from > to || to > uint(len(x.src)) {
		return ""
	}
	return strings.TrimSuffix(x.src[from:to], "\n")
}

// An unquoter puts together the text of one word.
type unquoter struct {
	*reader
	b     strings.Builder
	gaps  int
	solid bool // something in it keeps the word from vanishing

	open, list bool // unquoted "{", and after it "," or ".."
	closed     bool // and after that "}"
}

// braces reports whether the word may be a brace expansion.
func (u *unquoter) braces() bool { return u.closed }

func (u *unquoter) gap() {
	u.b.WriteByte(gap)
	u.gaps++
}

func (u *unquoter) part(p syntax.WordPart, first, only bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		u.literal(p.Value, first, only)
	case *syntax.SglQuoted:
		u.solid = true
		if !p.Dollar {
			u.write(p.Value)
			return
		}
		if strings.Contains(p.Value, `\'`) {
			u.doubt("a quote inside $'...' is read differently by other shells")
		}
		s, ok := ansiC(p.Value)
		if !ok {
			u.doubt("control characters in $'...'")
			u.gap()
			return
		}
		u.write(s)
	case *syntax.DblQuoted:
		if p.Dollar {
			// The text goes through the locale's translations.
			u.doubt(`$"..." is translated when it runs`)
		}
		list := false
		for _, q := range p.Parts {
			lit, ok := q.(*syntax.Lit)
			if !ok {
				u.gap()
				list = list || isList(q)
				continue
			}
			u.write(doubleQuoted(lit.Value))
			u.solid = true
		}
		// "$@" may be no word at all; every other quoted word stays one.
		if !list {
			u.solid = true
		}
	case *syntax.ArithmExp, *syntax.ProcSubst:
		u.solid = true
		u.gap()
	default: // parameters, substitutions, extended globs
		u.gap()
	}
}

// isList reports whether a quoted expansion can become no word or several.
func isList(p syntax.WordPart) bool {
	e, ok := p.(*syntax.ParamExp)
	if !ok {
		return false
	}
	if e.Excl || e.Param == nil || e.Param.Value == "@" || e.Index != nil || e.Names != 0 {
		return true
	}
	return e.Exp != nil || e.Slice != nil || e.Repl != nil
}

// write adds text that is known. Bytes that stand for gaps can't come from a
// script, which is checked, but from escapes in it.
func (u *unquoter) write(s string) {
	for i := range len(s) {
		if s[i] == gap || s[i] == optWord {
			u.gap()
			continue
		}
		u.b.WriteByte(s[i])
	}
}

// literal adds unquoted text, in which a backslash takes the next character as
// it is and globs, braces and a leading tilde become something else. only says
// that the word has nothing else.
func (u *unquoter) literal(s string, first, only bool) {
	if first && strings.HasPrefix(s, "~") {
		u.solid = true
		user, _, _ := strings.Cut(s[1:], "/")
		s = s[1+len(user):]
		u.gap()
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		c := s[i]
		switch {
		case c == '\\' && i+1 < len(s):
			_, m := utf8.DecodeRuneInString(s[i+1:])
			u.solid = true
			u.write(s[i+1 : i+1+m])
			n += m
		case c == '*' || c == '?' || c == '[' && !(only && strings.IndexByte(s[i:], ']') < 0):
			u.solid = true
			u.gap()
			if c == '[' {
				if end := strings.IndexByte(s[i:], ']'); end > 0 {
					n = end + 1
				}
			}
		default:
			if r >= utf8.RuneSelf && (unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || r == '\u2800' || r == '\u3164') {
				u.doubt("invisible characters outside quotes")
			}
			switch {
			case c == '{':
				u.open, u.list = true, false
			case c == ',' || c == '.' && strings.HasPrefix(s[i:], ".."):
				u.list = u.open
			case c == '}' && u.open && u.list:
				u.closed = true
			}
			u.solid = true
			u.b.WriteString(s[i : i+n])
		}
		i += n
	}
}

// doubleQuoted undoes the escapes that work inside double quotes.
func doubleQuoted(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch s[i+1] {
			case '$', '`', '"', '\\':
				i++
			case '\n':
				i++
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// ansiC undoes the escapes of $'...'. It reports false for text with control
// characters, which no command needs: a NUL would even cut the word off.
func ansiC(s string) (string, bool) {
	var b strings.Builder
	number := func(i, most, base int) (uint64, int) {
		n := 0
		for n < most && i+n < len(s) {
			if _, err := strconv.ParseUint(s[i+n:i+n+1], base, 8); err != nil {
				break
			}
			n++
		}
		v, _ := strconv.ParseUint(s[i:i+n], base, 64)
		return v, n
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case '\\', '\'', '"', '?':
			b.WriteByte(c)
		case 'a', 'b', 'e', 'E', 'f', 'r', 'v', 'c':
			return "", false
		case 'x', 'u', 'U':
			most := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			v, n := number(i+1, most, 16)
			switch {
			case n == 0:
				b.WriteByte('\\')
				b.WriteByte(c)
			case c == 'x':
				b.WriteByte(byte(v))
			default:
				b.WriteRune(rune(v))
			}
			i += n
		case '0', '1', '2', '3', '4', '5', '6', '7':
			v, n := number(i, 3, 8)
			b.WriteByte(byte(v))
			i += n - 1
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String(), plainText(b.String())
}
