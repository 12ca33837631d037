//go:build unix

package tool

import (
	"crypto/rand"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"
)

var shellNames = []string{"bash", "sh"}

func isExecutable(info fs.FileInfo) bool { return info.Mode().Perm()&0o111 != 0 }

// markName is the environment variable by which the processes of one command
// are told from all others, those that left the group included.
const markName = "SYNAPSE_COMMAND"

// A group is the processes that a command starts. The shell leads a session of
// its own, so that it has no terminal to ask a question on, and a process
// group. Where the system lets us look (Linux), processes that have left the
// group are found by a mark in their environment; out of reach stays only what
// leaves the session and clears its environment too.
type group struct {
	pid  int
	mark string
}

func prepareGroup(cmd *exec.Cmd) *group {
	g := &group{mark: markName + "=" + rand.Text()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = append(cmd.Env, g.mark)
	return g
}

func (g *group) started(pid int) { g.pid = pid }

// terminate asks every process of the group to end.
func (g *group) terminate() {
	_ = syscall.Kill(-g.pid, syscall.SIGTERM) // gone already is as good
	for _, p := range g.strays() {
		_ = p.Signal(syscall.SIGTERM)
		_ = p.Release()
	}
}

// kill ends every process of the group and reports whether there was one. It
// looks again until it finds none: one may have started another meanwhile.
func (g *group) kill() (any bool) {
	for range 20 {
		found := syscall.Kill(-g.pid, syscall.SIGKILL) == nil && !g.onlyZombies()
		for _, p := range g.strays() {
			found = p.Kill() == nil || found
			_ = p.Release()
		}
		if !found {
			return any
		}
		any = true
		time.Sleep(time.Millisecond) // a killed process takes a moment to go
	}
	return any
}

// signalName names the signal that ended a process, "" for none.
func signalName(state *os.ProcessState) string {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal().String()
	}
	return ""
}
