package offline

import (
	"math"
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// stopwords carry no meaning of their own in a request.
var stopwords = set(`a an the this that these those and or of in on at to for from with by as is are was were be been do does did
how what which where who whom whose when why it its they them their there here i you we me my your our can could would should will
support supports supported available exist exists kind kinds sort sorts please tell show give say says said about any all every each some into out up so if then than not no yes has have had used use using
mean means work works happen happens exactly also just get gets let repo repository project code codebase say`)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// tokens returns the stems of a text's words: identifiers are split at case
// changes and underscores, and Han text into pairs of characters.
func tokens(text string) []string {
	var out []string
	for _, w := range words(joinHyphens(text)) {
		out = append(out, stem(strings.ToLower(w)))
	}
	return out
}

var hyphened = lazily(`(?i)\b(built|set|sub|plug|log|sign|opt|time|hand|fall|roll|start|clean|look)-(in|up|out|off|back|agents?|process|package|command)`)

// joinHyphens writes as one word what is spelled both ways ("built-in").
func joinHyphens(text string) string { return hyphened().ReplaceAllString(text, "$1$2") }

// words splits a text into words, and identifiers into theirs.
func words(text string) []string {
	var out []string
	var cur []rune
	flush := func() {
		if len(cur) > 0 {
			out = append(out, string(cur))
			cur = nil
		}
	}
	runes := []rune(text)
	for i, r := range runes {
		switch {
		case unicode.Is(unicode.Han, r):
			flush()
			if i+1 < len(runes) && unicode.Is(unicode.Han, runes[i+1]) {
				out = append(out, string(runes[i:i+2]))
			}
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			if len(cur) > 0 && unicode.IsUpper(r) {
				prev := cur[len(cur)-1]
				next := i+1 < len(runes) && unicode.IsLower(runes[i+1])
				if !unicode.IsUpper(prev) || next {
					flush()
				}
			}
			cur = append(cur, r)
		default:
			flush()
		}
	}
	flush()
	return out
}

// content returns the stems of a text without stop words, each once.
func content(text string) []string {
	var out []string
	seen := map[string]bool{}
	for _, w := range words(joinHyphens(text)) {
		low := strings.ToLower(w)
		s := stem(low)
		if stopwords[low] || seen[s] || len(low) < 2 {
			continue
		}
		seen[s] = true
		out = append(out, s)
	}
	return out
}

// stem takes common English endings off, so that "defined", "defines" and
// "definition" come close enough to meet.
func stem(w string) string {
	for {
		s := shorten(w)
		if s == w {
			return w
		}
		w = s
	}
}

// shorten takes one ending off.
func shorten(w string) string {
	for _, e := range []struct{ end, put string }{
		{"ications", "icat"}, {"ication", "icat"}, {"ations", "at"}, {"ation", "at"}, {"ities", "ity"}, {"ies", "y"},
		{"ments", "ment"}, {"ing", ""}, {"ers", ""}, {"er", ""}, {"ors", "or"}, {"ed", ""}, {"es", ""}, {"s", ""},
	} {
		if base, ok := strings.CutSuffix(w, e.end); ok && len(base)+len(e.put) >= 3 && !strings.HasSuffix(base, "s") && !strings.HasSuffix(base, "u") {
			w = base + e.put
			break
		}
	}
	if len(w) > 4 {
		w = strings.TrimSuffix(w, "e")
	}
	if n := len(w); n > 3 && w[n-1] == w[n-2] && w[n-1] != 'l' && w[n-1] != 's' {
		w = w[:n-1]
	}
	return w
}

// rank scores documents for a query by BM25. The scores come in the documents'
// order; a document that shares no word with the query has 0.
func rank(query []string, docs [][]string) []float64 {
	const k1, b = 1.2, 0.6
	in := map[string]int{} // in how many documents a word occurs
	total := 0
	for _, d := range docs {
		seen := map[string]bool{}
		for _, w := range d {
			if !seen[w] {
				seen[w] = true
				in[w]++
			}
		}
		total += len(d)
	}
	if total == 0 {
		return make([]float64, len(docs))
	}
	average := float64(total) / float64(len(docs))
	scores := make([]float64, len(docs))
	for i, d := range docs {
		count := map[string]int{}
		for _, w := range d {
			count[w]++
		}
		for _, q := range query {
			f := float64(count[q])
			if f == 0 {
				continue
			}
			idf := math.Log(1 + (float64(len(docs)-in[q])+0.5)/(float64(in[q])+0.5))
			scores[i] += idf * f * (k1 + 1) / (f + k1*(1-b+b*float64(len(d))/average))
		}
	}
	return scores
}

// lazily returns a regular expression that is compiled when it is first asked
// for: the package is part of every command, and most never need its rules.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// clip shortens a line to n runes.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
