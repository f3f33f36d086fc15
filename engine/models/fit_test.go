package models

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parsed(t *testing.T, data []byte) *Manifest {
	t.Helper()
	m, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
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

func TestRefitWithWhatIsThereChangesNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"default", "dlib"} {
		manifest := builtin(t, name)
		m := parsed(t, manifest)
		got, err := Refit(manifest, Fit{Calibration: &m.Calibration, Quality: &m.Quality})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, parsed(t, got)); diff != "" {
			t.Errorf("manifest changed:\n%s", diff)
		}
		again, err := Refit(got, Fit{Calibration: &m.Calibration, Quality: &m.Quality})
		if err != nil || !bytes.Equal(got, again) {
			t.Errorf("a second time gives other bytes, error %v", err)
		}
	}
}

func TestRefitPutsItsPartsInAndLeavesEveryOtherByte(t *testing.T) {
	t.Parallel()
	m := parsed(t, Default())
	c := m.Calibration
	c.FMR7000, c.Data = 2e-6, "measured \"elsewhere\""
	c.Points = append([]CalibrationPoint(nil), c.Points...)
	c.Points[5].Cosine = .5
	got, err := Refit(Default(), Fit{Calibration: &c})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, parsed(t, got).Calibration); diff != "" {
		t.Errorf("calibration (-want +got):\n%s", diff)
	}
	from, to, err := valueOf(Default(), "calibration")
	if err != nil {
		t.Fatal(err)
	}
	if tail := Default()[to:]; !bytes.HasPrefix(got, Default()[:from]) || !bytes.HasSuffix(got, tail) {
		t.Error("bytes beside the calibration changed")
	}
	q := Quality{Bias: -1, Weights: map[Feature]float64{FeatureNorm: 2}, Data: "nothing"}
	got, err = Refit(got, Fit{Quality: &q})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(q, parsed(t, got).Quality); diff != "" {
		t.Errorf("quality (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(c, parsed(t, got).Calibration); diff != "" {
		t.Errorf("calibration after the quality (-want +got):\n%s", diff)
	}
}

func TestAFitThatBreaksTheManifestIsRefusedAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	dir, _ := pack(t)
	before, err := os.ReadFile(filepath.Join(dir, ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	bad := parsed(t, before).Calibration
	bad.Points = bad.Points[:4]
	if _, err := WriteFit(dir, Fit{Calibration: &bad}); !errors.Is(err, ErrManifest) {
		t.Errorf("error is %v, want ErrManifest", err)
	}
	after, err := os.ReadFile(filepath.Join(dir, ManifestName))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the manifest changed, error %v", err)
	}
	if _, err := Refit([]byte("{}"), Fit{}); !errors.Is(err, ErrManifest) {
		t.Errorf("of no manifest: %v", err)
	}
}

func TestWriteFitChangesTheIdentityOfThePackAndNotTheModelOfItsTemplates(t *testing.T) {
	t.Parallel()
	dir, _ := pack(t)
	before, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := before.Manifest.Calibration
	c.FMR7000 = 3e-4
	after, err := WriteFit(dir, Fit{Calibration: &c})
	if err != nil {
		t.Fatal(err)
	}
	if after.Manifest.Calibration.FMR7000 != 3e-4 || after.ID == before.ID {
		t.Errorf("FMR of 7000 is %g, identity %s, before %s", after.Manifest.Calibration.FMR7000, after.ID, before.ID)
	}
	if a, b := after.Manifest.ModelID(), before.Manifest.ModelID(); a != b {
		t.Errorf("templates are of model %s, before %s", a, b)
	}
	if _, err := Open(dir); err != nil {
		t.Errorf("the pack is not intact afterwards: %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 4 {
		t.Errorf("%d files in the pack, want 4; error %v", len(left), err)
	}
}
