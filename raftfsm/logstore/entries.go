package logstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"

	"facet/raftfsm/health"
)

var (
	bucketLogs = []byte("logs") // the entries, by index
	bucketConf = []byte("conf") // the values, by key
)

// errNotFound is returned for a key that has no value. raft compares its text.
var errNotFound = errors.New("not found")

func indexKey(index uint64) []byte { return binary.BigEndian.AppendUint64(nil, index) }

func keyIndex(key []byte) (uint64, error) {
	if len(key) != 8 {
		return 0, fmt.Errorf("an entry's key has %d bytes: %w", len(key), health.ErrCorrupt)
	}
	return binary.BigEndian.Uint64(key), nil
}

// encodeLog returns the stored form of an entry, in MessagePack with the time as an
// extension.
func encodeLog(l *raft.Log) ([]byte, error) {
	var b bytes.Buffer
	err := codec.NewEncoder(&b, &codec.MsgpackHandle{}).Encode(l)
	return b.Bytes(), err
}

func decodeLog(b []byte, l *raft.Log) error {
	return codec.NewDecoderBytes(b, &codec.MsgpackHandle{}).Decode(l)
}

func (d *boltDisk) view(read func(logs, conf *bbolt.Bucket) error) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.db.View(func(tx *bbolt.Tx) error { return read(tx.Bucket(bucketLogs), tx.Bucket(bucketConf)) })
}

// update makes a change and writes the record of it in the same transaction.
func (d *boltDisk) update(change func(logs, conf *bbolt.Bucket, r *Record) error) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.db.Update(func(tx *bbolt.Tx) error {
		logs, conf := tx.Bucket(bucketLogs), tx.Bucket(bucketConf)
		r, err := readRecord(conf)
		if err == nil {
			err = change(logs, conf, &r)
		}
		if err != nil {
			return err
		}
		r.First = r.Last + 1
		if key, _ := logs.Cursor().First(); key != nil {
			if r.First, err = keyIndex(key); err != nil {
				return err
			}
		}
		r.Commit = max(r.Commit, d.committed.Load())
		return conf.Put(keyRecord, sealValue(keyRecord, r.encode()))
	})
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

func (d *boltDisk) Save() error {
	return d.update(func(*bbolt.Bucket, *bbolt.Bucket, *Record) error { return nil })
}

func (d *boltDisk) Record() (r Record, err error) {
	err = d.view(func(_, conf *bbolt.Bucket) (err error) {
		r, err = readRecord(conf)
		return err
	})
	return r, err
}

func (d *boltDisk) FirstIndex() (uint64, error) { return d.edge((*bbolt.Cursor).First) }

func (d *boltDisk) LastIndex() (uint64, error) { return d.edge((*bbolt.Cursor).Last) }

func (d *boltDisk) edge(end func(*bbolt.Cursor) (key, value []byte)) (index uint64, err error) {
	err = d.view(func(logs, _ *bbolt.Bucket) (err error) {
		if key, _ := end(logs.Cursor()); key != nil {
			index, err = keyIndex(key)
		}
		return err
	})
	return index, err
}

func (d *boltDisk) GetLog(index uint64, l *raft.Log) error {
	return d.view(func(logs, _ *bbolt.Bucket) error {
		b := logs.Get(indexKey(index))
		if b == nil {
			return raft.ErrLogNotFound
		}
		return decodeLog(b, l)
	})
}

func (d *boltDisk) StoreLog(l *raft.Log) error { return d.StoreLogs([]*raft.Log{l}) }

func (d *boltDisk) StoreLogs(entries []*raft.Log) error {
	return d.update(func(logs, _ *bbolt.Bucket, r *Record) error {
		for _, l := range entries {
			b, err := encodeLog(l)
			if err != nil {
				return err
			}
			if err := logs.Put(indexKey(l.Index), b); err != nil {
				return err
			}
			r.Last, r.LastTerm = l.Index, l.Term
		}
		return nil
	})
}

// DeleteRange removes the entries from first to last. Behind the commit index it cuts off
// the end of the log. Otherwise it removes entries that a snapshot replaces, and the
// record keeps the last index.
func (d *boltDisk) DeleteRange(first, last uint64) error {
	return d.update(func(logs, _ *bbolt.Bucket, r *Record) error {
		cursor := logs.Cursor()
		for key, _ := cursor.Seek(indexKey(first)); key != nil; key, _ = cursor.Next() {
			index, err := keyIndex(key)
			if err != nil {
				return err
			}
			if index > last {
				break
			}
			if err := cursor.Delete(); err != nil {
				return err
			}
		}
		if first <= max(r.Commit, d.committed.Load()) || last < r.Last {
			return nil
		}
		r.Last, r.LastTerm = first-1, 0
		var before raft.Log
		if b := logs.Get(indexKey(first - 1)); b != nil {
			if err := decodeLog(b, &before); err != nil {
				return err
			}
			r.LastTerm = before.Term
		}
		return nil
	})
}

func (d *boltDisk) Set(key, value []byte) error {
	return d.update(func(_, conf *bbolt.Bucket, r *Record) error {
		r.note(key, value)
		return conf.Put(key, value)
	})
}

func (d *boltDisk) Get(key []byte) (value []byte, err error) {
	err = d.view(func(_, conf *bbolt.Bucket) error {
		b := conf.Get(key)
		if b == nil {
			return errNotFound
		}
		value = slices.Clone(b)
		return nil
	})
	return value, err
}

func (d *boltDisk) SetUint64(key []byte, value uint64) error { return d.Set(key, indexKey(value)) }

func (d *boltDisk) GetUint64(key []byte) (uint64, error) {
	value, err := d.Get(key)
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("%s has %d bytes: %w", key, len(value), health.ErrCorrupt)
	}
	return binary.BigEndian.Uint64(value), nil
}
