//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package cli

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// inForeground reports whether the process is in the terminal's foreground. A job
// in the background must not draw, and is stopped when it changes the terminal's
// settings.
func inForeground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// echoOff turns a terminal's echo off and returns what turns it on again, nil
// where nothing was done.
func echoOff(f *os.File) func() {
	before, err := unix.IoctlGetTermios(int(f.Fd()), ioctlGetTermios)
	if err != nil || before.Lflag&unix.ECHO == 0 || !inForeground(f) {
		return nil
	}
	quiet := *before
	quiet.Lflag &^= unix.ECHO
	if unix.IoctlSetTermios(int(f.Fd()), ioctlSetTermios, &quiet) != nil {
		return nil
	}
	return func() {
		if inForeground(f) {
			// A terminal that has gone needs no echo.
			_ = unix.IoctlSetTermios(int(f.Fd()), ioctlSetTermios, before)
		}
	}
}

func discardInput(f *os.File) {
	if inForeground(f) {
		_ = flushInput(int(f.Fd())) // then what was typed is an answer after all
	}
}

// notifyContinued tells when the process goes on after it was stopped.
func notifyContinued(c chan<- os.Signal) { signal.Notify(c, unix.SIGCONT) }
