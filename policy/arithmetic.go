package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bash evaluates a variable in an arithmetic expression as an expression of its
// own, and a subscript in that may hold a command substitution. So arithmetic
// is only harmless over numbers, and over variables that hold nothing else.

// numbers tells which variables of a script hold numbers only.
type numbers struct {
	numeric map[string]bool // false: something else is assigned somewhere
	unknown bool            // a name that is not known is assigned
}

// collect finds out which variables hold numbers only.
func (v *numbers) collect(x *reader, file *syntax.File) {
	v.numeric = map[string]bool{}
	set := func(name string, number bool) {
		old, seen := v.numeric[name]
		v.numeric[name] = number && (old || !seen)
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil && !n.Naked {
				set(n.Name.Value, n.Value != nil && !n.Append && numberWord(n.Value))
			}
		case *syntax.WordIter:
			ok := len(n.Items) > 0
			for _, w := range n.Items {
				ok = ok && numberWord(w)
			}
			set(n.Name.Value, ok)
		case *syntax.BinaryArithm:
			if w, ok := n.X.(*syntax.Word); ok && assigns(n.Op) && w.Lit() != "" {
				set(w.Lit(), true)
			}
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				switch n.Args[0].Lit() {
				case "read", "mapfile", "readarray", "printf", "getopts", "wait", "eval", "local", "declare", "export", "typeset", "unset":
					for _, w := range n.Args[1:] {
						if s := x.word(w); s.known() {
							name, _, _ := strings.Cut(s.text, "=")
							set(name, false)
						} else {
							v.unknown = true
						}
					}
				}
			}
		}
		return true
	})
}

func assigns(op syntax.BinAritOperator) bool {
	switch op {
	case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn,
		syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
		return true
	}
	return false
}

// numberWord reports whether a word is an integer, or arithmetic.
func numberWord(w *syntax.Word) bool {
	if len(w.Parts) == 1 {
		if _, ok := w.Parts[0].(*syntax.ArithmExp); ok {
			return true
		}
	}
	return isInteger(w.Lit())
}

func isInteger(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// holds reports whether a variable holds a number whenever it is used.
func (v *numbers) holds(name string) bool {
	switch name {
	case "#", "?", "$", "!", "RANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID", "COLUMNS", "LINES":
		return true
	}
	return v.numeric[name] && !v.unknown
}

// arithmetic looks at an expression for values that it would evaluate.
func (x *reader) arithmetic(e syntax.ArithmExpr) {
	switch e := e.(type) {
	case nil:
	case *syntax.BinaryArithm:
		x.arithmetic(e.X)
		x.arithmetic(e.Y)
	case *syntax.UnaryArithm:
		x.arithmetic(e.X)
	case *syntax.ParenArithm:
		x.arithmetic(e.X)
	case *syntax.Word:
		if e != nil && !x.number(e) {
			x.doubt("arithmetic evaluates what a variable holds")
		}
	default:
		x.doubt("arithmetic evaluates what a variable holds")
	}
}

// number reports whether an operand can be nothing but a number.
func (x *reader) number(w *syntax.Word) bool {
	if s := w.Lit(); s != "" {
		return s == "@" || s == "*" || s[0] >= '0' && s[0] <= '9' || x.vars.holds(s)
	}
	for _, p := range w.Parts {
		if q, ok := p.(*syntax.DblQuoted); ok && len(q.Parts) == 1 {
			p = q.Parts[0]
		}
		switch p := p.(type) {
		case *syntax.Lit:
			if !isInteger(p.Value) {
				return false
			}
		case *syntax.ArithmExp:
		case *syntax.ParamExp:
			plain := p.Param != nil && p.Exp == nil && p.Repl == nil && p.Slice == nil && !p.Excl && p.Index == nil
			if !p.Length && !(plain && x.vars.holds(p.Param.Value)) {
				return false
			}
		default:
			return false
		}
	}
	return len(w.Parts) > 0
}

// testArithmetic looks at [[ a -eq b ]], which is arithmetic too.
func (x *reader) testArithmetic(t *syntax.BinaryTest) {
	switch t.Op {
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
		for _, side := range []syntax.TestExpr{t.X, t.Y} {
			if w, ok := side.(*syntax.Word); !ok || !x.number(w) {
				x.doubt("a numeric test evaluates what a variable holds")
			}
		}
	}
}
