package backup

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/shard"
	"facet/shard/job"
	"facet/shard/seal"
)

// The records of a part. A shard's part has slices; each slice is followed by its entries
// and its end, and the slices by pairs of different subjects and cases. Meta's part has records of metafsm.Copied. The last record of every part is
// headEnd. The codes are stored and never reused; codes from 32 on belong to metafsm.
var (
	headSlice    = codec.Head{Code: 1, Version: 1}
	headEntry    = codec.Head{Code: 2, Version: 1}
	headSliceEnd = codec.Head{Code: 3, Version: 1}
	headEnd      = codec.Head{Code: 4, Version: 1}
	headItem     = codec.Head{Code: 5, Version: 1}
)

// Slice is the description of one gallery's events in a part.
type Slice struct {
	Gallery  id.Gallery `json:"gallery"`
	Granted  uint32     `json:"granted"`
	Returned uint32     `json:"returned"`
	Active   uint64     `json:"active"`
	Deleted  uint64     `json:"deleted"`
	// Entries is the digest of all entries in order, without their numbers.
	Entries Digest `json:"entries"`
}

// Part is the description of one part in the manifest.
type Part struct {
	Name    string  `json:"name"`
	Bytes   int64   `json:"bytes"`
	SHA256  Digest  `json:"sha256"`
	Records uint64  `json:"records"`
	Taken   int64   `json:"taken"` // milliseconds since 1970
	Slices  []Slice `json:"slices,omitempty"`
	// Moment is that of a shard.
	shardfsm.Moment
}

// partEnd is the last record of a part.
type partEnd struct {
	Records uint64 `cbor:"1,keyasint"`
	Taken   int64  `cbor:"2,keyasint"`
	// Choice identifies the galleries of the backup (choice).
	Choice [32]byte `cbor:"3,keyasint"`
	// Moment is that of a shard.
	Moment shardfsm.Moment `cbor:"4,keyasint,omitzero"`
}

type sliceEnd struct {
	Active  uint64   `cbor:"1,keyasint"`
	Deleted uint64   `cbor:"2,keyasint"`
	Entries [32]byte `cbor:"3,keyasint"`
}

// tally counts and digests the entries of a slice.
type tally struct {
	slice Slice
	sum   hash.Hash
	buf   []byte
}

func newTally(s *shard.CopiedSlice) *tally {
	return &tally{slice: Slice{Gallery: s.Gallery, Granted: s.Granted, Returned: s.Returned}, sum: sha256.New()}
}

func (t *tally) add(e *shard.CopiedEntry) {
	deleted := byte(0)
	if e.Deleted {
		deleted = 1
		t.slice.Deleted++
	} else {
		t.slice.Active++
	}
	b := append(append(t.buf[:0], e.Subject.UUID[:]...), e.Event.UUID[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Time))
	b = binary.BigEndian.AppendUint32(append(b, deleted), e.Revision)
	b = binary.BigEndian.AppendUint32(b, uint32(len(e.Tags)))
	for _, tag := range e.Tags {
		b = binary.BigEndian.AppendUint32(b, tag)
	}
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(e.Sealed))), e.Sealed...)
	if len(e.Note) > 0 {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(e.Note))), e.Note...)
	}
	if e.Expires != 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(e.Expires))
	}
	t.buf = b
	t.sum.Write(b)
}

func (t *tally) end() Slice {
	t.sum.Sum(t.slice.Entries[:0])
	return t.slice
}

// State is a frozen state (raftfsm.Frozen).
type State interface {
	io.WriterTo
	Release()
}

// stream lets read consume the bytes of s while s writes them, and releases s.
func stream(s State, read func(io.Reader) error) error {
	defer s.Release()
	r, w := io.Pipe()
	written := make(chan struct{})
	go func() { // ends after read, because r is closed then
		defer close(written)
		_, err := s.WriteTo(w)
		w.CloseWithError(err)
	}()
	err := read(r)
	r.CloseWithError(errors.Join(errors.New("the reader has stopped"), err))
	<-written
	return err
}

// chosen is a set of galleries; nil is all.
type chosen map[id.Gallery]bool

func (c chosen) has(g id.Gallery) bool { return c == nil || c[g] }

// copier writes the part of a shard.
type copier struct {
	out  *partWriter
	want chosen
	part Part
	cur  *tally // of the current slice; nil without one, or if it is not wanted
}

// copyShard writes the part of a shard and releases its state s.
func copyShard(out *partWriter, s State, want chosen, end partEnd) (Part, error) {
	c := &copier{out: out, want: want}
	err := stream(s, func(r io.Reader) (err error) {
		end.Moment, err = shardfsm.ReadCopied(r, shardfsm.Copying{Slice: c.slice, Entry: c.entry, Item: c.item})
		return err
	})
	if err == nil {
		err = c.endSlice()
	}
	if err != nil {
		return Part{}, err
	}
	return c.part.finish(out, end)
}

func (c *copier) record(h codec.Head, v any) error {
	c.part.Records++
	return c.out.record(codec.Encode(h, v))
}

func (c *copier) slice(s *shard.CopiedSlice) error {
	if err := c.endSlice(); err != nil || !c.want.has(s.Gallery) {
		return err
	}
	c.cur = newTally(s)
	return c.record(headSlice, s)
}

func (c *copier) entry(e *shard.CopiedEntry) error {
	if c.cur == nil {
		return nil
	}
	c.cur.add(e)
	return c.record(headEntry, e)
}

func (c *copier) item(p *job.CopiedItem) error {
	if err := c.endSlice(); err != nil || !c.want.has(p.Gallery) {
		return err
	}
	return c.record(headItem, p)
}

