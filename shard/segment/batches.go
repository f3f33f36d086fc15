package segment

import (
	"errors"
	"iter"
)

// Some parts of a state stay in memory and change little: operations and job items are recorded,
// and forgotten some time later. A snapshot writes only those that no earlier snapshot wrote:
//
//	files  [1 … 900] [901 … 1300] [1301 … 1350]        records have sequences, and
//	next   [1 … 900] [901 …             … 1400]        files come in their order
//
// A file is dropped when all its records are dead, and rewritten when too many are. Rewriting a
// file also takes in its neighbours, unless they are larger or half full. So there are few files,
// and each record is rewritten only as often as its file can double. Everything is written from
// memory; files are read at a start only.

const (
	// batchRecords is the most records in a file of a batch. A smaller number lets files go sooner.
	// A larger number makes fewer files.
	batchRecords = 1 << 15
	// batchShare limits the file of a batch to one part in batchShare of a segment's bytes.
	batchShare = 4
)

// Batch names a file whose records are also in memory.
type Batch struct {
	Hash Hash
	// First and Last are sequences, Records is the number of records.
	First, Last, Records uint64
}

// Batch returns the batch of the file.
func (f *File) Batch() Batch { return Batch{f.ref.Hash, f.foot.first, f.foot.last, f.foot.records} }

// Batches are the files of a state, in order, until Release.
type Batches struct {
	list  []Batch
	files []*File
	// Written counts the files and bytes that Rebatch wrote.
	Written Built
}

// List returns the batches. A nil *Batches has none.
func (b *Batches) List() []Batch {
	if b == nil {
		return nil
	}
	return b.list
}

// Files returns the files.
func (b *Batches) Files() []*File {
	if b == nil {
		return nil
	}
	return b.files
}

// Release releases the files. A nil *Batches has none.
func (b *Batches) Release() {
	if b == nil {
		return
	}
	for _, f := range b.files {
		f.Release()
	}
	b.list, b.files = nil, nil
}

// add adds a file, whose reference it takes over.
func (b *Batches) add(f *File) {
	b.list, b.files = append(b.list, f.Batch()), append(b.files, f)
}

// Living are the records of a state, all of which are in memory.
type Living interface {
	// Last returns the last sequence that a record was given.
	Last() uint64
	// Count returns the number of records from first to last.
	Count(first, last uint64) uint64
	// Records returns these records in ascending order. A record is valid until the next one.
	Records(first, last uint64) iter.Seq[Record]
}

// stretch is a range of records in one file, or in none yet.
type stretch struct {
	first, last, records uint64
	file                 *File // nil before it is written
}

// joins reports whether w, which is about to be written, takes in the records of other.
func (s *Store) joins(w, other stretch) bool {
	if w.file != nil || w.records < other.records {
		return false
	}
	f := other.file // a file that is half full stays
	return f == nil || f.foot.records <= batchRecords/2 && f.ref.Bytes <= s.bytes/batchShare/2
}

// Rebatch makes the files of a state from those of an earlier one. Any of the old files may be
// gone. When it returns, the new files survive a loss of power. An error changes nothing, except
// for files that Collect removes.
func (s *Store) Rebatch(old []Batch, state Living, clean Clean) (*Batches, error) {
	stretches, err := s.stretches(old, state, clean)
	to := new(Batches)
	for _, w := range s.join(stretches) {
		switch {
		case w.file != nil:
			to.add(w.file) // an error releases it with the others
		case err == nil:
			err = s.write(to, state.Records(w.first, w.last))
		}
	}
	if err == nil && to.Written.Files > 0 {
		err = s.Sync()
	}
	if err != nil {
		to.Release()
		return nil, err
	}
	return to, nil
}

// stretches returns the ranges of live records: one for each file, and last the range of the
// records in no file. On an error it returns the ranges whose files it has opened.
func (s *Store) stretches(old []Batch, state Living, clean Clean) (list []stretch, err error) {
	next := uint64(1)
	for _, b := range old {
		next = b.Last + 1
		n := state.Count(b.First, b.Last)
		if n == 0 {
			continue
		}
		w := stretch{first: b.First, last: b.Last, records: n}
		if b.keeps(n, clean) {
			w.file, err = s.File(b.Hash)
			if err != nil && !errors.Is(err, ErrMissing) { // a missing file is rewritten
				return list, err
			}
		}
		list = append(list, w)
	}
	if n := state.Count(next, state.Last()); n > 0 {
		list = append(list, stretch{first: next, last: state.Last(), records: n})
	}
	return list, nil
}

// keeps reports whether a file with n live records stays as it is.
func (b Batch) keeps(n uint64, clean Clean) bool {
	dead := b.Records - n
	switch clean {
	case Leave:
		return true
	case Erase:
		return dead == 0
	default:
		return dead*deadShare < b.Records
	}
}

// join merges ranges with their neighbours where joins permits it.
func (s *Store) join(list []stretch) (joined []stretch) {
	for _, w := range list {
		joined = append(joined, w)
		for len(joined) > 1 {
			a, b := joined[len(joined)-2], joined[len(joined)-1]
			if !s.joins(a, b) && !s.joins(b, a) {
				break
			}
			for _, f := range []*File{a.file, b.file} {
				if f != nil {
					f.Release()
				}
			}
			joined = append(joined[:len(joined)-2], stretch{first: a.first, last: b.last, records: a.records + b.records})
		}
	}
	return joined
}

// write writes records into as many files as it takes.
func (s *Store) write(to *Batches, records iter.Seq[Record]) error {
	out := output{
		store: s,
		full:  func(w *Writer) bool { return w.foot.records >= batchRecords || w.Bytes() >= s.bytes/batchShare },
		done: func(f *File) {
			to.add(f)
			to.Written.count(f)
		},
	}
	return out.addAll(records)
}
