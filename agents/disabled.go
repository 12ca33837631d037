package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"
)

// A DamagedError says that a file of ours can't be understood. Such a file is
// never overwritten: its owner may still want what is in it.
type DamagedError struct {
	Pos
	Message string
}

// Error names file, line and column, and the way out.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s: %s; mend the file or remove it", e.Pos, e.Message)
}

const disabledShape = `want {"disabled": ["name", …]}`

// ReadDisabled reads the names of the agents that the user has switched off. A
// file that does not exist is an empty list; one that can't be understood is a
// *[DamagedError].
func ReadDisabled(file string) ([]string, error) {
	names, _, err := readDisabledFile(file)
	return names, err
}

// WriteDisabled replaces the names in the file and keeps its other keys. The
// names are written sorted. It makes the directory if need be, replaces the
// file atomically (that of a symlink in its place), and fails without writing
// when what is there can't be understood.
func WriteDisabled(file string, names []string) error {
	_, others, err := readDisabledFile(file)
	if err != nil {
		return fmt.Errorf("write disabled agents: %w", err)
	}
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	if names == nil {
		names = []string{}
	}
	list, err := json.Marshal(names)
	if err != nil {
		return fmt.Errorf("write disabled agents: %w", err)
	}
	var b bytes.Buffer
	b.WriteString(`{"disabled":`)
	b.Write(list)
	for _, o := range others {
		b.WriteByte(',')
		b.Write(quoteJSON(o.key))
		b.WriteByte(':')
		b.Write(o.value)
	}
	b.WriteByte('}')
	var out bytes.Buffer
	if err := json.Indent(&out, b.Bytes(), "", "  "); err != nil {
		return fmt.Errorf("write disabled agents: %w", err)
	}
	out.WriteByte('\n')
	if err := replaceFile(file, out.Bytes()); err != nil {
		return fmt.Errorf("write disabled agents: %w", err)
	}
	return nil
}

// member is a key of a JSON object with its value's text.
type member struct {
	key   string
	value json.RawMessage
}

func readDisabledFile(file string) (names []string, others []member, err error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("disabled agents: %w", err)
	}
	damaged := func(n *yaml.Node, format string, args ...any) error {
		return &DamagedError{Pos{file, n.Line, n.Column}, fmt.Sprintf(format, args...)}
	}
	text := bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	root, err := parseJSONTree(text)
	if err != nil {
		at := &yaml.Node{Line: 1, Column: 1}
		var e *jsonError
		if errors.As(err, &e) {
			at.Line, at.Column = position(text, int(e.offset))
		}
		return nil, nil, damaged(at, "not valid JSON: %v", err)
	}
	if root.Kind != yaml.MappingNode {
		return nil, nil, damaged(root, "%s; %s", kindOf(root), disabledShape)
	}
	r := newReader(file, &ParseOptions{})
	seen := map[string]bool{}
	for _, p := range r.pairs(root) {
		if seen[p.key.Value] {
			return nil, nil, damaged(p.key, "the key %q is there twice", p.key.Value)
		}
		seen[p.key.Value] = true
		if p.key.Value != "disabled" {
			value, err := r.jsonText(p.value)
			if err != nil {
				return nil, nil, damaged(p.value, "the value of %q %v", p.key.Value, err)
			}
			others = append(others, member{p.key.Value, value})
			continue
		}
		if p.value.Kind != yaml.SequenceNode {
			return nil, nil, damaged(p.value, "“disabled” is %s; %s", kindOf(p.value), disabledShape)
		}
		for _, n := range p.value.Content {
			if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
				return nil, nil, damaged(n, "“disabled” holds %s; %s", kindOf(n), disabledShape)
			}
			names = append(names, n.Value)
		}
	}
	return names, others, nil
}

// replaceFile puts data in a file's place, whole or not at all.
func replaceFile(file string, data []byte) error {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target // the link stays
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	tmp, err := writeTemp(file, data, mode)
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, file); err != nil {
		os.Remove(tmp)
		return err
	}
	return nil
}
