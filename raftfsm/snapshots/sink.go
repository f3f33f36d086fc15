package snapshots

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/hashicorp/raft"

	"facet/raftfsm/health"
	"facet/shard/segment"
)

// Sink is a raft.SnapshotSink. It takes this member's snapshot in the form on disk, or a
// leader's snapshot in the form on the wire. It verifies the trailer and the segments.
type Sink struct {
	raft.SnapshotSink
	store *Store
	meta  raft.SnapshotMeta

	own     bool            // written by WriteState, not sent by a leader
	adopt   func()          // called when an own snapshot is complete; may be nil
	files   []*segment.File // the segments
	install *install        // nil for an own snapshot

	header []byte // what the file must begin with
	head   []byte // its first bytes, as many as header has
	tail   []byte // the last bytes, which may be the trailer
	bytes  uint64
	sum    uint32
	done   bool
}

// Clean returns what the segments of an own snapshot leave out. segmented is false if the
// machine has no segments.
func (s *Sink) Clean() (how segment.Clean, segmented bool) {
	return s.store.clean(), s.store.segments != nil
}

// Settled sets the segments of an own snapshot. adopt is called when the snapshot is
// complete.
func (s *Sink) Settled(files []*segment.File, adopt func()) {
	refs := make([]segment.Ref, 0, len(files))
	for _, f := range files {
		s.files = append(s.files, f.Retain())
		refs = append(refs, f.Ref())
	}
	s.header, s.adopt = segmentedHeader(s.header, refs), adopt
}

// WriteState writes an own snapshot of state. raft calls Close next.
func (s *Sink) WriteState(state io.WriterTo) error {
	s.own = true
	return writeSnapshot(s, s.header, state)
}

// Collect removes the segments that are no longer held.
func (s *Sink) Collect() { s.store.collect() }

// Write takes the next bytes.
func (s *Sink) Write(b []byte) (int, error) {
	if s.own {
		return s.write(b)
	}
	if s.install == nil {
		s.store.installing.Add(1)
		s.store.installs.Add(1)
		s.install = &install{sink: s}
	}
	return s.install.Write(b)
}

// write takes the next bytes of the file.
func (s *Sink) write(b []byte) (int, error) {
	if s.bytes += uint64(len(b)); s.bytes > BytesMax {
		return 0, errors.New("snapshot is too large")
	}
	s.head = append(s.head, b[:min(len(b), len(s.header)-len(s.head))]...)
	s.tail = append(s.tail, b...)
	if n := len(s.tail) - trailerBytes; n > 0 {
		s.sum = crc32.Update(s.sum, castagnoli, s.tail[:n])
		s.tail = append(s.tail[:0], s.tail[n:]...)
	}
	return s.SnapshotSink.Write(b)
}

// Close verifies the trailer, and only then completes the snapshot.
func (s *Sink) Close() error {
	if s.done {
		return nil
	}
	s.done = true
	defer s.ended()
	err := s.verify()
	if err == nil && !s.own {
		err = s.store.admit(&s.meta)
	}
	if err != nil {
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
	if err := reconcile(s.store.logs, s.store.own.Pin, s.meta.Index, s.meta.Term); err != nil {
		err = fmt.Errorf("make the log agree with snapshot %s: %w", s.ID(), err)
		s.store.health.Fail(err)
		return err
	}
	return nil
}

// Cancel removes an unfinished snapshot.
func (s *Sink) Cancel() error {
	if s.done {
		return nil
	}
	s.done = true
	defer s.ended()
	return s.drop()
}

// ended notes the end of an installation.
func (s *Sink) ended() {
	if s.install != nil {
		s.store.installing.Add(-1)
	}
}

// drop releases the segments and removes the file. Segments that arrived whole stay on
// disk until the next snapshot, for the leader's next try.
func (s *Sink) drop() error {
	release(s.files)
	var err error
	if s.install != nil {
		err = s.install.cancel()
	}
	return errors.Join(err, s.SnapshotSink.Cancel())
}

func (s *Sink) verify() error {
	if s.install != nil {
		if err := s.install.finish(); err != nil {
			return err
		}
	}
	if len(s.tail) != trailerBytes || !bytes.Equal(s.head, s.header) {
		return fmt.Errorf("snapshot of %d bytes for index %d, term %d: %w", s.bytes, s.meta.Index, s.meta.Term, health.ErrCorrupt)
	}
	length := binary.LittleEndian.Uint64(s.tail)
	if length != s.bytes-trailerBytes || binary.LittleEndian.Uint32(s.tail[8:]) != s.sum {
		return fmt.Errorf("snapshot of %d bytes, its trailer says %d: %w", s.bytes, length+trailerBytes, health.ErrCorrupt)
	}
	return nil
}
