package snapshots

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/hashicorp/raft"
	"github.com/klauspost/compress/zstd"

	"facet/internal/id"
	"facet/raftfsm/health"
	"facet/shard/segment"
)

// castagnoli is the polynomial that processors compute (SSE 4.2, ARMv8).
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A snapshot's bytes on disk, little-endian (raftfsm/format.md):
//
//	┌────────┬──────────┬────────────┬────────┬─────────┐
//	│ header │ segments │ zstd frame │ length │ CRC-32C │
//	└────────┴──────────┴────────────┴────────┴─────────┘
//
//	header
//	0          8       10     12      20     28             36       40
//	┌──────────┬───────┬──────┬───────┬──────┬──────────────┬────────┬───────────────┐
//	│ FACETSN2 │ group │ zero │ index │ term │ config index │ length │ configuration │
//	└──────────┴───────┴──────┴───────┴──────┴──────────────┴────────┴───────────────┘
//
//	segments: number 4 | { SHA-256 32 | bytes 8 }…
//
// The frame holds what Frozen.WriteTo wrote. length (8 bytes) counts the bytes
// before it, and the checksum (4 bytes) covers the same. The header repeats meta.json,
// which raft keeps beside the snapshot without a checksum. The segments are files of
// their own. A snapshot that begins with FACETSN1 has no part for segments.
const (
	plainMagic     = "FACETSN1"
	segmentedMagic = "FACETSN2"
	trailerBytes   = 12
	// segmentsMax is the most segments that a snapshot may have.
	segmentsMax = 1 << 16
	refBytes    = 32 + 8
	// window is the zstd window of the encoder, and the most memory that the decoder uses.
	window = 1 << 20
)

// newHeader returns the header of the snapshot that meta describes.
func newHeader(group id.Shard, meta *raft.SnapshotMeta) []byte {
	config := raft.EncodeConfiguration(meta.Configuration)
	b := append([]byte(nil), plainMagic...)
	b = binary.LittleEndian.AppendUint16(b, uint16(group))
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint64(b, meta.Index)
	b = binary.LittleEndian.AppendUint64(b, meta.Term)
	b = binary.LittleEndian.AppendUint64(b, meta.ConfigurationIndex)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(config)))
	return append(b, config...)
}

// segmentedHeader returns header in the form for a snapshot with segments.
func segmentedHeader(header []byte, refs []segment.Ref) []byte {
	b := append([]byte(segmentedMagic), header[len(plainMagic):]...)
	return appendRefs(b, refs)
}

func appendRefs(b []byte, refs []segment.Ref) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(refs)))
	for _, r := range refs {
		b = append(b, r.Hash[:]...)
		b = binary.LittleEndian.AppendUint64(b, uint64(r.Bytes))
	}
	return b
}

// readRefs reads the segments that appendRefs wrote.
func readRefs(r io.Reader) ([]segment.Ref, error) {
	var count [4]byte
	if _, err := io.ReadFull(r, count[:]); err != nil {
		return nil, fmt.Errorf("read the number of segments: %w: %w", health.ErrCorrupt, err)
	}
	n := binary.LittleEndian.Uint32(count[:])
	if n > segmentsMax {
		return nil, fmt.Errorf("%d segments: %w", n, health.ErrCorrupt)
	}
	var refs []segment.Ref
	for range n {
		var b [refBytes]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return nil, fmt.Errorf("read the segments: %w: %w", health.ErrCorrupt, err)
		}
		refs = append(refs, decodeRef(b[:]))
	}
	return refs, nil
}

func decodeRef(b []byte) segment.Ref {
	return segment.Ref{Hash: segment.Hash(b), Bytes: int64(binary.LittleEndian.Uint64(b[len(segment.Hash{}):]))}
}

// summed counts the bytes that pass through it and computes their checksum.
type summed struct {
	w   io.Writer
	n   uint64
	sum uint32
}

func (s *summed) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	s.n += uint64(n)
	s.sum = crc32.Update(s.sum, castagnoli, b[:n])
	return n, err
}

// writeSnapshot writes header, compressed state and trailer to w.
func writeSnapshot(w io.Writer, header []byte, state io.WriterTo) error {
	out := &summed{w: w}
	if _, err := out.Write(header); err != nil {
		return err
	}
	// The encoder works on this goroutine: a goroutine of the library could outlive the
	// group.
	z, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window),
		zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return fmt.Errorf("compress the state: %w", err)
	}
	if _, err := state.WriteTo(z); err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("compress the state: %w", err)
	}
	trailer := binary.LittleEndian.AppendUint64(nil, out.n)
	trailer = binary.LittleEndian.AppendUint32(trailer, out.sum)
	_, err = w.Write(trailer)
	return err
}

// readSnapshot reads a snapshot of size bytes from r, which must begin with header. It
// calls restore with the state, and verifies the trailer.
func readSnapshot(r io.Reader, size int64, header []byte, restore func(io.Reader) error) error {
	if size < int64(len(header))+trailerBytes {
		return fmt.Errorf("%d bytes: %w", size, health.ErrCorrupt)
	}
	sum := crc32.New(castagnoli)
	body := io.TeeReader(io.LimitReader(r, size-trailerBytes), sum)
	if err := readHeader(body, header); err != nil {
		return err
	}
	z, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return fmt.Errorf("decompress the state: %w", err)
	}
	defer z.Close()
	state := bufio.NewReader(z)
	if err := restore(state); err != nil {
		return err
	}
	if _, err := state.ReadByte(); err != io.EOF {
		return fmt.Errorf("bytes after the end of the state: %w", health.ErrCorrupt)
	}
	return checkTrailer(r, body, sum, size)
}

// readHeader compares the beginning of a snapshot with want.
func readHeader(r io.Reader, want []byte) error {
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r, got); err != nil {
		return fmt.Errorf("read the header: %w: %w", health.ErrCorrupt, err)
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("the header belongs to another snapshot: %w", health.ErrCorrupt)
	}
	return nil
}

// checkTrailer compares the trailer of a snapshot with the bytes read before it.
func checkTrailer(r, body io.Reader, sum hash.Hash32, size int64) error {
	if _, err := io.Copy(io.Discard, body); err != nil {
		return fmt.Errorf("read to the end: %w", err)
	}
	var trailer [trailerBytes]byte
	if _, err := io.ReadFull(r, trailer[:]); err != nil {
		return fmt.Errorf("read the trailer: %w", err)
	}
	if binary.LittleEndian.Uint64(trailer[:]) != uint64(size-trailerBytes) ||
		binary.LittleEndian.Uint32(trailer[8:]) != sum.Sum32() {
		return fmt.Errorf("trailer: %w", health.ErrCorrupt)
	}
	return nil
}
