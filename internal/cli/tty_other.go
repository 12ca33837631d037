//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package cli

import "os"

// echoOff does nothing here: there is no portable way.
func echoOff(*os.File) func() { return nil }

func discardInput(*os.File) {}

// inForeground takes every terminal for the process's own: there are no jobs.
func inForeground(*os.File) bool { return true }

// notifyContinued never tells: a process is not stopped here.
func notifyContinued(chan<- os.Signal) {}
