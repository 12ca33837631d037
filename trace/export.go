package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/synapse-agents/synapse"
)

// WriteJSONL writes events as JSON, one a line: what [ReadJSONL] reads, and
// what a headless run prints as it goes.
func WriteJSONL(w io.Writer, events iter.Seq2[*synapse.Event, error]) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for e, err := range events {
		if err != nil {
			return errors.Join(fmt.Errorf("export events: %w", err), out.Flush())
		}
		if err := enc.Encode(e); err != nil {
			return fmt.Errorf("export event %d (%s): %w", e.Seq, e.Kind, err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("export events: %w", err)
	}
	return nil
}

// ReadJSONL yields the events that [WriteJSONL] wrote; at most one error, last,
// which names the line. Blank lines are skipped.
func ReadJSONL(r io.Reader) iter.Seq2[*synapse.Event, error] {
	return func(yield func(*synapse.Event, error) bool) {
		in := bufio.NewReader(r)
		for n := 1; ; n++ {
			line, err := in.ReadBytes('\n')
			if err != nil && err != io.EOF {
				yield(nil, fmt.Errorf("read events: line %d: %w", n, err))
				return
			}
			if line = bytes.TrimSpace(line); len(line) > 0 {
				e := new(synapse.Event)
				if err := json.Unmarshal(line, e); err != nil {
					yield(nil, fmt.Errorf("read events: line %d: %w; want one event as JSON on each line", n, err))
					return
				}
				if !yield(e, nil) {
					return
				}
			}
			if err == io.EOF {
				return
			}
		}
	}
}

// WriteJSON writes a tree as indented JSON.
func WriteJSON(w io.Writer, t *Tree) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(t); err != nil {
		return fmt.Errorf("export trace: %w", err)
	}
	return nil
}
