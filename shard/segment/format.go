package segment

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
)

// Limits of a file and of its parts.
const (
	// BytesDefault is the approximate size of a full file.
	BytesDefault = 64 << 20
	// ClearMax and SealedMax are the largest sizes of the two parts of a record.
	ClearMax  = 512 << 10
	SealedMax = 64 << 10

	// sealedBlockBytes is the size at which a sealed block ends. It is small because sealed parts
	// are read one by one. Clear blocks are only read in order.
	sealedBlockBytes = 16 << 10
	clearBlockBytes  = 64 << 10

	blockBytesMax = clearBlockBytes + recordHeadBytes + ClearMax
	blocksMax     = 1 << 24
	fileBytesMax  = 1 << 32
)

// The parts of a file:
//
//	┌──────────┬───────────────┬──────────────┬───────┬────────┐
//	│ FACETSG1 │ sealed blocks │ clear blocks │ index │ footer │
//	└──────────┴───────────────┴──────────────┴───────┴────────┘
//
//	block    { sequence 8 | length 4 | part }…
//	index    { last sequence 8 | offset 8 | length 4 | CRC-32C 4 } for each block
//	footer   FACETSE1 | offset of the index 8 | records 8 | sealed records 8 |
//	         first 8 | last sequence 8 | sealed blocks 4 | clear blocks 4 |
//	         CRC-32C of the index 4 | CRC-32C of the footer before it 4
//
// A clear part is length of the sealed one 4 | bytes. A record without a sealed
// part is in no sealed block. There is no byte without a checksum.
const (
	headMagic = "FACETSG1"
	footMagic = "FACETSE1"

	recordHeadBytes = 12
	sealedLenBytes  = 4
	indexEntryBytes = 24
	footerBytes     = 64
)

var (
	// ErrCorrupt is returned when a file is damaged, cut short, or not a segment.
	ErrCorrupt = errors.New("segment: damaged")
	// ErrMissing is returned when there is no such file, or no such record in a set.
	ErrMissing = errors.New("segment: missing")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Hash is the SHA-256 of a file, which is its name.
type Hash [32]byte

// String returns the hash in hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Record is one entry of a file.
type Record struct {
	// Sequence is larger than that of the record before.
	Sequence uint64
	// Clear is the part that a start reads; Sealed may be empty.
	Clear, Sealed []byte
}

// block is where a range of records lies in a file.
type block struct {
	last   uint64 // sequence
	offset int64
	length uint32
	sum    uint32
}

func appendRecord(b []byte, sequence uint64, parts ...[]byte) []byte {
	length := 0
	for _, p := range parts {
		length += len(p)
	}
	b = binary.LittleEndian.AppendUint64(b, sequence)
	b = binary.LittleEndian.AppendUint32(b, uint32(length))
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// cutRecord splits the first record off a block.
func cutRecord(b []byte) (sequence uint64, part, rest []byte, err error) {
	if len(b) < recordHeadBytes {
		return 0, nil, nil, fmt.Errorf("%w: %d bytes are no record", ErrCorrupt, len(b))
	}
	sequence = binary.LittleEndian.Uint64(b)
	n := binary.LittleEndian.Uint32(b[8:])
	if b = b[recordHeadBytes:]; uint64(n) > uint64(len(b)) {
		return 0, nil, nil, fmt.Errorf("%w: a part of %d bytes in %d", ErrCorrupt, n, len(b))
	}
	return sequence, b[:n:n], b[n:], nil
}

// footer is the end of a file.
type footer struct {
	index                     int64
	records, sealedRecords    uint64
	first, last               uint64
	sealedBlocks, clearBlocks uint32
	indexSum                  uint32
}

func (f *footer) encode() []byte {
	b := append(make([]byte, 0, footerBytes), footMagic...)
	for _, v := range []uint64{uint64(f.index), f.records, f.sealedRecords, f.first, f.last} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	for _, v := range []uint32{f.sealedBlocks, f.clearBlocks, f.indexSum} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeFooter decodes and checks the footer of a file of size bytes.
func decodeFooter(b []byte, size int64) (footer, error) {
	at := len(b) - 4
	if string(b[:8]) != footMagic || binary.LittleEndian.Uint32(b[at:]) != crc32.Checksum(b[:at], castagnoli) {
		return footer{}, fmt.Errorf("%w: footer", ErrCorrupt)
	}
	f := footer{
		index:         int64(binary.LittleEndian.Uint64(b[8:])),
		records:       binary.LittleEndian.Uint64(b[16:]),
		sealedRecords: binary.LittleEndian.Uint64(b[24:]),
		first:         binary.LittleEndian.Uint64(b[32:]),
		last:          binary.LittleEndian.Uint64(b[40:]),
		sealedBlocks:  binary.LittleEndian.Uint32(b[48:]),
		clearBlocks:   binary.LittleEndian.Uint32(b[52:]),
		indexSum:      binary.LittleEndian.Uint32(b[56:]),
	}
	blocks := int64(f.sealedBlocks) + int64(f.clearBlocks)
	if f.index < 0 || f.index > size || blocks > blocksMax || f.index+blocks*indexEntryBytes+footerBytes != size ||
		f.records == 0 || f.sealedRecords > f.records || f.first > f.last || f.records > f.last-f.first+1 ||
		f.clearBlocks == 0 {
		return footer{}, fmt.Errorf("%w: footer of a file of %d bytes", ErrCorrupt, size)
	}
	return f, nil
}

func appendIndex(b []byte, blocks []block) []byte {
	for _, k := range blocks {
		b = binary.LittleEndian.AppendUint64(b, k.last)
		b = binary.LittleEndian.AppendUint64(b, uint64(k.offset))
		b = binary.LittleEndian.AppendUint32(b, k.length)
		b = binary.LittleEndian.AppendUint32(b, k.sum)
	}
	return b
}

// decodeIndex decodes the index. It checks that the blocks follow each other from the head to the
// index without gaps, and that the sequences of each of the two kinds ascend.
func decodeIndex(b []byte, f *footer) (sealed, clear []block, err error) {
	if crc32.Checksum(b, castagnoli) != f.indexSum {
		return nil, nil, fmt.Errorf("%w: index", ErrCorrupt)
	}
	next := int64(len(headMagic))
	all := make([]block, f.sealedBlocks+f.clearBlocks)
	for i := range all {
		at := b[i*indexEntryBytes:]
		k := block{
			last:   binary.LittleEndian.Uint64(at),
			offset: int64(binary.LittleEndian.Uint64(at[8:])),
			length: binary.LittleEndian.Uint32(at[16:]),
			sum:    binary.LittleEndian.Uint32(at[20:]),
		}
		begins := i == 0 || i == int(f.sealedBlocks)
		if k.offset != next || k.length == 0 || k.length > blockBytesMax || k.last < f.first || k.last > f.last ||
			!begins && k.last <= all[i-1].last {
			return nil, nil, fmt.Errorf("%w: index of block %d", ErrCorrupt, i)
		}
		next += int64(k.length)
		all[i] = k
	}
	if next != f.index || all[len(all)-1].last != f.last {
		return nil, nil, fmt.Errorf("%w: the blocks end at %d of %d", ErrCorrupt, next, f.index)
	}
	return all[:f.sealedBlocks], all[f.sealedBlocks:], nil
}
