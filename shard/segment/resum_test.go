package segment

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// resum makes the checksums of a file good again, as far as it can be found where its
// parts are, so that what stands behind them is reached.
func resum(b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) < footerBytes+len(headMagic) {
		return b
	}
	copy(b, headMagic)
	foot := b[len(b)-footerBytes:]
	copy(foot, footMagic)
	index := binary.LittleEndian.Uint64(foot[8:])
	if index <= uint64(len(b)-footerBytes) {
		entries := b[index : len(b)-footerBytes]
		for e := entries; len(e) >= indexEntryBytes; e = e[indexEntryBytes:] {
			offset, length := binary.LittleEndian.Uint64(e[8:]), uint64(binary.LittleEndian.Uint32(e[16:]))
			if offset <= index && length <= index-offset {
				binary.LittleEndian.PutUint32(e[20:], crc32.Checksum(b[offset:offset+length], castagnoli))
			}
		}
		binary.LittleEndian.PutUint32(foot[56:], crc32.Checksum(entries, castagnoli))
	}
	binary.LittleEndian.PutUint32(foot[60:], crc32.Checksum(foot[:60], castagnoli))
	return b
}
