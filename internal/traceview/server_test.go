package traceview_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/internal/traceview"
	"github.com/synapse-agents/synapse/trace"
	"github.com/synapse-agents/synapse/trace/tracetest"
)

func serve(t *testing.T, j trace.Journal) string {
	t.Helper()
	s, err := traceview.Listen(j, "T", 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s.URL()
}

func journal(t *testing.T, events ...*synapse.Event) *trace.Memory {
	t.Helper()
	j := &trace.Memory{}
	if err := j.Append(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
	return j
}

// Only who knows the address gets in, under the server's own name, to read.
func TestWhoGetsIn(t *testing.T) {
	page := serve(t, journal(t, tracetest.Conversation("T")...))
	u, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, method, url, host string
		header                  map[string]string
		want                    int
	}{
		{"the page", "GET", page, "", nil, 200},
		{"its script", "GET", page + "page.js", "", map[string]string{"Sec-Fetch-Site": "same-origin"}, 200},
		{"a run", "GET", page + "run?id=T-child", "", map[string]string{"Origin": "http://" + u.Host}, 200},
		{"localhost", "GET", page, "localhost:" + u.Port(), nil, 200},
		{"no such run", "GET", page + "run?id=x", "", nil, 404},
		{"no such page", "GET", page + "../x", "", nil, 404},
		{"no token", "GET", "http://" + u.Host + "/", "", nil, 404},
		{"another token", "GET", "http://" + u.Host + "/AAAAAAAAAAAAAAAAAAAAAAAAAA/events", "", nil, 404},
		{"another name for this address", "GET", page, "attacker.example:" + u.Port(), nil, 403},
		{"another page", "GET", page + "run?id=T-child", "", map[string]string{"Origin": "https://attacker.example"}, 403},
		{"a frame of another page", "GET", page, "", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"writing", "POST", page, "", nil, 405},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, tt.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if tt.host != "" {
			req.Host = tt.host
		}
		for k, v := range tt.header {
			req.Header.Set(k, v)
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, resp.StatusCode, tt.want)
		}
		if csp := resp.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", tt.name, csp)
		}
	}
}

// The page hears of what another handle of the journal writes.
func TestLive(t *testing.T) {
	file := filepath.Join(t.TempDir(), "journal.db")
	writer, err := trace.OpenSQLite(t.Context(), file, trace.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	events := tracetest.Conversation("T")
	if err := writer.Append(t.Context(), events[:8]...); err != nil {
		t.Fatal(err)
	}
	reader, err := trace.OpenSQLite(t.Context(), file, trace.SQLiteOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	resp, err := http.Get(serve(t, reader) + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	next := func() (u struct {
		Trace struct{ Status string }
		Runs  []struct{ ID, Status string }
	}) {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(data), &u); err != nil {
					t.Fatal(err)
				}
				return u
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return u
	}
	if u := next(); u.Trace.Status != "open" || len(u.Runs) != 2 {
		t.Fatalf("first: %+v", u)
	}
	if err := writer.Append(t.Context(), events[8:13]...); err != nil {
		t.Fatal(err)
	}
	if u := next(); len(u.Runs) != 2 && len(u.Runs) != 1 || u.Trace.Status != "open" {
		t.Fatalf("then: %+v", u)
	}
	if err := writer.Append(t.Context(), events[13:]...); err != nil {
		t.Fatal(err)
	}
	if u := next(); u.Trace.Status != "completed" || len(u.Runs) != 1 || u.Runs[0].ID != "T-main" {
		t.Fatalf("last: %+v", u)
	}
}

// dump returns the page as a browser has it after a while.
func dump(t *testing.T, page string, args ...string) string {
	t.Helper()
	chromium := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			chromium = path
			break
		}
	}
	if chromium == "" {
		t.Skip("there is no Chromium on this machine: the page was not opened in a browser")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	args = append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--user-data-dir=" + t.TempDir(), "--window-size=1200,800"}, args...)
	out, err := exec.CommandContext(ctx, chromium, append(args, late(t, page))...).Output()
	if err != nil {
		t.Fatalf("chromium: %v", err)
	}
	return string(out)
}

// late puts a server before the page that lets it finish loading only after a
// while: that is when the browser writes down what it has.
func late(t *testing.T, page string) string {
	t.Helper()
	to, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, to.Host
			r.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: func(r *http.Response) error {
			if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
				return nil
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			body = bytes.Replace(body, []byte("</body>"), []byte(`<link rel="stylesheet" href="late.css"></body>`), 1)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.Header.Set("Content-Length", strconv.Itoa(len(body)))
			return nil
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/late.css") {
			time.Sleep(2500 * time.Millisecond)
			w.Header().Set("Content-Type", "text/css")
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL + to.Path
}

// What models and tools write is text on the page, whatever it says.
func TestHostileText(t *testing.T) {
	const attack = `</script><img src=x onerror="document.title='owned'"><b id=owned>`
	run := tracetest.Run{Trace: "T", ID: "r" + attack, Agent: "main" + attack}
	start := run.Start(1, attack)
	start.Body.(*synapse.RunStarted).Description = attack
	page := dump(t, serve(t, journal(t, start,
		run.Event(2, &synapse.ModelRequested{Turn: 1}),
		run.Event(3, &synapse.ModelReplied{Turn: 1, Reply: synapse.Reply{Message: synapse.AssistantText(attack)}}),
		run.Event(4, &synapse.RunFinished{Outcome: synapse.Outcome{Status: synapse.StatusFailed, Cause: attack}}))), "--dump-dom")
	for _, bad := range []string{"<b id=", "<img", "<title>owned"} {
		if strings.Contains(page, bad) {
			t.Errorf("%q is in the page", bad)
		}
	}
	if !strings.Contains(page, "reply of turn 1") || !strings.Contains(page, "&lt;b id=owned&gt;") {
		t.Errorf("the text is not there:\n%s", page)
	}
}

// A page of two thousand runs has as many rows as are in view.
func TestManyRuns(t *testing.T) {
	main := tracetest.Run{Trace: "T", ID: "main", Agent: "main"}
	events := []*synapse.Event{main.Start(1, "Much")}
	for i := range int64(2000) {
		child := tracetest.Run{Trace: "T", ID: fmt.Sprintf("c%d", i), Parent: "main", Agent: "explore", SpawnedBy: fmt.Sprint(i)}
		events = append(events, child.Start(2+2*i, "Part"), child.End(3+2*i, synapse.StatusCompleted))
	}
	page := dump(t, serve(t, journal(t, events...)), "--dump-dom")
	rows := strings.Count(page, `role="treeitem"`)
	if rows < 10 || rows > 80 || !strings.Contains(page, "2001 runs") {
		t.Errorf("%d rows in the page; facts there: %v", rows, strings.Contains(page, "2001 runs"))
	}
	if dir := os.Getenv("TRACEVIEW_SCREENSHOTS"); dir != "" {
		small := serve(t, journal(t, tracetest.Conversation("T")...))
		for name, args := range map[string][]string{
			"dark":   {"--blink-settings=preferredColorScheme=0"},
			"light":  {"--blink-settings=preferredColorScheme=1"},
			"narrow": {"--window-size=500,900"},
		} {
			dump(t, small, append(args, "--screenshot="+filepath.Join(dir, name+".png"))...)
		}
	}
}
