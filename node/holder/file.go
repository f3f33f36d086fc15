package holder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"facet/node/datadir"
)

const (
	// placeFile has the place at which this directory's process acts.
	placeFile = "place"
	// holdersFile has the holders of the other members' identities.
	holdersFile = "holders"
	// format is the version of both files.
	format = 1
	// fileBytesMax is the most bytes that are read of a file.
	fileBytesMax = 1 << 20
)

// summed is the content of a file.
type summed struct {
	Format int             `json:"format"`
	CRC    uint32          `json:"crc32"` // IEEE, of Body
	Body   json.RawMessage `json:"body"`
}

// write replaces a file in dir whole or not at all.
func write(dir, name string, body any) error {
	raw, err := json.Marshal(body)
	if err == nil {
		raw, err = json.Marshal(summed{format, crc32.ChecksumIEEE(raw), raw})
	}
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	return datadir.WriteSynced(filepath.Join(dir, name), append(raw, '\n'))
}

// read reads a file in dir into body. known reports whether the file exists.
func read(dir, name string, body any) (known bool, err error) {
	f, err := os.Open(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, fileBytesMax))
	if err != nil {
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	if err := parse(raw, body); err != nil {
		return false, fmt.Errorf("%s in the data directory is damaged; remove it, then the node asks the others: %w", name, err)
	}
	return true, nil
}

func parse(raw []byte, body any) error {
	var s summed
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	if s.Format != format {
		return fmt.Errorf("format %d, want %d", s.Format, format)
	}
	if crc32.ChecksumIEEE(bytes.TrimSpace(s.Body)) != s.CRC {
		return errors.New("the checksum does not match")
	}
	return json.Unmarshal(s.Body, body)
}
