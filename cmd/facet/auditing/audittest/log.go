// Package audittest makes audit logs for tests, as a cluster serves them.
package audittest

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"facet/internal/id"
	"facet/internal/tiles"
)

// Log is a log in memory. Its tiles come from tlog, not from the code under test.
type Log struct {
	Origin, Key string
	private     ed25519.PrivateKey
	entries     [][]byte
	hashes      []tlog.Hash // by tlog.StoredHashIndex
}

// New returns an empty log of a tenant. Logs of one tenant have one key.
func New(t testing.TB, tenant byte) *Log {
	t.Helper()
	l := &Log{
		Origin:  tiles.Origin(id.Cluster{UUID: id.UUID{9}}, id.Tenant{UUID: id.UUID{tenant}}),
		private: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{tenant}, ed25519.SeedSize)),
	}
	var err error
	if l.Key, err = tiles.Key(l.Origin, l.private.Public().(ed25519.PublicKey)); err != nil {
		t.Fatal(err)
	}
	return l
}

// ReadHashes implements tlog.HashReader.
func (l *Log) ReadHashes(indexes []int64) (list []tlog.Hash, err error) {
	for _, i := range indexes {
		list = append(list, l.hashes[i])
	}
	return list, nil
}

// Append appends an entry.
func (l *Log) Append(t testing.TB, entry []byte) {
	t.Helper()
	hashes, err := tlog.StoredHashes(int64(len(l.entries)), entry, l)
	if err != nil {
		t.Fatal(err)
	}
	l.entries, l.hashes = append(l.entries, entry), append(l.hashes, hashes...)
}

// Fill appends entries until there are n. word is a part of each.
func (l *Log) Fill(t testing.TB, n int, word string) {
	t.Helper()
	for i := len(l.entries); i < n; i++ {
		l.Append(t, fmt.Appendf(nil, "%s %d %s", word, i, bytes.Repeat([]byte{'.'}, i%97)))
	}
}

// First returns a log with the first n entries.
func (l *Log) First(t testing.TB, n int) *Log {
	t.Helper()
	other := *l
	other.entries, other.hashes = nil, nil
	for _, e := range l.entries[:n] {
		other.Append(t, e)
	}
	return &other
}

// Entries returns the entries, for a change of them before Write: the hashes stay.
func (l *Log) Entries() [][]byte { return l.entries }

// Tree returns the size and the root.
func (l *Log) Tree(t testing.TB) tlog.Tree {
	t.Helper()
	root, err := tlog.TreeHash(int64(len(l.entries)), l)
	if err != nil {
		t.Fatal(err)
	}
	return tlog.Tree{N: int64(len(l.entries)), Hash: root}
}

// Signed returns the signed checkpoint.
func (l *Log) Signed(t testing.TB) []byte {
	t.Helper()
	text, err := tiles.Checkpoint{Origin: l.Origin, Tree: l.Tree(t)}.Sign(l.private)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Write writes the log's files into a folder, the checkpoint last, so that a server may have it.
func (l *Log) Write(t testing.TB, dir string) {
	t.Helper()
	size := int64(len(l.entries))
	for _, tile := range tlog.NewTiles(tiles.Height, 0, size) {
		data, err := tlog.ReadTileData(tile, l)
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, tiles.Path(tile), data)
		if tile.L > 0 {
			continue
		}
		var bundle []byte
		for _, e := range l.entries[tile.N*tiles.Width:][:tile.W] {
			if bundle, err = tiles.AppendEntry(bundle, e); err != nil {
				t.Fatal(err)
			}
		}
		tile.L = tiles.EntryLevel
		write(t, dir, tiles.Path(tile), bundle)
	}
	write(t, dir, "key", []byte(l.Key+"\n"))
	write(t, dir, tiles.CheckpointPath, l.Signed(t))
}

func write(t testing.TB, dir, name string, data []byte) {
	t.Helper()
	name = filepath.Join(dir, filepath.FromSlash(name))
	if old, err := os.ReadFile(name); err == nil && bytes.Equal(old, data) {
		return
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}
