package segment

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"testing"

	"facet/internal/must"
)

var errDisk = errors.New("the disk fails")

// memoryDisk is a folder in memory whose power fails at its n-th writing call: that
// one is done in part or not at all, and all later ones fail. What is on the disk for
// good is what was synced before.
type memoryDisk struct {
	mu    sync.Mutex
	left  int // writing calls until the power fails; negative: never
	calls int
	now   map[string]*memoryFile
	// durable are the names that survive a loss of power.
	durable map[string]*memoryFile
}

type memoryFile struct {
	bytes  []byte
	synced int // bytes that survive
}

func newMemoryDisk() *memoryDisk {
	return &memoryDisk{left: -1, now: make(map[string]*memoryFile), durable: make(map[string]*memoryFile)}
}

// step counts a writing call; an error says that the power is gone.
func (d *memoryDisk) step() error {
	d.calls++
	if d.left == 0 {
		return errDisk
	}
	if d.left > 0 {
		d.left--
	}
	return nil
}

// restart returns the disk after a loss of power.
func (d *memoryDisk) restart() *memoryDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := newMemoryDisk()
	for name, f := range d.durable {
		kept := &memoryFile{bytes: bytes.Clone(f.bytes[:f.synced]), synced: f.synced}
		next.now[name], next.durable[name] = kept, kept
	}
	return next
}

func (d *memoryDisk) create(name string) (writable, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return nil, err
	}
	if d.now[name] != nil {
		return nil, fs.ErrExist
	}
	f := &memoryFile{}
	d.now[name] = f
	return &memoryWriter{d, f}, nil
}

func (d *memoryDisk) open(name string) (readable, int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.now[name]
	if f == nil {
		return nil, 0, fs.ErrNotExist
	}
	return memoryReader{bytes.NewReader(f.bytes)}, int64(len(f.bytes)), nil
}

func (d *memoryDisk) rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	if d.now[from] == nil {
		return fs.ErrNotExist
	}
	d.now[to] = d.now[from]
	delete(d.now, from)
	return nil
}

func (d *memoryDisk) remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	if d.now[name] == nil {
		return fs.ErrNotExist
	}
	delete(d.now, name)
	return nil
}

func (d *memoryDisk) list() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.now)), nil
}

func (d *memoryDisk) sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	d.durable = maps.Clone(d.now)
	return nil
}

type memoryWriter struct {
	disk *memoryDisk
	file *memoryFile
}

// Write writes b, or half of it when the power fails.
func (w *memoryWriter) Write(b []byte) (int, error) {
	w.disk.mu.Lock()
	defer w.disk.mu.Unlock()
	if err := w.disk.step(); err != nil {
		w.file.bytes = append(w.file.bytes, b[:len(b)/2]...)
		return len(b) / 2, err
	}
	w.file.bytes = append(w.file.bytes, b...)
	return len(b), nil
}

func (w *memoryWriter) Sync() error {
	w.disk.mu.Lock()
	defer w.disk.mu.Unlock()
	if err := w.disk.step(); err != nil {
		return err
	}
	w.file.synced = len(w.file.bytes)
	return nil
}

func (w *memoryWriter) Close() error { return nil }

type memoryReader struct{ io.ReaderAt }

func (memoryReader) Close() error { return nil }

// setOf returns a set of n records with sealed parts of size bytes, on a disk of memory. damage gets
// what is reported.
func setOf(t *testing.T, n uint64, size int, damage *error) (d *memoryDisk, set *Set, list []Record) {
	t.Helper()
	d = newMemoryDisk()
	store, err := open(d, Options{Damaged: func(err error) { *damage = err }})
	must.Do(t, err)
	for i := range n {
		list = append(list, plain(i+1, size))
	}
	if set, _, err = store.Build(nil, Change{Fresh: each(list)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Release)
	return d, set, list
}
