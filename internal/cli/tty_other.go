//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package cli

import "os"

// echoOff does nothing here: there is no portable way.
func echoOff(*os.File) func() { return nil }

func discardInput(*os.File) {}
