package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A head is the first line of a file.
type head struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Trace   string `json:"trace"`
	Main    string `json:"main"`
	Model   string `json:"model"`
	Prompt  string `json:"prompt"`
	// Specs and Turns count the lines that follow: a file that was cut short is
	// no shorter recording.
	Specs int `json:"specs"`
	Turns int `json:"turns"`
}

// A specLine is the line of a spec.
type specLine struct {
	Name string `json:"spec_name"`
	Spec
}

// Write writes a recording.
func (r *Recording) Write(w io.Writer) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	lines := []any{head{Format, Version, r.Trace, r.Main, r.Model, r.Prompt, len(r.Specs), len(r.Turns)}}
	for _, name := range slices.SortedFunc(maps.Keys(r.Specs), natural) {
		lines = append(lines, specLine{name, *r.Specs[name]})
	}
	turns := slices.SortedFunc(slices.Values(r.Turns), func(a, b *Turn) int {
		if c := natural(a.Run, b.Run); c != 0 {
			return c
		}
		return a.Turn - b.Turn
	})
	for _, t := range turns {
		lines = append(lines, t)
	}
	for _, line := range lines {
		if err := enc.Encode(line); err != nil {
			return fmt.Errorf("write the recording: %w", err)
		}
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write the recording: %w", err)
	}
	return nil
}

// natural compares texts so that numbers in them stand in the order of their
// values: t2 before t10.
func natural(a, b string) int {
	for a != "" && b != "" {
		na, nb := digits(a), digits(b)
		if na > 0 && nb > 0 {
			x, errX := strconv.ParseUint(a[:na], 10, 64)
			y, errY := strconv.ParseUint(b[:nb], 10, 64)
			if errX == nil && errY == nil && x != y {
				if x < y {
					return -1
				}
				return 1
			}
			if a[:na] != b[:nb] {
				return strings.Compare(a, b)
			}
			a, b = a[na:], b[nb:]
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// The errors of a file that a caller may want to tell apart.
var (
	// ErrDamaged says that a file is no recording, or not a whole one.
	ErrDamaged = errors.New("it is no whole recording: record it anew")
	// ErrNewer says that a newer version of the program wrote it.
	ErrNewer = errors.New("it was written by a newer version of this program")
)

// maxLine bounds one line of a file, in bytes.
const maxLine = 64 << 20

// Read reads what Write wrote. An error names the line.
func Read(r io.Reader) (*Recording, error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	rec := &Recording{Specs: map[string]*Spec{}}
	var h head
	n := 0
	bad := func(format string, args ...any) error {
		return fmt.Errorf("line %d: %s: %w", n, fmt.Sprintf(format, args...), ErrDamaged)
	}
	for in.Scan() {
		n++
		line := in.Bytes()
		switch {
		case n == 1:
			if err := json.Unmarshal(line, &h); err != nil || h.Format != Format {
				return nil, bad("want {\"format\":%q,…}", Format)
			}
			if h.Version > Version {
				return nil, fmt.Errorf("version %d, and this program reads up to %d: %w", h.Version, Version, ErrNewer)
			}
			if h.Version < 1 || h.Trace == "" || h.Main == "" {
				return nil, bad("version, trace or main is missing")
			}
			rec.Trace, rec.Main, rec.Model, rec.Prompt = h.Trace, h.Main, h.Model, h.Prompt
		case len(bytes.TrimSpace(line)) == 0:
		case bytes.HasPrefix(line, []byte(`{"spec_name":`)):
			var s specLine
			if err := strict(line, &s); err != nil {
				return nil, bad("%v", err)
			}
			if s.Name == "" || rec.Specs[s.Name] != nil {
				return nil, bad("spec %q is there twice, or has no name", s.Name)
			}
			rec.Specs[s.Name] = &s.Spec
		default:
			t := new(Turn)
			if err := strict(line, t); err != nil {
				return nil, bad("%v", err)
			}
			switch {
			case t.Run == "" || t.Turn < 1 || t.From < 0 || (t.Reply == nil) == (t.Failure == nil):
				return nil, bad("a turn needs run, turn, and one of reply and failure")
			case rec.Specs[t.Spec] == nil:
				return nil, bad("there is no spec %q", t.Spec)
			}
			rec.Turns = append(rec.Turns, t)
		}
	}
	if err := in.Err(); err != nil {
		n++
		return nil, bad("%v", err)
	}
	if n == 0 {
		return nil, fmt.Errorf("it is empty: %w", ErrDamaged)
	}
	if len(rec.Specs) != h.Specs || len(rec.Turns) != h.Turns {
		return nil, fmt.Errorf("%d specs and %d turns of %d and %d are there: %w", len(rec.Specs), len(rec.Turns), h.Specs, h.Turns, ErrDamaged)
	}
	return rec, nil
}

// strict decodes a line and takes no field that it doesn't know: what a reader
// leaves out is not compared.
func strict(line []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}
