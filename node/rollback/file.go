package rollback

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"

	"facet/node/datadir"
)

// The file of a Table:
//
//	bytes 0–3   "FMRK"
//	bytes 4–7   version, little endian
//	bytes 8–11  CRC-32C of the rest, little endian
//	rest        JSON of stored
const (
	// File is the name of the file in the data directory.
	File = "marks"

	fileMagic    = "FMRK"
	fileVersion  = 1
	fileHead     = 12
	fileBytesMax = 16 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errFile is returned for a file that is damaged or of another version.
var errFile = errors.New("the file is damaged or of another version")

// load reads a file into s. A missing file leaves s as it is.
func (s *stored) load(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read what is known of members: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	if err != nil {
		return fmt.Errorf("read what is known of members: %w", err)
	}
	if len(raw) < fileHead || len(raw) > fileBytesMax || string(raw[:4]) != fileMagic ||
		binary.LittleEndian.Uint32(raw[4:]) != fileVersion || binary.LittleEndian.Uint32(raw[8:]) != crc32.Checksum(raw[fileHead:], castagnoli) {
		return fmt.Errorf("%s: %w", File, errFile)
	}
	if err := json.Unmarshal(raw[fileHead:], s); err != nil {
		return fmt.Errorf("%s: %w", File, errors.Join(errFile, err))
	}
	return nil
}

// save writes s to a file, whole or not at all.
func (s *stored) save(path string) error {
	body, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode what is known of members: %w", err)
	}
	raw := make([]byte, fileHead, fileHead+len(body))
	copy(raw, fileMagic)
	binary.LittleEndian.PutUint32(raw[4:], fileVersion)
	binary.LittleEndian.PutUint32(raw[8:], crc32.Checksum(body, castagnoli))
	return datadir.WriteSynced(path, append(raw, body...))
}
