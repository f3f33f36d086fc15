package shardfsm

import (
	"fmt"
	"io"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/shard"
	"facet/shard/merging"
)

// Moment is a moment of a shard among those of other shards.
type Moment struct {
	// Index is the index of the last command.
	Index uint64 `json:"index,omitempty" cbor:"1,keyasint,omitempty"`
	// Copied has, for other shards, an index of their logs. At this index they have all events that
	// were merged into their subjects and are no longer here.
	Copied map[id.Shard]uint64 `json:"copied,omitempty" cbor:"2,keyasint,omitempty"`
}

// ReadCopied reads the snapshot that a Frozen wrote to r before Settle. It calls slice
// with each slice, and then entry with each entry of the slice. It returns a wrapped
// codec.ErrCorrupt, codec.ErrMalformed, shard.ErrSnapshot or merging.ErrSnapshot, or the first
// error of r, slice or entry.
func ReadCopied(r io.Reader, slice func(*shard.CopiedSlice) error, entry func(*shard.CopiedEntry) error) (Moment, error) {
	var records shard.Copy
	merges := merging.NewLoader()
	index, err := codec.ReadAll(r, magic, func(record codec.Message) error {
		if mine, err := merges.Load(record); mine || err != nil {
			return err
		}
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
		return Moment{}, fmt.Errorf("copy shard: %w", err)
	}
	book := merging.New()
	book.Replace(merges)
	return Moment{index, book.Copied()}, nil
}
