package models

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/cmd/facet/photos"
	"facet/engine"
	"facet/engine/accuracy"
	"facet/engine/enginetest"
	"facet/engine/models"
	"facet/internal/must"
)

func packs(t *testing.T) string { return filepath.Dir(enginetest.PackDir(enginetest.Assets(t))) }

// copied returns a folder of packs with a copy of the default one.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.CopyFS(filepath.Join(dir, "mine"), os.DirFS(enginetest.PackDir(enginetest.Assets(t)))))
	return dir
}

func TestListExplainsUnusablePacks(t *testing.T) {
	t.Parallel()
	dir := copied(t)
	must.Do(t, os.MkdirAll(filepath.Join(dir, "torn"), 0o700))
	must.Do(t, os.WriteFile(filepath.Join(dir, "torn", models.ManifestName), []byte("{"), 0o600))
	var out bytes.Buffer
	must.Do(t, List(&out, dir))
	pack := enginetest.Pack(t)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], pack.ID[:shortID]) || !strings.Contains(lines[1], pack.Manifest.ModelID().String()) ||
		!strings.HasPrefix(lines[2], "torn") || !strings.Contains(lines[2], "not valid") {
		t.Errorf("the list is\n%s", out.String())
	}
	if err := List(&out, t.TempDir()); err == nil || !strings.Contains(err.Error(), "make setup") {
		t.Errorf("no packs: %v", err)
	}
}

