package tool_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/synapse-agents/synapse/tool"
	"golang.org/x/text/encoding/japanese"
)

// web is a server whose handler gets requests for any path.
func web(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func packed(s string) []byte {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	_, _ = z.Write([]byte(s))
	_ = z.Close()
	return buf.Bytes()
}

func TestFetchURL(t *testing.T) {
	sjis, err := japanese.ShiftJIS.NewEncoder().String("日本語")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, kind, body string
		want             string // "!" in front: an error
	}{
		{"text", "text/plain", "a\r\nb\n", "a\nb"},
		{"JSON as it is", "application/json; charset=utf-8", `{"a": "<b>"}`, `{"a": "<b>"}`},
		{"JSON of a kind", "application/vnd.api+json", `{}`, `{}`},
		{"Markdown", "text/markdown", "# A\n<b>", "# A\n<b>"},
		{"XML", "application/atom+xml", "<feed/>", "<feed/>"},
		{"HTML", "text/html", "<title>T</title><p>a<p>b", "[title: T]\na\n\nb"},
		{"XHTML", "application/xhtml+xml", "<p>a</p>", "a"},
		{"no type", "", "<!DOCTYPE html><p>a", "a"},
		{"no type, text", "", "just words", "just words"},
		{"bytes that are text", "application/octet-stream", "just words", "just words"},
		{"empty", "text/plain", "", "[no text in it]"},
		{"charset of the server", "text/html; charset=shift_jis", sjis, "日本語"},
		{"charset of the page", "text/html", `<meta charset="Shift_JIS">` + sjis, "日本語"},
		{"charset of text", "text/plain; charset=iso-8859-1", "caf\xe9", "café"},
		{"no charset, 8 bits", "text/plain", "caf\xe9 \x80", "café €"},
		{"HTML without a charset", "text/html", "<p>caf\xe9", "café"},
		{"HTML in UTF-8 with a wrong mark", "text/html", `<meta charset="iso-8859-1"><p>é`, "é"},
		{"UTF-16", "text/plain; charset=utf-16", utf16Text("héllo", false, true), "héllo"},
		{"UTF-8 BOM", "text/plain", "\xef\xbb\xbfx", "x"},
		{"unknown charset", "text/plain; charset=klingon", "x", "x"},
		{"broken type", "text/html;;charset", "<p>a", "a"},
		{"control characters", "text/plain", "a\x1b[31mred\x1b[0m\x07 \u0090x\u009c\nb\x00"[:20] + "\nb", "ared \nb"},
		{"image", "image/png", "\x89PNG\r\n\x1a\n0000", "!the reply is image/png, 12 bytes; only text is fetched"},
		{"PDF", "application/pdf", "%PDF-", "!the reply is application/pdf, 5 bytes; only text is fetched"},
		{"bytes", "application/octet-stream", "\x00\x01\x02", "!the reply is application/octet-stream, 3 bytes; only text is fetched"},
		{"said to be text", "text/plain", "a\x00\x00\x00b", "!the reply is said to be text/plain: a binary file"},
	} {
		b := open(t, tool.Options{AllowPrivate: true}, nil)
		url := serve(t, test.kind, test.body)
		r := b.run("fetch_url", args{"url": url})
		want, wantError := strings.CutPrefix(test.want, "!")
		if wantError {
			want = "fetch_url: " + url + ": " + want
		}
		if r.IsError != wantError || r.Text != want {
			t.Errorf("%s: error %v %q, want %q", test.name, r.IsError, r.Text, want)
		}
	}
}

