package tiles

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"facet/internal/id"
	"facet/internal/must"
)

// The paths are those of the examples of tlog-tiles.
func TestPathsReadBack(t *testing.T) {
	t.Parallel()
	f := func(path string, want tlog.Tile) {
		t.Helper()
		want.H = Height
		if got := Path(want); got != path {
			t.Errorf("got the path %q, want %q", got, path)
		}
		if got, err := ParsePath(path); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", path, got, err, want)
		}
	}
	f("tile/0/x001/x234/067", tlog.Tile{L: 0, N: 1234067, W: Width})
	f("tile/63/000.p/255", tlog.Tile{L: 63, N: 0, W: 255})
	f("tile/2/000.p/1", tlog.Tile{L: 2, N: 0, W: 1})
	f("tile/entries/273.p/112", tlog.Tile{L: EntryLevel, N: 273, W: 112})
	f("tile/entries/x001/000", tlog.Tile{L: EntryLevel, N: 1000, W: Width})
}

func TestWrongPathsAreRefused(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"", "tile", "tile/", "tile/0", "tile/0/", "tile/0/0", "tile/0/0000", "tile/64/000", "tile/-1/000", "tile/00/000", "tile/0/000.p/0", "tile/0/000.p/256",
		"tile/0/000.p/01", "tile/0/x000/000", "tile/0/001/x000", "tile/0/000/../000", "tile/data/000", "tile/8/data/000", "tile/entries/8/000", "/tile/0/000",
		"tile/0/000/", "tile/entries/data/000", "tile/0/x999/x999/x999/x999/x999/x999/x999/999", "checkpoint", "tile/0/" + strings.Repeat("x000/", 1000) + "000",
	} {
		if got, err := ParsePath(path); !errors.Is(err, ErrPath) {
			t.Errorf("%q: got %v, %v", path, got, err)
		}
	}
}

// tlog-tiles says which tiles a log of 70,000 entries has.
func TestTreeTellsItsTiles(t *testing.T) {
	t.Parallel()
	f := func(level int, n, size int64, want int) {
		t.Helper()
		if got := In(level, n, size); got.W != want {
			t.Errorf("tile %d of level %d in %d entries: got width %d, want %d", n, level, size, got.W, want)
		}
	}
	f(0, 272, 70_000, Width)
	f(0, 273, 70_000, 112)
	f(0, 274, 70_000, 0)
	f(EntryLevel, 273, 70_000, 112)
	f(1, 0, 70_000, Width)
	f(1, 1, 70_000, 17)
	f(2, 0, 70_000, 1)
	f(3, 0, 70_000, 0)
	f(1, 0, 256, 1)
	f(0, 1, 256, 0)
	f(63, 0, 1<<62, 0)
	f(0, 1<<62, 70_000, 0)
	for _, tile := range tlog.NewTiles(Height, 0, 70_000) {
		f(tile.L, tile.N, 70_000, tile.W)
	}
}

func TestBundleGivesItsEntries(t *testing.T) {
	t.Parallel()
	want := [][]byte{[]byte("one"), {}, bytes.Repeat([]byte{7}, EntryBytesMax)}
	var bundle []byte
	for _, e := range want {
		var err error
		if bundle, err = AppendEntry(bundle, e); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := AppendEntry(nil, make([]byte, EntryBytesMax+1)); err == nil {
		t.Error("an entry that is too long is taken")
	}
	got, err := Entries(bundle, len(want))
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("entry %d has %d bytes, want %d", i, len(got[i]), len(want[i]))
		}
	}
	for _, n := range []int{-1, 0, 2, 4, Width + 1} {
		if _, err := Entries(bundle, n); !errors.Is(err, ErrBundle) {
			t.Errorf("as %d entries: %v", n, err)
		}
	}
	for cut := range 6 {
		if _, err := Entries(bundle[:cut], 2); !errors.Is(err, ErrBundle) {
			t.Errorf("cut at byte %d: %v", cut, err)
		}
	}
}

