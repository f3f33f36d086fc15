package auditing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
	"golang.org/x/sync/errgroup"

	"facet/internal/tiles"
)

// batchBundles is the number of bundles that an export fetches at once.
const batchBundles = 8

// Exported says what an export has done.
type Exported struct {
	Checkpoint tiles.Checkpoint
	Before     int64 // the entries that the folder had
	HashOnly   int64 // the new entries of which only the hashes are there
}

// FindKey returns the verifier key of a log for an export: the one that was named, or the folder's,
// or the source's. All that are there must be the same.
func FindKey(ctx context.Context, named string, src Source, to Place) (string, error) {
	key, err := ReadKey(ctx, to)
	switch {
	case err == nil && named != "" && strings.TrimSpace(named) != key:
		return "", fmt.Errorf("%s has a log with another key: export into a new folder", to)
	case err == nil:
		return key, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	case named != "":
		return strings.TrimSpace(named), nil
	}
	return ReadKey(ctx, src)
}

// ReadKey returns the verifier key that a log names as its own.
func ReadKey(ctx context.Context, from Source) (string, error) {
	text, err := from.Read(ctx, KeyPath, keyBytesMax)
	if err != nil {
		return "", fmt.Errorf("read the log's key: %w", err)
	}
	key := strings.TrimSpace(string(text))
	_, err = tiles.KeyOrigin(key)
	return key, err
}

// exporter copies a log into a folder.
type exporter struct {
	from    Source
	to      Place
	tree    tlog.Tree
	hashes  tlog.HashReader // of tree
	builder builder
	gone    int64
}

// Export copies what is new of a log into a folder, checks it, and then replaces the folder's
// checkpoint. It refuses a log that does not continue the folder's. progress is told the entries
// that are there.
func Export(ctx context.Context, from Source, to Place, key string, progress func(entries int64)) (sum Exported, err error) {
	signed, c, older, err := newer(ctx, from, to, key)
	if err != nil {
		return sum, err
	}
	x := &exporter{from: from, to: to, tree: c.Tree, hashes: hashesOf(ctx, c.Tree, from)}
	if err := contains(x.hashes, older.Tree); older.N > 0 && err != nil {
		return sum, fmt.Errorf("the log does not continue that in %s, of %d entries: %w", to, older.N, err)
	}
	if err := to.save(ctx, KeyPath, []byte(key+"\n")); err != nil {
		return sum, err
	}
	first := older.N / tiles.Width
	if err := x.builder.resume(first*tiles.Width, hashesOf(ctx, older.Tree, to)); err != nil {
		return sum, fmt.Errorf("%s is damaged (facet audit verify names the files): export into a new folder: %w", to, err)
	}
	x.builder.full = func(t tlog.Tile, data []byte) error {
		if t.L == 0 { // keep has written it
			return nil
		}
		return to.write(ctx, t, data)
	}
	for ; first*tiles.Width < c.N; first += batchBundles {
		if err := x.copy(ctx, first); err != nil {
			return sum, err
		}
		progress(x.builder.size)
	}
	if err := x.builder.rest(func(t tlog.Tile, data []byte) error { return to.write(ctx, t, data) }); err != nil {
		return sum, err
	}
	if err := x.finish(ctx, signed, older); err != nil {
		return sum, err
	}
	return Exported{c, older.N, x.gone}, nil
}

// newer returns the log's checkpoint, as it is signed and opened, and the folder's older one.
func newer(ctx context.Context, from Source, to Place, key string) (signed []byte, c, older tiles.Checkpoint, err error) {
	if signed, err = from.Read(ctx, tiles.CheckpointPath, tiles.CheckpointBytesMax); err != nil {
		return nil, c, older, fmt.Errorf("read the log's checkpoint: %w", err)
	}
	if c, _, err = tiles.Open(signed, key); err != nil {
		return nil, c, older, fmt.Errorf("read the log's checkpoint: %w", err)
	}
	if older, err = placeCheckpoint(ctx, to, key); err != nil {
		return nil, c, older, err
	}
	if older.N > c.N {
		return nil, c, older, fmt.Errorf("the log has %d entries, and %s has %d: the log was rolled back, or a node that is behind has answered (then try again)",
			c.N, to, older.N)
	}
	return signed, c, older, nil
}

// bundle has the entries of one bundle that the log still has.
type bundle struct {
	entries [][]byte // nil: past their retention
	leaves  []byte   // their hashes
	kept    bool     // the folder has it already
}

