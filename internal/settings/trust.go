package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A TrustFile keeps which workspaces the user trusts. It lies in the user's own
// directory, so that a workspace can't vouch for itself. It may be used from
// several goroutines and processes at once.
type TrustFile struct {
	path string
	now  func() time.Time
}

// NewTrustFile returns the trust file of a user, <home>/.synapse/trust.json; it
// need not exist. now gives the time that is noted with a workspace; nil means
// time.Now.
func NewTrustFile(home string, now func() time.Time) *TrustFile {
	if now == nil {
		now = time.Now
	}
	path := ""
	if home != "" {
		path = filepath.Join(home, ".synapse", "trust.json")
	}
	return &TrustFile{path: path, now: now}
}

// Path returns the file's path, "" for a user without a home.
func (t *TrustFile) Path() string { return t.path }

// Trusted reports whether the user trusts exactly this directory; links are
// followed, and a directory below a trusted one is not trusted for that. A
// damaged file is an [*Error].
func (t *TrustFile) Trusted(dir string) (bool, error) {
	if t.path == "" {
		return false, nil
	}
	doc, err := t.load()
	if err != nil || doc == nil {
		return false, err
	}
	workspaces, err := t.workspaces(doc)
	if err != nil || workspaces == nil {
		return false, err
	}
	path := realPath(dir)
	entry := workspaces.get(path)
	if entry == nil {
		return false, nil
	}
	return t.says(doc, path, entry)
}

// says reads one entry.
func (t *TrustFile) says(doc *document, path string, entry *node) (bool, error) {
	yes := entry.get("trusted")
	if yes == nil || yes.kind != boolNode {
		return false, t.damaged(doc, entry, "workspaces."+path, entry.describe(), `{"trusted": true or false}`)
	}
	return yes.yes, nil
}

// A Trusted is a workspace that the user trusts.
type Trusted struct {
	Path  string    `json:"path"`
	Since time.Time `json:"since,omitzero"` // zero where it is not noted
}

// List returns the workspaces that the user trusts, in byte order of their
// paths. A damaged file is an [*Error].
func (t *TrustFile) List() ([]Trusted, error) {
	if t.path == "" {
		return nil, nil
	}
	doc, err := t.load()
	if err != nil || doc == nil {
		return nil, err
	}
	workspaces, err := t.workspaces(doc)
	if err != nil || workspaces == nil {
		return nil, err
	}
	var list []Trusted
	for _, m := range workspaces.members {
		yes, err := t.says(doc, m.key, m.value)
		if err != nil {
			return nil, err
		}
		if !yes {
			continue
		}
		entry := Trusted{Path: m.key}
		if since := m.value.get("since"); since != nil {
			entry.Since, _ = time.Parse(time.RFC3339, since.text) // else it is left out
		}
		list = append(list, entry)
	}
	slices.SortFunc(list, func(a, b Trusted) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}

// Trust notes that the user trusts the directory.
func (t *TrustFile) Trust(dir string) error {
	return t.change("trust", dir, func(doc *document, path string) ([]byte, error) {
		value := fmt.Sprintf(`{"trusted": true, "since": %q}`, t.now().UTC().Format(time.RFC3339))
		return setMember(doc, []string{"workspaces", path}, []byte(value))
	})
}

// Untrust takes the note back. It is no error if there is none.
func (t *TrustFile) Untrust(dir string) error {
	if trusted, err := t.Trusted(dir); err == nil && !trusted {
		return nil
	}
	return t.change("untrust", dir, func(doc *document, path string) ([]byte, error) {
		return removeMember(doc, []string{"workspaces", path}), nil
	})
}

func (t *TrustFile) change(verb, dir string, edit func(*document, string) ([]byte, error)) error {
	if t.path == "" {
		return fmt.Errorf("%s %s: there is no home directory to keep it in", verb, dir)
	}
	err := replaceFile(t.path, 0o700, 0o600, func(before []byte, exists bool) ([]byte, error) {
		if !exists {
			before = []byte("{}\n")
		}
		doc, bad := parseDocument(t.path, before)
		if bad != nil {
			return nil, bad
		}
		if _, err := t.workspaces(doc); err != nil {
			return nil, err
		}
		return edit(doc, realPath(dir))
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, dir, err)
	}
	return nil
}

func (t *TrustFile) load() (*document, error) {
	data, err := readFile(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &Error{Path: t.path, Err: fmt.Errorf("read trusted workspaces: %w", err)}
	}
	doc, bad := parseDocument(t.path, data)
	if bad != nil {
		return nil, bad
	}
	return doc, nil
}

func (t *TrustFile) workspaces(doc *document) (*node, error) {
	n := doc.root.get("workspaces")
	if n != nil && n.kind != objectNode {
		return nil, t.damaged(doc, n, "workspaces", n.describe(), "an object of directory → {\"trusted\": true}")
	}
	return n, nil
}

func (t *TrustFile) damaged(doc *document, n *node, key, found, takes string) *Error {
	line, column := doc.position(n.start)
	return &Error{Path: t.path, Line: line, Column: column, Key: key, Found: found, Takes: takes}
}

// readTrust finds out whether the user trusts the workspace.
func (l *loader) readTrust() error {
	l.s.Trusted = l.src.Trust
	if l.s.Trusted || l.s.workspace == "" {
		return nil
	}
	trusted, err := NewTrustFile(l.src.Home, nil).Trusted(l.s.workspace)
	l.s.Trusted = trusted
	return err
}
