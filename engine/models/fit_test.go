package models

import (
	"bytes"
	"errors"
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

func TestRefitWithSameValuesChangesNothing(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		manifest := builtin(t, name)
		m := parsed(t, manifest)
		got, err := Refit(manifest, Fit{Calibration: &m.Calibration, Quality: &m.Quality})
		must.Do(t, err)
		if diff := cmp.Diff(m, parsed(t, got)); diff != "" {
			t.Errorf("manifest changed:\n%s", diff)
		}
		again, err := Refit(got, Fit{Calibration: &m.Calibration, Quality: &m.Quality})
		if err != nil || !bytes.Equal(got, again) {
			t.Errorf("a second time gives other bytes, error %v", err)
		}
	}
}

func TestRefitChangesFittedPartsOnly(t *testing.T) {
	t.Parallel()
	m := parsed(t, Default())
	c := m.Calibration
	c.FMR7000, c.Data = 2e-6, "measured \"elsewhere\""
	c.Points = append([]CalibrationPoint(nil), c.Points...)
	c.Points[5].Cosine = .5
	got, err := Refit(Default(), Fit{Calibration: &c})
	must.Do(t, err)
	if diff := cmp.Diff(c, parsed(t, got).Calibration); diff != "" {
		t.Errorf("calibration (-want +got):\n%s", diff)
	}
	from, to, err := valueOf(Default(), "calibration")
	must.Do(t, err)
	if tail := Default()[to:]; !bytes.HasPrefix(got, Default()[:from]) || !bytes.HasSuffix(got, tail) {
		t.Error("bytes beside the calibration changed")
	}
	q := Quality{Bias: -1, Weights: map[Feature]float64{FeatureNorm: 2}, Data: "nothing"}
	got, err = Refit(got, Fit{Quality: &q})
	must.Do(t, err)
	if diff := cmp.Diff(q, parsed(t, got).Quality); diff != "" {
		t.Errorf("quality (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(c, parsed(t, got).Calibration); diff != "" {
		t.Errorf("calibration after the quality (-want +got):\n%s", diff)
	}
}

func TestRefitAddsSpectrumOnce(t *testing.T) {
	t.Parallel()
	spectrum := make([]float64, 192)
	for i := range spectrum {
		spectrum[i] = .00521
	}
	once, err := Refit(Default(), Fit{Spectrum: spectrum})
	must.Do(t, err)
	want := parsed(t, Default())
	want.Embedder.Spectrum = spectrum
	if diff := cmp.Diff(want, parsed(t, once)); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	spectrum[0], spectrum[1] = 0, .01
	again, err := Refit(once, Fit{Spectrum: spectrum})
	must.Do(t, err)
	if diff := cmp.Diff(want, parsed(t, again)); diff != "" {
		t.Errorf("manifest with another one (-want +got):\n%s", diff)
	}
	from, to, err := valueOf(Default(), "embedder")
	must.Do(t, err)
	if tail := Default()[to:]; !bytes.HasPrefix(again, Default()[:from]) || !bytes.HasSuffix(again, tail) {
		t.Error("bytes beside the embedder changed")
	}
	for name, bad := range map[string][]float64{"too short": spectrum[1:], "too much": append(spectrum[:191:191], .1), "too little": make([]float64, 192)} {
		if _, err := Refit(Default(), Fit{Spectrum: bad}); !errors.Is(err, ErrManifest) {
			t.Errorf("%s: %v, want ErrManifest", name, err)
		}
	}
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

func TestInvalidFitIsRefused(t *testing.T) {
	t.Parallel()
	bad := parsed(t, Default()).Calibration
	bad.Points = bad.Points[:4]
	if _, err := Refit(Default(), Fit{Calibration: &bad}); !errors.Is(err, ErrManifest) {
		t.Errorf("error is %v, want ErrManifest", err)
	}
	if _, err := Refit([]byte("{}"), Fit{}); !errors.Is(err, ErrManifest) {
		t.Errorf("of no manifest: %v", err)
	}
}
