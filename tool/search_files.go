package tool

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
)

//go:embed search_files.md
var searchFilesWords string

const (
	searchMaxFile = 10 << 20 // larger files are not searched
	searchLines   = 250      // lines of output
	searchBytes   = 40 << 10 // of output
	searchCut     = 400      // bytes shown of one line
	searchContext = 20       // lines of context at most
	searchBatch   = 2048     // files whose results are held at once
	searchChunk   = 16       // files that are taken by one goroutine, as they share directories
)

// searchMode is what a search gives back.
type searchMode string

const (
	searchByLine searchMode = "lines"
	searchByFile searchMode = "files"
	searchCount  searchMode = "count"
)

func (searchMode) values() []any { return []any{"lines", "files", "count"} }

type searchFilesArgs struct {
	Pattern    string     `json:"pattern"`
	Path       string     `json:"path,omitempty" jsonschema:"file or directory, default /"`
	Glob       string     `json:"glob,omitempty" jsonschema:"only these files, like *.go"`
	IgnoreCase bool       `json:"ignore_case,omitempty"`
	Context    int        `json:"context,omitempty" jsonschema:"lines around a match"`
	Mode       searchMode `json:"mode,omitempty"`
}

// searchFilesDetails is what a search_files result tells programs.
type searchFilesDetails struct {
	Matches int `json:"matches"` // lines that match; with mode files, files
	Files   int `json:"files"`   // with a match
	Denied  int `json:"denied"`  // files left out by permission rules
}

func (w *Workspace) searchFiles() synapse.Tool {
	t := must(New("search_files", searchFilesWords, w.runSearchFiles))
	t.ReadOnly, t.Parallel = true, true
	t.Subject = policy.Subject{Kind: policy.SubjectPath, Args: []string{"path"}}
	return t
}

func (w *Workspace) runSearchFiles(ctx context.Context, in *synapse.Invocation, args searchFilesArgs) (*synapse.ToolResult, error) {
	if args.Mode == "" {
		args.Mode = searchByLine
	}
	if !slices.Contains(args.Mode.values(), any(string(args.Mode))) {
		return nil, fmt.Errorf("mode %q: want lines, files or count", args.Mode)
	}
	m, err := newMatcher(args.Pattern, args.IgnoreCase)
	if err != nil {
		return nil, err
	}
	start, err := w.resolve(in, args.Path)
	if err != nil {
		return nil, err
	}
	info, err := start.stat()
	if err != nil {
		return nil, missing(ctx, in, start, err)
	}
	s := search{args: args, matcher: m}
	s.args.Context = min(max(args.Context, 0), searchContext)
	var st walk
	if info.IsDir() {
		st, err = s.collect(ctx, w, in, start)
	} else {
		s.files = []place{start}
	}
	if err != nil {
		return nil, err
	}
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	return s.result(start, st), nil
}

// A search is one call at work.
type search struct {
	args    searchFilesArgs
	matcher *matcher
	files   []place
	denied  int

	binary, huge, failed atomic.Int64

	out     strings.Builder
	lines   int  // lines of output
	full    bool // no more is shown
	matches int
	hits    int // files with a match
	left    int // matches that are not shown
	leftIn  int // files that none of whose matches is shown
}

func (s *search) collect(ctx context.Context, w *Workspace, in *synapse.Invocation, start place) (walk, error) {
	glob := pathGlob{pattern: "**"}
	if s.args.Glob != "" {
		var err error
		if glob, err = newPathGlob(w, s.args.Glob); err != nil {
			return walk{}, err
		}
	}
	st, err := w.walkTree(ctx, start, func(p place, e entry) {
		if !e.mode.IsRegular() || !glob.match(within(start.rel, p.rel)) {
			return
		}
		if !permits(in, p.name) {
			s.denied++
			return
		}
		s.files = append(s.files, p)
	})
	slices.SortFunc(s.files, func(a, b place) int { return strings.Compare(a.name, b.name) })
	return st, err
}

