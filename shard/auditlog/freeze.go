package auditlog

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/shard/segment"
)

// The records of a book in a snapshot; codes 48 to 63 belong to this package. A book without logs has
// none. A log is its head, then its hashes, files, writers and intents.
var (
	headLog     = codec.Head{Code: 48, Version: 1}
	headHashes  = codec.Head{Code: 49, Version: 1}
	headFile    = codec.Head{Code: 50, Version: 1}
	headWriters = codec.Head{Code: 51, Version: 1}
	headIntents = codec.Head{Code: 52, Version: 1}
	// headEntries replaces hashes and files in a state without files.
	headEntries = codec.Head{Code: 53, Version: 1}
)

// ErrSnapshot is returned when records contradict each other.
var ErrSnapshot = errors.New("auditlog: the snapshot is not consistent")

// Each number keeps the records below codec.MessageMax.
const (
	hashesPerRecord  = 8192
	listedPerRecord  = 8192
	entriesPerRecord = 16
)

// logRecord precedes the other records of its log.
type logRecord struct {
	Tenant id.Tenant `cbor:"1,keyasint"`
	Size   uint64    `cbor:"2,keyasint,omitempty"`
	Bare   uint64    `cbor:"3,keyasint,omitempty"`
	Former []byte    `cbor:"4,keyasint,omitempty"`
}

// hashesRecord has hashes of a level of tiles, one behind the other: those of level 0 are the leaves of
// the last tile, if it is not complete.
type hashesRecord struct {
	Level  int    `cbor:"1,keyasint,omitempty"`
	Hashes []byte `cbor:"2,keyasint"`
}

type fileRecord struct {
	Hash segment.Hash `cbor:"1,keyasint"`
	Bare uint64       `cbor:"2,keyasint,omitempty"`
}

// writersRecord has writers in the order of their names.
type writersRecord struct {
	Names   []Writer  `cbor:"1,keyasint"`
	Batches []written `cbor:"2,keyasint"`
}

// intentsRecord has open intents in the order of their requests.
type intentsRecord struct {
	Requests []Request `cbor:"1,keyasint"`
	Indexes  []uint64  `cbor:"2,keyasint"`
}

type entriesRecord struct {
	Entries []Entry `cbor:"1,keyasint"`
}

// View is a book's state at one moment, for a snapshot. The caller releases it.
type View struct {
	book  *Book
	state *state // to notice a replaced state
	logs  []*logView
}

// logView is a log at one moment.
type logView struct {
	log // its tail and maps are not changed by the book
	// settled has the files after settle. nil means that no file was asked for.
	settled *segment.Batches
}

// read returns n entries.
func (v *logView) read(first, n uint64) ([]Entry, error) {
	var list []Entry
	if first < v.tailFrom {
		var err error
		if list, err = read(v.files.set, first, min(n, v.tailFrom-first)); err != nil {
			return nil, err
		}
	}
	if next := first + uint64(len(list)); uint64(len(list)) < n {
		list = append(list, v.tail[next-v.tailFrom:first+n-v.tailFrom]...)
	}
	for i := range list {
		if first+uint64(i) < v.bare {
			list[i].Sealed = nil
		}
	}
	return list, nil
}

// Freeze captures the state. Its cost grows with logs, writers and open intents, not with entries.
func (k *Book) Freeze() *View {
	k.mu.RLock()
	defer k.mu.RUnlock()
	v := &View{book: k, state: k.state}
	for _, tenant := range slices.SortedFunc(maps.Keys(k.state.logs), compareTenants) {
		frozen := *k.state.logs[tenant]
		frozen.writers, frozen.intents = maps.Clone(frozen.writers), maps.Clone(frozen.intents)
		frozen.tail = slices.Clip(frozen.tail)
		frozen.files.set.Retain()
		v.logs = append(v.logs, &logView{log: frozen})
	}
	return v
}

