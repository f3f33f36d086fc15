package logstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrGone is returned when a member that was prepared has no log, or when its files hold
// less than it has flushed.
var ErrGone = errors.New("raftfsm: the log or a snapshot of a replica that was here is gone")

// Prepare creates dir with an empty log, which survives a loss of power. It does nothing
// if dir has a log.
func Prepare(dir string) error {
	log := filepath.Join(dir, File)
	switch err := Exists(dir); {
	case err == nil:
		return nil
	case !errors.Is(err, ErrGone):
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// Write the file under another name first, so that a crash never leaves half a log.
	fresh := filepath.Join(dir, renewedFile)
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	store, err := openStore(fresh, false)
	if err != nil {
		return err
	}
	if err := errors.Join(store.Sync(), store.Close()); err != nil {
		return err
	}
	if err := os.Rename(fresh, log); err != nil {
		return err
	}
	return errors.Join(syncFolder(dir), syncFolder(filepath.Dir(dir)))
}

// Exists returns ErrGone if dir has no log, or an empty file.
func Exists(dir string) error {
	info, err := os.Stat(filepath.Join(dir, File))
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.Size() == 0:
		return ErrGone
	default:
		return err
	}
}

// syncFolder flushes the names in a folder to the disk.
func syncFolder(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