func key(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

var testOrigin = Origin(id.Cluster{UUID: id.UUID{9}}, id.Tenant{UUID: id.UUID{8}})

func public(t testing.TB, origin string, n byte) string {
	t.Helper()
	text, err := Key(origin, key(n).Public().(ed25519.PublicKey))
	must.Do(t, err)
	return text
}

func signed(t testing.TB, c Checkpoint, n byte) []byte {
	t.Helper()
	text, err := c.Sign(key(n))
	must.Do(t, err)
	return text
}

func example() Checkpoint {
	return Checkpoint{Origin: testOrigin, Tree: tlog.Tree{N: 4711, Hash: tlog.RecordHash([]byte("x"))}}
}

func TestSignedCheckpointIsRead(t *testing.T) {
	t.Parallel()
	empty, err := tlog.TreeHash(0, nil)
	must.Do(t, err)
	for n := range byte(50) { // keys whose base64 texts have plus signs, too
		for _, want := range []Checkpoint{example(), {Origin: testOrigin, Tree: tlog.Tree{Hash: empty}}} {
			got, _, err := Open(signed(t, want, n), public(t, testOrigin, n)+"\n")
			if err != nil || got != want {
				t.Fatalf("key %d: got %v, %v, want %v", n, got, err, want)
			}
		}
	}
	if origin, err := KeyOrigin(public(t, testOrigin, 1)); err != nil || origin != testOrigin {
		t.Errorf("origin of the key: %q, %v", origin, err)
	}
}

func TestChangedCheckpointIsRefused(t *testing.T) {
	t.Parallel()
	text, with := signed(t, example(), 1), public(t, testOrigin, 1)
	for bit := range 8 * len(text) {
		b := bytes.Clone(text)
		b[bit/8] ^= 1 << (bit % 8)
		if c, _, err := Open(b, with); !errors.Is(err, ErrCheckpoint) {
			t.Errorf("bit %d of %d: %v, %v", bit, 8*len(text), c, err)
		}
	}
}

func TestForeignCheckpointIsRefused(t *testing.T) {
	t.Parallel()
	text, with := signed(t, example(), 1), public(t, testOrigin, 1)
	lines := func(body string) []byte {
		v, err := note.NewVerifier(with)
		must.Do(t, err)
		b, err := note.Sign(&note.Note{Text: body}, signer{v, key(1)})
		must.Do(t, err)
		return b
	}
	other := example()
	other.Origin += "0"
	hash := example().Hash.String()
	for name, f := range map[string]struct {
		text []byte
		key  string
	}{
		"another key":           {text, public(t, testOrigin, 2)},
		"another log":           {signed(t, other, 1), with},
		"another log's key":     {text, public(t, other.Origin, 1)},
		"no key":                {text, "facet+abc"},
		"cut":                   {text[:len(text)-1], with},
		"nothing":               {nil, with},
		"too long":              {append(bytes.Repeat([]byte("x\n"), CheckpointBytesMax/2), text...), with},
		"a line more":           {lines(testOrigin + "\n7\n" + hash + "\nmore\n"), with},
		"a line less":           {lines(testOrigin + "\n7\n"), with},
		"a zero before":         {lines(testOrigin + "\n07\n" + hash + "\n"), with},
		"a negative size":       {lines(testOrigin + "\n-7\n" + hash + "\n"), with},
		"a short hash":          {lines(testOrigin + "\n7\nAAAA\n"), with},
		"another log inside":    {lines("x" + testOrigin + "\n7\n" + hash + "\n"), with},
		"a root of no entries":  {lines(testOrigin + "\n0\n" + hash + "\n"), with},
		"an erasure receipt":    {lines("facet erasure receipt\n{}\n"), with},
		"a hash in other words": {lines(testOrigin + "\n7\n" + hash[:42] + "F=\n"), with},
	} {
		if c, _, err := Open(f.text, f.key); !errors.Is(err, ErrCheckpoint) {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
}

func FuzzParsePath(f *testing.F) {
	f.Add("tile/0/x001/x234/067.p/9")
	f.Add("tile/entries/000")
	f.Fuzz(func(t *testing.T, path string) {
		if tile, err := ParsePath(path); err == nil && Path(tile) != path {
			t.Errorf("%q is read as %v, whose path is %q", path, tile, Path(tile))
		} else if err != nil && !errors.Is(err, ErrPath) {
			t.Error(err)
		}
	})
}

func FuzzEntries(f *testing.F) {
	f.Add([]byte("\x00\x01a\x00\x00"), 2)
	f.Fuzz(func(t *testing.T, bundle []byte, n int) {
		list, err := Entries(bundle, n)
		if err != nil {
			if !errors.Is(err, ErrBundle) {
				t.Error(err)
			}
			return
		}
		var again []byte
		for _, e := range list {
			if again, err = AppendEntry(again, e); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(again, bundle) {
			t.Errorf("%x is read as %x", bundle, again)
		}
	})
}

func FuzzOpenCheckpoint(f *testing.F) {
	f.Add(signed(f, example(), 1), public(f, testOrigin, 1))
	f.Add([]byte("x\n0\n\n\n— x AAAA\n"), "x+00000000+AQ==")
	f.Fuzz(func(t *testing.T, text []byte, with string) {
		c, _, err := Open(text, with)
		if err != nil && !errors.Is(err, ErrCheckpoint) {
			t.Error(err)
		}
		if err == nil && strings.TrimSpace(with) == public(t, testOrigin, 1) && c != example() {
			t.Errorf("a checkpoint that was not signed: %v", c)
		}
	})
}
