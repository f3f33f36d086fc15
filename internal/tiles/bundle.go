package tiles

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	// EntryBytesMax is the most bytes of an entry: a bundle has its length in two bytes.
	EntryBytesMax = 1<<16 - 1
	// BundleBytesMax is the most bytes of a bundle.
	BundleBytesMax = Width * (2 + EntryBytesMax)
)

// ErrBundle is returned for bytes that are no bundle of as many entries as it must have.
var ErrBundle = errors.New("no bundle of entries")

// AppendEntry appends an entry to a bundle.
func AppendEntry(bundle, entry []byte) ([]byte, error) {
	if len(entry) > EntryBytesMax {
		return nil, fmt.Errorf("an entry has %d bytes, more than %d", len(entry), EntryBytesMax)
	}
	return append(binary.BigEndian.AppendUint16(bundle, uint16(len(entry))), entry...), nil
}

// Entries returns the n entries of a bundle, as parts of it. The error wraps ErrBundle.
func Entries(bundle []byte, n int) ([][]byte, error) {
	if n < 0 || n > Width {
		return nil, fmt.Errorf("%w: a bundle has at most %d entries", ErrBundle, Width)
	}
	list := make([][]byte, 0, n)
	for i := range n {
		if len(bundle) < 2 {
			return nil, fmt.Errorf("%w: it ends after %d entries of %d", ErrBundle, i, n)
		}
		size := int(binary.BigEndian.Uint16(bundle))
		if bundle = bundle[2:]; len(bundle) < size {
			return nil, fmt.Errorf("%w: it ends within entry %d of %d", ErrBundle, i+1, n)
		}
		list = append(list, bundle[:size:size])
		bundle = bundle[size:]
	}
	if len(bundle) > 0 {
		return nil, fmt.Errorf("%w: %d bytes follow its %d entries", ErrBundle, len(bundle), n)
	}
	return list, nil
}
