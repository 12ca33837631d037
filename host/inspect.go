package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/internal/settings"
	"github.com/synapse-agents/synapse/trace"
)

// journalFile is the journal's name in the user's state directory.
const journalFile = "journal.db"

// LoadRegistry reads the definitions that a host of these options would have,
// and no more: it needs no model, tool or journal, and opens no connection.
func LoadRegistry(opt Options) (*agents.Registry, []agents.Diagnostic, error) {
	h := &Host{opt: opt}
	if err := h.findWorkspace(); err != nil {
		return nil, nil, err
	}
	set, _, err := h.loadSettings()
	if err != nil {
		return nil, nil, err
	}
	return h.registry(set, ignore)
}

// LoadLayers reads the definitions of every place that a host of these options
// would look at, low to high, before one replaces another.
func LoadLayers(opt Options) ([]agents.Layer, error) {
	h := &Host{opt: opt}
	if err := h.findWorkspace(); err != nil {
		return nil, err
	}
	set, _, err := h.loadSettings()
	if err != nil {
		return nil, err
	}
	return h.layers(set, ignore)
}

// ignore notes nothing.
func ignore(string) {}

// OpenJournal opens the journal that hosts of these options write, for reading.
// Neither settings nor definitions are read. The error is [fs.ErrNotExist] when
// nothing has been written yet.
func OpenJournal(ctx context.Context, opt Options) (*trace.SQLite, error) {
	return openJournal(ctx, opt, trace.SQLiteOptions{ReadOnly: true})
}

// EditJournal is [OpenJournal] for naming, deleting and posting too.
func EditJournal(ctx context.Context, opt Options) (*trace.SQLite, error) {
	if j, err := OpenJournal(ctx, opt); errors.Is(err, fs.ErrNotExist) {
		return nil, err // nothing is made where nothing is
	} else if err == nil {
		j.Close()
	}
	return openJournal(ctx, opt, trace.SQLiteOptions{})
}

func openJournal(ctx context.Context, opt Options, how trace.SQLiteOptions) (*trace.SQLite, error) {
	state := stateDir(opt)
	if state == "" {
		return nil, fmt.Errorf("open the journal: there is neither a home directory nor XDG_STATE_HOME: %w", fs.ErrNotExist)
	}
	j, err := trace.OpenSQLite(ctx, filepath.Join(state, journalFile), how)
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	return j, nil
}

func stateDir(opt Options) string {
	return settings.Sources{Home: opt.Home, Environ: opt.Environ}.StateDir()
}

// registry reads the definitions of every layer and takes out what the user has
// removed or switched off.
func (h *Host) registry(set *settings.Settings, note func(string)) (*agents.Registry, []agents.Diagnostic, error) {
	layers, err := h.layers(set, note)
	if err != nil {
		return nil, nil, err
	}
	r, diags := agents.Merge(layers...)
	if names := set.DisableBuiltinSubagents.Strings(); len(names) > 0 {
		r, _ = r.Without(names...)
	}
	if dir := set.UserDir(); dir != "" {
		note(disabledFile(dir))
		off, err := agents.ReadDisabled(disabledFile(dir))
		if err != nil {
			return nil, nil, configErrorf("%w", err)
		}
		r, _ = r.Disable(off...)
	}
	return r, diags, nil
}

// findWorkspace makes the workspace's path absolute.
func (h *Host) findWorkspace() error {
	dir := h.opt.Workspace
	if dir == "" {
		dir = "."
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("open workspace: %w", err)
	}
	h.opt.Workspace = abs
	return nil
}

// WarnNoModel is the code of the warning that no model could be found for the
// main agent of a host that was opened to look at.
const WarnNoModel = "no-model"

const noModel = "no model for the main agent: "
