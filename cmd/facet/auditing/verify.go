package auditing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/mod/sumdb/tlog"

	"facet/internal/tiles"
	"facet/node/audit/entry"
)

// faultsMax is the most faults that Verify names.
const faultsMax = 100

// Verified counts what Verify has found in a folder.
type Verified struct {
	Checkpoint tiles.Checkpoint
	// HashOnly is the number of entries that are not in the folder, because their retention has passed: their
	// hashes prove that they were in the log.
	HashOnly int64
	// Former is the signed checkpoint of the log that this one follows after a restoration, the last one, or empty.
	Former string
	// Faults says what is wrong, one sentence each, at most faultsMax of them. Further counts the
	// others.
	Faults  []string
	Further int
}

// check recomputes a log.
type check struct {
	Verified
	from    Source
	builder builder
	// missing are the bundles that are not there, in order. expired is how many first records of the log have no
	// contents, as the log's acts say.
	missing []span
	expired int64
}

// span is a sequence of bundles, up to and without the one at end.
type span struct{ first, end int64 }

// Verify checks a log: each entry with its hash, each tile with those below it, the root with the
// signed checkpoint, and the checkpoints that witnesses have cosigned. The error is one of reading.
func Verify(ctx context.Context, from Source, key string, witnessed []Witnessed) (Verified, error) {
	c := &check{from: from}
	text, err := from.Read(ctx, tiles.CheckpointPath, tiles.CheckpointBytesMax)
	if err != nil {
		return c.Verified, fmt.Errorf("read the checkpoint: %w", err)
	}
	if c.Checkpoint, _, err = tiles.Open(text, key); err != nil {
		c.fault("checkpoint: %v", err)
		return c.Verified, nil
	}
	above := func(t tlog.Tile, computed []byte) error { c.tile(ctx, t, computed); return nil }
	c.builder.full = above
	for n := int64(0); n*tiles.Width < c.Checkpoint.N; n++ {
		if err := ctx.Err(); err != nil {
			return c.Verified, err
		}
		if err := c.bundle(ctx, tiles.In(0, n, c.Checkpoint.N)); err != nil {
			return c.Verified, err
		}
	}
	if err := c.builder.rest(above); err != nil {
		return c.Verified, err
	}
	c.judgeMissing()
	root, err := c.builder.root()
	if err != nil {
		return c.Verified, err
	}
	if root != c.Checkpoint.Hash {
		c.fault("checkpoint: the tiles of its %d entries give another root hash", c.Checkpoint.N)
	}
	for _, w := range witnessed {
		c.witness(ctx, w)
	}
	return c.Verified, nil
}

func (c *check) fault(format string, args ...any) {
	if len(c.Faults) == faultsMax {
		c.Further++
		return
	}
	c.Faults = append(c.Faults, fmt.Sprintf(format, args...))
}

// bundle checks the entries beside a tile of level 0 with their hashes there.
func (c *check) bundle(ctx context.Context, t tlog.Tile) error {
	at := t
	at.L = tiles.EntryLevel
	b, err := leavesOf(ctx, c.from, at)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrGone):
		c.HashOnly += int64(t.W)
		if last := len(c.missing) - 1; last >= 0 && c.missing[last].end == t.N {
			c.missing[last].end++
		} else {
			c.missing = append(c.missing, span{t.N, t.N + 1})
		}
	case err != nil:
		c.fault("%s: %v", tiles.Path(at), err)
	default:
		c.follow(t.N == 0, b.entries)
	}
	hashes, failed := readTile(ctx, c.from, t)
	if failed != nil {
		c.fault("%s: %v", tiles.Path(t), failed)
		if hashes = b.leaves; err != nil {
			return fmt.Errorf("%s and %s can't be read: the rest of the log is not checked", tiles.Path(t), tiles.Path(at))
		}
	}
	if err == nil {
		for _, i := range different(b.leaves, hashes) {
			c.fault("entry %d: %s has another hash of it", t.N*tiles.Width+i, tiles.Path(t))
		}
	}
	return c.builder.add(hashes)
}

// follow notes what acts say of the log: which log it follows, in its first entry or in an act of a restoration, and
// how many of its records have expired.
func (c *check) follow(first bool, entries [][]byte) {
	for i, content := range entries {
		if (!first || i > 0) && !bytes.Contains(content, []byte(entry.OperationRestore)) && !bytes.Contains(content, []byte(entry.OperationExpire)) {
			continue // decoding all entries would take longer than the rest of the check
		}
		r, err := entry.Decode(content)
		if err != nil || r.Kind != entry.Act {
			continue
		}
		if r.Former != "" {
			c.Former = r.Former
		}
		if r.Operation == entry.OperationExpire {
			c.expired = max(c.expired, int64(min(r.Count, uint64(c.Checkpoint.N))))
		}
	}
}

// judgeMissing adds a fault for each bundle that is not there though not all of its records have expired. A log
// serves no bundle of which some have.
func (c *check) judgeMissing() {
	gone := (c.expired + tiles.Width - 1) / tiles.Width
	for _, m := range c.missing {
		for n := max(m.first, gone); n < m.end; n++ {
			at := tiles.In(0, n, c.Checkpoint.N)
			at.L = tiles.EntryLevel
			c.HashOnly -= int64(at.W)
			c.fault("%s: it is missing, and no record says that the retention of its entries has passed", tiles.Path(at))
		}
	}
}

// different returns the numbers of the hashes that differ in two tiles of one width.
func different(a, b []byte) (list []int64) {
	if bytes.Equal(a, b) {
		return nil
	}
	for at := 0; at < len(a); at += tlog.HashSize {
		if !bytes.Equal(a[at:at+tlog.HashSize], b[at:at+tlog.HashSize]) {
			list = append(list, int64(at/tlog.HashSize))
		}
	}
	return list
}

// tile compares a tile above level 0 with what the tiles below it give. Its own hashes then count.
func (c *check) tile(ctx context.Context, t tlog.Tile, computed []byte) {
	if t.L == 0 {
		return
	}
	hashes, err := readTile(ctx, c.from, t)
	if err != nil {
		c.fault("%s: %v", tiles.Path(t), err)
		return
	}
	for _, i := range different(computed, hashes) {
		below := tlog.Tile{H: tiles.Height, L: t.L - 1, N: t.N*tiles.Width + i, W: tiles.Width}
		c.fault("%s: its hash %d is not that of %s", tiles.Path(t), i, tiles.Path(below))
	}
	copy(computed, hashes)
}

// witness checks that the log contains a tree that a witness has cosigned.
func (c *check) witness(ctx context.Context, w Witnessed) {
	if w.N > c.Checkpoint.N {
		c.fault("the witness %s has seen %d entries on %s, and here are %d: the end of the log was cut, or this copy is older (then export again)",
			w.Witness, w.N, w.at(), c.Checkpoint.N)
		return
	}
	if w.N > 0 {
		if err := Contains(ctx, c.from, c.Checkpoint.Tree, w.Tree); err != nil {
			c.fault("the witness %s has seen %d entries on %s: %v", w.Witness, w.N, w.at(), err)
		}
	}
}
