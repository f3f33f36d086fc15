package shardfsm

import (
	"errors"
	"fmt"
	"io"

	"facet/internal/codec"
	"facet/shard"
)

// ReadCopied reads what a Frozen that was not settled wrote, and hands on what a
// backup keeps of it: each slice, and behind it its entries. The error wraps
// codec.ErrCorrupt, codec.ErrMalformed or shard.ErrSnapshot, or is r's, slice's or
// entry's.
func ReadCopied(r io.Reader, slice func(*shard.CopiedSlice) error, entry func(*shard.CopiedEntry) error) error {
	in, err := codec.NewReader(r, magic)
	if err != nil {
		return fmt.Errorf("copy shard: %w", err)
	}
	var records shard.Copy
	for {
		record, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("copy shard: %w", err)
		}
		s, e, err := records.Next(record)
		switch {
		case err != nil:
		case s != nil:
			err = slice(s)
		case e != nil:
			err = entry(e)
		}
		if err != nil {
			return fmt.Errorf("copy shard: %w", err)
		}
	}
}
