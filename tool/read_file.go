package tool

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
)

//go:embed read_file.md
var readFileWords string

const (
	readLines     = 2000     // lines of one read unless limit says otherwise
	readBytes     = 50 << 10 // text of one read
	readLineBytes = 2000     // of one line
	readWhole     = 16 << 20 // larger files are read line by line
	maxImage      = 5 << 20
	maxListed     = 500 // entries of a directory
)

type readFileArgs struct {
	Path   string `json:"path"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line, from 1; below 0 counts from the end"`
	Limit  int    `json:"limit,omitempty" jsonschema:"lines"`
}

// readFileDetails is what a read_file result tells programs.
type readFileDetails struct {
	Path  string `json:"path"`
	Type  string `json:"type,omitempty"`  // of an image
	First int    `json:"first,omitempty"` // lines shown
	Last  int    `json:"last,omitempty"`
	Lines int    `json:"lines,omitempty"` // lines of the file
}

func (w *Workspace) readFile() synapse.Tool {
	t := must(New("read_file", readFileWords, w.runReadFile))
	t.ReadOnly, t.Parallel = true, true
	t.Subject = policy.Subject{Kind: policy.SubjectPath, Args: []string{"path"}}
	return t
}

func (w *Workspace) runReadFile(ctx context.Context, in *synapse.Invocation, args readFileArgs) (*synapse.ToolResult, error) {
	p, err := w.resolve(in, args.Path)
	if err != nil {
		return nil, err
	}
	f, info, err := p.open()
	if err != nil {
		return nil, missing(ctx, in, p, err)
	}
	defer f.Close()
	if info.IsDir() {
		return listDirectory(in, p)
	}
	head := make([]byte, sniffLen)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("%s: %w", p.show(), plainError(err))
	}
	head = head[:n]
	if kind := sniff(head); isImage(kind) {
		return readImage(p, kind, info.Size(), io.MultiReader(bytes.NewReader(head), f))
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("%s: %w", p.show(), plainError(err))
	}
	var page page
	if info.Size() <= readWhole || !plainBytes(head) {
		page, err = readWholeFile(f, p, info.Size(), args)
	} else {
		page, err = readByLine(ctx, f, args)
	}
	if errors.Is(err, errBinary) {
		return nil, fmt.Errorf("%s is %w (%s, %s)", p.show(), errBinary, sniff(head), bytesText(info.Size()))
	}
	if err != nil {
		return nil, err
	}
	return page.result(p, args)
}

// plainBytes reports whether a file that starts so can be read line by line:
// it is text of one byte a unit.
func plainBytes(head []byte) bool {
	return !looksBinary(head)
}

// A page is the part of a file that one read shows.
type page struct {
	out         strings.Builder
	first, last int // lines shown, from 1
	total       int
	full        bool   // the byte budget ended it
	note        string // how the file differs from plain text
}

// add shows one line, unless the page is full.
func (g *page) add(number int, line string) {
	if g.full {
		return
	}
	if !utf8.ValidString(line) {
		line = strings.ToValidUTF8(line, "\uFFFD")
	}
	if len(line) > readLineBytes {
		kept := cut(line, readLineBytes)
		line = fmt.Sprintf("%s[line cut: %s more]", kept, bytesText(int64(len(line)-len(kept))))
	}
	if g.last > 0 && g.out.Len()+len(line) > readBytes {
		g.full = true
		return
	}
	if g.first == 0 {
		g.first = number
	}
	g.last = number
	g.out.WriteString(strconv.Itoa(number))
	g.out.WriteByte('\t')
	g.out.WriteString(line)
	g.out.WriteByte('\n')
}

func (g *page) result(p place, args readFileArgs) (*synapse.ToolResult, error) {
	if g.total == 0 {
		return &synapse.ToolResult{Text: "[the file is empty]", Details: details(readFileDetails{Path: p.name})}, nil
	}
	if g.last == 0 {
		return nil, fmt.Errorf("offset %d is past the end: %s has %s", args.Offset, p.show(), count(g.total, "line"))
	}
	var notes []string
	if g.first > 1 || g.last < g.total {
		note := fmt.Sprintf("lines %d-%d of %d", g.first, g.last, g.total)
		if g.last < g.total {
			note += fmt.Sprintf("; go on with offset %d", g.last+1)
		}
		notes = append(notes, note)
	}
	if g.note != "" {
		notes = append(notes, g.note)
	}
	text := strings.TrimSuffix(g.out.String(), "\n")
	if len(notes) > 0 {
		text += "\n[" + strings.Join(notes, "; ") + "]"
	}
	return &synapse.ToolResult{
		Text:    text,
		Details: details(readFileDetails{Path: p.name, First: g.first, Last: g.last, Lines: g.total}),
	}, nil
}

