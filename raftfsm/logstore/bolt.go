package logstore

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
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
	// renewBytes is the most bytes of commands that one transaction of the copy has.
	renewBytes = 4 << 20
	// lockTimeout is how long OpenDisk waits for another process to close the file.
	lockTimeout = time.Second
	// recordIndex is the index of the entry with the Record. It comes after all others, so the
	// store writes it into the page of the newest entries, which changes anyway.
	recordIndex = math.MaxUint64
)

// boltDisk is the log of a member in a store of raft-boltdb. One more entry has the Record, so
// that each write contains it. The file can be replaced by a copy: bbolt keeps the pages of
// removed entries, with their contents, and never shrinks the file.
type boltDisk struct {
	dir    string
	noSync bool // for tests

	// committed is the commit index that the next write records.
	committed atomic.Uint64

	mu    sync.RWMutex // held for writing while the file is replaced
	store *raftboltdb.BoltStore

	writing sync.Mutex // held for a write
	record  atomic.Pointer[Record]
}

func openBolt(dir string, noSync bool) (*boltDisk, error) {
	if err := os.Remove(filepath.Join(dir, renewedFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove %s: %w", renewedFile, err)
	}
	d := &boltDisk{dir: dir, noSync: noSync}
	return d, d.open()
}

func openStore(path string, noSync bool) (*raftboltdb.BoltStore, error) {
	return raftboltdb.New(raftboltdb.Options{
		Path: path, NoSync: noSync, MsgpackUseNewTimeFormat: true,
		BoltOptions: &bbolt.Options{Timeout: lockTimeout, FreelistType: bbolt.FreelistMapType},
	})
}

// open opens the file. mu is held, or d is not shared yet.
func (d *boltDisk) open() error {
	err := guarded(func() (err error) {
		if d.store, err = openStore(filepath.Join(d.dir, File), d.noSync); err != nil {
			return err
		}
		r, err := readRecord(d.store)
		if err == nil && r != (Record{}) { // without a record the log is judged by Complete
			err = d.finishCut(r.Last)
		}
		if err != nil {
			return errors.Join(err, d.store.Close())
		}
		d.record.Store(&r)
		return nil
	})
	if err != nil {
		return fmt.Errorf("open %s: %w", File, unreadable(err))
	}
	return nil
}

// finishCut removes entries behind the last one, which a crash in DeleteRange leaves.
func (d *boltDisk) finishCut(last uint64) error {
	err := d.store.GetLog(last+1, new(raft.Log))
	switch {
	case errors.Is(err, raft.ErrLogNotFound):
		return nil
	case err != nil:
		return err
	}
	return d.store.DeleteRange(last+1, recordIndex-1)
}

// unreadable wraps an error of bbolt in ErrCorrupt if it is about the contents of a file.
// It returns other errors unchanged: errors of the system, and the error for a file that
// another process has open.
func unreadable(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) || errors.Is(err, berrors.ErrTimeout) || errors.Is(err, fs.ErrInvalid) || errors.Is(err, health.ErrCorrupt) {
		return err
	}
	return fmt.Errorf("%w: %w", health.ErrCorrupt, err)
}

func (d *boltDisk) FirstIndex() (uint64, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	index, err := d.store.FirstIndex()
	if index == recordIndex {
		index = 0
	}
	return index, err
}

func (d *boltDisk) LastIndex() (uint64, error) {
	first, err := d.FirstIndex()
	if first == 0 || err != nil {
		return 0, err
	}
	return d.record.Load().Last, nil
}

func (d *boltDisk) GetLog(index uint64, l *raft.Log) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.store.GetLog(index, l)
}

func (d *boltDisk) StoreLog(l *raft.Log) error { return d.StoreLogs([]*raft.Log{l}) }

func (d *boltDisk) StoreLogs(entries []*raft.Log) error {
	return d.write(func() error {
		return d.put(entries, func(r *Record) {
			for _, l := range entries {
				r.Last, r.LastTerm = l.Index, l.Term
			}
		})
	})
}

// DeleteRange removes the entries from first to last. Behind the commit index it cuts off
// the end of the log. Otherwise it removes entries that a snapshot replaces, and the
// record keeps the last index.
func (d *boltDisk) DeleteRange(first, last uint64) error {
	return d.write(func() error {
		if r := d.record.Load(); first > max(r.Commit, d.committed.Load()) && last >= r.Last {
			var before raft.Log // its term stays 0 if a snapshot has replaced it
			if err := d.store.GetLog(first-1, &before); err != nil && !errors.Is(err, raft.ErrLogNotFound) {
				return err
			}
			// First the record: a crash may leave more than it says, never less.
			if err := d.put(nil, func(r *Record) { r.Last, r.LastTerm = first-1, before.Term }); err != nil {
				return err
			}
		}
		return d.store.DeleteRange(first, last)
	})
}

func (d *boltDisk) Record() Record { return *d.record.Load() }

func (d *boltDisk) Save(change func(*Record)) error {
	return d.write(func() error { return d.put(nil, change) })
}

func (d *boltDisk) Commit(index uint64) (highest uint64) {
	for {
		highest = d.committed.Load()
		if index <= highest {
			return highest
		}
		if d.committed.CompareAndSwap(highest, index) {
			return index
		}
	}
}

// write makes a change alone.
func (d *boltDisk) write(change func() error) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	d.writing.Lock()
	defer d.writing.Unlock()
	return change()
}

// put writes entries and the changed record in one transaction. writing is held.
func (d *boltDisk) put(entries []*raft.Log, change func(*Record)) error {
	r := d.Record()
	change(&r)
	r.Commit = max(r.Commit, d.committed.Load())
	l, err := r.entry()
	if err != nil {
		return err
	}
	if err := d.store.StoreLogs(append(slices.Clip(entries), l)); err != nil {
		return err
	}
	d.record.Store(&r)
	return nil
}

// renew replaces the file by a copy of its entries. A crash leaves the old or the new file.
// After an error the state of the file is unknown.
func (d *boltDisk) renew() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := guarded(d.copy); err != nil {
		return fmt.Errorf("copy %s: %w", File, err)
	}
	return d.open()
}

// copy copies the file, closes it, and renames the copy to the file's name.
func (d *boltDisk) copy() error {
	path := filepath.Join(d.dir, renewedFile)
	to, err := openStore(path, true) // it is synced once, at the end
	if err != nil {
		return err
	}
	if err := errors.Join(d.copyEntries(to), to.Sync(), to.Close(), d.store.Close()); err != nil {
		return err
	}
	if err := os.Rename(path, filepath.Join(d.dir, File)); err != nil {
		return err
	}
	return syncFolder(d.dir)
}

func (d *boltDisk) copyEntries(to *raftboltdb.BoltStore) error {
	index, err := d.store.FirstIndex()
	if err != nil {
		return err
	}
	r := d.Record()
	l, err := r.entry()
	if err != nil {
		return err
	}
	batch, size := []*raft.Log{l}, 0
	for ; index <= r.Last; index++ {
		l := new(raft.Log)
		if err := d.store.GetLog(index, l); err != nil {
			return err
		}
		batch = append(batch, l)
		if size += len(l.Data); size >= renewBytes {
			if err := to.StoreLogs(batch); err != nil {
				return err
			}
			batch, size = nil, 0
		}
	}
	return to.StoreLogs(batch)
}

func (d *boltDisk) Close() error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.store.Close()
}
