package tui

import (
	"strings"
	"unicode"
	"unicode/utf8"

	gutil "github.com/yuin/goldmark/util"
)

// resolve takes backslash escapes and entities out of Markdown text. An entity
// may stand for a control character, so that the result is cleaned again.
func resolve(raw []byte) []byte {
	out := gutil.ResolveEntityNames(gutil.ResolveNumericReferences(gutil.UnescapePunctuations(raw)))
	return []byte(foreign(string(out)))
}

// A language is what colouring needs to know: how comments begin, which quotes
// there are, and the words that are its own.
type language struct {
	line       []string // comments to the end of the line
	open, shut string   // comments over several lines
	quotes     string
	words      string // blank before and after each
}

const (
	cWords    = " auto break case char const continue default do double else enum extern float for goto if inline int long register return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false nullptr class namespace template public private protected virtual override new delete using this throw try catch "
	goWords   = " break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false iota any error string int int64 bool byte rune "
	jsWords   = " async await break case catch class const continue debugger default delete do else enum export extends finally for from function get if implements import in instanceof interface let new null of private public return set static super switch this throw true try type typeof undefined var void while with yield false as readonly "
	pyWords   = " and as assert async await break class continue def del elif else except finally for from global if import in is lambda None nonlocal not or pass raise return True False try while with yield match case self "
	rustWords = " as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while String Vec Option Result Some None Ok Err "
	javaWords = " abstract assert boolean break byte case catch char class const continue default do double else enum extends final finally float for if implements import instanceof int interface long native new null package private protected public return short static super switch synchronized this throw throws transient true false try void volatile while var record fun val when object override string using namespace "
	shWords   = " if then else elif fi for while until do done case esac in function return local export set unset echo cd exit source alias sudo "
	sqlWords  = " select from where and or not insert into values update set delete create table index view drop alter add join left right inner outer on group by order having limit offset as distinct union all null is in like between primary key references default case when then else end "
	rubyWords = " alias and begin break case class def do else elsif end ensure false for if in module next nil not or redo rescue retry return self super then true undef unless until when while yield require attr_accessor puts "
	dataWords = " true false null yes no on off "
)

// languageOf knows a language by the word behind the fence.
func languageOf(name string) (language, bool) {
	name, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(name)), " ")
	c := language{line: []string{"//"}, open: "/*", shut: "*/", quotes: `"'`}
	switch name {
	case "go", "golang":
		c.words, c.quotes = goWords, "\"'`"
	case "js", "javascript", "jsx", "ts", "typescript", "tsx", "mjs":
		c.words, c.quotes = jsWords, "\"'`"
	case "c", "h", "cpp", "c++", "cc", "hpp", "objc", "proto", "protobuf":
		c.words = cWords
	case "java", "kotlin", "kt", "scala", "cs", "csharp", "swift", "dart", "php":
		c.words = javaWords
	case "rust", "rs":
		c.words, c.quotes = rustWords, `"`
	case "py", "python", "python3":
		return language{line: []string{"#"}, quotes: `"'`, words: pyWords}, true
	case "rb", "ruby":
		return language{line: []string{"#"}, quotes: `"'`, words: rubyWords}, true
	case "sh", "bash", "zsh", "shell", "console", "fish", "dockerfile", "makefile", "make":
		return language{line: []string{"#"}, quotes: `"'`, words: shWords}, true
	case "sql", "postgres", "sqlite", "mysql":
		return language{line: []string{"--"}, open: "/*", shut: "*/", quotes: `'"`, words: sqlWords + strings.ToUpper(sqlWords)}, true
	case "json", "jsonc", "json5":
		c.words, c.quotes = dataWords, `"`
	case "yaml", "yml", "toml", "ini", "conf", "env":
		return language{line: []string{"#"}, quotes: `"'`, words: dataWords}, true
	case "lua", "haskell", "hs", "elm":
		return language{line: []string{"--"}, quotes: `"'`, words: " function local end if then else elseif return for while do nil true false let in where data type module import case of "}, true
	case "css", "scss":
		return language{open: "/*", shut: "*/", quotes: `"'`}, true
	default:
		return language{}, false
	}
	return c, true
}