func (c *copier) endSlice() error {
	if c.cur == nil {
		return nil
	}
	s := c.cur.end()
	c.cur = nil
	c.part.Slices = append(c.part.Slices, s)
	return c.record(headSliceEnd, sliceEnd{s.Active, s.Deleted, s.Entries})
}

// finish writes the end of a part and returns its description.
func (p Part) finish(out *partWriter, end partEnd) (Part, error) {
	end.Records, p.Taken, p.Name, p.Moment = p.Records, end.Taken, out.at.part, end.Moment
	if err := out.record(codec.Encode(headEnd, end)); err != nil {
		return Part{}, err
	}
	var err error
	p.Bytes, p.SHA256, err = out.close()
	return p, err
}

// Sums counts and digests the slices of a shard's state s, and releases s.
func Sums(s State) ([]Slice, error) {
	var list []Slice
	var cur *tally
	end := func() {
		if cur != nil {
			list = append(list, cur.end())
		}
	}
	err := stream(s, func(r io.Reader) error {
		_, err := shardfsm.ReadCopied(r, shardfsm.Copying{Slice: func(s *shard.CopiedSlice) error {
			end()
			cur = newTally(s)
			return nil
		}, Entry: func(e *shard.CopiedEntry) error {
			cur.add(e)
			return nil
		}})
		return err
	})
	end()
	return list, err
}

// visit has the functions that readPart calls with the records of a part. A nil function
// skips its records.
type visit struct {
	slice func(*shard.CopiedSlice) error
	entry func(*shard.CopiedEntry) error
	end   func(Slice) error
	item  func(*job.CopiedItem) error
	meta  func(metafsm.Copied) error
}

// readPart reads a part to its end, verifies its counts and digests, and calls v for its
// records. Its error wraps ErrDamaged, or is an error of r or v.
func readPart(r io.Reader, key *seal.Key, at place, v visit) (Part, partEnd, error) {
	in, err := openPart(r, key, at)
	if err != nil {
		return Part{}, partEnd{}, err
	}
	defer in.close()
	rd := &reader{visit: v, part: Part{Name: at.part}}
	for !rd.done {
		b, err := in.next()
		if errors.Is(err, io.EOF) {
			return Part{}, partEnd{}, fmt.Errorf("%w: %s has no end", ErrDamaged, at.part)
		}
		if err == nil {
			err = rd.record(b)
		}
		if errors.Is(err, codec.ErrMalformed) {
			err = fmt.Errorf("%w: %s: %w", ErrDamaged, at.part, err)
		}
		if err != nil {
			return Part{}, partEnd{}, err
		}
	}
	if _, err := in.next(); !errors.Is(err, io.EOF) {
		return Part{}, partEnd{}, errors.Join(fmt.Errorf("%w: %s goes on behind its end", ErrDamaged, at.part), err)
	}
	rd.part.Taken, rd.part.Moment = rd.end.Taken, rd.end.Moment
	var sum [32]byte
	rd.part.Bytes, sum = in.digest()
	rd.part.SHA256 = sum
	return rd.part, rd.end, nil
}

// reader is the state of readPart.
type reader struct {
	visit visit
	part  Part
	cur   *tally
	end   partEnd
	done  bool
}

func (r *reader) record(b []byte) error {
	m, err := codec.Split(b)
	if err != nil {
		return err
	}
	r.part.Records++
	switch m.Code {
	case headSlice.Code:
		var s shard.CopiedSlice
		if err := m.Decode(headSlice, &s); err != nil {
			return err
		}
		r.cur = newTally(&s)
		return do(r.visit.slice, &s)
	case headEntry.Code:
		var e shard.CopiedEntry
		if err := m.Decode(headEntry, &e); err != nil {
			return err
		}
		if r.cur == nil {
			return fmt.Errorf("%w: an entry without a slice", codec.ErrMalformed)
		}
		r.cur.add(&e)
		return do(r.visit.entry, &e)
	case headSliceEnd.Code:
		return r.sliceEnd(m)
	case headItem.Code:
		var p job.CopiedItem
		if err := m.Decode(headItem, &p); err != nil {
			return err
		}
		if r.cur != nil {
			return fmt.Errorf("%w: an item of a job inside a slice", codec.ErrMalformed)
		}
		return do(r.visit.item, &p)
	case headEnd.Code:
		r.part.Records--
		r.done = true
		if err := m.Decode(headEnd, &r.end); err != nil {
			return err
		}
		if r.end.Records != r.part.Records || r.cur != nil {
			return fmt.Errorf("%w: %d records of %d", codec.ErrMalformed, r.part.Records, r.end.Records)
		}
		return nil
	default:
		c, err := metafsm.CopiedOf(b)
		if err != nil {
			return err
		}
		return do(r.visit.meta, c)
	}
}

func (r *reader) sliceEnd(m codec.Message) error {
	var e sliceEnd
	if err := m.Decode(headSliceEnd, &e); err != nil {
		return err
	}
	if r.cur == nil {
		return fmt.Errorf("%w: the end of no slice", codec.ErrMalformed)
	}
	s := r.cur.end()
	r.cur = nil
	if (sliceEnd{s.Active, s.Deleted, s.Entries}) != e {
		return fmt.Errorf("%w: gallery %s has other entries than it says", codec.ErrMalformed, s.Gallery)
	}
	r.part.Slices = append(r.part.Slices, s)
	return do(r.visit.end, s)
}

func do[T any](f func(T) error, v T) error {
	if f == nil {
		return nil
	}
	return f(v)
}
