//go:build !unix && !windows

package host

import (
	"errors"
	"os"
)

var errLocked = errors.New("locked")

// lockFile can't lock here: nobody can tell a request that goes on from one that
// was cut off.
func lockFile(*os.File) error { return nil }
