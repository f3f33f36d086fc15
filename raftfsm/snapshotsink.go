package raftfsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"

	"facet/shard/segment"
)

// snapshotSink takes a snapshot, our own as it will be on disk or a leader's as it
// is on the wire, and verifies its trailer and segments.
type snapshotSink struct {
	raft.SnapshotSink
	store *snapshotStore
	meta  raft.SnapshotMeta

	own     bool            // written by Persist; else a leader's
	adopt   func()          // what to do when an own one counts; may be nil
	files   []*segment.File // the segments
	install *install        // of a leader's

	header []byte // what the file must begin with
	head   []byte // its first bytes, as many as header has
	tail   []byte // the last bytes: they may be the trailer
	bytes  uint64
	sum    uint32
	done   bool
}

// settled notes the segments of an own snapshot.
func (s *snapshotSink) settled(files []*segment.File, adopt func()) {
	refs := make([]segment.Ref, 0, len(files))
	for _, f := range files {
		s.files = append(s.files, f.Retain())
		refs = append(refs, f.Ref())
	}
	s.header, s.adopt = segmentedHeader(s.header, refs), adopt
}

// Write takes the next bytes.
func (s *snapshotSink) Write(b []byte) (int, error) {
	if s.own {
		return s.write(b)
	}
	if s.install == nil {
		s.install = &install{sink: s}
	}
	return s.install.Write(b)
}

// write takes the next bytes of the file.
func (s *snapshotSink) write(b []byte) (int, error) {
	if s.bytes += uint64(len(b)); s.bytes > snapshotBytesMax {
		return 0, errors.New("snapshot is too large")
	}
	s.head = append(s.head, b[:min(len(b), len(s.header)-len(s.head))]...)
	s.tail = append(s.tail, b...)
	if n := len(s.tail) - snapshotTrailerBytes; n > 0 {
		s.sum = crc32.Update(s.sum, castagnoli, s.tail[:n])
		s.tail = append(s.tail[:0], s.tail[n:]...)
	}
	return s.SnapshotSink.Write(b)
}

// Close verifies the trailer, and only then makes the files a snapshot.
func (s *snapshotSink) Close() error {
	if s.done {
		return nil
	}
	s.done = true
	if err := s.verify(); err != nil {
		return errors.Join(err, s.drop())
	}
	if err := s.SnapshotSink.Close(); err != nil {
		release(s.files)
		return err
	}
	if s.own && s.adopt != nil {
		s.adopt()
	}
	s.store.hold(&s.meta, s.files)
	if s.own {
		return nil
	}
	s.store.cut.Lock()
	defer s.store.cut.Unlock()
	if err := reconcile(s.store.logs, s.store.pin, s.meta.Index, s.meta.Term); err != nil {
		err = fmt.Errorf("make the log agree with snapshot %s: %w", s.ID(), err)
		s.store.health.Fail(err)
		return err
	}
	return nil
}

// Cancel drops what was written.
func (s *snapshotSink) Cancel() error {
	if s.done {
		return nil
	}
	s.done = true
	return s.drop()
}

// drop lets go of everything. Segments that arrived whole stay until the next
// snapshot, for the leader's next try.
func (s *snapshotSink) drop() error {
	release(s.files)
	var err error
	if s.install != nil {
		err = s.install.cancel()
	}
	return errors.Join(err, s.SnapshotSink.Cancel())
}

func (s *snapshotSink) verify() error {
	if s.install != nil {
		if err := s.install.finish(); err != nil {
			return err
		}
	}
	if len(s.tail) != snapshotTrailerBytes || !bytes.Equal(s.head, s.header) {
		return fmt.Errorf("snapshot of %d bytes for index %d, term %d: %w", s.bytes, s.meta.Index, s.meta.Term, ErrCorrupt)
	}
	length := binary.LittleEndian.Uint64(s.tail)
	if length != s.bytes-snapshotTrailerBytes || binary.LittleEndian.Uint32(s.tail[8:]) != s.sum {
		return fmt.Errorf("snapshot of %d bytes, says %d: %w", s.bytes, length+snapshotTrailerBytes, ErrCorrupt)
	}
	return nil
}