func TestFetchPages(t *testing.T) {
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, "line %d é\n", i)
	}
	b := open(t, tool.Options{AllowPrivate: true}, nil)
	url := serve(t, "text/plain; charset=utf-8", text.String())
	var all strings.Builder
	offset := 0
	for calls := 1; ; calls++ {
		r := b.run("fetch_url", args{"url": url, "offset": offset})
		if r.IsError || len(r.Text) > 51<<10 {
			t.Fatalf("call %d: error %v, %d bytes: %s", calls, r.IsError, len(r.Text), r.Text[:min(len(r.Text), 200)])
		}
		var d struct{ First, Last, Bytes int }
		if err := json.Unmarshal(r.Details, &d); err != nil {
			t.Fatal(err)
		}
		body, note, _ := strings.Cut(r.Text, "\n[bytes ")
		all.WriteString(body + "\n")
		if d.First != offset || d.Bytes != text.Len() {
			t.Fatalf("call %d: details %+v", calls, d)
		}
		if d.Last == text.Len() {
			if want := fmt.Sprintf("%d-%d, the end]", offset, d.Last); note != want {
				t.Errorf("last note %q, want %q", note, want)
			}
			break
		}
		if want := fmt.Sprintf("%d-%d of %d; go on with offset %d]", offset, d.Last, text.Len(), d.Last); note != want {
			t.Fatalf("call %d: note %q, want %q", calls, note, want)
		}
		offset = d.Last
	}
	if all.String() != text.String() {
		t.Error("the pages don't join to the text")
	}
	b.fails("fetch_url", args{"url": url, "offset": 10_000_000}, fmt.Sprintf("offset 10000000 is past the end: the text has %d bytes", text.Len()))
	if got := b.ok("fetch_url", args{"url": url, "offset": 8}); !strings.HasPrefix(got, "\nline 1 é\n") {
		t.Errorf("an offset within a character: %q", got[:20])
	}
}

func TestFetchRequest(t *testing.T) {
	var got http.Header
	var method, target string
	base := web(t, func(w http.ResponseWriter, r *http.Request) {
		got, method, target = r.Header, r.Method, r.URL.String()
		http.SetCookie(w, &http.Cookie{Name: "c", Value: "1", Path: "/"})
		if r.URL.Path == "/hop" {
			http.Redirect(w, r, "/end", http.StatusFound)
		}
	})
	b := open(t, tool.Options{AllowPrivate: true}, nil)
	b.ok("fetch_url", args{"url": base + "/a%2Fb?q=%20#frag"})
	if method != "GET" || target != "/a%2Fb?q=%20" {
		t.Errorf("%s %s", method, target)
	}
	b.ok("fetch_url", args{"url": base + "/hop"})
	for _, name := range []string{"Cookie", "Referer", "Authorization"} {
		if v := got.Get(name); v != "" {
			t.Errorf("%s: %s was sent", name, v)
		}
	}
	if ua := got.Get("User-Agent"); ua != "synapse" {
		t.Errorf("User-Agent %q", ua)
	}
}

func TestFetchRedirects(t *testing.T) {
	base := web(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		switch n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/")); {
		case err == nil && n > 0:
			http.Redirect(w, r, fmt.Sprintf("/%d", n-1), http.StatusMovedPermanently)
		case r.URL.Path == "/file":
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		case r.URL.Path == "/user":
			w.Header().Set("Location", "http://a:b@"+r.Host+"/0")
			w.WriteHeader(http.StatusFound)
		case r.URL.Path == "/nowhere":
			w.WriteHeader(http.StatusFound)
		default:
			fmt.Fprint(w, "here")
		}
	})
	b := open(t, tool.Options{AllowPrivate: true}, nil)
	if got, want := b.ok("fetch_url", args{"url": base + "/10"}), "[redirected to "+base+"/0]\nhere"; got != want {
		t.Errorf("ten redirects: %q, want %q", got, want)
	}
	b.fails("fetch_url", args{"url": base + "/11"}, "stopped after 10 redirects")
	b.fails("fetch_url", args{"url": base + "/file"}, "only http:// and https:// are fetched")
	b.fails("fetch_url", args{"url": base + "/user"}, "user name or an @")
	b.fails("fetch_url", args{"url": base + "/nowhere"}, "HTTP 302")

	// Each stop of the way is asked about.
	in := invocation(t, args{"url": base + "/3"})
	var asked []string
	in.Permits = func(u string) bool {
		asked = append(asked, strings.TrimPrefix(u, base))
		return !strings.HasSuffix(u, "/1")
	}
	if r := b.call("fetch_url", in); !r.IsError || !strings.Contains(r.Text, "permission denied: redirected to "+base+"/1; do not retry") {
		t.Errorf("%v %s", r.IsError, r.Text)
	}
	if diff := cmp.Diff([]string{"/2", "/1"}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	// So is a URL that is written in another way than it is fetched.
	in = invocation(t, args{"url": strings.Replace(base, "http:", "HTTP:", 1) + "/0#x"})
	in.Permits = func(u string) bool { return u != base+"/0" }
	if r := b.call("fetch_url", in); !r.IsError || !strings.Contains(r.Text, "permission denied") {
		t.Errorf("%v %s", r.IsError, r.Text)
	}
}

