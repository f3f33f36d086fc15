package tiles

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

const (
	// Height is the height of a tile.
	Height = 8
	// Width is the number of the hashes of a full tile.
	Width = 1 << Height
	// EntryLevel is the level of a bundle of entries, which lies beside the tile of level 0.
	EntryLevel = -1
	// CheckpointPath is the path of the signed checkpoint.
	CheckpointPath = "checkpoint"

	levelMax     = 63
	pathBytesMax = 64
	// The layout of x/mod names the height, and calls bundles data.
	tilePrefix, modPrefix     = "tile/", "tile/8/"
	bundlePrefix, modBundlePr = "tile/entries/", "tile/8/data/"
)

// ErrPath is returned for a path that names no tile and no bundle.
var ErrPath = errors.New("no path of a tile")

// Path returns the path of a tile of height Height, or of a bundle: "tile/0/x001/234.p/17",
// "tile/entries/x001/234".
func Path(t tlog.Tile) string {
	if t.H != Height {
		panic(fmt.Sprintf("bug: a tile of height %d", t.H))
	}
	if t.L == EntryLevel {
		return bundlePrefix + strings.TrimPrefix(t.Path(), modBundlePr)
	}
	return tilePrefix + strings.TrimPrefix(t.Path(), modPrefix)
}

// ParsePath returns the tile or the bundle that a path names. The error wraps ErrPath.
func ParsePath(path string) (tlog.Tile, error) {
	if len(path) > pathBytesMax {
		return tlog.Tile{}, fmt.Errorf("%w: it has %d bytes", ErrPath, len(path))
	}
	mod := ""
	if rest, ok := strings.CutPrefix(path, bundlePrefix); ok {
		mod = modBundlePr + rest
	} else if rest, ok := strings.CutPrefix(path, tilePrefix); ok {
		mod = modPrefix + rest
	}
	t, err := tlog.ParseTilePath(mod)
	if err != nil || t.L > levelMax || Path(t) != path {
		return tlog.Tile{}, fmt.Errorf("%w: %q", ErrPath, path)
	}
	return t, nil
}

// In returns the tile with this level and number in a tree of size entries, as wide as the tree
// fills it. The width is 0 if the tree has no such tile.
func In(level int, n, size int64) tlog.Tile {
	t := tlog.Tile{H: Height, L: level, N: n}
	hashes := size >> (Height * max(level, 0)) // at that level
	switch full := hashes / Width; {
	case n < full:
		t.W = Width
	case n == full:
		t.W = int(hashes % Width)
	}
	return t
}
