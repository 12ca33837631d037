package traceview

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed" // the page
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/synapse-agents/synapse/trace"
)

//go:embed assets/page.html
var pageHTML []byte

//go:embed assets/page.css
var pageCSS []byte

//go:embed assets/page.js
var pageJS []byte

// A Server serves the page of one trace. Only whoever knows its URL gets in: the
// token in there is the key, for other users of the machine and for other pages
// in the browser alike.
type Server struct {
	reader   *reader
	listener net.Listener
	token    string
	http     http.Server
}

// Listen opens a server for a trace on loopback. Port 0 takes one that is free.
func Listen(j trace.Journal, id string, port int) (*Server, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("open the page: %w", err)
	}
	s := &Server{reader: &reader{journal: j, id: id}, listener: l, token: rand.Text()}
	s.http = http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	return s, nil
}

// URL returns where the page is, with the token.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/" + s.token + "/" }

// Serve answers requests until ctx ends.
func (s *Server) Serve(ctx context.Context) error {
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	stop := context.AfterFunc(ctx, func() { s.http.Close() })
	defer stop()
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}

// policy lets the page load what comes from here, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	if !s.own(r) {
		http.Error(w, "this page is for its own address", http.StatusForbidden)
		return
	}
	token, name, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if !ok || subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
		http.Error(w, "the address is not whole: it ends with the key that `synapse trace view` has printed", http.StatusNotFound)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "this page is only for reading", http.StatusMethodNotAllowed)
		return
	}
	asset := func(kind string, data []byte) {
		h.Set("Content-Type", kind+"; charset=utf-8")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}
	switch name {
	case "":
		asset("text/html", pageHTML)
	case "page.css":
		asset("text/css", pageCSS)
	case "page.js":
		asset("text/javascript", pageJS)
	case "run":
		s.serveRun(w, r)
	case "events":
		s.serveEvents(w, r)
	default:
		http.NotFound(w, r)
	}
}

// own reports whether a request means this server by its own name and comes from
// its own page, or from no page. A name that an attacker's DNS points here is
// another name; a page elsewhere has another origin.
func (s *Server) own(r *http.Request) bool {
	_, port, err := net.SplitHostPort(s.listener.Addr().String())
	if err != nil || r.Host != "127.0.0.1:"+port && r.Host != "localhost:"+port {
		return false
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return false
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin" || site == "none"
}

func (s *Server) serveRun(w http.ResponseWriter, r *http.Request) {
	if _, err := s.reader.read(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	d := s.reader.detail(r.URL.Query().Get("id"))
	if d == nil {
		http.Error(w, "there is no such run", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(d) // a reader that has gone needs no error
}

// An update is what a page is sent: the trace, and the runs that have changed.
type update struct {
	Trace traceView  `json:"trace"`
	Runs  []*runView `json:"runs"`
}

// serveEvents sends what there is, then what changes, until the trace has ended
// or the page has gone. A trace that has ended may still be taken up again, so
// the journal is asked on, only less often.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	sent := map[string]string{} // the runs, as they were sent
	seq, quiet := int64(-1), 0
	problem := ""
	for {
		p, err := s.reader.read(r.Context())
		switch {
		case r.Context().Err() != nil:
			return
		case err != nil && err.Error() != problem:
			problem = err.Error()
			fmt.Fprintf(w, "event: problem\ndata: %s\n\n", encode(problem))
		case err == nil && p.seq != seq:
			problem, quiet = "", 0
			seq = p.seq
			u := update{Trace: p.trace, Runs: []*runView{}}
			for _, run := range p.runs {
				if text := string(encode(run)); sent[run.ID] != text {
					sent[run.ID] = text
					u.Runs = append(u.Runs, run)
				}
			}
			fmt.Fprintf(w, "event: update\ndata: %s\n\n", encode(u))
		default:
			if quiet++; quiet%50 == 0 {
				fmt.Fprint(w, ": still here\n\n")
			}
		}
		if flush.Flush() != nil {
			return
		}
		wait := pollTime
		if p != nil && !p.open {
			wait = 5 * pollTime
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-r.Context().Done():
			timer.Stop()
			return
		}
	}
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return []byte(`"` + "it can't be shown" + `"`) // numbers and texts: it can't fail
	}
	return data
}