// Settle writes the entries that no file has yet. v owns the files, and Write refers to them.
func (v *View) Settle(store *segment.Store, clean segment.Clean) error {
	for _, l := range v.logs {
		if err := l.settle(store, clean); err != nil {
			return err
		}
	}
	return nil
}

// Files returns the files that Settle found or wrote.
func (v *View) Files() (list []*segment.File) {
	for _, l := range v.logs {
		list = append(list, l.settled.Files()...)
	}
	return list
}

// Adopt lets the book read entries from the files, after v became a snapshot. It does nothing if the
// book was replaced since.
func (v *View) Adopt() {
	v.book.mu.Lock()
	defer v.book.mu.Unlock()
	s := v.book.state
	if s != v.state {
		return
	}
	for _, frozen := range v.logs {
		l := s.logs[frozen.tenant]
		if l == nil || l.size < frozen.size || frozen.settled == nil || l.tailFrom != frozen.tailFrom {
			continue
		}
		settled, err := frozen.settledFiles()
		if err != nil {
			continue // the entries stay in memory
		}
		l.files.set.Release()
		l.files = settled
		s.tailBytes -= size(l.tail[:frozen.size-l.tailFrom])
		l.tail = slices.Clone(l.tail[frozen.size-l.tailFrom:])
		l.tailFrom = frozen.size
	}
}

// Release releases the files.
func (v *View) Release() {
	for _, l := range v.logs {
		l.settled.Release()
		l.files.set.Release()
	}
}

// Write adds the records of v to w, in an order that depends on the state only. After Settle, it refers
// to files instead of the entries. The error is segment.ErrCorrupt or the disk's.
func (v *View) Write(w *codec.Writer) error {
	for _, l := range v.logs {
		w.Record(headLog, logRecord{l.tenant, l.size, l.bare, l.former})
		var err error
		if l.settled == nil {
			err = l.writeEntries(w)
		} else {
			l.writeHashes(w)
			err = l.writeFiles(w)
		}
		if err != nil {
			return fmt.Errorf("read audit log of %s: %w", l.tenant, err)
		}
		l.writeWriters(w)
		l.writeIntents(w)
	}
	return nil
}

func (v *logView) writeEntries(w *codec.Writer) error {
	for at := uint64(0); at < v.size; {
		list, err := v.read(at, min(entriesPerRecord, v.size-at))
		if err != nil {
			return err
		}
		w.Record(headEntries, entriesRecord{list})
		at += uint64(len(list))
	}
	return nil
}

func (v *logView) writeHashes(w *codec.Writer) {
	for level := range len(v.above) + 1 {
		row, _ := v.row(level)
		for part := range slices.Chunk(row, hashesPerRecord) {
			var b []byte
			for _, h := range part {
				b = append(b, h[:]...)
			}
			w.Record(headHashes, hashesRecord{level, b})
		}
	}
}

func (v *logView) writeFiles(w *codec.Writer) error {
	settled, err := v.settledFiles()
	if err != nil {
		return err
	}
	defer settled.set.Release()
	for _, f := range settled.list {
		w.Record(headFile, fileRecord{f.Hash, f.bare})
	}
	return nil
}

func (v *logView) writeWriters(w *codec.Writer) {
	names := slices.SortedFunc(maps.Keys(v.writers), func(a, b Writer) int { return bytes.Compare(a[:], b[:]) })
	for part := range slices.Chunk(names, listedPerRecord) {
		r := writersRecord{Names: part}
		for _, name := range part {
			r.Batches = append(r.Batches, v.writers[name])
		}
		w.Record(headWriters, r)
	}
}

func (v *logView) writeIntents(w *codec.Writer) {
	requests := slices.SortedFunc(maps.Keys(v.intents), func(a, b Request) int { return bytes.Compare(a[:], b[:]) })
	for part := range slices.Chunk(requests, listedPerRecord) {
		r := intentsRecord{Requests: part}
		for _, request := range part {
			r.Indexes = append(r.Indexes, v.intents[request])
		}
		w.Record(headIntents, r)
	}
}
