package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/synapse-agents/synapse/agents"
)

func (d doctor) checkSettings() []Check {
	var checks []Check
	for _, w := range d.warnings {
		checks = append(checks, Check{"settings", CheckWarning, w, "correct what the warning names"})
	}
	for _, w := range d.a.warnings {
		if w.Code != WarnNoModel { // the check of the model says it
			checks = append(checks, Check{"settings", CheckWarning, w.String(), settingsFix(w)})
		}
	}
	if checks == nil {
		checks = []Check{{Name: "settings", State: CheckOK, Detail: "read without a warning"}}
	}
	return checks
}

func (d doctor) checkTrust() Check {
	c := Check{Name: "trust", State: CheckOK, Detail: "the workspace is trusted"}
	if !d.a.settings.Trusted {
		c.Detail = "the workspace is not trusted: its settings and .env can only narrow what agents may do (`synapse trust` if it is yours)"
	}
	return c
}

func (d doctor) checkDefinitions() Check {
	counts := map[agents.Severity]int{}
	first := ""
	for _, g := range d.a.diagnostics {
		if counts[g.Severity]++; g.Severity == agents.Error && first == "" {
			first = g.String()
		}
	}
	c := Check{Name: "agents", State: CheckOK}
	c.Detail = fmt.Sprintf("%d; their definitions have errors: %d, warnings: %d", len(d.a.registry.All()), counts[agents.Error], counts[agents.Warn])
	if first != "" {
		c.State, c.Detail = CheckWarning, c.Detail+"; the first error: "+first
		c.Fix = "`synapse agents list` names each; `synapse agents validate FILE` checks one"
	}
	return c
}

// checkDirs sees whether the directories that this program writes to can be
// written to. What is not there yet is judged by its nearest parent that is.
func (d doctor) checkDirs() []Check {
	set := d.a.settings
	var checks []Check
	for _, p := range []struct {
		name, dir, fix string
		bad            CheckState
	}{
		{"workspace", d.opt.Workspace, "give yourself the right to write there, or choose another with -w; agents that only read don't need it", CheckWarning},
		{"user directory", set.UserDir(), "give yourself the right to write there: chmod u+rwx", CheckWarning},
		{"state directory", set.StateDir(), "give yourself the right to write there, or set XDG_STATE_HOME to another place", CheckFault},
	} {
		c := Check{Name: p.name, State: CheckOK, Detail: p.dir}
		if p.dir == "" {
			c.Detail = "none: nothing is kept between runs"
		} else if err := writable(p.dir); err != nil {
			c.State, c.Detail, c.Fix = p.bad, err.Error(), p.fix
		}
		checks = append(checks, c)
	}
	return checks
}

// writable writes a file that is gone again when it returns.
func writable(dir string) error {
	for {
		info, err := os.Stat(dir)
		if err == nil {
			if !info.IsDir() {
				return fmt.Errorf("%s is not a directory", dir)
			}
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			return err
		}
		dir = filepath.Dir(dir)
	}
	f, err := os.CreateTemp(dir, ".synapse-doctor-*")
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = fmt.Errorf("write in %s: %w", dir, path.Err)
		}
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// maxCheck is how long the journal is read; a large one is not read to its end.
const maxCheck = 5 * time.Second

func checkJournal(ctx context.Context, opt Options) Check {
	c := Check{Name: "journal", State: CheckOK}
	if stateDir(opt) == "" {
		c.Detail = "kept in memory: there is no state directory"
		return c
	}
	file := filepath.Join(stateDir(opt), journalFile)
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		c.Detail = file + ": nothing has been written yet"
		return c
	}
	whole := true
	if err == nil {
		c.Detail = fmt.Sprintf("%s, %.1f MB", file, float64(info.Size())/1e6)
		whole, err = readJournal(ctx, opt)
	}
	switch {
	case err != nil:
		c.State, c.Detail = CheckFault, fmt.Sprintf("%s: %v", file, err)
		c.Fix = "move the file away to start a new journal; without it, earlier requests can't be shown or resumed"
	case whole:
		c.Detail += ", read whole"
	default:
		c.Detail += fmt.Sprintf(", nothing wrong in what %s read", maxCheck)
	}
	return c
}

func readJournal(ctx context.Context, opt Options) (whole bool, err error) {
	j, err := OpenJournal(ctx, opt)
	if err != nil {
		return false, err
	}
	defer j.Close()
	bounded, cancel := context.WithTimeout(ctx, maxCheck)
	defer cancel()
	if err := j.Check(bounded); err != nil {
		if ctx.Err() == nil && bounded.Err() != nil {
			return false, nil
		}
		return false, err
	}
	return true, nil
}

func (d doctor) checkShell() Check {
	shell, err := d.workspace.Shell()
	if err != nil {
		return Check{"shell", CheckWarning, err.Error() + ": the tool execute can run nothing", "put the directory that holds bash or sh into PATH"}
	}
	return Check{Name: "shell", State: CheckOK, Detail: shell}
}
