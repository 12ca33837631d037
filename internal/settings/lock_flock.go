//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package settings

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockWait is how long a save waits for another one to finish.
const lockWait = 5 * time.Second

// lockDir locks a directory against other saves. The system lets go of the lock
// when the process dies, and no lock file is left in anybody's repository.
func lockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(lockWait); ; time.Sleep(5 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EWOULDBLOCK), errors.Is(err, syscall.EINTR):
			if time.Now().After(deadline) {
				_ = f.Close()
				return nil, fmt.Errorf("lock %s: another program is saving there", dir)
			}
		default: // locked, or a file system without locks, where the check of the content must do
			return func() { _ = f.Close() }, nil
		}
	}
}
