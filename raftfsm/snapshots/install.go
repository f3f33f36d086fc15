package snapshots

import (
	"encoding/binary"
	"fmt"

	"facet/raftfsm/health"
	"facet/shard/segment"
)

// install splits the form on the wire into the snapshot's file and its segments.
type install struct {
	sink *Sink
	// head holds the bytes before the snapshot that have arrived. headBytes is the length
	// of head as far as it is known.
	head      []byte
	headBytes int
	plain     bool   // a snapshot without segments: all bytes are the file
	file      uint64 // bytes of the file that are missing

	refs     []segment.Ref
	sent     []bool
	next     int // index of the next segment
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

// take takes at least one of the next bytes. b is not empty.
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

// begin takes some of the bytes that precede the snapshot.
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
		if in.sink.store.segments == nil || count == 0 || count > segmentsMax || in.file == 0 || in.file > BytesMax {
			return n, fmt.Errorf("%d segments: %w", count, health.ErrCorrupt)
		}
		in.headBytes += int(count) * installRefBytes
	default:
		for b := in.head[installHeadBytes:]; len(b) > 0; b = b[installRefBytes:] {
			if b[refBytes] > 1 {
				return n, fmt.Errorf("segment %d: %w", len(in.refs), health.ErrCorrupt)
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
			return 0, fmt.Errorf("bytes after the last segment: %w", health.ErrCorrupt)
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
		return n, fmt.Errorf("%w: %w", health.ErrCorrupt, err)
	}
	in.sink.files = append(in.sink.files, f)
	in.next++
	return n, nil
}

// finish opens the segments when the snapshot is complete. Segments that were not sent must
// be on this member's disk.
func (in *install) finish() error {
	if in.plain {
		return nil
	}
	for in.next < len(in.refs) && !in.sent[in.next] {
		in.next++
	}
	if in.refs == nil || in.file > 0 || in.receiver != nil || in.next < len(in.refs) {
		return fmt.Errorf("the snapshot ends early: %w", health.ErrCorrupt)
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
