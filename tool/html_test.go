package tool_test

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/synapse-agents/synapse/tool"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with a file, or writes it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// serve answers every request with a body.
func serve(t testing.TB, contentType, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestMarkdown(t *testing.T) {
	pages, err := filepath.Glob("testdata/html/*.html")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	for _, page := range pages {
		html, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		b := open(t, tool.Options{AllowPrivate: true}, nil)
		base := serve(t, "text/html", string(html))
		got := b.ok("fetch_url", args{"url": base + "/dir/page"})
		golden(t, strings.TrimSuffix(page, ".html")+".md", strings.ReplaceAll(got, base, "http://host")+"\n")
	}
}

// Pages that are built to take time or memory take neither.
func TestHostilePages(t *testing.T) {
	const n = 20_000
	for name, page := range map[string]string{
		"open inline":   strings.Repeat("<b>", n) + "x",
		"open lists":    strings.Repeat("<ul><li>x", n),
		"items":         strings.Repeat("<ul><li>x", 300) + strings.Repeat("<li>y", n),
		"open quotes":   strings.Repeat("<blockquote>x", n),
		"open tables":   strings.Repeat("<table><tr><td>x", n),
		"cells":         "<table><tr>" + strings.Repeat("<td>x", n),
		"wide and long": "<table><tr>" + strings.Repeat("<td>a", 5000) + strings.Repeat("<tr><td>a", n/2),
		"links":         strings.Repeat("<a href=x>y</a>", n),
		"open links":    strings.Repeat("<a href=x>", n) + "y",
		"headings":      strings.Repeat("<h1>x", n),
		"fences":        "<pre>" + strings.Repeat("`", n),
		"fences, apart": "<pre>" + strings.Repeat("```\n", n),
		"pre":           strings.Repeat("<pre><div>", n),
		"attributes":    "<a " + strings.Repeat("a=b ", n) + ">x",
		"hidden":        strings.Repeat("<div hidden>", n) + "x",
		"breaks":        strings.Repeat("<br>\n", n),
		"half a tag":    strings.Repeat("<", n),
		"comments":      strings.Repeat("<!--", n),
		"entities":      strings.Repeat("&amp", n),
		"long base":     "<base href='http://h/" + strings.Repeat("d/", 900) + "'>" + strings.Repeat("<a href=x>y</a>", n),
	} {
		base := serve(t, "text/html", page)
		b := open(t, tool.Options{AllowPrivate: true}, nil)
		start := time.Now()
		r := b.run("fetch_url", args{"url": base})
		// Generous: the machine may be busy. Quadratic work would take minutes.
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s: took %s", name, took)
		}
		if len(r.Text) > 60<<10 {
			t.Errorf("%s: shows %d bytes", name, len(r.Text))
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, file := range []string{"article", "layout"} {
		page, err := os.ReadFile("testdata/html/" + file + ".html")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(page))
	}
	f.Add("<table><caption>a<tr><th>b</table><pre>```<li><a href=x><h1>y<br>z</a>\x1b[31m\u00a0<ol start=-9223372036854775808><li>q")
	var page atomic.Value
	base := web(f, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<div hidden>s3cret</div>" + page.Load().(string)))
	})
	w, err := tool.Open(f.TempDir(), tool.Options{AllowPrivate: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { w.Close() })
	f.Fuzz(func(t *testing.T, s string) {
		page.Store(s)
		r := (&bench{t, "", w}).run("fetch_url", args{"url": base})
		switch {
		case r.IsError && !strings.Contains(r.Text, "a binary file"):
			t.Errorf("%q: %s", s, r.Text)
		case strings.Contains(r.Text, "s3cret") && !strings.Contains(s, "s3cret"):
			t.Errorf("%q shows what is hidden: %s", s, r.Text)
		case !utf8.ValidString(r.Text) || strings.ContainsFunc(r.Text, func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' || c >= 0x7f && c < 0xa0 }):
			t.Errorf("%q gives control characters: %q", s, r.Text)
		}
	})
}
