package auditing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"

	"golang.org/x/mod/sumdb/tlog"

	"facet/internal/tiles"
	"facet/node/datadir"
)

const (
	// KeyPath is the path of the log's verifier key, in a folder and in a cluster.
	KeyPath     = "key"
	keyBytesMax = 4 << 10
)

// Folder is a log in a folder: the files of tlog-tiles, and the log's key.
type Folder struct {
	name string
	root *os.Root

	mu      sync.Mutex      // guards touched
	touched map[string]bool // the folders in it whose names are not synced
}

// OpenFolder opens the log in a folder.
func OpenFolder(name string) (*Folder, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return &Folder{name: name, root: root, touched: map[string]bool{}}, nil
}

// MakeFolder opens the log in a folder, which it makes when missing.
func MakeFolder(name string) (*Folder, error) {
	if err := os.MkdirAll(name, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder: %w", err)
	}
	return OpenFolder(name)
}

// String returns the folder's name.
func (f *Folder) String() string { return f.name }

// Close ends the use of the folder.
func (f *Folder) Close() { _ = f.root.Close() }

// Read implements Source.
func (f *Folder) Read(_ context.Context, name string, limit int) ([]byte, error) {
	info, err := f.root.Stat(name)
	if err != nil {
		return nil, err // the error names the file
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, err // the error names the file
	}
	defer file.Close()
	if info.Size() > int64(limit) {
		return nil, tooLong(name, limit)
	}
	return readAtMost(file, name, limit)
}

// write writes a tile or a bundle and syncs it. A crash may leave a part of it. It is safe for
// concurrent use.
func (f *Folder) write(_ context.Context, t tlog.Tile, b []byte) error {
	name := tiles.Path(t)
	if err := f.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return fmt.Errorf("write the log: %w", err)
	}
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = file.Write(b)
		err = errors.Join(err, file.Sync(), file.Close())
	}
	if err != nil {
		return fmt.Errorf("write the log: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for dir := path.Dir(name); dir != "." && !f.touched[dir]; dir = path.Dir(dir) {
		f.touched[dir] = true
	}
	return nil
}

// commit makes the names of what was written durable, and then the checkpoint over it.
func (f *Folder) commit(ctx context.Context, signed []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for dir := range f.touched {
		if err := datadir.Sync(filepath.Join(f.name, dir)); err != nil {
			return err
		}
	}
	clear(f.touched)
	return f.save(ctx, tiles.CheckpointPath, signed)
}

// save writes a small file, whole or not at all.
func (f *Folder) save(_ context.Context, name string, b []byte) error {
	return datadir.WriteSynced(filepath.Join(f.name, name), b)
}

// remove removes a tile, if it is there.
func (f *Folder) remove(_ context.Context, name string) error {
	if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove an older tile: %w", err)
	}
	_ = f.root.Remove(path.Dir(name)) // fails while the folder has a wider one
	return nil
}

// ReadFile reads a file of at most limit bytes.
func ReadFile(name string, limit int) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err // the error names the file
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	if info.Size() > int64(limit) {
		return nil, tooLong(name, limit)
	}
	return os.ReadFile(name)
}
