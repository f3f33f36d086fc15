package segment

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// disk is the folder that a Store works in. osDisk is the real one. The disk of the tests fails or
// loses power at its n-th call.
type disk interface {
	// create makes a new, empty file for writing.
	create(name string) (writable, error)
	// open opens a file and returns its size.
	open(name string) (readable, int64, error)
	rename(from, to string) error
	remove(name string) error
	// list returns the names of all files.
	list() ([]string, error)
	// sync makes renames and removals survive a loss of power.
	sync() error
}

type writable interface {
	io.WriteCloser
	Sync() error
}

type readable interface {
	io.ReaderAt
	io.Closer
}

type osDisk string

func (d osDisk) path(name string) string { return filepath.Join(string(d), name) }

func (d osDisk) create(name string) (writable, error) {
	return os.OpenFile(d.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func (d osDisk) open(name string) (readable, int64, error) {
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

func (d osDisk) rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

func (d osDisk) remove(name string) error { return os.Remove(d.path(name)) }

func (d osDisk) list() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

func (d osDisk) sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// makeFolder makes the folder of a store, so that it survives a loss of power.
func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of segments: %w", err)
	}
	return osDisk(filepath.Dir(dir)).sync()
}
