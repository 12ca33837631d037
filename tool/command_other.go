//go:build !unix

package tool

import (
	"io/fs"
	"os"
	"os/exec"
)

var shellNames = []string{"bash.exe", "sh.exe"}

func isExecutable(fs.FileInfo) bool { return true }

// A group is the shell alone: this system has no process groups.
type group struct{ process *os.Process }

func prepareGroup(*exec.Cmd) *group { return &group{} }

func (g *group) started(pid int) { g.process, _ = os.FindProcess(pid) }

func (g *group) terminate() { g.kill() }

func (g *group) kill() bool {
	return g.process != nil && g.process.Kill() == nil
}

func signalName(*os.ProcessState) string { return "" }
