package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
)

//go:embed execute.md
var executeWords string

const (
	executeTimeout    = 120 * time.Second
	executeMaxTimeout = 600 * time.Second
	// executeGrace is how long a command has between the signal that asks it
	// to end and the one that makes it.
	executeGrace = 2 * time.Second
)

type executeArgs struct {
	Command string `json:"command"`
	Timeout int    `json:"timeout,omitempty" jsonschema:"seconds, default 120, at most 600"`
}

// executeDetails is what an execute result tells programs.
type executeDetails struct {
	ExitCode   int    `json:"exit_code"` // -1 when a signal ended it
	Signal     string `json:"signal,omitempty"`
	TimedOut   bool   `json:"timed_out,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	Bytes      int64  `json:"bytes"`    // of output
	LeftOut    int64  `json:"left_out"` // of them not in the text
}

func (w *Workspace) execute() synapse.Tool {
	t := must(New("execute", executeWords, w.runExecute))
	t.Subject = policy.Subject{Kind: policy.SubjectCommand, Args: []string{"command"}}
	return t
}

func (w *Workspace) runExecute(ctx context.Context, in *synapse.Invocation, args executeArgs) (*synapse.ToolResult, error) {
	if strings.TrimSpace(args.Command) == "" {
		return nil, errors.New("the command is empty")
	}
	if strings.ContainsRune(args.Command, 0) {
		return nil, errors.New("the command holds a NUL byte")
	}
	timeout := executeTimeout
	if args.Timeout > 0 {
		// Compared as a number of seconds: a huge one would overflow.
		timeout = time.Duration(min(args.Timeout, int(executeMaxTimeout/time.Second))) * time.Second
	}
	env := w.environ()
	shell, err := findShell(env)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(shell, "-c", args.Command)
	cmd.Dir = w.dir
	cmd.Env = env
	run, err := startCommand(cmd, in.Output)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", path.Base(filepath.ToSlash(shell)), plainError(err))
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	end := ""
	select {
	case <-run.exited:
	case <-timer.C:
		end = fmt.Sprintf("timed out after %s", timeout)
		if args.Timeout > int(executeMaxTimeout/time.Second) {
			end += ", the most there is"
		}
		run.stop()
	case <-ctx.Done():
		end = "cancelled"
		run.stop()
	}
	run.finish()
	return run.result(end, in), nil
}

// result tells how the command went. end says why it was stopped, if it was.
func (r *running) result(end string, in *synapse.Invocation) *synapse.ToolResult {
	text, leftOut := r.out.text()
	d := executeDetails{
		ExitCode:   r.state.ExitCode(),
		Signal:     signalName(r.state),
		TimedOut:   strings.HasPrefix(end, "timed out"),
		DurationMS: r.took.Milliseconds(),
		Bytes:      r.out.total,
		LeftOut:    leftOut,
	}
	var notes []string
	switch {
	case end != "":
		notes = append(notes, end+" and was killed")
	case d.Signal != "":
		notes = append(notes, "killed by signal "+d.Signal)
	case d.ExitCode != 0:
		notes = append(notes, fmt.Sprintf("exit code %d", d.ExitCode))
	case text == "":
		notes = append(notes, "no output, exit code 0")
	}
	if r.leftBehind {
		notes = append(notes, "processes it left in the background were killed")
	}
	if len(notes) > 0 {
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		text += "[" + strings.Join(notes, "; ") + "]"
	}
	return &synapse.ToolResult{
		Text:    strings.TrimSuffix(text, "\n"),
		IsError: end != "" || d.ExitCode != 0,
		Details: details(d),
	}
}

// usualPath is where commands are looked for when the environment names no PATH.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environ returns the environment of a command: what the host gave, without
// what is hidden, with what keeps programs from waiting for a person.
func (w *Workspace) environ() []string {
	env := make([]string, 0, len(w.opt.Environ)+6)
	hasPath := false
	for _, kv := range w.opt.Environ {
		name, _, ok := strings.Cut(kv, "=")
		if !ok || slices.ContainsFunc(w.opt.HideEnv, func(p string) bool { return hidden(p, name) }) {
			continue
		}
		hasPath = hasPath || name == "PATH"
		env = append(env, kv)
	}
	if !hasPath {
		env = append(env, "PATH="+usualPath)
	}
	return append(env, "PWD="+w.dir, "TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0")
}

func hidden(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return pattern == name || err == nil && ok
}

// Shell returns the path of the shell that commands run in.
func (w *Workspace) Shell() (string, error) { return findShell(w.environ()) }

// findShell looks for bash, then sh, along the PATH that the command gets.
func findShell(env []string) (string, error) {
	search := usualPath
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = v // the last one counts, as it does for the command
		}
	}
	dirs := append(filepath.SplitList(search), filepath.SplitList(usualPath)...)
	for _, name := range shellNames {
		for _, dir := range dirs {
			if !filepath.IsAbs(dir) {
				continue // "." in PATH would let the workspace bring its own bash
			}
			file := filepath.Join(dir, name)
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && isExecutable(info) {
				return file, nil
			}
		}
	}
	return "", errors.New("no bash or sh was found")
}
