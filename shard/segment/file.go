package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sort"

	"facet/internal/stale"
)

// File is an open file. Any goroutine that holds a reference may call its methods.
type File struct {
	store         *Store
	ref           Ref
	at            readable
	foot          footer
	sealed, clear []block
	refs          int // guarded by Store.mu
}

// readFile reads and checks the head, footer and index of a file. Blocks are checked when they are
// read.
func readFile(s *Store, ref Ref, at readable) (*File, error) {
	size := ref.Bytes
	if size < int64(len(headMagic))+footerBytes || size > fileBytesMax {
		return nil, fmt.Errorf("%w: %d bytes", ErrCorrupt, size)
	}
	var head [len(headMagic)]byte
	var foot [footerBytes]byte
	if err := ReadAt(at, head[:], 0); err != nil {
		return nil, err
	}
	if err := ReadAt(at, foot[:], size-footerBytes); err != nil {
		return nil, err
	}
	if string(head[:]) != headMagic {
		return nil, fmt.Errorf("%w: it begins with %q", ErrCorrupt, head)
	}
	f := &File{store: s, ref: ref, at: at, refs: 1}
	var err error
	if f.foot, err = decodeFooter(foot[:], size); err != nil {
		return nil, err
	}
	index := make([]byte, size-footerBytes-f.foot.index)
	if err := ReadAt(at, index, f.foot.index); err != nil {
		return nil, err
	}
	f.sealed, f.clear, err = decodeIndex(index, &f.foot)
	return f, err
}

// ReadAt reads all of b. The error wraps ErrCorrupt if the file ends before, or comes from r.
func ReadAt(r io.ReaderAt, b []byte, offset int64) error {
	n, err := r.ReadAt(b, offset)
	switch {
	case n == len(b):
		return nil
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: it ends at %d", ErrCorrupt, offset+int64(n))
	default:
		return err
	}
}

// Ref names the file.
func (f *File) Ref() Ref { return f.ref }

// Records returns the number of records, and the number of records with a sealed part.
func (f *File) Records() (all, sealed uint64) { return f.foot.records, f.foot.sealedRecords }

// Range returns the first and the last sequence.
func (f *File) Range() (first, last uint64) { return f.foot.first, f.foot.last }

// Reader returns a reader of the file's bytes.
func (f *File) Reader() io.Reader { return io.NewSectionReader(f.at, 0, f.ref.Bytes) }

// Retain adds a reference.
func (f *File) Retain() *File {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	f.refs++
	return f
}

// Release drops a reference. The last one closes the file, and Store.Collect may remove it.
func (f *File) Release() {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	f.refs--
	switch {
	case f.refs == 0:
		delete(f.store.files, f.ref.Hash)
		f.at.Close() // a close after reading loses nothing
	case f.refs < 0:
		panic("bug: a segment was released too often")
	}
}

// damage names the file in err and reports it to Options.Damaged.
func (f *File) damage(err error) error {
	err = fmt.Errorf("read segment %s: %w", f.ref.Hash, err)
	f.store.damaged(err)
	return err
}

// read returns a checked block. It uses buf if that is large enough.
func (f *File) read(k block, buf []byte) ([]byte, error) {
	buf = slices.Grow(buf[:0], int(k.length))[:k.length]
	stale.Fill(buf)
	if err := ReadAt(f.at, buf, k.offset); err != nil {
		return nil, f.damage(err)
	}
	if crc32.Checksum(buf, castagnoli) != k.sum {
		return nil, f.damage(fmt.Errorf("%w: the block at %d", ErrCorrupt, k.offset))
	}
	return buf, nil
}

// Clear calls visit with the clear part of every record and the length of the sealed part. The
// clear part is valid during the call. An error of visit ends the walk.
func (f *File) Clear(visit func(sequence uint64, clear []byte, sealed int) error) error {
	var buf []byte
	var n, last uint64
	for _, k := range f.clear {
		var err error
		if buf, err = f.read(k, buf); err != nil {
			return err
		}
		for b := buf; len(b) > 0; n++ {
			var sequence uint64
			var part []byte
			if sequence, part, b, err = cutRecord(b); err != nil {
				return f.damage(err)
			}
			if len(part) < sealedLenBytes || sequence > k.last || sequence < f.foot.first || n > 0 && sequence <= last {
				return f.damage(fmt.Errorf("%w: record %d after %d", ErrCorrupt, sequence, last))
			}
			last = sequence
			if err := visit(sequence, part[sealedLenBytes:], int(binary.LittleEndian.Uint32(part))); err != nil {
				return err
			}
		}
	}
	if n != f.foot.records || last != f.foot.last {
		return f.damage(fmt.Errorf("%w: %d records to %d", ErrCorrupt, n, last))
	}
	return nil
}