// highlight colours code, line by line. It looks at comments, strings, numbers
// and a language's own words, which is what the eye goes by; it needs no tables
// that a program would have to build before anybody looks at code.
func highlight(code, name string, th *theme) [][]span {
	lines := strings.Split(code, "\n")
	out := make([][]span, len(lines))
	if name == "diff" || name == "patch" {
		for i, l := range lines {
			out[i] = []span{{l, diffStyle(l, th)}}
		}
		return out
	}
	lang, ok := languageOf(name)
	if !ok {
		for i, l := range lines {
			out[i] = []span{{l, th.code}}
		}
		return out
	}
	shut := "" // what ends the comment or string that an earlier line began
	st := style("")
	for i, l := range lines {
		out[i], shut, st = lang.colour(l, shut, st, th)
	}
	return out
}

// colour colours one line. It begins inside of a comment or string that ends with
// shut, unless that is empty, and says how the next line begins.
func (l *language) colour(line, shut string, inside style, th *theme) ([]span, string, style) {
	var out []span
	plain := 0 // where what has no colour began
	flush := func(to int) {
		if to > plain {
			out = append(out, span{line[plain:to], ""})
		}
	}
	i := 0
	take := func(to int, st style) {
		flush(i)
		out = append(out, span{line[i:to], st})
		i, plain = to, to
	}
	if shut != "" {
		end := strings.Index(line, shut)
		if end < 0 {
			return []span{{line, inside}}, shut, inside
		}
		take(end+len(shut), inside)
	}
	for i < len(line) {
		rest := line[i:]
		if l.comment(rest) && (i == 0 || line[i-1] != ':' && line[i-1] != '$') {
			take(len(line), th.comment)
			return out, "", ""
		}
		switch c := rest[0]; {
		case l.open != "" && strings.HasPrefix(rest, l.open):
			end := strings.Index(rest[len(l.open):], l.shut)
			if end < 0 {
				take(len(line), th.comment)
				return out, l.shut, th.comment
			}
			take(i+len(l.open)+end+len(l.shut), th.comment)
		case strings.IndexByte(l.quotes, c) >= 0:
			triple := strings.Repeat(rest[:1], 3)
			if c != '`' && strings.HasPrefix(rest, triple) && strings.HasPrefix(l.words, " and as") {
				end := strings.Index(rest[3:], triple)
				if end < 0 {
					take(len(line), th.str)
					return out, triple, th.str
				}
				take(i+3+end+3, th.str)
				continue
			}
			end := quoteEnd(rest)
			if end < 0 {
				take(len(line), th.str)
				if c == '`' {
					return out, "`", th.str
				}
				return out, "", ""
			}
			take(i+end, th.str)
		case c >= '0' && c <= '9':
			end := 1
			for end < len(rest) && (rest[end] == '.' || rest[end] < utf8.RuneSelf && isWord(rune(rest[end])) || rest[end] >= '0' && rest[end] <= '9') {
				end++
			}
			take(i+end, th.number)
		default:
			r, n := utf8.DecodeRuneInString(rest)
			if !isWord(r) {
				i += n
				continue
			}
			end := n
			for end < len(rest) {
				r, n := utf8.DecodeRuneInString(rest[end:])
				if !isWord(r) && !unicode.IsDigit(r) {
					break
				}
				end += n
			}
			if word := rest[:end]; strings.Contains(l.words, " "+word+" ") {
				take(i+end, th.keyword)
			} else {
				i += end
			}
		}
	}
	flush(len(line))
	return out, "", ""
}

func (l *language) comment(rest string) bool {
	for _, c := range l.line {
		if strings.HasPrefix(rest, c) {
			return true
		}
	}
	return false
}

// quoteEnd returns where the string that the text begins with ends, -1 when it
// does not.
func quoteEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && s[0] != '`':
			i++
		case s[i] == s[0]:
			return i + 1
		}
	}
	return -1
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) }

// diffStyle is how a line of a diff looks.
func diffStyle(line string, th *theme) style {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "):
		return th.strong
	case strings.HasPrefix(line, "@@"):
		return th.hunk
	case strings.HasPrefix(line, "+"):
		return th.added
	case strings.HasPrefix(line, "-"):
		return th.removed
	}
	return ""
}
