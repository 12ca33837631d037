package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/synapse-agents/synapse"
)

// A grantFile keeps what the user has allowed for good, by workspace. It lies in
// the user's own directory: a workspace can't allow itself anything.
type grantFile struct {
	path      string
	workspace string

	mu sync.Mutex
}

// granted is one call that needs no question any more: an agent's, of a tool, with
// the subject that the question was about, or without one with the same arguments.
type granted struct {
	Agent   string          `json:"agent"`
	Tool    string          `json:"tool"`
	Subject string          `json:"subject,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
}

func grantOf(q synapse.Ask) granted {
	g := granted{Agent: q.Agent, Tool: q.Tool, Subject: q.Subject}
	if g.Subject == "" {
		g.Args = q.Args
	}
	return g
}

func (g granted) equal(o granted) bool {
	return g.Agent == o.Agent && g.Tool == o.Tool && g.Subject == o.Subject && string(g.Args) == string(o.Args)
}

// read returns all grants by workspace. A file that can't be understood grants
// nothing.
func (f *grantFile) read() (map[string][]granted, error) {
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string][]granted{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what has been allowed: %w", err)
	}
	all := map[string][]granted{}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%s is damaged (%s): mend it or remove it; until then everything is asked", f.path, jsonProblem(data, err))
	}
	return all, nil
}

// Granted reports whether the call was allowed for good in this workspace.
func (f *grantFile) Granted(q synapse.Ask) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, err := f.read()
	return err == nil && slices.ContainsFunc(all[f.workspace], grantOf(q).equal)
}

// Grant allows the call for good in this workspace. A damaged file is left as it
// is.
func (f *grantFile) Grant(q synapse.Ask) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, err := f.read()
	if err != nil {
		return err
	}
	g := grantOf(q)
	if slices.ContainsFunc(all[f.workspace], g.equal) {
		return nil
	}
	all[f.workspace] = append(all[f.workspace], g)
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("keep what has been allowed: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return fmt.Errorf("keep what has been allowed: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(f.path), ".approvals-*")
	if err != nil {
		return fmt.Errorf("keep what has been allowed: %w", err)
	}
	_, err = tmp.Write(append(data, '\n'))
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), f.path)
	}
	if err != nil {
		return fmt.Errorf("keep what has been allowed: %w", errors.Join(err, os.Remove(tmp.Name())))
	}
	return nil
}
