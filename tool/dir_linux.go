package tool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// The layout of an entry as the kernel gives it: inode and offset of eight
// bytes each, its length of two, its type of one, then the name up to a NUL.
const (
	direntLength = 16
	direntType   = 18
	direntName   = 19
)

// list returns what is in d, in no order. buf is for its use alone.
func (d dirHandle) list(buf []byte) ([]entry, error) {
	var entries []entry
	for {
		n, err := unix.Getdents(d.fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return entries, err
		}
		for b := buf[:n]; len(b) > direntName; {
			size := int(binary.NativeEndian.Uint16(b[direntLength:]))
			if size <= direntName || size > len(b) {
				return entries, fs.ErrInvalid
			}
			name := b[direntName:size]
			if i := bytes.IndexByte(name, 0); i >= 0 {
				name = name[:i]
			}
			kind := b[direntType]
			b = b[size:]
			if s := string(name); s != "." && s != ".." && s != "" {
				entries = append(entries, entry{s, d.mode(s, kind)})
			}
		}
	}
}

// mode turns an entry's type into one of Go's. A file system that doesn't tell
// is asked about the entry itself.
func (d dirHandle) mode(name string, kind byte) fs.FileMode {
	switch kind {
	case unix.DT_REG:
		return 0
	case unix.DT_DIR:
		return fs.ModeDir
	case unix.DT_LNK:
		return fs.ModeSymlink
	case unix.DT_UNKNOWN:
		var st unix.Stat_t
		if err := unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil {
			switch st.Mode & unix.S_IFMT {
			case unix.S_IFREG:
				return 0
			case unix.S_IFDIR:
				return fs.ModeDir
			case unix.S_IFLNK:
				return fs.ModeSymlink
			}
		}
	}
	return fs.ModeIrregular
}

// direntBuffer is how much of a directory is asked for at once, in bytes.
const direntBuffer = 32 << 10
