package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// provenance says where an imported file comes from. It stands beside the files,
// so that these stay what they are at their source.
type provenance struct {
	File         string `json:"file"` // below the workspace or the home directory, with slashes
	Name         string `json:"name"`
	Source       string `json:"source"` // a directory, or what git fetches
	Path         string `json:"path"`   // in the source
	Ref          string `json:"ref,omitempty"`
	Commit       string `json:"commit,omitempty"`
	Changed      bool   `json:"changed,omitempty"` // the checkout had changes beyond the commit
	SourceDigest string `json:"source_digest"`
	Digest       string `json:"digest"`           // of what was written
	As           string `json:"as,omitempty"`     // whose file it was read as, against where it lies
	Native       bool   `json:"native,omitempty"` // converted to our format
	Date         string `json:"date"`
}

// imports is the record of imported files of one level.
type imports struct {
	root string // the workspace, or the home directory
	List []provenance
}

// importsFile is where the record lies below a level's directory.
const importsFile = ".synapse/imports.json"

func (m *imports) path() string { return filepath.Join(m.root, filepath.FromSlash(importsFile)) }

// readImports reads the record of a level. A damaged one is an error: what it
// knew must not be lost.
func readImports(root string) (*imports, error) {
	m := &imports{root: root}
	data, err := os.ReadFile(m.path())
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what was imported: %w", err)
	}
	var doc struct {
		Imports []provenance `json:"imports"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, &codedError{code: exitConfig, err: fmt.Errorf("%s: %s; mend the file or remove it", m.path(), jsonProblem(data, err))}
	}
	for _, p := range doc.Imports {
		if !filepath.IsLocal(filepath.FromSlash(p.File)) {
			return nil, &codedError{code: exitConfig, err: fmt.Errorf("%s: the file %q is not below %s; mend the file or remove it", m.path(), p.File, root)}
		}
	}
	m.List = doc.Imports
	return m, nil
}

// find returns what is known of a file, nil if it was not imported.
func (m *imports) find(file string) *provenance {
	for i := range m.List {
		if m.List[i].File == file {
			return &m.List[i]
		}
	}
	return nil
}

func (m *imports) set(p provenance) {
	if old := m.find(p.File); old != nil {
		*old = p
		return
	}
	m.List = append(m.List, p)
}

// save writes the record, whole or not at all.
func (m *imports) save() error {
	slices.SortFunc(m.List, func(a, b provenance) int { return strings.Compare(a.File, b.File) })
	var b bytes.Buffer
	if err := printJSON(&b, map[string]any{"imports": m.List}); err != nil {
		return err
	}
	if _, err := os.Lstat(m.path()); errors.Is(err, fs.ErrNotExist) {
		return writeNew(m.path(), b.Bytes())
	}
	return replaceFile(m.path(), b.Bytes())
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
