package kernel

import (
	"math/rand/v2"
	"testing"
)

// tagsModel is a tagTable as a plain map.
type tagsModel map[uint32]map[int]bool

func (m tagsModel) mark(words []uint64, block int, tags []uint32) {
	for _, tag := range tags {
		for at := range m[tag] {
			if i := at/blockSlots - block; i >= 0 && i < len(words) {
				words[i] |= 1 << (at % blockSlots)
			}
		}
	}
}

func agreeOnTags(t *testing.T, seed uint64, blocks, steps int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 21))
	var table tagTable
	model, have := tagsModel{}, map[int][]uint32{}
	random := func() (tags []uint32) {
		for range r.IntN(4) {
			tag := uint32(r.IntN(5)) // common ones
			if r.IntN(3) == 0 {
				tag = uint32(r.Uint64()) >> r.IntN(32)
			}
			tags = append(tags, tag, tag)
		}
		return tags
	}
	unset := func(at int) {
		table.unset(at, have[at])
		for _, tag := range have[at] {
			delete(model[tag], at)
			if len(model[tag]) == 0 {
				delete(model, tag)
			}
		}
		delete(have, at)
	}
	check := func(step int) {
		t.Helper()
		tags := append(random(), uint32(r.IntN(5)))
		block := r.IntN(blocks)
		got, want := make([]uint64, blocks-block), make([]uint64, blocks-block)
		any := table.mark(got, block, tags)
		model.mark(want, block, tags)
		for i, word := range want {
			if got[i] != word || word != 0 && !any {
				t.Fatalf("seed %d, step %d: tags %v of block %d: got %x (any %v), want %x", seed, step, tags, block+i, got[i], any, word)
			}
		}
	}
	for step := range steps {
		at := r.IntN(blocks * blockSlots)
		if have[at] != nil {
			unset(at)
		} else if tags := random(); tags != nil {
			have[at] = tags
			table.set(at, blocks, tags)
			for _, tag := range tags {
				if model[tag] == nil {
					model[tag] = map[int]bool{}
				}
				model[tag][at] = true
			}
		}
		check(step)
	}
	for at := range have {
		unset(at)
	}
	if n := len(table.load()); n != 0 || table.bytes() != 0 {
		t.Errorf("seed %d: %d tags, %d bytes are left of rows that are gone", seed, n, table.bytes())
	}
}

func TestTagsEqualPlainMap(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		agreeOnTags(t, seed, []int{1, 2, 8, 32}[seed%4], 2000)
	}
}

func FuzzTags(f *testing.F) {
	f.Add(uint64(1), uint8(32), uint16(500))
	f.Fuzz(func(t *testing.T, seed uint64, blocks uint8, steps uint16) {
		agreeOnTags(t, seed, 1+int(blocks)%32, int(steps)%2000)
	})
}

func TestTagTakesAtMostOneBitPerSlot(t *testing.T) {
	t.Parallel()
	const blocks = 32
	var table tagTable
	for at := range blocks * blockSlots {
		table.set(at, blocks, []uint32{7})
		// A list has room to grow in, 8 bytes at least.
		if n, most := table.bytes(), int64(tagBytes+2*max(4, 2*min(at+1, blocks*4))); n > most {
			t.Fatalf("%d bytes for %d rows, want at most %d", n, at+1, most)
		}
	}
	for at := range blocks*blockSlots - 1 {
		table.unset(at, []uint32{7})
	}
	if n := table.bytes(); n > tagBytes+blocks*8/4 {
		t.Errorf("%d bytes for one row that is left", n)
	}
}
