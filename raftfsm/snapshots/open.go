package snapshots

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"facet/raftfsm/health"
	"facet/shard/segment"
)

// A snapshot with segments on the wire:
//
//	FACETIN1 | bytes of the snapshot 8 | segments 4 | { SHA-256 32 | bytes 8 | sent 1 }…
//	snapshot, as it is on disk | the segments that are sent, in order
//
// A segment that the receiver has is not sent. A snapshot without segments has the same
// form on the wire as on disk.
const (
	installMagic     = "FACETIN1"
	installHeadBytes = 8 + 8 + 4
	installRefBytes  = refBytes + 1
)

// Snapshot is an open snapshot: its bytes on disk, its segments and its description. Read
// returns all of it in the form on the wire.
type Snapshot struct {
	meta   raft.SnapshotMeta // Size is the size on disk
	header []byte            // with the segments
	disk   io.Reader         // from the beginning
	closer io.Closer
	files  []*segment.File

	wire io.Reader // nil until the first Read
}

// openSegments compares the header of a snapshot with meta, and opens the segments. It
// leaves r open on an error.
func (s *Store) openSegments(meta *raft.SnapshotMeta, r io.ReadCloser) (*Snapshot, error) {
	want := newHeader(s.group, meta)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r, got); err != nil {
		return nil, fmt.Errorf("read the header: %w: %w", health.ErrCorrupt, err)
	}
	segmented := string(got[:len(segmentedMagic)]) == segmentedMagic
	if segmented {
		copy(want, segmentedMagic)
	}
	if !bytes.Equal(got, want) {
		return nil, fmt.Errorf("the header belongs to another snapshot: %w", health.ErrCorrupt)
	}
	o := &Snapshot{meta: *meta, header: got, closer: r}
	if segmented {
		refs, err := readRefs(r)
		if err != nil {
			return nil, err
		}
		o.header = appendRefs(o.header, refs)
		if o.files, err = s.open(refs); err != nil {
			return nil, err
		}
	}
	o.disk = io.MultiReader(bytes.NewReader(o.header), r)
	return o, nil
}

// open opens all segments or none.
func (s *Store) open(refs []segment.Ref) ([]*segment.File, error) {
	if s.segments == nil && len(refs) > 0 {
		return nil, fmt.Errorf("%d segments of a group that has none: %w", len(refs), health.ErrCorrupt)
	}
	var files []*segment.File
	for _, r := range refs {
		f, err := s.segments.File(r.Hash)
		if err == nil {
			files = append(files, f)
			if f.Ref() != r {
				err = fmt.Errorf("segment %s has %d bytes, not %d: %w", r.Hash, f.Ref().Bytes, r.Bytes, health.ErrCorrupt)
			}
		}
		if err != nil {
			release(files)
			return nil, fmt.Errorf("%w: %w", health.ErrCorrupt, err)
		}
	}
	return files, nil
}

func release(files []*segment.File) {
	for _, f := range files {
		f.Release()
	}
}

// take returns the segments. The caller releases them.
func (o *Snapshot) take() []*segment.File {
	files := o.files
	o.files = nil
	return files
}

// Close closes the snapshot and releases its segments.
func (o *Snapshot) Close() error {
	release(o.take())
	return o.closer.Close()
}

// Read returns the next bytes on the wire, all segments included.
func (o *Snapshot) Read(b []byte) (int, error) {
	if o.wire == nil {
		o.wire = o.onWire(nil)
	}
	return o.wire.Read(b)
}

// refs returns the names of the segments.
func (o *Snapshot) refs() []segment.Ref {
	refs := make([]segment.Ref, 0, len(o.files))
	for _, f := range o.files {
		refs = append(refs, f.Ref())
	}
	return refs
}

// Segmented reports whether the snapshot has segments.
func (o *Snapshot) Segmented() bool { return len(o.files) > 0 }

// Meta returns raft's description of the snapshot, with the size on disk.
func (o *Snapshot) Meta() raft.SnapshotMeta { return o.meta }

// Restore calls restore with the state of the machine, and verifies the checksum.
func (o *Snapshot) Restore(restore func(io.Reader) error) error {
	return readSnapshot(o.disk, o.meta.Size, o.header, restore)
}

// OnWire returns a reader of the form on the wire for a member that has some of the
// segments, and the length of that form. It can be called once.
func (o *Snapshot) OnWire(have map[segment.Hash]bool) (r io.Reader, bytes int64) {
	return o.onWire(have), o.wireBytes(have)
}

// wireBytes returns the length of onWire.
func (o *Snapshot) wireBytes(have map[segment.Hash]bool) int64 {
	n := o.meta.Size
	if len(o.files) == 0 {
		return n
	}
	n += installHeadBytes + int64(len(o.files))*installRefBytes
	for _, f := range o.files {
		if r := f.Ref(); !have[r.Hash] {
			n += r.Bytes
		}
	}
	return n
}

// onWire returns a reader of the form for a receiver that has some of the segments.
func (o *Snapshot) onWire(have map[segment.Hash]bool) io.Reader {
	if len(o.files) == 0 {
		return o.disk
	}
	head := binary.LittleEndian.AppendUint64([]byte(installMagic), uint64(o.meta.Size))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(o.files)))
	parts := []io.Reader{nil, o.disk}
	for _, f := range o.files {
		r, sent := f.Ref(), byte(1)
		if have[r.Hash] {
			sent = 0
		} else {
			parts = append(parts, f.Reader())
		}
		head = append(head, r.Hash[:]...)
		head = binary.LittleEndian.AppendUint64(head, uint64(r.Bytes))
		head = append(head, sent)
	}
	parts[0] = bytes.NewReader(head)
	return io.MultiReader(parts...)
}
