package raftfsm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// Prepare makes the folder of a member that never ran, with an empty log in it. It does
// nothing where there is a log. Once it has returned the folder outlives a loss of
// power; what notes down that the member exists does so then, before the member is
// opened with Config.Prepared: from its opening on it may vote, and what it said must
// not be said twice.
func Prepare(dir string) error {
	if err := prepare(dir); err != nil {
		return fmt.Errorf("prepare a group's folder: %w", err)
	}
	return nil
}

func prepare(dir string) error {
	log := filepath.Join(dir, logFile)
	switch err := hasLog(dir); {
	case err == nil:
		return nil
	case !errors.Is(err, ErrGone):
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// Under another name, so that there never is half a file.
	fresh := filepath.Join(dir, renewedFile)
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	db, err := bbolt.Open(fresh, 0o600, boltOptions())
	if err != nil {
		return err
	}
	if err := errors.Join(db.Sync(), db.Close()); err != nil {
		return err
	}
	if err := os.Rename(fresh, log); err != nil {
		return err
	}
	return errors.Join(syncFolder(dir), syncFolder(filepath.Dir(dir)))
}

// hasLog gives ErrGone where there is no log, or one without a byte.
func hasLog(dir string) error {
	info, err := os.Stat(filepath.Join(dir, logFile))
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.Size() == 0:
		return ErrGone
	default:
		return err
	}
}

// syncFolder makes the names in a folder last.
func syncFolder(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
