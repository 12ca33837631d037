package tool

import (
	"bytes"
	"strings"
)

// An ignoreRule is one line of a .gitignore file.
type ignoreRule struct {
	glob     gitGlob
	negate   bool // "!": takes back what an earlier rule ignores
	dirOnly  bool // a trailing "/"
	nameOnly bool // no other "/": compared with the name at any depth
	// Most rules are a plain name, or a star and a plain end.
	plain, suffix string
}

// An ignoreFile is what one .gitignore says; scope is the directory that holds
// it, "" for the root. Rules of a deeper file decide before those of its
// parents.
type ignoreFile struct {
	scope  string
	rules  []ignoreRule
	parent *ignoreFile
}

// maxIgnoreFile bounds a .gitignore file; what is larger is none.
const maxIgnoreFile = 1 << 20

// parseIgnore reads a .gitignore file, the way git does: a line that makes no
// sense matches nothing.
func parseIgnore(scope string, data []byte, parent *ignoreFile) *ignoreFile {
	f := &ignoreFile{scope: scope, parent: parent}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	for line := range strings.SplitSeq(string(data), "\n") {
		if rule, ok := parseIgnoreLine(strings.TrimSuffix(line, "\r")); ok {
			f.rules = append(f.rules, rule)
		}
	}
	if len(f.rules) == 0 {
		return parent
	}
	return f
}

