package codes_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/codes"
	"facet/shard/kernel"
	"facet/shard/seal"
	"facet/shard/segment"
)

// piece is a piece as it was written.
type piece struct {
	at     codes.Place
	key    *seal.Key
	rows   []codes.Row
	blocks []byte
}

var of = segment.Hash{1, 2, 3}

func keyOf(t testing.TB, fill byte) *seal.Key {
	t.Helper()
	k, err := seal.NewKey(bytes.Repeat([]byte{fill}, seal.KeyBytes))
	must.Do(t, err)
	return k
}

// pieces returns pieces of two galleries.
func pieces(t testing.TB, sizes ...int) (list []piece) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	sequence := uint64(1 << 40)
	for i, n := range sizes {
		p := piece{at: codes.Place{Gallery: id.Gallery{UUID: id.UUID{byte(i % 2)}}, Generation: 3, Coding: kernel.CodingID{7}, Dim: 64}, key: keyOf(t, byte(i%2))}
		for range n {
			sequence += 1 + r.Uint64N(3)
			p.rows = append(p.rows, codes.Row{Sequence: sequence, Event: id.Event{UUID: id.UUID{byte(r.Uint32())}}, Revision: r.Uint32N(4)})
		}
		p.blocks = make([]byte, n*100)
		for j := range p.blocks {
			p.blocks[j] = byte(r.Uint32())
		}
		list = append(list, p)
	}
	return list
}

func file(t testing.TB, list []piece) []byte {
	t.Helper()
	var out bytes.Buffer
	w := codes.Writer{To: &out, Of: of}
	for _, p := range list {
		must.Do(t, w.Piece(p.key, p.at, p.rows, p.blocks))
	}
	return out.Bytes()
}

func TestPiecesComeBackAsWritten(t *testing.T) {
	t.Parallel()
	list := pieces(t, 64, 1024, 128, 64)
	b := file(t, list)
	heads, err := codes.Heads(bytes.NewReader(b), int64(len(b)))
	if err != nil || len(heads) != len(list) {
		t.Fatalf("%d heads, %v", len(heads), err)
	}
	var o codes.Opener
	for _, i := range []int{3, 1, 0, 2} {
		h, want := heads[i], list[i]
		if h.Place != want.at || h.Rows != len(want.rows) || h.First != want.rows[0].Sequence {
			t.Errorf("piece %d: head %+v", i, h)
		}
		rows, blocks, err := o.Open(bytes.NewReader(b), of, h, want.key)
		if err != nil || !slices.Equal(rows, want.rows) || !bytes.Equal(blocks, want.blocks) {
			t.Errorf("piece %d: %d rows, %d bytes, %v", i, len(rows), len(blocks), err)
		}
	}
}

// A piece opens with its key only, as this piece of this file, of this place.
func TestPieceOpensAtItsPlaceOnly(t *testing.T) {
	t.Parallel()
	list := pieces(t, 64, 64, 64)
	b := file(t, list)
	heads, err := codes.Heads(bytes.NewReader(b), int64(len(b)))
	must.Do(t, err)
	length := (len(b) - 8) / 3
	swapped := slices.Concat(b[:8], b[8+2*length:], b[8+length:8+2*length], b[8:8+length])
	f := func(name string, b []byte, of segment.Hash, key *seal.Key, change func(h *codes.Head)) {
		t.Helper()
		h := heads[0]
		change(&h)
		var o codes.Opener
		if rows, _, err := o.Open(bytes.NewReader(b), of, h, key); !errors.Is(err, segment.ErrCorrupt) || rows != nil {
			t.Errorf("%s: %d rows, %v", name, len(rows), err)
		}
	}
	none := func(*codes.Head) {}
	f("key", b, of, keyOf(t, 9), none)
	f("segment", b, segment.Hash{4}, list[0].key, none)
	f("order", swapped, of, list[0].key, none)
	f("gallery", b, of, list[0].key, func(h *codes.Head) { h.Gallery.UUID[5]++ })
	f("generation", b, of, list[0].key, func(h *codes.Head) { h.Generation++ })
	f("coding", b, of, list[0].key, func(h *codes.Head) { h.Coding[31]++ })
	f("dimension", b, of, list[0].key, func(h *codes.Head) { h.Dim++ })
	f("first", b, of, list[0].key, func(h *codes.Head) { h.First++ })
	f("cut", b[:length], of, list[0].key, none)
	for i := 8 + 68; i < length; i += 37 {
		bad := bytes.Clone(b)
		bad[i] ^= 4
		f("changed", bad, of, list[0].key, none)
	}
}

func TestDamagedHeadsEndTheList(t *testing.T) {
	t.Parallel()
	b := file(t, pieces(t, 64, 64, 64))
	length := (len(b) - 8) / 3
	f := func(name string, b []byte, want int) {
		t.Helper()
		heads, err := codes.Heads(bytes.NewReader(b), int64(len(b)))
		if !errors.Is(err, segment.ErrCorrupt) || len(heads) != want {
			t.Errorf("%s: %d heads, want %d, %v", name, len(heads), want, err)
		}
	}
	f("empty", nil, 0)
	f("magic", append([]byte("FACETSG1"), b[8:]...), 0)
	f("cut in a head", b[:8+length+20], 1)
	f("cut in a piece", b[:8+2*length+500], 2)
	for field, value := range map[int]uint16{52: 0, 54: 65} {
		bad := bytes.Clone(b)
		binary.LittleEndian.PutUint16(bad[8+length+field:], value)
		f("field", bad, 1)
	}
	bad := bytes.Clone(b)
	binary.LittleEndian.PutUint32(bad[8+64:], 1<<31)
	f("length", bad, 0)
}

func FuzzHeads(f *testing.F) {
	b := file(f, pieces(f, 64, 128))
	f.Add(b)
	f.Add(b[:300])
	f.Add([]byte("FACETCO1"))
	key := keyOf(f, 0)
	f.Fuzz(func(t *testing.T, b []byte) {
		heads, _ := codes.Heads(bytes.NewReader(b), int64(len(b)))
		var o codes.Opener
		for _, h := range heads {
			rows, blocks, err := o.Open(bytes.NewReader(b), of, h, key)
			if err == nil && (len(rows) != h.Rows || len(blocks) == 0) {
				t.Errorf("%d rows of %d, %d bytes", len(rows), h.Rows, len(blocks))
			}
			if err != nil && !errors.Is(err, segment.ErrCorrupt) {
				t.Error(err)
			}
		}
	})
}
