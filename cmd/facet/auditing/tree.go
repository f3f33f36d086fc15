package auditing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/mod/sumdb/tlog"

	"facet/internal/tiles"
)

const (
	tileBytes   = tiles.Width * tlog.HashSize
	cachedTiles = 64
)

// readTile returns the hashes of a tile. A log that has grown may have the full tile only.
func readTile(ctx context.Context, src Source, t tlog.Tile) ([]byte, error) {
	b, err := src.Read(ctx, tiles.Path(t), tileBytes)
	if errors.Is(err, fs.ErrNotExist) && t.W < tiles.Width {
		full := t
		full.W = tiles.Width
		if whole, err := src.Read(ctx, tiles.Path(full), tileBytes); err == nil && len(whole) == tileBytes {
			return whole[:t.W*tlog.HashSize], nil
		}
	}
	if err != nil {
		return nil, err
	}
	if len(b) != t.W*tlog.HashSize {
		return nil, fmt.Errorf("%s has %d bytes, and must have %d", tiles.Path(t), len(b), t.W*tlog.HashSize)
	}
	return b, nil
}

// readBundle returns the entries of a bundle. A log that has grown may have the full bundle only.
func readBundle(ctx context.Context, src Source, t tlog.Tile) ([][]byte, error) {
	b, err := src.Read(ctx, tiles.Path(t), tiles.BundleBytesMax)
	n := t.W
	if errors.Is(err, fs.ErrNotExist) && t.W < tiles.Width {
		full := t
		full.W, n = tiles.Width, tiles.Width
		b, err = src.Read(ctx, tiles.Path(full), tiles.BundleBytesMax)
	}
	if err != nil {
		return nil, err
	}
	list, err := tiles.Entries(b, n)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tiles.Path(t), err)
	}
	return list[:t.W], nil
}

// checkedTiles reads tiles for tlog, which checks them with the root of a tree. It keeps some of
// those that are right.
type checkedTiles struct {
	read  func(tlog.Tile) ([]byte, error)
	err   error // of the last read
	known map[tlog.Tile][]byte
}

// hashesOf returns a reader of the hashes of a log's tree. Each hash that it gives is proven to be
// in the tree.
func hashesOf(ctx context.Context, tree tlog.Tree, src Source) tlog.HashReader {
	r := &checkedTiles{
		read:  func(t tlog.Tile) ([]byte, error) { return readTile(ctx, src, t) },
		known: map[tlog.Tile][]byte{},
	}
	checked := tlog.TileHashReader(tree, r)
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		if len(indexes) == 0 {
			return nil, nil
		}
		list, err := checked.ReadHashes(indexes)
		if err != nil && r.err == nil {
			return nil, fmt.Errorf("the tiles don't give the root hash of the checkpoint of %d entries", tree.N)
		}
		return list, err
	})
}

// Height implements tlog.TileReader.
func (r *checkedTiles) Height() int { return tiles.Height }

// ReadTiles implements tlog.TileReader.
func (r *checkedTiles) ReadTiles(list []tlog.Tile) ([][]byte, error) {
	data := make([][]byte, len(list))
	for i, t := range list {
		b, ok := r.known[t]
		if !ok {
			if b, r.err = r.read(t); r.err != nil {
				return nil, r.err
			}
		}
		data[i] = b
	}
	return data, nil
}

// SaveTiles implements tlog.TileReader.
func (r *checkedTiles) SaveTiles(list []tlog.Tile, data [][]byte) {
	if len(r.known)+len(list) > cachedTiles {
		clear(r.known)
	}
	for i, t := range list {
		if t.L > 0 || t.W < tiles.Width {
			r.known[t] = data[i]
		}
	}
}

// Contains returns an error unless the tree of a log contains an older one, by the tiles of the
// log. The error wraps ErrFork if it does not.
func Contains(ctx context.Context, from Source, tree, older tlog.Tree) error {
	return contains(hashesOf(ctx, tree, from), older)
}

// contains returns an error unless the tree of hashes, with more entries, contains an older one.
func contains(hashes tlog.HashReader, older tlog.Tree) error {
	root, err := tlog.TreeHash(older.N, hashes)
	if err != nil {
		return err
	}
	if root != older.Hash {
		return ErrFork
	}
	return nil
}

// ErrFork is returned for a tree of a log that does not contain an older one.
var ErrFork = errors.New("its first entries are others now: the log was forked or rewritten")

// subtree returns the hash of a full tile.
func subtree(data []byte) tlog.Hash {
	if len(data) == tlog.HashSize {
		return tlog.Hash(data)
	}
	half := len(data) / 2
	return tlog.NodeHash(subtree(data[:half]), subtree(data[half:]))
}

// builder computes the tiles of a log from its leaf hashes.
type builder struct {
	size int64
	open [][]byte // of each level, the tile that is not full yet
	// full takes each tile when it is full. What it leaves in data counts for the levels above.
	full func(t tlog.Tile, data []byte) error
}

// resume continues a tree that has size entries, all in full tiles, with these hashes.
func (b *builder) resume(size int64, hashes tlog.HashReader) error {
	b.size, b.open = size, [][]byte{nil}
	for level := 1; size>>(tiles.Height*level) > 0; level++ {
		t := tiles.In(level, size>>(tiles.Height*(level+1)), size)
		var data []byte
		if t.W > 0 {
			var err error
			if data, err = tlog.ReadTileData(t, hashes); err != nil {
				return err
			}
		}
		b.open = append(b.open, data)
	}
	return nil
}

// add adds leaf hashes.
func (b *builder) add(leaves []byte) error {
	for ; len(leaves) > 0; leaves = leaves[tlog.HashSize:] {
		b.size++
		if err := b.push(0, leaves[:tlog.HashSize]); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) push(level int, hash []byte) error {
	if level == len(b.open) {
		b.open = append(b.open, nil)
	}
	b.open[level] = append(b.open[level], hash...)
	if len(b.open[level]) < tileBytes {
		return nil
	}
	data := b.open[level]
	t := tlog.Tile{H: tiles.Height, L: level, N: b.size>>(tiles.Height*(level+1)) - 1, W: tiles.Width}
	if err := b.full(t, data); err != nil {
		return err
	}
	h := subtree(data)
	b.open[level] = data[:0]
	return b.push(level+1, h[:])
}

// rest calls partial for each tile that is not full, from level 0 up.
func (b *builder) rest(partial func(t tlog.Tile, data []byte) error) error {
	for level, data := range b.open {
		if len(data) == 0 {
			continue
		}
		if err := partial(tiles.In(level, b.size>>(tiles.Height*(level+1)), b.size), data); err != nil {
			return err
		}
	}
	return nil
}

// root returns the root hash.
func (b *builder) root() (tlog.Hash, error) {
	return tlog.TreeHash(b.size, tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		list := make([]tlog.Hash, len(indexes))
		for i, x := range indexes {
			t := tlog.TileForIndex(tiles.Height, x)
			t = tiles.In(t.L, t.N, b.size)
			var err error
			if list[i], err = tlog.HashFromTile(t, b.open[t.L], x); err != nil {
				return nil, err
			}
		}
		return list, nil
	}))
}
