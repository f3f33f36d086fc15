package kernel

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// vault is a Source in memory.
type vault struct {
	mu      sync.Mutex
	rows    map[uint32][]float32
	fetches int
	fetched int
	// before, if not nil, is called before each fetch.
	before func(ctx context.Context, owners []uint32) error
}

func (v *vault) put(owner uint32, template []float32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rows[owner] = template
}

func (v *vault) drop(owner uint32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.rows, owner)
}

func (v *vault) Fetch(ctx context.Context, owners []uint32, to func(i int, template []float32)) error {
	if v.before != nil {
		if err := v.before(ctx, owners); err != nil {
			return err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.fetches++
	v.fetched += len(owners)
	for i, o := range owners {
		if template := v.rows[o]; template != nil {
			to(i, template)
		}
	}
	return nil
}

// chill makes this share of the warm chunks cold, even those with many rows without bounds.
func (w *twin) chill(r *rand.Rand, share float64) {
	for _, c := range *w.m.chunks.Load() {
		if !c.flat && c.exact.Load() != nil && r.Float64() < share {
			w.m.chill(c)
		}
	}
}

func (w *twin) thaw(t testing.TB) {
	t.Helper()
	if _, err := w.m.Thaw(t.Context(), func(write func()) { write() }); err != nil {
		t.Fatal(err)
	}
}

// mixed fills a twin with rows of which many are alike, some are near, and some have been erased.
func (w *twin) mixed(t testing.TB, r *rand.Rand, centres [][]float32, n int) (slots []int) {
	t.Helper()
	for i := range n {
		v := unit(r, w.m.Dim())
		switch r.IntN(8) {
		case 0, 1:
			v = near(r, centres[r.IntN(len(centres))], r.Float64())
		case 2:
			v = slices.Clone(centres[r.IntN(len(centres))])
		}
		if r.IntN(700) == 0 {
			v[0] *= 3 // without bounds
		}
		slots = append(slots, w.add(t, eventOf(r, len(w.rows)+i*7), v))
		if r.IntN(6) == 0 {
			slots = w.eraseOne(r, slots)
		}
	}
	return slots
}

func centresOf(r *rand.Rand, dim int) [][]float32 {
	centres := make([][]float32, 12)
	for i := range centres {
		centres[i] = unit(r, dim)
	}
	return centres
}

// codedTwins returns a twin for each kind of coding.
func codedTwins(t *testing.T, r *rand.Rand, dim int) map[string]*twin {
	t.Helper()
	steep := spectrumOf(dim, func() []float32 { return tapered(r, dim, 1) })
	return map[string]*twin{
		"plain": newTwin(t, dim), "suited": newSuitedTwin(t, dim, steep),
	}
}
