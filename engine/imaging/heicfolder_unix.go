//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package imaging

import (
	"errors"
	"os"
	"syscall"
)

const canLock = true

// lockFolder locks a folder that this user made. Closing the returned file, or the end of the
// process, releases the lock.
func lockFolder(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = sameFolder(path, f)
	}
	if err == nil {
		err = mine(f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// mine returns an error unless the folder is this user's.
func mine(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Geteuid() {
		return errFolderInUse
	}
	return nil
}
