package segment

import (
	"errors"
	"iter"
)

// Some parts of a state stay in memory and change little: what was done is noted, and
// forgotten some time later. Of them a snapshot need not write what the one before has
// written:
//
//	files  [1 … 900] [901 … 1300] [1301 … 1350]        records have sequences, and
//	next   [1 … 900] [901 …             … 1400]        files come in their order
//
// A file is dropped when none of its records lives, and is written anew when too many died. A
// file that is written takes those along that lie beside it and are neither larger nor
// half full, so that there are few files, and each record is written as often as its file
// can double.
// Everything is written from memory: no file is read but at a start.

const (
	// batchRecords is how many records a file of a batch has at most: the fewer, the
	// earlier all of them are dead; the more, the fewer files there are.
	batchRecords = 1 << 15
	// batchShare is which part of the bytes of other files it has at most.
	batchShare = 4
)

// Batch names a file whose records are in memory as well.
type Batch struct {
	Hash Hash
	// First and Last are sequences, Records counts.
	First, Last, Records uint64
}

// Batch describes the file.
func (f *File) Batch() Batch { return Batch{f.ref.Hash, f.foot.first, f.foot.last, f.foot.records} }

// Batches are the files of a state, in order. They are held until Release.
type Batches struct {
	list  []Batch
	files []*File
	// Written says what was written for them.
	Written Built
}

// List describes the files. A nil *Batches has none.
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

// Release lets go of the files. A nil *Batches has none.
func (b *Batches) Release() {
	if b == nil {
		return
	}
	for _, f := range b.files {
		f.Release()
	}
	b.list, b.files = nil, nil
}

// add takes a file over.
func (b *Batches) add(f *File) {
	b.list, b.files = append(b.list, f.Batch()), append(b.files, f)
}

// Living are the records of a state, all of which are in memory.
type Living interface {
	// Last is the last sequence that was given to a record.
	Last() uint64
	// Count counts the records from first to last.
	Count(first, last uint64) uint64
	// Records returns them in ascending order. A record is valid until the next.
	Records(first, last uint64) iter.Seq[Record]
}

// stretch are records that lie in one file, or are to be written.
type stretch struct {
	first, last, records uint64
	file                 *File // nil: to be written
}

// joins reports whether w, which is to be written, takes the records of another along.
func (s *Store) joins(w, other stretch) bool {
	if w.file != nil || w.records < other.records {
		return false
	}
	f := other.file // one that is half full stays
	return f == nil || f.foot.records <= batchRecords/2 && f.ref.Bytes <= s.bytes/batchShare/2
}

// Rebatch makes the files of a state from those of an earlier one: old, of which any may
// be gone meanwhile. The new files are on the disk for good when it returns. On an error
// nothing changed, except for files that Collect removes.
func (s *Store) Rebatch(old []Batch, state Living, clean Clean) (*Batches, error) {
	stretches, err := s.stretches(old, state, clean)
	to := new(Batches)
	for _, w := range s.join(stretches) {
		switch {
		case w.file != nil:
			to.add(w.file) // which is released with the others on an error
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

// stretches returns the live records, file by file, and last those in no file.
// On an error it gives the files that were opened.
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
			if err != nil && !errors.Is(err, ErrMissing) { // one that is gone is written again
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

// join lets what is written take neighbours along that are not larger.
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
func (s *Store) write(to *Batches, records iter.Seq[Record]) (err error) {
	var w *Writer
	defer func() {
		if w != nil {
			err = errors.Join(err, w.Cancel())
		}
	}()
	end := func() error {
		f, err := w.Close()
		if w = nil; err != nil {
			return err
		}
		to.add(f)
		to.Written.Files++
		to.Written.Bytes += f.ref.Bytes
		return nil
	}
	for r := range records {
		if w == nil {
			if w, err = s.Create(); err != nil {
				return err
			}
		}
		if w.Add(r); w.foot.records < batchRecords && w.Bytes() < s.bytes/batchShare {
			continue
		}
		if err := end(); err != nil {
			return err
		}
	}
	if w == nil {
		return nil
	}
	return end()
}
