package imaging

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	folderPrefix   = "facet-heic-decoder-"
	folderTriesMax = 5
)

var errFolderInUse = errors.New("the folder is in use, or another user's")

// folder is a temporary folder of this process alone. When the process dies, the system releases
// the lock.
type folder struct {
	path string
	lock *os.File
}

// newFolder makes a folder, and removes those of dead processes.
func newFolder() (*folder, error) {
	removeAbandoned()
	for range folderTriesMax {
		path, err := os.MkdirTemp("", folderPrefix)
		if err != nil {
			return nil, err
		}
		// Before it is locked, another process may remove it as abandoned.
		lock, err := lockFolder(path)
		if err == nil {
			return &folder{path: path, lock: lock}, nil
		}
		if err := os.RemoveAll(path); err != nil {
			return nil, err
		}
	}
	return nil, errFolderInUse
}

// remove removes the folder. It may be called more than once.
func (f *folder) remove() error {
	if _, err := f.lock.Stat(); errors.Is(err, os.ErrClosed) {
		return nil
	}
	return errors.Join(os.RemoveAll(f.path), f.lock.Close())
}

// removeAbandoned removes the folders of dead processes. A folder that can't be removed stays for
// the next start; nothing reads it.
func removeAbandoned() {
	if !canLock {
		return
	}
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), folderPrefix) {
			continue
		}
		path := filepath.Join(os.TempDir(), e.Name())
		lock, err := lockFolder(path)
		if err != nil {
			continue
		}
		_ = (&folder{path: path, lock: lock}).remove()
	}
}

// sameFolder returns an error if the path no longer leads to the open folder.
func sameFolder(path string, open *os.File) error {
	here, err := open.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !os.SameFile(here, there) {
		return fmt.Errorf("%w: it was replaced", errFolderInUse)
	}
	return nil
}