// run searches the files on all processors, in batches, so that results come
// in the order of paths and those of a huge tree are never held all at once.
func (s *search) run(ctx context.Context) error {
	results := make([]fileResult, searchBatch)
	for first := 0; first < len(s.files); first += searchBatch {
		batch := s.files[first:min(first+searchBatch, len(s.files))]
		keep := !s.full
		var next atomic.Int64
		var wg sync.WaitGroup
		for range min(runtime.GOMAXPROCS(0), (len(batch)+searchChunk-1)/searchChunk) {
			wg.Go(func() {
				var r fileReader
				defer r.close()
				for {
					from := int(next.Add(searchChunk)) - searchChunk
					if from >= len(batch) || ctx.Err() != nil {
						return
					}
					for i := from; i < min(from+searchChunk, len(batch)); i++ {
						results[i] = s.file(&r, batch[i], keep)
					}
				}
			})
		}
		wg.Wait()
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range batch {
			s.show(batch[i], results[i])
			results[i] = fileResult{}
		}
	}
	return nil
}

// A fileResult is what was found in one file.
type fileResult struct {
	matches int
	lines   []foundLine // nil when nothing is kept
}

type foundLine struct {
	number int
	text   string
	match  bool // else it is context
}

// file searches one file.
func (s *search) file(r *fileReader, p place, keep bool) fileResult {
	data, err := r.read(p)
	if errors.Is(err, errHuge) {
		s.huge.Add(1)
		return fileResult{}
	}
	if err != nil {
		s.failed.Add(1)
		return fileResult{}
	}
	if s.matcher.misses(data) {
		return fileResult{}
	}
	if needsDecoding(data) {
		t, err := decode(data)
		if err != nil {
			s.binary.Add(1)
			return fileResult{}
		}
		data = []byte(t.s)
	}
	if bytes.Contains(data, []byte("\r\n")) {
		data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	}
	return s.scan(data, keep && s.args.Mode == searchByLine)
}

// A fileReader reads file after file with few system calls: it keeps its
// buffer, and the directory of the last file open, in which the next one most
// often is.
type fileReader struct {
	buf  []byte
	root *os.Root // of the open directory, nil for none
	dir  string
	h    dirHandle
}

func (r *fileReader) close() {
	if r.root != nil {
		r.h.close()
		r.root = nil
	}
}

// read returns the content of a regular file, valid until the next call.
func (r *fileReader) read(p place) ([]byte, error) {
	dir, name := ".", p.rel
	if i := strings.LastIndexByte(p.rel, '/'); i >= 0 {
		dir, name = p.rel[:i], p.rel[i+1:]
	}
	if r.root != p.root || r.dir != dir {
		r.close()
		h, err := openDir(p.at(dir))
		if err != nil {
			return nil, err
		}
		r.root, r.dir, r.h = p.root, dir, h
	}
	var err error
	r.buf, err = r.h.read(name, r.buf, searchMaxFile)
	return r.buf, err
}

// scan finds the lines of data that match.
func (s *search) scan(data []byte, keep bool) fileResult {
	var r fileResult
	number, counted := 1, 0 // number is that of the line at counted
	shownTo := 0            // the last line kept
	contextAfter := 0       // lines of context still to keep
	contextFrom := 0        // where they go on
	s.matcher.each(data, func(from, to int) bool {
		r.matches++
		if s.args.Mode == searchByFile {
			return false
		}
		if !keep || len(r.lines) >= searchLines {
			return true
		}
		if contextAfter > 0 {
			contextAfter = r.addContext(data, contextFrom, from, shownTo+1, contextAfter)
			if n := len(r.lines); n > 0 {
				shownTo = r.lines[n-1].number
			}
		}
		number += bytes.Count(data[counted:from], []byte("\n"))
		counted = from
		// Context before, as far as it is not shown yet.
		back, at := 0, from
		for back < s.args.Context && at > 0 && number-back-1 > shownTo {
			at = bytes.LastIndexByte(data[:at-1], '\n') + 1
			back++
		}
		r.addContext(data, at, from, number-back, back)
		n := number
		for line := range bytes.SplitSeq(data[from:to], []byte("\n")) {
			r.lines = append(r.lines, foundLine{n, s.shorten(line), true})
			n++
		}
		shownTo = n - 1
		contextAfter, contextFrom = s.args.Context, min(to+1, len(data))
		return true
	})
	if keep && contextAfter > 0 {
		r.addContext(data, contextFrom, len(data), shownTo+1, contextAfter)
	}
	return r
}

