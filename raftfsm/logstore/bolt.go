package logstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

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

// boltDisk is the log of a member in a file of bbolt. The file can be replaced by a copy:
// bbolt keeps the pages of removed entries, with their contents, and never shrinks the
// file. Buckets, keys and values are those of raft-boltdb, which earlier releases used.
type boltDisk struct {
	dir    string
	noSync bool // for tests

	// committed is the commit index that the next write records.
	committed atomic.Uint64

	mu sync.RWMutex // held for writing while the file is replaced
	db *bbolt.DB
}

func openBolt(dir string, noSync bool) (*boltDisk, error) {
	if err := os.Remove(filepath.Join(dir, renewedFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove %s: %w", renewedFile, err)
	}
	d := &boltDisk{dir: dir, noSync: noSync}
	return d, d.open()
}

// open opens the file. mu is held, or d is not shared yet.
func (d *boltDisk) open() error {
	err := guarded(func() (err error) {
		o := boltOptions()
		o.NoSync = d.noSync
		if d.db, err = bbolt.Open(filepath.Join(d.dir, File), 0o600, o); err != nil {
			return err
		}
		if err := d.makeBuckets(); err != nil {
			return errors.Join(err, d.db.Close())
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("open %s: %w", File, unreadable(err))
	}
	return nil
}

func (d *boltDisk) makeBuckets() error {
	return d.db.Update(func(tx *bbolt.Tx) error {
		_, logsErr := tx.CreateBucketIfNotExists(bucketLogs)
		_, confErr := tx.CreateBucketIfNotExists(bucketConf)
		return errors.Join(logsErr, confErr)
	})
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
	if err := d.db.Close(); err != nil {
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
	return d.db.Close()
}
