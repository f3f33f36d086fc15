package auditlog

import (
	"fmt"
	"iter"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"facet/shard/segment"
)

// files are those of one log. The record of entry n has the sequence n+1. Its sealed part is the leaf's
// hash and then the entry's sealed content, which a record of an expired entry lacks.
type files struct {
	list []file
	set  *segment.Set // the same files, to read from; nil without files
}

// file is one of a log's files.
type file struct {
	segment.Batch
	// bare is the number of its records that were written without contents.
	bare uint64
}

// read returns n entries of the files.
func read(set *segment.Set, first, n uint64) ([]Entry, error) {
	list := make([]Entry, 0, n)
	var cursor segment.Cursor
	for at := first; at < first+n; at++ {
		part, err := set.SealedBy(&cursor, at+1)
		if err != nil {
			return nil, err
		}
		if len(part) < tlog.HashSize {
			return nil, fmt.Errorf("%w: entry %d has %d bytes", segment.ErrCorrupt, at, len(part))
		}
		e := Entry{Leaf: Hash(part[:tlog.HashSize])}
		if rest := part[tlog.HashSize:]; len(rest) > 0 {
			e.Sealed = slices.Clone(rest)
		}
		list = append(list, e)
	}
	return list, nil
}

// living implements segment.Living for a frozen log.
type living struct {
	log *logView
	err error // of a read
}

// Last returns the sequence of the last entry.
func (l *living) Last() uint64 { return l.log.size }

// Count returns the number of records from first to last: no record of a log is ever removed.
func (l *living) Count(first, last uint64) uint64 {
	if last = min(last, l.log.size); first <= last {
		return last - first + 1
	}
	return 0
}

// Records returns the records from first to last.
func (l *living) Records(first, last uint64) iter.Seq[segment.Record] {
	return func(yield func(segment.Record) bool) {
		const most = 256
		for at := first - 1; at < last; {
			list, err := l.log.read(at, min(most, last-at))
			if err != nil {
				l.err = err
				return
			}
			for _, e := range list {
				at++
				if !yield(segment.Record{Sequence: at, Sealed: append(e.Leaf[:], e.Sealed...)}) {
					return
				}
			}
		}
	}
}

// settle writes the entries that no file has, and the files again whose expired contents must go. v
// owns the files.
func (v *logView) settle(store *segment.Store, clean segment.Clean) error {
	old := make([]segment.Batch, len(v.files.list))
	for i, f := range v.files.list {
		old[i] = f.Batch
		old[i].Records += v.expired(f.Batch) - f.bare // Rebatch takes the difference to Count for dead records
	}
	l := &living{log: v}
	settled, err := store.Rebatch(old, l, clean)
	if err == nil && l.err != nil {
		settled.Release()
		err = l.err
	}
	if err != nil {
		return fmt.Errorf("write audit log of %s: %w", v.tenant, err)
	}
	v.settled = settled
	return nil
}

// expired returns how many records of a batch belong to entries without contents.
func (v *logView) expired(b segment.Batch) uint64 {
	if v.bare < b.First {
		return 0
	}
	return min(v.bare, b.Last) - b.First + 1
}

// settledFiles returns the files that settle found or wrote, and a set of them for readers.
func (v *logView) settledFiles() (files, error) {
	var fs files
	var parts []segment.Part
	for i, b := range v.settled.List() {
		f := file{Batch: b, bare: v.expired(b)}
		if j := slices.IndexFunc(v.files.list, func(old file) bool { return old.Hash == b.Hash }); j >= 0 {
			f.bare = v.files.list[j].bare
		}
		fs.list = append(fs.list, f)
		parts = append(parts, segment.Part{File: v.settled.Files()[i].Retain()})
	}
	if len(parts) == 0 {
		return fs, nil
	}
	var err error
	fs.set, err = segment.NewSet(parts)
	return fs, err
}