// copy copies the batch of bundles from first on.
func (x *exporter) copy(ctx context.Context, first int64) error {
	var batch []bundle
	var want [][]byte // the hash of each full bundle, or those of a partial one's entries
	for n := first; n < first+batchBundles && n*tiles.Width < x.tree.N; n++ {
		t := tiles.In(tiles.EntryLevel, n, x.tree.N)
		hashes, err := x.proven(t)
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		want, batch = append(want, hashes), append(batch, bundle{})
	}
	g, ctx := errgroup.WithContext(ctx)
	for i := range batch {
		g.Go(func() (err error) {
			t := tiles.In(tiles.EntryLevel, first+int64(i), x.tree.N)
			if batch[i], err = x.fetch(ctx, t, want[i]); err != nil {
				return err
			}
			return x.keep(ctx, t, batch[i])
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, b := range batch {
		if b.entries == nil {
			x.gone += int64(len(b.leaves) / tlog.HashSize)
		}
		if err := x.builder.add(b.leaves); err != nil {
			return err
		}
	}
	return nil
}

// proven returns hashes that are in the tree: that of a full bundle, or those of the entries of a
// partial one.
func (x *exporter) proven(t tlog.Tile) ([]byte, error) {
	indexes := []int64{tlog.StoredHashIndex(tiles.Height, t.N)}
	if t.W < tiles.Width {
		indexes = nil
		for i := range t.W {
			indexes = append(indexes, tlog.StoredHashIndex(0, t.N*tiles.Width+int64(i)))
		}
	}
	list, err := x.hashes.ReadHashes(indexes)
	var b []byte
	for _, h := range list {
		b = append(b, h[:]...)
	}
	return b, err
}

// fits reports whether leaf hashes are those that are proven.
func fits(leaves, proven []byte) bool {
	if len(leaves) == tileBytes {
		h := subtree(leaves)
		leaves = h[:]
	}
	return bytes.Equal(leaves, proven)
}

// fetch returns a bundle from the folder, if an export that was interrupted left it there, else
// from the log.
func (x *exporter) fetch(ctx context.Context, t tlog.Tile, want []byte) (b bundle, err error) {
	hashes := t
	hashes.L = 0
	if b, err = leavesOf(ctx, x.to, t); err == nil && fits(b.leaves, want) {
		stored, err := x.to.Read(ctx, tiles.Path(hashes), tileBytes)
		b.kept = err == nil && t.W == tiles.Width && bytes.Equal(stored, b.leaves)
		return b, nil
	}
	b, err = leavesOf(ctx, x.from, t)
	first := t.N * tiles.Width
	if errors.Is(err, ErrGone) {
		b.leaves, err = readTile(ctx, x.from, hashes)
	}
	if err != nil {
		return b, fmt.Errorf("read the entries %d to %d: %w", first, first+int64(t.W)-1, err)
	}
	if !fits(b.leaves, want) {
		return b, fmt.Errorf("the entries %d to %d that the log gives are not those of its checkpoint", first, first+int64(t.W)-1)
	}
	return b, nil
}

// leavesOf returns a bundle with the hashes of its entries.
func leavesOf(ctx context.Context, src Source, t tlog.Tile) (b bundle, err error) {
	if b.entries, err = readBundle(ctx, src, t); err != nil {
		return b, err
	}
	b.leaves = make([]byte, 0, t.W*tlog.HashSize)
	for _, e := range b.entries {
		h := tlog.RecordHash(e)
		b.leaves = append(b.leaves, h[:]...)
	}
	return b, nil
}

// keep writes a bundle and its hashes, unless the folder has them.
func (x *exporter) keep(ctx context.Context, t tlog.Tile, b bundle) error {
	if b.kept {
		return nil
	}
	if b.entries != nil {
		text := make([]byte, 0, tiles.Width*2)
		for _, e := range b.entries {
			var err error
			if text, err = tiles.AppendEntry(text, e); err != nil {
				return err
			}
		}
		if err := x.to.write(ctx, t, text); err != nil {
			return err
		}
	}
	t.L = 0
	return x.to.write(ctx, t, b.leaves)
}

// finish replaces the folder's checkpoint.
func (x *exporter) finish(ctx context.Context, signed []byte, older tiles.Checkpoint) error {
	root, err := x.builder.root()
	if err != nil {
		return err
	}
	if root != x.tree.Hash {
		return fmt.Errorf("bug: the tiles of %d entries have the root %s, and the checkpoint %s", x.tree.N, root, x.tree.Hash)
	}
	if err := x.to.commit(ctx, signed); err != nil {
		return err
	}
	return prune(ctx, x.to, older.N, x.tree.N)
}