func TestFetchErrors(t *testing.T) {
	base := web(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/404":
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "<h1>No such page</h1>")
		case "/500":
			w.WriteHeader(http.StatusInternalServerError)
		case "/br":
			w.Header().Set("Content-Encoding", "br")
			fmt.Fprint(w, "x")
		case "/bad-gzip":
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, "this is not gzip")
		case "/cut":
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, "short")
		case "/header":
			w.Header().Set("X", strings.Repeat("x", 300<<10))
		}
	})
	b := open(t, tool.Options{AllowPrivate: true}, nil)
	if got, want := b.fails("fetch_url", args{"url": base + "/404"}, ""), "fetch_url: "+base+"/404: HTTP 404 Not Found\n# No such page"; got != want {
		t.Errorf("404: %q, want %q", got, want)
	}
	b.fails("fetch_url", args{"url": base + "/500"}, "HTTP 500 Internal Server Error")
	b.fails("fetch_url", args{"url": base + "/br"}, `packed as "br"`)
	b.fails("fetch_url", args{"url": base + "/bad-gzip"}, "unpack the reply")
	b.fails("fetch_url", args{"url": base + "/cut"}, "read the reply: unexpected EOF")
	b.fails("fetch_url", args{"url": base + "/header"}, "server response headers exceeded")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	b.fails("fetch_url", args{"url": "http://" + l.Addr().String()}, "refused")
	fails := tool.Options{AllowPrivate: true, Lookup: func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no such host") }}
	open(t, fails, nil).fails("fetch_url", args{"url": "http://nowhere.example"}, "look up nowhere.example: no such host")
	none := tool.Options{AllowPrivate: true, Lookup: func(context.Context, string) ([]netip.Addr, error) { return nil, nil }}
	open(t, none, nil).fails("fetch_url", args{"url": "http://nowhere.example"}, "look up nowhere.example: it has no address")
}

// A reply is read up to a limit, whatever it says of its size, and whatever
// comes out of it when it is unpacked.
func TestFetchLimits(t *testing.T) {
	bomb := packed(strings.Repeat("0123456789abcdef\n", 1<<20)) // 17 MB
	var sent atomic.Int64
	base := web(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		switch r.URL.Path {
		case "/packed":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(packed("small"))
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		case "/empty-blocks": // no text ever comes of them
			w.Header().Set("Content-Encoding", "gzip")
			chunk := bytes.Repeat(packed(""), 1000)
			for range 5000 {
				n, err := w.Write(chunk)
				sent.Add(int64(n))
				if err != nil {
					return
				}
			}
		case "/endless":
			for {
				if _, err := w.Write(bytes.Repeat([]byte("0123456\n"), 4096)); err != nil {
					return
				}
			}
		}
	})
	b := open(t, tool.Options{AllowPrivate: true}, nil)
	if got := b.ok("fetch_url", args{"url": base + "/packed"}); got != "small" {
		t.Errorf("packed: %q", got)
	}
	for _, path := range []string{"/bomb", "/endless"} {
		r := b.run("fetch_url", args{"url": base + path, "offset": 5<<20 - 100})
		if r.IsError || !strings.HasSuffix(r.Text, "the end; the page is longer; no more of it is read]") {
			t.Errorf("%s: %v %q", path, r.IsError, r.Text[max(0, len(r.Text)-200):])
		}
	}
	if got := b.ok("fetch_url", args{"url": base + "/empty-blocks"}); got != "[no text in it]" {
		t.Errorf("empty blocks: %q", got)
	}
	if n := sent.Load(); n > 20<<20 {
		t.Errorf("%d MB of empty blocks were read", n>>20)
	}
}

func TestFetchEndsWhenCancelled(t *testing.T) {
	release := make(chan struct{})
	base := web(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	b := open(t, tool.Options{AllowPrivate: true}, nil)
	for _, path := range []string{"/head", "/body"} {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		start := time.Now()
		_, err := b.tool("fetch_url").Run(ctx, invocation(t, args{"url": base + path}))
		cancel()
		if err == nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", path, err)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s: took %s", path, took)
		}
	}
}

