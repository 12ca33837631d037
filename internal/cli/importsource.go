package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// importSource is a place that definitions are copied from, at hand as a
// directory.
type importSource struct {
	name    string // as it is recorded
	ref     string
	dir     string
	commit  string
	changed bool // the directory has changes beyond the commit
	remove  func()
}

// scpForm is git's short form of an address: user@host:path.
var scpForm = regexp.MustCompile(`^[\w.-]+@[\w.-]+:.+`)

// isRepository reports whether a source is fetched with git and not read where
// it lies: an address, or a repository without files beside it.
func isRepository(source string) bool {
	if strings.Contains(source, "://") || scpForm.MatchString(source) {
		return true
	}
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(source, name)); err != nil {
			return false
		}
	}
	return true
}

// openSource makes a source available. What it returns must be removed.
func (a *app) openSource(ctx context.Context, source, ref string) (*importSource, error) {
	if strings.HasPrefix(source, "-") {
		return nil, usagef("%q is no source: want a directory, a file or the address of a git repository", source)
	}
	if isRepository(source) {
		return a.fetchSource(ctx, source, ref)
	}
	if ref != "" {
		return nil, usagef("--ref is for repositories that are fetched, and %s is a directory", source)
	}
	abs, err := filepath.Abs(source)
	if err == nil {
		_, err = os.Stat(abs)
	}
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	s := &importSource{name: abs, dir: abs, remove: func() {}}
	at := abs
	if info, err := os.Stat(abs); err == nil && !info.IsDir() {
		at = filepath.Dir(abs)
	}
	// A directory under git is known by its commit; without git it is not.
	if commit, err := a.git(ctx, "-C", at, "rev-parse", "--verify", "HEAD"); err == nil {
		s.commit = commit
		status, err := a.git(ctx, "-C", at, "status", "--porcelain", "--", ".")
		s.changed = err != nil || status != ""
	}
	return s, nil
}

var commitHash = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// fetchSource clones a repository into a directory of its own.
func (a *app) fetchSource(ctx context.Context, source, ref string) (*importSource, error) {
	if strings.HasPrefix(ref, "-") {
		return nil, usagef("--ref %q is no branch, tag or commit", ref)
	}
	if !strings.Contains(source, "://") && !scpForm.MatchString(source) {
		abs, err := filepath.Abs(source)
		if err != nil {
			return nil, fmt.Errorf("import: %w", err)
		}
		source = abs
	}
	dir, err := os.MkdirTemp("", "synapse-import-")
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	s := &importSource{name: withoutPassword(source), ref: ref, dir: filepath.Join(dir, "source"), remove: func() { os.RemoveAll(dir) }}
	args := []string{"clone", "--quiet"}
	switch {
	case commitHash.MatchString(ref): // which a clone can't ask for
		args = append(args, "--no-checkout")
	case ref != "":
		args = append(args, "--branch", ref)
	}
	if !filepath.IsAbs(source) && !commitHash.MatchString(ref) {
		args = append(args, "--depth", "1") // the rest of its history is of no use
	}
	_, err = a.git(ctx, append(args, "--", source, s.dir)...)
	if err == nil && commitHash.MatchString(ref) {
		_, err = a.git(ctx, "-C", s.dir, "checkout", "--quiet", "--detach", ref)
	}
	if err == nil {
		s.commit, err = a.git(ctx, "-C", s.dir, "rev-parse", "--verify", "HEAD")
	}
	if err != nil {
		s.remove()
		return nil, fmt.Errorf("import from %s: %w", s.name, err)
	}
	return s, nil
}

// withoutPassword takes the password out of an address: it must not be kept in a
// file.
func withoutPassword(source string) string {
	u, err := url.Parse(source)
	if err != nil || u.User == nil {
		return source
	}
	u.User = url.User(u.User.Username())
	return u.String()
}

// git runs git and returns what it prints. Nothing that a repository brings is
// run, and no one is asked for a password.
func (a *app) git(ctx context.Context, args ...string) (string, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return "", errors.New("git is not installed; give a directory instead")
	}
	args = append([]string{"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never"}, args...)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = 5 * time.Second
	// A git that started us has told us its own repository.
	cmd.Env = slices.DeleteFunc(slices.Clone(a.p.Environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.Contains([]string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_COMMON_DIR"}, name)
	})
	cmd.Env = append(cmd.Env, "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if text := strings.TrimSpace(errs.String()); text != "" {
			return "", fmt.Errorf("git: %s", text)
		}
		return "", fmt.Errorf("git: %w", err)
	}
	return strings.TrimSpace(out.String()), nil
}
