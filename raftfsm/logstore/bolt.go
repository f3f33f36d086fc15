package logstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"facet/raftfsm/health"
)

const (
	// File is the name of the log's file in the folder of a member.
	File = "raft.db"
	// renewedFile is the name of a copy of the file until the copy is complete.
	renewedFile = "raft.db.tmp"
	// renewBytes is the most bytes that one transaction of the copy has.
	renewBytes = 4 << 20
	// lockTimeout is how long OpenDisk waits for another process to close the file.
	lockTimeout = time.Second
)

// boltDisk is raft-boltdb on a file that can be replaced by a copy. bbolt keeps the pages
// of removed entries, with their contents, and never shrinks the file.
type boltDisk struct {
	dir string

	mu    sync.RWMutex // held for writing while the file is replaced
	store *raftboltdb.BoltStore
}

func openBolt(dir string) (*boltDisk, error) {
	if err := os.Remove(filepath.Join(dir, renewedFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove %s: %w", renewedFile, err)
	}
	d := &boltDisk{dir: dir}
	return d, d.open()
}

// open opens the file. mu is held, or d is not shared yet.
func (d *boltDisk) open() error {
	err := guarded(func() (err error) {
		d.store, err = raftboltdb.New(raftboltdb.Options{
			Path:                    filepath.Join(d.dir, File),
			BoltOptions:             boltOptions(),
			MsgpackUseNewTimeFormat: true, // the same in transport.go
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("open %s: %w", File, unreadable(err))
	}
	return nil
}

// unreadable wraps an error of bbolt in ErrCorrupt if it is about the contents of a file.
// It returns other errors unchanged: errors of the system, and the error for a file that
// another process has open.
func unreadable(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) || errors.Is(err, berrors.ErrTimeout) || errors.Is(err, fs.ErrInvalid) {
		return err
	}
	return fmt.Errorf("%w: %w", health.ErrCorrupt, err)
}

func boltOptions() *bbolt.Options {
	return &bbolt.Options{Timeout: lockTimeout, FreelistType: bbolt.FreelistMapType}
}

// renew replaces the file by a copy of its entries and values. A crash leaves the old or
// the new file. After an error the state of the file is unknown.
func (d *boltDisk) renew() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.store.Close(); err != nil {
		return fmt.Errorf("close %s: %w", File, err)
	}
	if err := guarded(d.copy); err != nil {
		return fmt.Errorf("copy %s: %w", File, err)
	}
	return d.open()
}

// copy copies the file and renames the copy to the file's name.
func (d *boltDisk) copy() (err error) {
	from, to := filepath.Join(d.dir, File), filepath.Join(d.dir, renewedFile)
	readOnly := boltOptions()
	readOnly.ReadOnly = true
	src, err := bbolt.Open(from, 0o600, readOnly)
	if err != nil {
		return err
	}
	dst, err := bbolt.Open(to, 0o600, boltOptions())
	if err != nil {
		return errors.Join(err, src.Close())
	}
	err = bbolt.Compact(dst, src, renewBytes)
	if err == nil {
		err = dst.Sync()
	}
	if err = errors.Join(err, dst.Close(), src.Close()); err != nil {
		return err
	}
	if err := os.Rename(to, from); err != nil {
		return err
	}
	return syncFolder(d.dir)
}

func (d *boltDisk) Close() error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.store.Close()
}

func (d *boltDisk) FirstIndex() (uint64, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.store.FirstIndex()
}

func (d *boltDisk) LastIndex() (uint64, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.store.LastIndex()
}

func (d *boltDisk) GetLog(index uint64, l *raft.Log) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.store.GetLog(index, l)
}

func (d *boltDisk) StoreLog(l *raft.Log) error { return d.StoreLogs([]*raft.Log{l}) }

func (d *boltDisk) StoreLogs(logs []*raft.Log) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.store.StoreLogs(logs)
}

func (d *boltDisk) DeleteRange(first, last uint64) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.store.DeleteRange(first, last)
}

func (d *boltDisk) Set(key, value []byte) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.store.Set(key, value)
}

func (d *boltDisk) Get(key []byte) ([]byte, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.store.Get(key)
}

func (d *boltDisk) SetUint64(key []byte, value uint64) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.store.SetUint64(key, value)
}

func (d *boltDisk) GetUint64(key []byte) (uint64, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.store.GetUint64(key)
}
