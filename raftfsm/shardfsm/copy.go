package shardfsm

import (
	"fmt"
	"io"

	"facet/internal/codec"
	"facet/shard"
)

// ReadCopied reads the snapshot that a Frozen wrote to r before Settle. It calls slice
// with each slice, and then entry with each entry of the slice. It returns a wrapped
// codec.ErrCorrupt, codec.ErrMalformed or shard.ErrSnapshot, or the first error of r,
// slice or entry.
func ReadCopied(r io.Reader, slice func(*shard.CopiedSlice) error, entry func(*shard.CopiedEntry) error) error {
	var records shard.Copy
	_, err := codec.ReadAll(r, magic, func(record codec.Message) error {
		s, e, err := records.Next(record)
		switch {
		case err != nil:
			return err
		case s != nil:
			return slice(s)
		case e != nil:
			return entry(e)
		default:
			return nil
		}
	})
	if err != nil {
		return fmt.Errorf("copy shard: %w", err)
	}
	return nil
}
