package auditlog

import (
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// Tiles have the height and width of C2SP's tlog-tiles.
const (
	TileHeight = 8
	TileWidth  = 1 << TileHeight
)

// Hash is a hash of a Merkle tree.
type Hash = tlog.Hash

// LeafHash returns the hash of the leaf with a content.
func LeafHash(content []byte) Hash { return tlog.RecordHash(content) }

// tree is a Merkle tree without the leaves of its complete tiles. Slices only grow, or are replaced,
// so copies of the struct are states of their own.
type tree struct {
	size uint64
	// leaves are those of the last tile, while it is not complete.
	leaves []Hash
	// above has the complete tiles' hashes: above[0][i] is the hash of the i-th tile of leaves, and
	// above[k][i] is that of the i-th tile of above[k-1].
	above [][]Hash
}

// add appends a leaf.
func (t *tree) add(leaf Hash) {
	t.size++
	t.leaves = append(t.leaves, leaf)
	if len(t.leaves) < TileWidth {
		return
	}
	full := t.leaves
	t.leaves = nil
	for k := 0; ; k++ {
		if k == len(t.above) {
			t.above = append(slices.Clip(t.above), nil)
		}
		next := append(t.above[k], join(full))
		t.above = slices.Clone(t.above)
		t.above[k] = next
		if len(next)%TileWidth != 0 {
			return
		}
		full = next[len(next)-TileWidth:]
	}
}

// join returns the hash of the complete tree over list, whose length is a power of two.
func join(list []Hash) Hash {
	level := slices.Clone(list)
	for len(level) > 1 {
		for i := range len(level) / 2 {
			level[i] = tlog.NodeHash(level[2*i], level[2*i+1])
		}
		level = level[:len(level)/2]
	}
	return level[0]
}

// root returns the tree's hash.
func (t *tree) root() Hash {
	h, err := tlog.TreeHash(int64(t.size), tlog.HashReaderFunc(t.read))
	if err != nil {
		panic("bug: a tree lacks hashes of itself: " + err.Error())
	}
	return h
}

// read returns the hashes of complete subtrees that tlog.TreeHash asks for.
func (t *tree) read(indexes []int64) ([]Hash, error) {
	list := make([]Hash, len(indexes))
	for i, index := range indexes {
		level, n := tlog.SplitStoredHashIndex(index)
		base, shift := level/TileHeight, level%TileHeight
		row, first := t.row(base)
		from, to := uint64(n)<<shift, uint64(n+1)<<shift
		if from < first || to-first > uint64(len(row)) {
			return nil, fmt.Errorf("%w: hash %d of level %d", ErrNoTile, n, level)
		}
		list[i] = join(row[from-first : to-first])
	}
	return list, nil
}

// row returns the hashes of a level of tiles from the one at first on. It has all but the leaves of
// complete tiles.
func (t *tree) row(level int) (hashes []Hash, first uint64) {
	switch {
	case level == 0:
		return t.leaves, t.size - uint64(len(t.leaves))
	case level <= len(t.above):
		return t.above[level-1], 0
	default:
		return nil, 0
	}
}
