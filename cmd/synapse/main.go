// Command synapse delegates work to sub-agents: a headless command line over
// the packages of this module.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/synapse-agents/synapse/internal/cli"
)

func main() {
	// Most commands are over before their heap is worth a collection: at Go's
	// own pace, a tenth of the processor time of a fan-out goes into that.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(250)
	}
	// What libraries print to the standard log is not for the screen that they
	// don't know of: one of Google's remarks on variables at every request.
	log.SetOutput(io.Discard)
	p := &cli.Process{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(),
	}
	p.Home, _ = os.UserHomeDir() // without one there is no user layer
	if exe, err := os.Executable(); err == nil {
		p.ExeDir = filepath.Dir(exe)
	}
	os.Exit(cli.Main(context.Background(), p))
}
