//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// inForeground reports whether the process may change the terminal's settings: a
// job in the background would be stopped for it.
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