// A proxy is used when the options say so, and not because the environment
// names one.
func TestFetchProxy(t *testing.T) {
	var through atomic.Int64
	proxy := web(t, func(w http.ResponseWriter, r *http.Request) {
		through.Add(1)
		w.Header().Set("Content-Type", "text/plain")
		switch r.URL.Host + r.URL.Path {
		case "public.example/":
			fmt.Fprint(w, "by proxy")
		case "public.example/in":
			http.Redirect(w, r, "http://127.0.0.1/secret", http.StatusFound)
		}
	})
	environ := []string{"http_proxy=" + proxy, "no_proxy=direct.example"}
	lookup := func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
	}
	off := open(t, tool.Options{Environ: environ, Lookup: lookup}, nil)
	off.fails("fetch_url", args{"url": "http://public.example/"}, "10.0.0.1 is a private address")
	if through.Load() != 0 {
		t.Error("the proxy was used")
	}
	on := open(t, tool.Options{Environ: environ, UseProxy: true, Lookup: lookup}, nil)
	if got := on.ok("fetch_url", args{"url": "http://public.example/"}); got != "by proxy" {
		t.Errorf("%q", got)
	}
	// Behind a proxy only the URL tells where it goes: it is judged all the
	// same, and so are redirects.
	on.fails("fetch_url", args{"url": "http://127.0.0.1/"}, "loopback")
	on.fails("fetch_url", args{"url": "http://public.example/in"}, "redirected to http://127.0.0.1/secret: 127.0.0.1 is a loopback address")
	on.fails("fetch_url", args{"url": "http://direct.example/"}, "10.0.0.1 is a private address")
	if n := through.Load(); n != 2 {
		t.Errorf("%d requests went through the proxy, want 2", n)
	}
	named := open(t, tool.Options{Environ: []string{"HTTP_PROXY=http://proxy.example:3128"}, UseProxy: true, Lookup: lookup}, nil)
	named.fails("fetch_url", args{"url": "http://proxy.example:3128/"}, "is the proxy itself")
}

func FuzzFetchURL(f *testing.F) {
	for _, s := range []string{
		"http://127.0.0.1/", "http://[::ffff:127.0.0.1]/", "http://0x7f.1/", "http://2130706433", "http://a@b/", "http://１２７.0.0.1/",
		"//x", "http:\\\\x", "http://[fe80::1%25lo]/", "http://localhost.:80", "http://127。0。0。1", "HTTPS://0177.1:443/?#", "http://%31", "example.com:80", "http://127.0.0.1../",
	} {
		f.Add(s)
	}
	// All that is let through ends at a proxy on this machine, which notes
	// where it was to go.
	var reached atomic.Value
	proxy := web(f, func(w http.ResponseWriter, r *http.Request) {
		reached.Store(r.Host)
		w.WriteHeader(http.StatusBadGateway)
	})
	w, err := tool.Open(f.TempDir(), tool.Options{UseProxy: true, Environ: []string{"http_proxy=" + proxy, "https_proxy=" + proxy}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { w.Close() })
	f.Fuzz(func(t *testing.T, s string) {
		b := &bench{t, "", w}
		reached.Store("")
		if r := b.run("fetch_url", args{"url": s}); !r.IsError {
			t.Fatalf("%q: no error: %s", s, r.Text)
		}
		to := reached.Load().(string)
		if to == "" {
			return
		}
		host := to
		if h, _, err := net.SplitHostPort(to); err == nil {
			host = h
		}
		host = strings.Trim(host, "[]")
		if a, err := netip.ParseAddr(host); err == nil {
			a = a.Unmap()
			if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.Zone() != "" {
				t.Errorf("%q was let through to %s", s, to)
			}
			return
		}
		last := host[strings.LastIndexByte(host, '.')+1:]
		if host == "localhost" || strings.ContainsAny(host, "%@/\\ []") || last == "" || strings.TrimLeft(last, "0123456789") == "" {
			t.Errorf("%q was let through to %s", s, to)
		}
	})
}
