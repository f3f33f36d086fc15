package backup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/bucket"
	"facet/raftfsm/metafsm"
	"facet/shard/seal"
)

var here = place{"b", "shard-0001"}

func testKey(t testing.TB, fill byte) *seal.Key {
	t.Helper()
	m, err := seal.NewMaster(bytes.Repeat([]byte{fill}, seal.KeyBytes))
	must.Do(t, err)
	return keyOf(m, "b")
}

// records are some that don't compress.
func records(n, size int) [][]byte {
	random := rand.New(rand.NewPCG(1, uint64(n)))
	out := make([][]byte, n)
	for i := range out {
		out[i] = make([]byte, size)
		for j := range out[i] {
			out[i][j] = byte(random.Uint32())
		}
	}
	return out
}

func sealed(t testing.TB, list [][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	p, err := newPartWriter(&b, testKey(t, 1), here)
	must.Do(t, err)
	for _, r := range list {
		must.Do(t, p.record(r))
	}
	n, _, err := p.close()
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("%d bytes said, %d written: %v", n, b.Len(), err)
	}
	return b.Bytes()
}

func open(key *seal.Key, at place, b []byte) (list [][]byte, err error) {
	p, err := openPart(bytes.NewReader(b), key, at)
	if err != nil {
		return nil, err
	}
	defer p.close()
	for {
		r, err := p.next()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		list = append(list, bytes.Clone(r))
	}
}

// A part returns its records; any change of it is detected.
func TestPartReadsBackOrIsDamaged(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 7, 40} {
		want := records(n, 100_000)
		b := sealed(t, want)
		got, err := open(testKey(t, 1), here, b)
		if err != nil || len(got) != n {
			t.Fatalf("%d records: %d, %v", n, len(got), err)
		}
		for i := range got {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("record %d of %d is another", i, n)
			}
		}
		f := func(what string, key *seal.Key, at place, b []byte) {
			t.Helper()
			if _, err := open(key, at, b); !errors.Is(err, ErrDamaged) {
				t.Errorf("%d records, %s: %v", n, what, err)
			}
		}
		f("another key", testKey(t, 2), here, b)
		f("another part", testKey(t, 1), place{"b", "shard-0002"}, b)
		f("another backup", testKey(t, 1), place{"c", "shard-0001"}, b)
		f("a byte more", testKey(t, 1), here, append(bytes.Clone(b), 0))
		for i := 0; i < len(b); i += max(1, len(b)/97) {
			bad := bytes.Clone(b)
			bad[i] ^= 1
			f(fmt.Sprint("bit of byte ", i), testKey(t, 1), here, bad)
			f(fmt.Sprint("cut after ", i), testKey(t, 1), here, b[:i])
		}
	}
}

func TestMissingChunkIsDetected(t *testing.T) {
	t.Parallel()
	b := sealed(t, records(40, 100_000))
	const chunk = 4 + chunkBytes + seal.Overhead
	head := len(partMagic) + saltBytes
	for _, bad := range [][]byte{
		b[:head+chunk],
		append(bytes.Clone(b[:head]), b[head+chunk:]...),
		append(append(bytes.Clone(b[:head]), b[head+chunk:head+2*chunk]...), b[head:]...),
	} {
		if _, err := open(testKey(t, 1), here, bad); !errors.Is(err, ErrDamaged) {
			t.Errorf("%d bytes of %d: %v", len(bad), len(b), err)
		}
	}
}

// Meta knows of slots that the shard returned after its part was taken.
func TestStaleShardPartIsTakenAgain(t *testing.T) {
	t.Parallel()
	g := id.Gallery{UUID: id.UUID{1}}
	r := &run{parts: map[id.Shard]Part{
		1: {Slices: []Slice{{Gallery: g, Granted: 100, Returned: 20}}},
		2: {Slices: []Slice{{Gallery: g, Granted: 50}}},
		3: {},
	}}
	f := func(want string, grants ...metafsm.ShardGrant) {
		t.Helper()
		if got := fmt.Sprint(r.stale([]metafsm.GrantsOf{{Gallery: g, Grants: grants}})); got != want {
			t.Errorf("%v: %s, want %s", grants, got, want)
		}
	}
	f("[]", metafsm.ShardGrant{Shard: 1, Total: 100, Reclaimed: 20}, metafsm.ShardGrant{Shard: 2, Total: 80})
	f("[1]", metafsm.ShardGrant{Shard: 1, Total: 100, Reclaimed: 21}, metafsm.ShardGrant{Shard: 2, Total: 50})
	f("[2]", metafsm.ShardGrant{Shard: 2, Total: 49}, metafsm.ShardGrant{Shard: 3, Total: 10})
	f("[3]", metafsm.ShardGrant{Shard: 3, Total: 10, Reclaimed: 10})
}

func FuzzReadersNeverPanic(f *testing.F) {
	f.Add(sealed(f, records(2, 50)), true)
	f.Add([]byte(`{"head":{"format":1,"name":"b"},"sealed":"","sha256":""}`), false)
	f.Add([]byte(partMagic), true)
	f.Fuzz(func(t *testing.T, b []byte, part bool) {
		if !part {
			_, _, _ = parseHead(b, "b")
			return
		}
		if list, err := open(testKey(t, 1), here, b); err == nil && len(list) > 2 {
			t.Fatalf("%d records were forged", len(list))
		}
	})
}

func TestBackupOfOtherVersionIsRefused(t *testing.T) {
	t.Parallel()
	f := func(h Head, want string) {
		t.Helper()
		raw, err := json.Marshal(h)
		must.Do(t, err)
		file := manifestFile{Head: raw}
		file.Digest = file.digest()
		if raw, err = json.Marshal(file); err != nil {
			t.Fatal(err)
		}
		if _, _, err := parseHead(raw, "b"); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", h, err, want)
		}
	}
	f(Head{Format: Format, Name: "b"}, "backup b has level 1: facet 0.3.1 or before wrote it, and facet 0.3.1 reads it")
	f(Head{Format: Format, Name: "b", Level: metafsm.LevelFirst - 1}, "a development version before facet 0.4.0 wrote it")
	f(Head{Format: Format, Name: "b", Level: metafsm.LevelFirst}, "")
	f(Head{Format: Format, Name: "b", Level: metafsm.Level + 1, Version: "9.9"}, "needs a newer version (it was made by 9.9)")
	f(Head{Format: Format + 1, Name: "b", Level: metafsm.Level, Version: "9.9"}, "needs a newer version of the software (it was made by 9.9)")
	f(Head{Format: Format, Name: "another", Level: metafsm.Level}, "damaged")
}

// The manifest in testdata/before is of facet 0.3.1.
func TestOldManifestIsRefused(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs("testdata")
	must.Do(t, err)
	f, err := bucket.OpenFolder(t.Context(), "file://"+dir)
	must.Do(t, err)
	master, err := seal.NewMaster(make([]byte, seal.KeyBytes))
	must.Do(t, err)
	_, err = readManifest(t.Context(), f, "before", master)
	if want := "backup before has level 3: facet 0.3.1 or before wrote it, and facet 0.3.1 reads it"; !errors.Is(err, metafsm.ErrOldLevel) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
