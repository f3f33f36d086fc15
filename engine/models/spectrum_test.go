package models

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/must"
)

func parsed(t *testing.T, data []byte) *Manifest {
	t.Helper()
	m, err := Parse(data)
	must.Do(t, err)
	return m
}

func builtin(t testing.TB, name string) []byte {
	t.Helper()
	manifest, ok := Builtin(name)
	if !ok {
		t.Fatalf("there is no manifest of %q", name)
	}
	return manifest
}

func TestSpectrumPrefersManifest(t *testing.T) {
	t.Parallel()
	sum := func(s []float64) (sum float64) {
		for _, x := range s {
			sum += x
		}
		return sum
	}
	for _, name := range Names() {
		m := parsed(t, builtin(t, name))
		got := m.Spectrum()
		if len(got) != m.Dim() || math.Abs(sum(got)-1) > spectrumSlack {
			t.Errorf("%s: %d numbers, %v together", name, len(got), sum(got))
		}
		if got[0] = 9; m.Spectrum()[0] == 9 {
			t.Errorf("%s: a caller can change it", name)
		}
		m.Embedder.Points[0][0]++
		own := &m.Embedder.Spectrum
		if m.Joined != nil {
			own = &m.Joined.Spectrum
		}
		if got := m.Spectrum(); got != nil && *own == nil {
			t.Errorf("%s: another model has %v, want none", name, got)
		}
		*own = []float64{.5, .5}
		if got := m.Spectrum(); !cmp.Equal(got, []float64{.5, .5}) {
			t.Errorf("%s: it is %v, want the manifest's", name, got)
		}
	}
}
