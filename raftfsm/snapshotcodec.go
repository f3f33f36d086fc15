package raftfsm

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/hashicorp/raft"
	"github.com/klauspost/compress/zstd"

	"facet/internal/id"
)

// A snapshot's bytes, little-endian (docs/formats/log-entry.md):
//
//	0          8       10         12      20
//	┌──────────┬───────┬──────────┬───────┬────────────┬────────┬─────────┐
//	│ FACETSN1 │ group │ zero     │ index │ zstd frame │ length │ CRC-32C │
//	└──────────┴───────┴──────────┴───────┴────────────┴────────┴─────────┘
//
// The frame holds what Frozen.WriteTo wrote. length (8 bytes) counts the bytes
// before it, and the checksum (4 bytes) covers the same.
const (
	snapshotMagic        = "FACETSN1"
	snapshotHeaderBytes  = 20
	snapshotTrailerBytes = 12
	// snapshotWindow bounds the memory of the decoder to what the encoder uses.
	snapshotWindow = 1 << 20
)

// frozenSnapshot is a raft.FSMSnapshot.
type frozenSnapshot struct {
	group  id.Shard
	index  uint64
	frozen Frozen
}

// Persist writes the snapshot; raft closes the sink.
func (s *frozenSnapshot) Persist(sink raft.SnapshotSink) error {
	if own, ok := sink.(*snapshotSink); ok {
		own.own = true
	}
	return writeSnapshot(sink, s.group, s.index, s.frozen)
}

// Release lets go of the frozen state.
func (s *frozenSnapshot) Release() { s.frozen.Release() }

// summed counts and sums what passes through it.
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
func writeSnapshot(w io.Writer, group id.Shard, index uint64, state io.WriterTo) error {
	out := &summed{w: w}
	header := make([]byte, 0, snapshotHeaderBytes)
	header = append(header, snapshotMagic...)
	header = binary.LittleEndian.AppendUint16(header, uint16(group))
	header = binary.LittleEndian.AppendUint16(header, 0)
	header = binary.LittleEndian.AppendUint64(header, index)
	if _, err := out.Write(header); err != nil {
		return err
	}
	// One goroutine, ours: a library's could outlive the group.
	z, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(snapshotWindow),
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

// openSnapshot is a snapshot's bytes together with what raft knows of it.
type openSnapshot struct {
	io.ReadCloser
	meta raft.SnapshotMeta
}

// restore reads the snapshot into m.
func (s *openSnapshot) restore(group id.Shard, m Machine) error {
	if s.meta.Size < snapshotHeaderBytes+snapshotTrailerBytes {
		return fmt.Errorf("%d bytes: %w", s.meta.Size, ErrCorrupt)
	}
	return readSnapshot(s, s.meta.Size, group, s.meta.Index, m)
}

// readSnapshot restores m from the size bytes of r.
func readSnapshot(r io.Reader, size int64, group id.Shard, index uint64, m Machine) error {
	sum := crc32.New(castagnoli)
	body := io.TeeReader(io.LimitReader(r, size-snapshotTrailerBytes), sum)
	var header [snapshotHeaderBytes]byte
	if _, err := io.ReadFull(body, header[:]); err != nil {
		return fmt.Errorf("read the header: %w", err)
	}
	if string(header[:8]) != snapshotMagic {
		return fmt.Errorf("unknown format %q: %w", header[:8], ErrCorrupt)
	}
	gotGroup := id.Shard(binary.LittleEndian.Uint16(header[8:]))
	gotIndex := binary.LittleEndian.Uint64(header[12:])
	if gotGroup != group || gotIndex != index {
		return fmt.Errorf("snapshot of group %d, index %d; want %d, %d: %w", gotGroup, gotIndex, group, index, ErrCorrupt)
	}
	z, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(snapshotWindow))
	if err != nil {
		return fmt.Errorf("decompress the state: %w", err)
	}
	defer z.Close()
	state := bufio.NewReader(z)
	if err := m.Restore(state); err != nil {
		return err
	}
	if _, err := state.ReadByte(); err != io.EOF {
		return fmt.Errorf("the state goes on behind its end: %w", ErrCorrupt)
	}
	return checkTrailer(r, body, sum, size)
}

// checkTrailer compares the end of a snapshot with what was read before it.
func checkTrailer(r, body io.Reader, sum hash.Hash32, size int64) error {
	if _, err := io.Copy(io.Discard, body); err != nil {
		return fmt.Errorf("read to the end: %w", err)
	}
	var trailer [snapshotTrailerBytes]byte
	if _, err := io.ReadFull(r, trailer[:]); err != nil {
		return fmt.Errorf("read the trailer: %w", err)
	}
	if binary.LittleEndian.Uint64(trailer[:]) != uint64(size-snapshotTrailerBytes) ||
		binary.LittleEndian.Uint32(trailer[8:]) != sum.Sum32() {
		return fmt.Errorf("trailer: %w", ErrCorrupt)
	}
	return nil
}
