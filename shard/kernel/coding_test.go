package kernel

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"facet/internal/must"
)

// tapered returns a unit vector whose numbers weigh less and less; the last eighth next to
// nothing.
func tapered(r *rand.Rand, dim int, power float64) []float32 {
	v := make([]float32, dim)
	for i := range v {
		sigma := math.Pow(float64(i+1), -power)
		if i >= dim*7/8 {
			sigma /= 50
		}
		v[i] = float32(r.NormFloat64() * sigma)
	}
	return normalise(v)
}

// spectrumOf returns the shares of numbers that many templates have.
func spectrumOf(dim int, template func() []float32) []float64 {
	const n = 500
	shares := make([]float64, dim)
	for range n {
		for i, x := range template() {
			shares[i] += float64(x) * float64(x) / n
		}
	}
	return shares
}

func TestCodingSuitsUnevenSpectrum(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 20))
	for _, dim := range []int{64, 128, 192, 200, 512, 1024} {
		s := newShape(dim)
		alike := suitedCoding(&s, spectrumOf(dim, func() []float32 { return unit(r, dim) }))
		if alike.coarse != s.lines || dim > 64 && alike.fine != 0 {
			t.Errorf("%d numbers that weigh alike: %d coarse lines, %d fine ones, want the plain coding", dim, alike.coarse, alike.fine)
		}
		steep := suitedCoding(&s, spectrumOf(dim, func() []float32 { return tapered(r, dim, .5) }))
		if dim == 64 {
			continue // one of its four lines is the tail
		}
		if steep.whole() || steep.coarse >= steep.fine {
			t.Errorf("%d numbers of a steep spectrum: %d coarse lines of %d, %d fine ones", dim, steep.coarse, s.lines, steep.fine)
		}
	}
}

// spectra are some that templates may have, and some that those of the tests don't have.
func spectra(r *rand.Rand, dim int) [][]float64 {
	first, last, sum := make([]float64, dim), make([]float64, dim), 0.
	first[0], last[dim-1] = 1, 1
	random := make([]float64, dim)
	for i := range random {
		random[i] = math.Pow(r.Float64(), 8)
		sum += random[i]
	}
	for i := range random {
		random[i] /= sum
	}
	return [][]float64{
		spectrumOf(dim, func() []float32 { return tapered(r, dim, 0) }),
		spectrumOf(dim, func() []float32 { return tapered(r, dim, .5) }),
		first, last, random,
	}
}

func TestSpectrumChangesNoAnswer(t *testing.T) {
	t.Parallel()
	const n = 1500
	for _, dim := range []int{64, 200} {
		for number, spectrum := range spectra(rand.New(rand.NewPCG(uint64(dim), 19)), dim) {
			r := rand.New(rand.NewPCG(uint64(dim), 21))
			w := newSuitedTwin(t, dim, spectrum)
			var slots []int
			for i := range n {
				v := tapered(r, dim, .5*float64(i%2))
				switch {
				case i > n-600: // of another kind
					v = unit(r, dim)
				case i%100 == 17:
					v[0] *= 3 // not of unit norm
				}
				slots = append(slots, w.add(t, eventOf(r, i), v))
				if i%7 == 3 { // slots are used again
					slots = w.eraseOne(r, slots)
				}
			}
			if c := w.m.coding; number < 2 && c.coarse == w.m.shape.lines && c.fine == 0 {
				t.Errorf("dimension %d, spectrum %d: the coding is the plain one", dim, number)
			}
			var qs []request
			for i := range 10 {
				q := tapered(r, dim, .5)
				switch i % 5 {
				case 0:
					q = unit(r, dim)
				case 1: // in numbers that have no bits
					clear(q[:dim*7/8])
					normalise(q)
				case 2:
					q = near(r, w.rows[slots[r.IntN(len(slots))]].Template, .3+.7*r.Float64())
				}
				qs = append(qs, request{query: randomQuery(r, q)})
				w.agree(t, qs[i].query)
			}
			w.agreeAll(t, qs)
		}
	}
}

func TestMatricesOfArenaShareCoding(t *testing.T) {
	t.Parallel()
	const dim = 128
	r := rand.New(rand.NewPCG(1, 22))
	arena := NewArena(0)
	t.Cleanup(func() {
		if err := arena.Close(); err != nil {
			t.Error(err)
		}
	})
	must.Do(t, arena.Suit(spectrumOf(dim, func() []float32 { return tapered(r, dim, .5) })))
	owners := new(OwnerList)
	matrix := func(dim int) *Matrix {
		m, err := New(arena, dim, owners)
		must.Do(t, err)
		return m
	}
	a, b, other := matrix(dim), matrix(dim), matrix(dim+1)
	if a.coding != b.coding || a.coding.whole() {
		t.Errorf("two matrices have codings %+v and %+v, want one that leaves numbers out", a.coding, b.coding)
	}
	if plain := plainCoding(&other.shape); other.coding.coarse != plain.coarse || other.coding.fine != 0 {
		t.Errorf("a matrix of another dimension has %+v, want the plain coding", other.coding)
	}
	owner := owners.Add(new(Owner), nil)
	var p Prepared
	v := tapered(r, dim, .5)
	must.Do(t, a.Prepare(&p, v))
	if _, err := b.AddPrepared(owner, &p); err != nil {
		t.Errorf("a template prepared for a matrix of the same kind: %v", err)
	}
	if _, err := other.AddPrepared(owner, &p); !errors.Is(err, ErrTemplate) || other.Len() != 0 {
		t.Errorf("one prepared for a matrix of another kind: %v, want ErrTemplate", err)
	}
	p.Clear()
	if _, err := b.AddPrepared(owner, &p); !errors.Is(err, ErrTemplate) || b.Len() != 1 {
		t.Errorf("one that was cleared: %v, want ErrTemplate", err)
	}
}

func TestInvalidSpectrumIsRefused(t *testing.T) {
	t.Parallel()
	for name, spectrum := range map[string][]float64{
		"nothing":          {},
		"half":             {.25, .25},
		"twice":            {1, 1},
		"below nothing":    {1.5, -.5},
		"not a number":     {math.NaN(), 1},
		"beyond all":       {math.Inf(1), 1},
		"a little too far": {.5, .52},
	} {
		if err := NewArena(0).Suit(spectrum); !errors.Is(err, ErrSpectrum) {
			t.Errorf("%s: %v, want ErrSpectrum", name, err)
		}
	}
	arena := NewArena(0)
	if _, err := New(arena, 8, nil); err != nil {
		t.Fatal(err)
	}
	if err := arena.Suit([]float64{1}); !errors.Is(err, ErrSpectrum) {
		t.Errorf("after the first matrix: %v, want ErrSpectrum", err)
	}
}

func TestErasedSlotsCountAsFree(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 23))
	w := newTwin(t, 192)
	slots := w.fill(t, r, 300)
	for _, slot := range slots[:100] {
		w.erase(slot)
	}
	want := int64(100 * w.m.BytesPerTemplate())
	if got := w.m.FreeBytes(); got != want || got >= w.m.Bytes() {
		t.Errorf("%d of %d bytes are free, want %d", got, w.m.Bytes(), want)
	}
	for i := range 100 {
		w.add(t, eventOf(r, 1000+i), unit(r, 192))
	}
	if got := w.m.FreeBytes(); got != 0 || w.m.Len() != 300 {
		t.Errorf("%d bytes are free of %d templates again", got, w.m.Len())
	}
}