func parseIgnoreLine(line string) (ignoreRule, bool) {
	line = trimIgnoreSpaces(line)
	if line == "" || line[0] == '#' {
		return ignoreRule{}, false
	}
	var r ignoreRule
	if line[0] == '!' {
		r.negate, line = true, line[1:]
	}
	if strings.HasSuffix(line, "/") {
		r.dirOnly, line = true, line[:len(line)-1]
	}
	r.nameOnly = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return ignoreRule{}, false
	}
	switch rest, star := strings.CutPrefix(line, "*"); {
	case !strings.ContainsAny(line, `*?[\`):
		r.plain = line
	case star && r.nameOnly && rest != "" && !strings.ContainsAny(rest, `*?[\`):
		r.suffix = rest
	default:
		r.glob = parseGitGlob(line)
	}
	return r, true
}

// trimIgnoreSpaces removes trailing blanks that no backslash protects.
func trimIgnoreSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		end = min(i+1, len(line))
	}
	return line[:end]
}

// ignored reports whether rel, a path from the root none of whose parents is
// ignored, is left out.
func (f *ignoreFile) ignored(rel string, dir bool) bool {
	name := rel[strings.LastIndexByte(rel, '/')+1:]
	for ; f != nil; f = f.parent {
		within := rel
		if f.scope != "" {
			within = rel[len(f.scope)+1:]
		}
		for i := len(f.rules) - 1; i >= 0; i-- {
			r := &f.rules[i]
			if r.dirOnly && !dir {
				continue
			}
			subject := within
			if r.nameOnly {
				subject = name
			}
			if r.match(subject) {
				return !r.negate
			}
		}
	}
	return false
}

func (r *ignoreRule) match(subject string) bool {
	switch {
	case r.plain != "":
		return subject == r.plain
	case r.suffix != "":
		return strings.HasSuffix(subject, r.suffix)
	default:
		return r.glob.match(subject)
	}
}

// A gitGlob is a pattern of git: "*" and "?" stop at a slash, "**" between
// slashes spans directories, "[a-z]" is a class, a backslash quotes. It works
// on bytes, as git does.
type gitGlob []globOp

type globOp struct {
	kind  byte // one of the letters below
	lit   byte
	class *[256]bool
}

const (
	opByte  = 'b' // exactly lit
	opAny   = '?' // any byte but a slash
	opClass = '[' // a byte of class
	opStar  = '*' // any bytes but slashes
	opDeep  = 'd' // any bytes
	opDirs  = '/' // nothing, or what the next op takes: the entry of "**/"
	opSlash = 's' // any bytes that end in a slash
	opNever = 'n' // matches nothing: the pattern is broken
)

func parseGitGlob(p string) gitGlob {
	var ops gitGlob
	// Git compares what stands before the first special character by itself,
	// and reads the pattern from there: in "a**/b" the stars count as leading.
	start := strings.IndexAny(p, `*?[\`)
	if start < 0 {
		start = len(p)
	}
	for i := 0; i < len(p); {
		switch c := p[i]; c {
		case '\\':
			if i+1 == len(p) {
				return gitGlob{{kind: opNever}}
			}
			ops = append(ops, globOp{kind: opByte, lit: p[i+1]})
			i += 2
		case '?':
			ops = append(ops, globOp{kind: opAny})
			i++
		case '[':
			class, next := parseClass(p, i)
			if class == nil {
				return append(ops, globOp{kind: opNever})
			}
			ops = append(ops, globOp{kind: opClass, class: class})
			i = next
		case '*':
			end := i
			for end < len(p) && p[end] == '*' {
				end++
			}
			leading := i == start || p[i-1] == '/'
			rest := p[end:]
			switch {
			case end-i < 2 || !leading:
				ops = append(ops, globOp{kind: opStar})
			case rest == "":
				ops = append(ops, globOp{kind: opDeep})
			case rest[0] == '/':
				ops = append(ops, globOp{kind: opDirs}, globOp{kind: opSlash})
				end++
			case strings.HasPrefix(rest, `\/`):
				ops = append(ops, globOp{kind: opDeep})
			default:
				ops = append(ops, globOp{kind: opStar})
			}
			i = end
		default:
			ops = append(ops, globOp{kind: opByte, lit: c})
			i++
		}
	}
	return ops
}

// parseClass reads the class whose "[" is at p[i]; nil when it has no end.
func parseClass(p string, i int) (class *[256]bool, next int) {
	class = new([256]bool)
	i++
	negate := i < len(p) && (p[i] == '!' || p[i] == '^')
	if negate {
		i++
	}
	prev := -1 // the last single byte, where a range may begin
	for first := true; ; first = false {
		if i >= len(p) {
			return nil, 0
		}
		c := p[i]
		if c == ']' && !first {
			i++
			break
		}
		switch {
		case c == '\\':
			if i+1 >= len(p) {
				return nil, 0
			}
			c = p[i+1]
			class[c] = true
			prev, i = int(c), i+2
		case c == '-' && prev >= 0 && i+1 < len(p) && p[i+1] != ']':
			high := p[i+1]
			i += 2
			if high == '\\' {
				if i >= len(p) {
					return nil, 0
				}
				high = p[i]
				i++
			}
			for b := prev; b <= int(high); b++ {
				class[b] = true
			}
			prev = -1
		case c == '[' && i+1 < len(p) && p[i+1] == ':':
			end := strings.IndexByte(p[i+2:], ']')
			if end < 0 {
				return nil, 0
			}
			name := p[i+2 : i+2+end]
			if !strings.HasSuffix(name, ":") {
				class['['] = true // not a named class after all
				prev, i = '[', i+1
				continue
			}
			in := namedClass(strings.TrimSuffix(name, ":"))
			if in == nil {
				return nil, 0
			}
			for b := range 256 {
				class[b] = class[b] || in(byte(b))
			}
			prev, i = -1, i+2+end+1
		default:
			class[c] = true
			prev, i = int(c), i+1
		}
	}
	for b := range class {
		class[b] = class[b] != negate
	}
	class['/'] = false
	return class, i
}

func namedClass(name string) func(byte) bool {
	between := func(lo, hi byte) func(byte) bool { return func(c byte) bool { return c >= lo && c <= hi } }
	upper, lower, digit := between('A', 'Z'), between('a', 'z'), between('0', '9')
	switch name {
	case "alnum":
		return func(c byte) bool { return upper(c) || lower(c) || digit(c) }
	case "alpha":
		return func(c byte) bool { return upper(c) || lower(c) }
	case "blank":
		return func(c byte) bool { return c == ' ' || c == '\t' }
	case "cntrl":
		return func(c byte) bool { return c < 0x20 || c == 0x7f }
	case "digit":
		return digit
	case "graph":
		return between(0x21, 0x7e)
	case "lower":
		return lower
	case "print":
		return between(0x20, 0x7e)
	case "punct":
		return func(c byte) bool { return c > 0x20 && c < 0x7f && !upper(c) && !lower(c) && !digit(c) }
	case "space":
		return func(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
	case "upper":
		return upper
	case "xdigit":
		return func(c byte) bool { return digit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }
	}
	return nil
}

// match reports whether the whole of s matches. It follows all alternatives at
// once, so that no pattern takes more than len(g)*len(s) steps.
func (g gitGlob) match(s string) bool {
	// now[i]: g[:i] matches what has been read.
	now := make([]bool, len(g)+1)
	next := make([]bool, len(g)+1)
	now[0] = true
	g.skip(now)
	for i := 0; i < len(s); i++ {
		c := s[i]
		clear(next)
		alive := false
		for j, op := range g {
			if !now[j] {
				continue
			}
			switch op.kind {
			case opByte:
				next[j+1] = next[j+1] || c == op.lit
			case opAny:
				next[j+1] = next[j+1] || c != '/'
			case opClass:
				next[j+1] = next[j+1] || op.class[c]
			case opStar:
				next[j] = next[j] || c != '/'
			case opDeep:
				next[j] = true
			case opSlash:
				next[j] = true
				next[j+1] = next[j+1] || c == '/'
			}
		}
		g.skip(next)
		for _, a := range next {
			alive = alive || a
		}
		if !alive {
			return false
		}
		now, next = next, now
	}
	return now[len(g)]
}

// skip steps over what may match nothing.
func (g gitGlob) skip(state []bool) {
	for j, op := range g {
		if !state[j] {
			continue
		}
		switch op.kind {
		case opStar, opDeep:
			state[j+1] = true
		case opDirs:
			state[j+1], state[j+2] = true, true
		}
	}
}
