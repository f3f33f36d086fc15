package shardfsm

import (
	"fmt"
	"io"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/shard"
	"facet/shard/job"
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

// Copying has the functions that ReadCopied calls.
type Copying struct {
	// Slice is called with each slice, and then Entry with each entry of the slice.
	Slice func(*shard.CopiedSlice) error
	Entry func(*shard.CopiedEntry) error
	// Item is called with each pair of different subjects and each case, after all slices. It may be nil.
	Item func(*job.CopiedItem) error
}

// ReadCopied reads the snapshot that a Frozen wrote to r before Settle. It returns a wrapped
// codec.ErrCorrupt, codec.ErrMalformed, shard.ErrSnapshot or merging.ErrSnapshot, or the first
// error of r or of a function of to.
func ReadCopied(r io.Reader, to Copying) (Moment, error) {
	var records shard.Copy
	var jobs job.Copy
	merges := merging.NewLoader()
	index, err := codec.ReadAll(r, magic, func(record codec.Message) error {
		if mine, err := merges.Load(record); mine || err != nil {
			return err
		}
		if p, err := jobs.Next(record); err != nil || p != nil {
			if err == nil && to.Item != nil {
				err = to.Item(p)
			}
			return err
		}
		s, e, err := records.Next(record)
		switch {
		case err != nil:
			return err
		case s != nil:
			return to.Slice(s)
		case e != nil:
			return to.Entry(e)
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