// sealedParts reads the sealed parts of a file in order.
type sealedParts struct {
	file *File
	next int // index of the next block
	buf  []byte
	rest []byte
}

// part returns the next part, valid until the next call. It must be the part of the given sequence.
func (s *sealedParts) part(sequence uint64) ([]byte, error) {
	if len(s.rest) == 0 {
		if s.next == len(s.file.sealed) {
			return nil, s.file.damage(fmt.Errorf("%w: no sealed part of %d", ErrCorrupt, sequence))
		}
		var err error
		if s.buf, err = s.file.read(s.file.sealed[s.next], s.buf); err != nil {
			return nil, err
		}
		s.next++
		s.rest = s.buf
	}
	got, part, rest, err := cutRecord(s.rest)
	if err == nil && got != sequence {
		err = fmt.Errorf("%w: sealed part of %d instead of %d", ErrCorrupt, got, sequence)
	}
	if err != nil {
		return nil, s.file.damage(err)
	}
	s.rest = rest
	return part, nil
}

// Scan calls visit with every record, whose parts are valid during the call.
func (f *File) Scan(visit func(Record) error) error {
	parts := sealedParts{file: f}
	return f.Clear(func(sequence uint64, clear []byte, sealed int) error {
		r := Record{Sequence: sequence, Clear: clear}
		if sealed > 0 {
			var err error
			if r.Sealed, err = parts.part(sequence); err != nil {
				return err
			}
		}
		if len(r.Sealed) != sealed {
			return f.damage(fmt.Errorf("%w: sealed part of %d has %d bytes", ErrCorrupt, sequence, len(r.Sealed)))
		}
		return visit(r)
	})
}

// Verify reads the whole file. The error wraps ErrCorrupt, or comes from the disk.
func (f *File) Verify() error {
	if _, err := readFile(f.store, f.ref, f.at); err != nil {
		return f.damage(err)
	}
	return f.Scan(func(Record) error { return nil })
}

// cached is a sealed block in memory.
type cached struct {
	file  *File
	index int
	bytes []byte
}

// Sealed returns the sealed part of a record, which must not be changed. Without the record or the
// part, the error wraps ErrMissing.
func (f *File) Sealed(sequence uint64) ([]byte, error) {
	i := f.blockOf(sequence)
	if i == len(f.sealed) {
		return nil, f.missing(sequence)
	}
	place := &f.store.cache[(int(f.ref.Hash[0])+i)%cacheBlocks]
	c := place.Load()
	if c == nil || c.file != f || c.index != i {
		b, err := f.read(f.sealed[i], nil)
		if err != nil {
			return nil, err
		}
		c = &cached{f, i, b}
		place.Store(c)
	}
	part, _, err := f.cutTo(c.bytes, sequence)
	return part, err
}

// blockOf returns the sealed block that may have a record, or len(f.sealed).
func (f *File) blockOf(sequence uint64) int {
	return sort.Search(len(f.sealed), func(i int) bool { return f.sealed[i].last >= sequence })
}

func (f *File) missing(sequence uint64) error {
	return fmt.Errorf("%w: record %d of segment %s", ErrMissing, sequence, f.ref.Hash)
}

// cutTo returns the part of a record in a sealed block, and the rest of the block.
func (f *File) cutTo(b []byte, sequence uint64) (part, rest []byte, err error) {
	for len(b) > 0 {
		got, part, rest, err := cutRecord(b)
		if err != nil {
			return nil, nil, f.damage(err)
		}
		if got == sequence {
			return part, rest, nil
		}
		b = rest
	}
	return nil, nil, f.missing(sequence)
}

// Cursor reads sealed parts through memory of its own. A reader of many consecutive records reads
// each block once. The zero value is ready. It is for one goroutine.
type Cursor struct {
	file  *File // the file of block
	index int
	block []byte
	rest  []byte // of block
	next  uint64 // rest has no sequence below next
}

// sealed does what File.Sealed does. The part is valid until the next call.
func (c *Cursor) sealed(f *File, sequence uint64) ([]byte, error) {
	if i := f.blockOf(sequence); c.file != f || c.index != i {
		if i == len(f.sealed) {
			return nil, f.missing(sequence)
		}
		c.file = nil
		b, err := f.read(f.sealed[i], c.block)
		if err != nil {
			return nil, err
		}
		c.file, c.index, c.block, c.rest, c.next = f, i, b, b, 0
	}
	if sequence < c.next {
		c.rest = c.block
	}
	part, rest, err := f.cutTo(c.rest, sequence)
	if err != nil {
		c.file = nil
		return nil, err
	}
	c.rest, c.next = rest, sequence+1
	return part, nil
}