// addContext keeps up to n lines of data[from:to], the first of which is
// number, and returns how many of n are left.
func (r *fileResult) addContext(data []byte, from, to, number, n int) int {
	for ; n > 0 && from < to; n-- {
		end := bytes.IndexByte(data[from:to], '\n')
		if end < 0 {
			end = to - from
		}
		r.lines = append(r.lines, foundLine{number, cutLine(data[from:from+end], 0), false})
		from += end + 1
		number++
	}
	return n
}

// shorten cuts a line around its match.
func (s *search) shorten(line []byte) string {
	if len(line) <= searchCut {
		return cutLine(line, 0)
	}
	at := 0
	if loc := s.matcher.re.FindIndex(line); loc != nil {
		at = loc[0]
	}
	return cutLine(line, at)
}

// cutLine returns at most searchCut bytes of a line that hold what is at at.
func cutLine(line []byte, at int) string {
	if len(line) <= searchCut {
		return strings.ToValidUTF8(string(line), "\uFFFD")
	}
	from := max(0, min(at-searchCut/4, len(line)-searchCut))
	shown := strings.ToValidUTF8(string(line[from:from+searchCut]), "")
	if from > 0 {
		shown = "…" + shown
	}
	if from+searchCut < len(line) {
		shown += "…"
	}
	return shown
}

// show adds one file's result to the output, as far as there is room.
func (s *search) show(p place, r fileResult) {
	if r.matches == 0 {
		return
	}
	s.hits++
	s.matches += r.matches
	if s.full {
		s.left += r.matches
		s.leftIn++
		return
	}
	shown := 0
	switch s.args.Mode {
	case searchByFile:
		s.line(p.name)
		shown = r.matches
	case searchCount:
		s.line(fmt.Sprintf("%s:%d", p.name, r.matches))
		shown = r.matches
	default:
		last := 0
		for _, l := range r.lines {
			if s.full {
				break
			}
			if s.args.Context > 0 && l.number != last+1 && s.lines > 0 {
				s.out.WriteString("--\n")
			}
			last = l.number
			if l.match {
				s.line(fmt.Sprintf("%s:%d:%s", p.name, l.number, l.text))
				shown++
			} else {
				s.line(fmt.Sprintf("%s-%d-%s", p.name, l.number, l.text))
			}
		}
	}
	s.left += max(0, r.matches-shown)
}

func (s *search) line(text string) {
	s.out.WriteString(text)
	s.out.WriteByte('\n')
	s.lines++
	s.full = s.lines >= searchLines || s.out.Len() >= searchBytes
}

func (s *search) result(start place, st walk) *synapse.ToolResult {
	out := &s.out
	if s.matcher.note != "" {
		fmt.Fprintf(out, "[%s]\n", s.matcher.note)
	}
	if s.hits == 0 {
		what := ""
		if s.args.Glob != "" {
			what = " that match " + s.args.Glob
		}
		fmt.Fprintf(out, "[no match in %s%s below %s]\n", count(len(s.files), "file"), what, start.show())
	}
	if s.left > 0 {
		more := count(s.left, "more match")
		if s.args.Mode == searchByFile {
			more = count(s.left, "more file")
		}
		fmt.Fprintf(out, "[%s left out", more)
		if s.leftIn > 0 && s.args.Mode != searchByFile {
			fmt.Fprintf(out, ", %s among them wholly", count(s.leftIn, "file"))
		}
		out.WriteString("; narrow the pattern, path or glob]\n")
	}
	var skipped []string
	if n := int(s.binary.Load()); n > 0 {
		skipped = append(skipped, fmt.Sprintf("%d binary", n))
	}
	if n := int(s.huge.Load()); n > 0 {
		skipped = append(skipped, fmt.Sprintf("%d over 10 MB", n))
	}
	if n := int(s.failed.Load()); n > 0 {
		skipped = append(skipped, fmt.Sprintf("%d unreadable", n))
	}
	if len(skipped) > 0 {
		fmt.Fprintf(out, "[not searched: %s]\n", strings.Join(skipped, ", "))
	}
	writeLeftOut(out, s.denied, st)
	return &synapse.ToolResult{
		Text:    strings.TrimSuffix(out.String(), "\n"),
		Details: details(searchFilesDetails{Matches: s.matches, Files: s.hits, Denied: s.denied}),
	}
}
