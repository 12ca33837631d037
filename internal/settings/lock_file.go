//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	lockWait  = 5 * time.Second
	lockStale = 30 * time.Second // far longer than a save takes
)

// lockDir locks a directory against other saves with a lock file. One that a
// dead process left behind is removed when it is old enough.
func lockDir(dir string) (unlock func(), err error) {
	path := filepath.Join(dir, ".settings.lock")
	for deadline := time.Now().Add(lockWait); ; time.Sleep(5 * time.Millisecond) {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			_ = f.Close()
			return func() { _ = os.Remove(path) }, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > lockStale {
			_ = os.Remove(path)
			continue
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("lock %s: another program is saving there", dir)
		}
	}
}
