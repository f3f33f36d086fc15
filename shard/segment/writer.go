package segment

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"strconv"
)

// unfinished is a file that no store has yet. It is for one goroutine.
type unfinished struct {
	store *Store
	name  string
	to    writable
	sum   hash.Hash
	at    int64
}

func (s *Store) unfinished() (unfinished, error) {
	name := strconv.FormatUint(s.next.Add(1), 10) + temporarySuffix
	to, err := s.disk.create(name)
	if err != nil {
		return unfinished{}, fmt.Errorf("create segment: %w", err)
	}
	return unfinished{store: s, name: name, to: to, sum: sha256.New()}, nil
}

func (u *unfinished) write(b []byte) (int, error) {
	n, err := u.to.Write(b)
	u.at += int64(n)
	u.sum.Write(b[:n])
	return n, err
}

// Cancel drops the file.
func (u *unfinished) Cancel() error {
	return errors.Join(u.to.Close(), u.store.disk.remove(u.name))
}

// finish adds the file to the store. If err is not nil, it drops the file and returns the error.
func (u *unfinished) finish(h Hash, err error) (*File, error) {
	if err == nil {
		err = u.to.Sync()
	}
	err = errors.Join(err, u.to.Close())
	if err == nil {
		var f *File
		if f, err = u.store.admit(u.name, h); err == nil {
			return f, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("write segment: %w", err), u.store.disk.remove(u.name))
}

// Writer writes one file. It is for one goroutine, which ends it by Close or Cancel.
type Writer struct {
	unfinished
	// sealed and clear are the blocks being filled. All clear blocks follow the sealed ones in the
	// file, so full ones wait in clears.
	sealed, clear           []byte
	clears                  []byte
	sealedIndex, clearIndex []block
	lastSealed              uint64 // sequence of the last record with a sealed part
	foot                    footer
	err                     error
}

// Create starts a file. It is no part of the store before Close.
func (s *Store) Create() (*Writer, error) {
	u, err := s.unfinished()
	if err != nil {
		return nil, err
	}
	w := &Writer{unfinished: u}
	w.write([]byte(headMagic))
	return w, nil
}

// Add adds a record. It does not keep the parts of r. It panics if the record is out of order or a
// part is too large.
func (w *Writer) Add(r Record) {
	if w.foot.records > 0 && r.Sequence <= w.foot.last || len(r.Clear) > ClearMax-sealedLenBytes || len(r.Sealed) > SealedMax {
		panic(fmt.Sprintf("bug: record %d of %d and %d bytes after %d", r.Sequence, len(r.Clear), len(r.Sealed), w.foot.last))
	}
	if w.foot.records == 0 {
		w.foot.first = r.Sequence
	}
	w.foot.records++
	w.foot.last = r.Sequence
	if len(r.Sealed) > 0 {
		w.foot.sealedRecords++
		w.lastSealed = r.Sequence
		w.sealed = appendRecord(w.sealed, r.Sequence, r.Sealed)
		if len(w.sealed) >= sealedBlockBytes {
			w.endSealed()
		}
	}
	var sealedLen [sealedLenBytes]byte
	binary.LittleEndian.PutUint32(sealedLen[:], uint32(len(r.Sealed)))
	w.clear = appendRecord(w.clear, r.Sequence, sealedLen[:], r.Clear)
	if len(w.clear) >= clearBlockBytes {
		w.endClear()
	}
}

// Bytes returns about the size of the file so far.
func (w *Writer) Bytes() int64 {
	return w.at + int64(len(w.sealed)+len(w.clear)+len(w.clears))
}

func (w *Writer) endSealed() {
	w.sealedIndex = append(w.sealedIndex, block{w.lastSealed, w.at, uint32(len(w.sealed)), crc32.Checksum(w.sealed, castagnoli)})
	w.write(w.sealed)
	w.sealed = w.sealed[:0]
}

// endClear appends the block to clears. Its offset counts from the start of clears until Close.
func (w *Writer) endClear() {
	w.clearIndex = append(w.clearIndex, block{w.foot.last, int64(len(w.clears)), uint32(len(w.clear)), crc32.Checksum(w.clear, castagnoli)})
	w.clears = append(w.clears, w.clear...)
	w.clear = w.clear[:0]
}

func (w *Writer) write(b []byte) {
	if w.err == nil {
		_, w.err = w.unfinished.write(b)
	}
}

// Close finishes the file, waits until the disk has it, and returns it with one reference. It
// panics if the file has no records. An error leaves no file behind.
func (w *Writer) Close() (*File, error) {
	if w.foot.records == 0 {
		panic("bug: a segment without records")
	}
	if len(w.sealed) > 0 {
		w.endSealed()
	}
	if len(w.clear) > 0 {
		w.endClear()
	}
	for i := range w.clearIndex {
		w.clearIndex[i].offset += w.at
	}
	w.write(w.clears)
	index := appendIndex(appendIndex(nil, w.sealedIndex), w.clearIndex)
	w.foot.index, w.foot.indexSum = w.at, crc32.Checksum(index, castagnoli)
	w.foot.sealedBlocks, w.foot.clearBlocks = uint32(len(w.sealedIndex)), uint32(len(w.clearIndex))
	w.write(index)
	w.write(w.foot.encode())
	return w.finish(Hash(w.sum.Sum(nil)), w.err)
}

// Receiver receives a file of another store. It is for one goroutine, which ends it by Close or
// Cancel.
type Receiver struct {
	unfinished
	want Ref
}

// Receive starts a file whose hash is known.
func (s *Store) Receive(want Ref) (*Receiver, error) {
	if want.Bytes < 0 || want.Bytes > fileBytesMax {
		return nil, fmt.Errorf("%w: a segment of %d bytes", ErrCorrupt, want.Bytes)
	}
	u, err := s.unfinished()
	if err != nil {
		return nil, err
	}
	return &Receiver{u, want}, nil
}

// Write appends the next bytes.
func (r *Receiver) Write(b []byte) (int, error) {
	if r.at+int64(len(b)) > r.want.Bytes {
		return 0, fmt.Errorf("%w: segment %s has more than %d bytes", ErrCorrupt, r.want.Hash, r.want.Bytes)
	}
	return r.write(b)
}

// Close compares the hash, waits until the disk has the file, and returns it with one reference. An
// error leaves no file behind.
func (r *Receiver) Close() (*File, error) {
	var err error
	if r.at != r.want.Bytes || Hash(r.sum.Sum(nil)) != r.want.Hash {
		err = fmt.Errorf("%w: %d bytes are not segment %s", ErrCorrupt, r.at, r.want.Hash)
	}
	return r.finish(r.want.Hash, err)
}
