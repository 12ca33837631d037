//go:build unix

package tool

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// A dirHandle is an open directory. Walks and searches go from handle to
// handle rather than by paths: a step takes one system call however deep it
// is, and since it takes one name and follows no link, it can't lead out.
type dirHandle struct{ fd int }

// openDir opens the directory at p.
func openDir(p place) (dirHandle, error) {
	f, err := p.root.OpenFile(filepath.FromSlash(p.rel), syscall.O_RDONLY|syscall.O_DIRECTORY|nonblock, 0)
	if err != nil {
		return dirHandle{-1}, err
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	return dirHandle{fd}, err
}

func (d dirHandle) close() { _ = unix.Close(d.fd) }

// dir opens a directory in d.
func (d dirHandle) dir(name string) (dirHandle, error) {
	fd, err := d.open(name, unix.O_DIRECTORY)
	return dirHandle{fd}, err
}

func (d dirHandle) open(name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC|flags, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// read returns the content of a regular file in d, in buf where it has room.
// The error is errHuge for more than max bytes.
func (d dirHandle) read(name string, buf []byte, max int64) ([]byte, error) {
	fd, err := d.open(name, 0)
	if err != nil {
		return buf, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return buf, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return buf, fs.ErrInvalid
	}
	return readSized(buf, st.Size, max, func(b []byte) (int, error) {
		for {
			n, err := unix.Read(fd, b)
			if !errors.Is(err, unix.EINTR) {
				return n, err
			}
		}
	})
}
