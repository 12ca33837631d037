package settings

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An Error is a setting that can't be used: a bad value, or a file that is no
// JSON. Programs end with exit code 78 on it. When several values are bad,
// [Load] joins their errors.
type Error struct {
	Path   string // the file, empty for an environment variable or a flag
	Line   int    // from 1, 0 when unknown
	Column int    // in characters, from 1, 0 when unknown
	Var    string // the environment variable, or the flag with its dashes
	Key    string // the settings key, empty when the whole file is damaged
	Found  string // what it held, in quotes or in words
	Takes  string // what is allowed there
	Hint   string // the way out, where there is one
	Err    error  // the cause, where it is not the value itself
}

// Error returns one line: where, which key, what was found, what is allowed.
func (e *Error) Error() string {
	var b strings.Builder
	switch {
	case e.Path != "":
		b.WriteString(e.Path)
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d", e.Line)
			if e.Column > 0 {
				fmt.Fprintf(&b, ":%d", e.Column)
			}
		}
		b.WriteString(": ")
		if e.Var != "" {
			b.WriteString(e.Var + ": ")
		}
	case strings.HasPrefix(e.Var, "-"):
		b.WriteString("flag " + e.Var + ": ")
	case e.Var != "":
		b.WriteString("environment variable " + e.Var + ": ")
	}
	if e.Key != "" && e.Var == "" && e.Err == nil {
		b.WriteString(e.Key + ": ")
	}
	switch {
	case e.Err != nil:
		b.WriteString(e.Err.Error())
	case e.Found != "":
		b.WriteString("found " + e.Found)
	}
	if e.Takes != "" {
		b.WriteString(", want " + e.Takes)
	}
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// The codes of warnings.
const (
	WarnUnknownKey  = "unknown-key"  // a settings key or a variable that means nothing
	WarnUntrusted   = "untrusted"    // the workspace is not trusted, so some of its values are not used
	WarnNoEffect    = "no-effect"    // a value that can't lift what another layer restricts
	WarnDotenv      = "dotenv"       // a line of .env that can't be read, or a variable set twice
	WarnSecretValue = "secret-value" // a key written into a settings file, where it is not read
)

// A Warning is something the user should know; loading goes on.
type Warning struct {
	Code    string `json:"code"`
	Path    string `json:"path,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Var     string `json:"var,omitempty"`
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// String returns the warning as one line.
func (w Warning) String() string {
	var b strings.Builder
	if w.Path != "" {
		b.WriteString(w.Path)
		if w.Line > 0 {
			fmt.Fprintf(&b, ":%d", w.Line)
			if w.Column > 0 {
				fmt.Fprintf(&b, ":%d", w.Column)
			}
		}
		b.WriteString(": ")
	}
	switch {
	case w.Var == "":
	case w.Path != "":
		b.WriteString(w.Var + ": ")
	case strings.HasPrefix(w.Var, "-"):
		b.WriteString("flag " + w.Var + ": ")
	default:
		b.WriteString("environment variable " + w.Var + ": ")
	}
	b.WriteString(w.Message)
	if w.Hint != "" {
		b.WriteString(" (" + w.Hint + ")")
	}
	return b.String()
}

// quote shows a value in a message: quoted, without control characters, and
// no longer than one line bears.
func quote(s string) string {
	const most = 60
	more := ""
	if utf8.RuneCountInString(s) > most {
		s, more = string([]rune(s)[:most]), "…"
	}
	if strings.Contains(s, `"`) && strconv.CanBackquote(s) {
		return "`" + s + "`" + more
	}
	return strconv.Quote(s) + more
}
