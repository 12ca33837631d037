//go:build unix

package tool

import (
	"io/fs"
	"os"
	"syscall"
)

// nonblock keeps opening a named pipe from waiting for its other end.
const nonblock = syscall.O_NONBLOCK

// keepOwner gives a replacement the owner of the file it replaces, where we
// may: an agent that runs as root must not take a user's files over.
func keepOwner(f *os.File, old fs.FileInfo) {
	if st, ok := old.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(st.Uid), int(st.Gid)) // not ours to give away: the file stays our own
	}
}