// window returns the lines to show, from 1, of a file of total lines.
func (a readFileArgs) window(total int) (first, last int) {
	first = a.Offset
	if first < 0 {
		first = max(total+first+1, 1)
	}
	first = max(first, 1)
	limit := a.Limit
	if limit <= 0 {
		limit = readLines
	}
	return first, first + min(limit, 1<<30) - 1
}

func readWholeFile(f *os.File, p place, size int64, args readFileArgs) (page, error) {
	if size > maxText {
		return page{}, fmt.Errorf("%s has %s; files over %s of this kind are not read", p.show(), bytesText(size), bytesText(maxText))
	}
	b, err := readUpTo(f, size, maxText)
	if err != nil {
		return page{}, fmt.Errorf("%s: %w", p.show(), plainError(err))
	}
	t, err := decode(b)
	if err != nil {
		return page{}, err
	}
	lines := splitLines(t.s)
	g := page{total: len(lines), note: t.unlike()}
	first, last := args.window(len(lines))
	for i := first; i <= min(last, len(lines)); i++ {
		g.add(i, lines[i-1])
	}
	return g, nil
}

// readByLine reads a file too large to hold, twice when the offset counts from
// its end.
func readByLine(ctx context.Context, f *os.File, args readFileArgs) (page, error) {
	var g page
	total := 0
	if args.Offset < 0 {
		if err := eachLine(ctx, f, func(int, []byte) { total++ }); err != nil {
			return g, err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return g, plainError(err)
		}
	}
	first, last := args.window(total)
	err := eachLine(ctx, f, func(number int, line []byte) {
		g.total = number
		if number >= first && number <= last {
			g.add(number, string(line))
		}
	})
	return g, err
}

// eachLine calls fn for every line, cut to a little more than what is shown of
// one, so that a file without line ends is no burden.
func eachLine(ctx context.Context, r io.Reader, fn func(number int, line []byte)) error {
	br := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	open := false
	for number := 1; ; {
		if err := ended(ctx, number); err != nil {
			return err
		}
		chunk, err := br.ReadSlice('\n')
		open = open || len(chunk) > 0
		if room := 16*readLineBytes - len(line); room > 0 {
			line = append(line, chunk[:min(len(chunk), room)]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if open {
			fn(number, bytes.TrimRight(line, "\r\n"))
			number++
		}
		line, open = line[:0], false
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return plainError(err)
		}
	}
}

func isImage(kind string) bool {
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

func readImage(p place, kind string, size int64, r io.Reader) (*synapse.ToolResult, error) {
	if size > maxImage {
		return nil, fmt.Errorf("%s is an image of %s; at most %s are read", p.show(), bytesText(size), bytesText(maxImage))
	}
	data, err := readUpTo(r, size, maxImage)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.show(), plainError(err))
	}
	return &synapse.ToolResult{
		Text:    fmt.Sprintf("[%s, %s, %s]", p.show(), kind, bytesText(size)),
		Media:   []synapse.Media{{Name: path.Base(p.name), Type: kind, Data: data}},
		Details: details(readFileDetails{Path: p.name, Type: kind}),
	}, nil
}

func listDirectory(in *synapse.Invocation, p place) (*synapse.ToolResult, error) {
	list, err := p.listing(in)
	if err != nil {
		return nil, err
	}
	return &synapse.ToolResult{
		Text:    fmt.Sprintf("%s is a directory:\n%s", p.show(), list),
		Details: details(readFileDetails{Path: p.name}),
	}, nil
}

// listing names what is in the directory p, one entry a line.
func (p place) listing(in *synapse.Invocation) (string, error) {
	entries, err := p.list()
	if err != nil {
		return "", fmt.Errorf("%s: %w", p.show(), err)
	}
	var out strings.Builder
	shown, left, denied := 0, 0, 0
	for _, e := range entries {
		switch name := e.name; {
		case !permits(in, path.Join(p.name, name)):
			denied++
		case shown == maxListed:
			left++
		default:
			shown++
			out.WriteString(name)
			if e.isDir() {
				out.WriteByte('/')
			}
			out.WriteByte('\n')
		}
	}
	if len(entries) == 0 {
		out.WriteString("[the directory is empty]\n")
	}
	if left > 0 {
		fmt.Fprintf(&out, "[%d more left out; a glob narrows them down]\n", left)
	}
	if denied > 0 {
		fmt.Fprintf(&out, "[%d left out by permission rules]\n", denied)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}