// install takes a snapshot apart that comes over the wire.
type install struct {
	sink *snapshotSink
	// head are the bytes before the snapshot, as far as they have come; headBytes is
	// how many are known to belong to it.
	head      []byte
	headBytes int
	plain     bool   // all of it is the file
	file      uint64 // bytes of the file that are missing

	refs     []segment.Ref
	sent     []bool
	next     int // segment
	receiver *segment.Receiver
	missing  int64 // bytes of the segment
}

// Write takes the next bytes.
func (in *install) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		taken, err := in.take(b)
		if err != nil {
			return n - len(b), fmt.Errorf("install a snapshot: %w", err)
		}
		b = b[taken:]
	}
	return n, nil
}

// take takes some of the next bytes, which are not none.
func (in *install) take(b []byte) (int, error) {
	switch {
	case in.plain:
		return in.sink.write(b)
	case in.refs == nil:
		return in.begin(b)
	case in.file > 0:
		n, err := in.sink.write(b[:min(uint64(len(b)), in.file)])
		in.file -= uint64(n)
		return n, err
	default:
		return in.segment(b)
	}
}

// begin takes some of the bytes before the snapshot.
func (in *install) begin(b []byte) (int, error) {
	if in.headBytes == 0 {
		in.headBytes = len(installMagic)
	}
	n := min(len(b), in.headBytes-len(in.head))
	if in.head = append(in.head, b[:n]...); len(in.head) < in.headBytes {
		return n, nil
	}
	switch {
	case in.headBytes == len(installMagic) && string(in.head) != installMagic:
		in.plain = true
		if string(in.head) == segmentedMagic && in.sink.store.segments != nil { // of a machine that holds nothing
			in.sink.header = segmentedHeader(in.sink.header, nil)
		}
		_, err := in.sink.write(in.head)
		return n, err
	case in.headBytes == len(installMagic):
		in.headBytes = installHeadBytes
	case in.headBytes == installHeadBytes:
		in.file = binary.LittleEndian.Uint64(in.head[8:])
		count := binary.LittleEndian.Uint32(in.head[16:])
		if in.sink.store.segments == nil || count == 0 || count > segmentsMax || in.file == 0 || in.file > snapshotBytesMax {
			return n, fmt.Errorf("%d segments: %w", count, ErrCorrupt)
		}
		in.headBytes += int(count) * installRefBytes
	default:
		for b := in.head[installHeadBytes:]; len(b) > 0; b = b[installRefBytes:] {
			if b[refBytes] > 1 {
				return n, fmt.Errorf("segment %d: %w", len(in.refs), ErrCorrupt)
			}
			in.refs = append(in.refs, decodeRef(b))
			in.sent = append(in.sent, b[refBytes] != 0)
		}
		in.sink.header = segmentedHeader(in.sink.header, in.refs)
	}
	return n, nil
}

// segment takes some bytes of the next segment that was sent.
func (in *install) segment(b []byte) (n int, err error) {
	if in.receiver == nil {
		for in.next < len(in.refs) && !in.sent[in.next] {
			in.next++
		}
		if in.next == len(in.refs) {
			return 0, fmt.Errorf("bytes behind the last segment: %w", ErrCorrupt)
		}
		in.missing = in.refs[in.next].Bytes
		if in.receiver, err = in.sink.store.segments.Receive(in.refs[in.next]); err != nil {
			return 0, err
		}
	}
	n, err = in.receiver.Write(b[:min(int64(len(b)), in.missing)])
	if in.missing -= int64(n); err != nil || in.missing > 0 {
		return n, err
	}
	f, err := in.receiver.Close()
	in.receiver = nil
	if err != nil {
		return n, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	in.sink.files = append(in.sink.files, f)
	in.next++
	return n, nil
}

// finish opens the segments of a whole snapshot; those that were not sent have to
// be here.
func (in *install) finish() error {
	if in.plain {
		return nil
	}
	for in.next < len(in.refs) && !in.sent[in.next] {
		in.next++
	}
	if in.refs == nil || in.file > 0 || in.receiver != nil || in.next < len(in.refs) {
		return fmt.Errorf("the snapshot ends early: %w", ErrCorrupt)
	}
	files, err := in.sink.store.open(in.refs)
	if err != nil {
		return err
	}
	release(in.sink.files)
	in.sink.files = files
	return in.sink.store.segments.Sync()
}

func (in *install) cancel() error {
	if in.receiver == nil {
		return nil
	}
	err := in.receiver.Cancel()
	in.receiver = nil
	return err
}