// Info shows files, licences and calibration.
func TestInfoShowsTheManifest(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	must.Do(t, Info(&out, Find(packs(t), "default")))
	m := enginetest.Pack(t).Manifest
	wants := []string{m.Calibration.Data, m.Quality.Data, m.Note, "has score 7000"}
	for _, f := range m.Files {
		wants = append(wants, f.Name, f.SHA256, f.Licence, f.Source)
	}
	for _, want := range wants {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if err := Info(&out, filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "there is no model pack") {
		t.Errorf("a missing pack: %v", err)
	}
}

func TestPackIsNamedByItsFolderOrAPath(t *testing.T) {
	t.Parallel()
	f := func(name, want string) {
		t.Helper()
		if got := Find("packs", name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
	f("default", filepath.Join("packs", "default"))
	f(filepath.Join(".", "x", "y"), filepath.Join("x", "y"))
	f("/a/b", "/a/b")
	f("..", "..")
}

func TestVerifyFindsADamagedPack(t *testing.T) {
	t.Parallel()
	dir := copied(t)
	check := Check{
		ONNXRuntime: enginetest.Library(t),
		Photo:       filepath.Join(enginetest.Assets(t), "photos", "scikit-image", "astronaut.png"),
	}
	var out bytes.Buffer
	if err := check.Verify(t.Context(), &out, Find(dir, "mine")); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "1 face(s)") || strings.Count(out.String(), "intact") != len(enginetest.Pack(t).Manifest.Files) {
		t.Errorf("it says\n%s", out.String())
	}
	none := check
	none.Photo = filepath.Join(dir, "none.jpg")
	out.Reset()
	if err := none.Verify(t.Context(), &out, Find(dir, "mine")); err != nil || !strings.Contains(out.String(), "no sample photograph") {
		t.Errorf("without a photograph: %v\n%s", err, out.String())
	}
	none.Photo = filepath.Join(enginetest.Assets(t), "photos", "scikit-image", "chelsea.png")
	if err := none.Verify(t.Context(), &out, Find(dir, "mine")); !errors.Is(err, ErrDamaged) {
		t.Errorf("models that find no face: %v, want ErrDamaged", err)
	}
	name := filepath.Join(dir, "mine", enginetest.Pack(t).Manifest.Files[0].Name)
	data, err := os.ReadFile(name)
	must.Do(t, err)
	data[len(data)/2] ^= 1
	must.Do(t, os.WriteFile(name, data, 0o600))
	out.Reset()
	if err := check.Verify(t.Context(), &out, Find(dir, "mine")); !errors.Is(err, ErrDamaged) || !strings.Contains(out.String(), "has SHA-256") {
		t.Errorf("one bit flipped: %v\n%s", err, out.String())
	}
}

// vectors returns templates of unit norm, two for each person. Cosines of different
// persons have a known distribution, which is wide in few dimensions.
func vectors(persons, dim int) *photos.Extracted { return manyVectors(persons, 2, dim) }

func manyVectors(persons, each, dim int) *photos.Extracted {
	r := rand.New(rand.NewPCG(1, 2))
	x := new(photos.Extracted)
	for person := range persons {
		for range each {
			v := make(engine.Template, dim)
			var squares float64
			for i := range v {
				v[i] = float32(r.NormFloat64())
				squares += float64(v[i] * v[i])
			}
			for i := range v {
				v[i] /= float32(math.Sqrt(squares))
			}
			x.Samples = append(x.Samples, accuracy.Sample{Person: person, Acquired: true})
			x.Templates = append(x.Templates, v)
		}
	}
	return x
}

// The calibration has its rates on persons that were not fitted.
func TestCalibrationHoldsForOtherPersons(t *testing.T) {
	t.Parallel()
	x := vectors(900, 24)
	held, _, err := crossTest(t.Context(), x, 900)
	must.Do(t, err)
	for i, h := range held {
		if h.persons != 450 {
			t.Errorf("half %d: fitted on %d persons, want 450", i, h.persons)
		}
		for j, a := range anchors {
			in := h.At[j].FMR.Interval
			if a.fmr >= 1e-5 && (in == nil || a.fmr < in.Low*.8 || a.fmr > in.High*1.25) {
				t.Errorf("half %d: score %d has the FMR %v on the other half, want %v", i, a.score, h.At[j].FMR, a.fmr)
			}
		}
	}
	// A cosine of random directions in 24 dimensions: its square is Beta(1/2, 23/2).
	all, err := fitOn(x.Samples, x.Templates)
	must.Do(t, err)
	for i, want := range []float64{.4622, .5879, .6773, .7442} { // P(cosine > want) = 1e-2, 1e-3, 1e-4, 1e-5
		if got := all.cosines[i]; math.Abs(got-want) > .012 {
			t.Errorf("score %d has cosine %v, want %v", anchors[i].score, got, want)
		}
	}
}

// Each photo adds a rate of one comparison, and their mean another at most. The points of the means
// are nowhere laxer than those of one photo.
func TestMeanAddsOneComparison(t *testing.T) {
	t.Parallel()
	x := manyVectors(200, heldPhotos, 24)
	_, rule, err := crossTest(t.Context(), x, 200)
	must.Do(t, err)
	for i := range rule.rule {
		n := float64(i + 1)
		if got, best := rule.rule[i].FMR(6000), rule.best[i].FMR(6000); best < n*.6e-4 || best > n*1.6e-4 || got < best || got > best+1.6e-4 {
			t.Errorf("%g photos: the rule has the FMR %g at 6000, the best photo %g", n, got, best)
		}
	}
	strict := &fit{cosines: []float64{.1, .2, .3, .9, .95}}
	fits, err := fitSubjects(x.Samples, x.Templates, strict)
	must.Do(t, err)
	for kind, f := range fits {
		if f == nil || f.cosines[0] < .4 || f.cosines[3] < .9 || f.cosines[4] < .95 {
			t.Errorf("kind %d: %+v, want no point laxer than %v", kind, f, strict.cosines)
		}
	}
}

// Calibrate only writes the points and the spectrum.
func TestCalibrateKeepsTheManifestsRest(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), models.ManifestName)
	must.Do(t, os.WriteFile(file, models.Default(), 0o600))
	var out bytes.Buffer
	c := Calibration{Dataset: "random directions", Write: file, Out: &out}
	fit, err := c.calibrate(t.Context(), vectors(300, 192), 300)
	must.Do(t, err)
	must.Do(t, c.save(fit))
	data, err := os.ReadFile(file)
	must.Do(t, err)
	got, err := models.Parse(data)
	must.Do(t, err)
	want, err := models.Parse(models.Default())
	must.Do(t, err)
	if cmp.Equal(got.Calibration, want.Calibration) || !strings.HasPrefix(got.Calibration.Data, "random directions: 600 of 600") {
		t.Errorf("the calibration is %+v", got.Calibration)
	}
	if n := len(got.Embedder.Spectrum); n != want.Embedder.Dim {
		t.Fatalf("the spectrum has %d numbers", n)
	}
	for i, share := range got.Embedder.Spectrum {
		if share < .8/192 || share > 1.2/192 {
			t.Errorf("number %d of random directions has the share %v, want about %v", i, share, 1./192)
		}
	}
	got.Calibration, got.Embedder.Spectrum = want.Calibration, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("other parts changed: −before +after\n%s", diff)
	}
	before, _, _ := bytes.Cut(models.Default(), []byte(`"embedder"`))
	if !bytes.HasPrefix(data, before) {
		t.Error("bytes before what was measured changed")
	}
	if !strings.Contains(out.String(), "fitted on 300 persons") || !strings.Contains(out.String(), "7000") {
		t.Errorf("it says\n%s", out.String())
	}
	if err := write(filepath.Join(t.TempDir(), "none"), models.Fit{}); err == nil {
		t.Error("a missing manifest is no error")
	}
}

func TestTooFewPersonsAreNotFitted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "Biden", "b.jpg")
	must.Do(t, os.MkdirAll(filepath.Dir(name), 0o700))
	must.Do(t, os.WriteFile(name, enginetest.Photo(t, "face_recognition/biden.jpg"), 0o600))
	var out bytes.Buffer
	err := Calibration{Images: dir, Out: &out}.Calibrate(t.Context())
	if err == nil || !strings.Contains(err.Error(), "too few") {
		t.Errorf("one person: %v", err)
	}
}
