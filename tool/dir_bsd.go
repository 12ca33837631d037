//go:build unix && !linux

package tool

import (
	"os"

	"golang.org/x/sys/unix"
)

// direntBuffer is what list is given; here the standard library has its own.
const direntBuffer = 0

// list returns what is in d, in no order.
func (d dirHandle) list([]byte) ([]entry, error) {
	fd, err := unix.FcntlInt(uintptr(d.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	list, err := f.ReadDir(-1)
	entries := make([]entry, 0, len(list))
	for _, e := range list {
		entries = append(entries, entry{e.Name(), e.Type()})
	}
	return entries, err
}
