package raftfsm

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"facet/internal/id"
)

// An entry of the log as a group proposes it (format.md):
//
//	0         1      2           6
//	┌─────────┬──────┬───────────┬─────────┐
//	│ version │ kind │ CRC-32C   │ payload │
//	└─────────┴──────┴───────────┴─────────┘
//
// The checksum covers the group's number, version, kind and payload, so an entry of
// another group is as wrong as a damaged one. The proposer computes it once. Each member
// checks it when it receives the entry, and again before it applies the entry.
const (
	entryVersion     = 1
	entryHeaderBytes = 6
)

// entryKind is the purpose of an entry. Numbers are never reused.
type entryKind uint8

const (
	// kindMarker is the empty entry of a new leader. When it is applied, all entries of
	// earlier terms are applied too (Ongaro 2014, §6.4, step 1).
	kindMarker entryKind = 0
	// kindCommand carries a command for the machine.
	kindCommand entryKind = 1
)

// castagnoli is the polynomial that processors compute (SSE 4.2, ARMv8).
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// entrySum returns the checksum of the entry b.
func entrySum(group id.Shard, b []byte) uint32 {
	var head [4]byte
	binary.LittleEndian.PutUint16(head[:], uint16(group))
	head[2], head[3] = b[0], b[1]
	sum := crc32.Update(0, castagnoli, head[:])
	return crc32.Update(sum, castagnoli, b[entryHeaderBytes:])
}

// encodeEntry returns the entry that carries payload.
func encodeEntry(group id.Shard, kind entryKind, payload []byte) []byte {
	b := make([]byte, entryHeaderBytes, entryHeaderBytes+len(payload))
	b[0], b[1] = entryVersion, byte(kind)
	b = append(b, payload...)
	binary.LittleEndian.PutUint32(b[2:], entrySum(group, b))
	return b
}

// decodeEntry checks an entry and returns its parts. payload is a part of b.
func decodeEntry(group id.Shard, b []byte) (kind entryKind, payload []byte, err error) {
	if len(b) < entryHeaderBytes || len(b) > EntryBytesMax {
		return 0, nil, fmt.Errorf("entry of %d bytes: %w", len(b), ErrCorrupt)
	}
	if got, want := entrySum(group, b), binary.LittleEndian.Uint32(b[2:]); got != want {
		return 0, nil, fmt.Errorf("entry has checksum %08x, its header says %08x: %w", got, want, ErrCorrupt)
	}
	kind = entryKind(b[1])
	if b[0] != entryVersion || kind > kindCommand {
		return 0, nil, fmt.Errorf("entry of version %d, kind %d: written by a newer release", b[0], kind)
	}
	return kind, b[entryHeaderBytes:], nil
}
