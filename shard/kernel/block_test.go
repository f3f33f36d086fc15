package kernel

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"facet/internal/must"
	"facet/shard/scan"
)

// reborn fills a new twin of the same coding with the blocks of w, as after a restart: whole blocks by
// their codes, in which one row in ten is gone by then, and the other rows by their templates.
func (w *twin) reborn(t *testing.T, r *rand.Rand, next *twin) (coded int) {
	t.Helper()
	if a, b := w.m.CodingID(), next.m.CodingID(); a != b || a == (CodingID{}) {
		t.Fatalf("codings %x and %x", a, b)
	}
	var rest, full []int
	block := make([]byte, w.m.BlockBytes())
	for _, slot := range slices.Sorted(maps.Keys(w.rows)) {
		if !w.m.CopyCodes(block, len(full), slot) {
			rest = append(rest, slot)
			continue
		}
		if full = append(full, slot); len(full) == BlockRows {
			coded += next.addBlock(t, r, w, full, block)
			full = full[:0]
		}
	}
	for _, slot := range append(rest, full...) {
		row := w.rows[slot]
		next.add(t, &event{row.Subject, row.Event, row.Tags}, row.Template)
	}
	return coded
}

func (w *twin) addBlock(t *testing.T, r *rand.Rand, from *twin, slots []int, block []byte) (coded int) {
	t.Helper()
	owners := make([]uint32, len(slots))
	for i, slot := range slots {
		if row := from.rows[slot]; r.IntN(10) > 0 {
			owners[i] = w.own(&event{row.Subject, row.Event, row.Tags})
			w.vault.put(owners[i], row.Template)
		}
	}
	first, err := w.m.AddBlock(owners, block)
	must.Do(t, err)
	for i, slot := range slots {
		if owners[i] != 0 {
			w.rows[first+i] = from.rows[slot]
			coded++
		}
	}
	return coded
}

// sameCodes demands the codes that encoding again gives, and zeros where no row is.
func (w *twin) sameCodes(t *testing.T) {
	t.Helper()
	got, want := make([]byte, w.m.BlockBytes()), make([]byte, w.m.BlockBytes())
	var p Prepared
	for slot := range w.m.slots {
		row, used := w.rows[slot]
		index, at := place(slot)
		c := (*w.m.chunks.Load())[index]
		if c.flat || used && c.irregular[at/blockSlots].Load()>>(at%blockSlots)&1 == 1 {
			continue
		}
		zero := newCoded(&w.m.shape)
		if !w.m.CopyCodes(got, slot%BlockRows, slot) {
			t.Fatalf("slot %d has no codes", slot)
		}
		of := &zero
		if used {
			must.Do(t, w.m.Prepare(&p, row.Template))
			of = &p.enc.coded
		}
		if w.m.block(want).write(&w.m.shape, slot%BlockRows, of); !bytes.Equal(got, want) {
			t.Fatalf("slot %d, used %v: other codes than encoding gives", slot, used)
		}
	}
}

func TestRowsAddedByCodesEqualEncoded(t *testing.T) {
	t.Parallel()
	for _, dim := range []int{2, 17, 192} {
		r := rand.New(rand.NewPCG(uint64(dim), 80))
		before, after := codedTwins(t, r, dim), codedTwins(t, rand.New(rand.NewPCG(uint64(dim), 80)), dim)
		for _, name := range []string{"plain", "suited"} {
			w, next := before[name], after[name]
			centres := centresOf(r, dim)
			w.mixed(t, r, centres, 500)
			for i := range 400 {
				w.add(t, eventOf(r, i), tapered(r, dim, 1))
			}
			w.chill(r, .5)
			coded := w.reborn(t, r, next)
			if next.m.Cold() < coded || coded < 100 && dim > 2 {
				t.Errorf("%s, dimension %d: %d rows by their codes, %d cold", name, dim, coded, next.m.Cold())
			}
			next.sameCodes(t)
			for range 3 { // more rows, which reuse what is free
				for range 4 {
					next.agree(t, randomQuery(r, near(r, centres[r.IntN(len(centres))], .5+r.Float64()/2)))
				}
				next.agree(t, scan.Query{Probe: centres[0], Limit: 50, BySubject: true})
				next.mixed(t, r, centres, 150)
				next.sameCodes(t)
			}
			for range growChunks {
				next.thaw(t)
			}
			next.agree(t, scan.Query{Probe: centres[1], Limit: 1000})
			if next.m.Cold() != 0 {
				t.Errorf("%s, dimension %d: %d rows stay cold", name, dim, next.m.Cold())
			}
		}
	}
}

func TestBlockNeedsSourceAndLength(t *testing.T) {
	t.Parallel()
	w := newTwin(t, 64)
	owners, block := make([]uint32, BlockRows), make([]byte, w.m.BlockBytes())
	for name, f := range map[string]func() (int, error){
		"owners": func() (int, error) { return w.m.AddBlock(owners[1:], block) },
		"bytes":  func() (int, error) { return w.m.AddBlock(owners, block[1:]) },
		"source": func() (int, error) { w.m.source = nil; return w.m.AddBlock(owners, block) },
	} {
		if _, err := f(); !errors.Is(err, ErrTemplate) || w.m.Len() != 0 {
			t.Errorf("%s: got %v, and %d rows", name, err, w.m.Len())
		}
		w.m.Attach(w.vault)
	}
}

// TestCodesHaveVersion fails when templates get other codes than before, or blocks another layout:
// then change codesVersion, and the sums here. With other names only, a node encodes all templates
// again for nothing.
func TestCodesHaveVersion(t *testing.T) {
	t.Parallel()
	const version, want, wantNames = 1, "660b539239f506e5", "3967e4dc7d7b33c6"
	sum, names := sha256.New(), sha256.New()
	for _, dim := range []int{17, 192, 512} {
		r := rand.New(rand.NewPCG(uint64(dim), 81))
		w := newTwin(t, dim)
		name := w.m.CodingID()
		names.Write(name[:])
		block := make([]byte, w.m.BlockBytes())
		for i := range BlockRows {
			if slot := w.add(t, eventOf(r, i), unit(r, dim)); !w.m.CopyCodes(block, i, slot) {
				t.Fatalf("dimension %d: row %d has no bounds", dim, i)
			}
		}
		sum.Write(block)
	}
	got, gotNames := hex.EncodeToString(sum.Sum(nil)[:8]), hex.EncodeToString(names.Sum(nil)[:8])
	if got != want || gotNames != wantNames || codesVersion != version {
		t.Errorf("version %d has codes of the sum %s and names of %s, want version %d, %s and %s", codesVersion, got, gotNames, version, want, wantNames)
	}
}
