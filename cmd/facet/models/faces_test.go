package models

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"facet/cmd/facet/photos"
	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/imaging"
	"facet/engine/models"
	"facet/engine/score"
	"facet/internal/must"
)

const drawnCosine = .5

// drawnSpecimens are of an embedder whose norms are scale times those of the first. A face of twice
// a usual photograph's norm always reaches the cosine, one of none never, if tells is 1,
// the other way round if it is -1; if it is 0 the norm tells nothing.
func drawnSpecimens(scale, tells float64) *specimens {
	r := rand.New(rand.NewPCG(3, 4))
	normal := func(mean, spread float64) float64 { return mean + spread*r.NormFloat64() }
	unit := func(cosine float64) engine.Template {
		return engine.Template{float32(cosine), float32(math.Sqrt(1 - cosine*cosine))}
	}
	sighting := func(norm, doubt, eyes, below, odds float64) engine.Sighting {
		s := engine.Sighting{
			Template: unit(1), Norm: scale * norm, Looks: [2]float64{odds, odds},
			Upright: models.Upright{Norm: scale * norm, Doubt: doubt, Eyes: eyes, EyesBelow: below, Odds: odds},
		}
		s.Features = map[models.Feature]float64{models.FeatureNorm: s.Norm, models.FeatureDoubt: doubt, models.FeatureSharpness: r.Float64()}
		return s
	}
	s := new(specimens)
	for person := range 400 {
		for _, kind := range []string{asPhotographed, "moved"} {
			norm := max(.5, normal(12, 1))
			if kind != asPhotographed {
				norm = max(.5, normal(7, 2.5))
			}
			doubt := math.Abs(normal(.05, .02))
			f := specimen{sighting(norm, doubt, normal(.32, .02), normal(-.1, .02), min(7.6, normal(7.4, .5))), person, kind, nil, person}
			p := 1 / (1 + math.Exp(-tells*(norm-7)*1.2))
			if tells == 0 {
				p = .01 // even the best of them
			}
			for range 6 {
				cosine := .1
				if r.Float64() < p {
					cosine = .9
				}
				f.mates = append(f.mates, unit(cosine))
			}
			s.faces = append(s.faces, f)
			s.pairs += len(f.mates)
		}
		s.turned = append(s.turned, sighting(max(.5, normal(6, 1)), math.Abs(normal(.28, .06)), normal(.24, .03), normal(-.2, .04), min(7.6, normal(5, 1.5))))
		s.shuffled = append(s.shuffled, sighting(max(.5, normal(5, 1.5)), math.Abs(normal(.3, .1)), normal(.27, .05), normal(-.15, .06), normal(1.5, 1)))
	}
	return s
}

func fitted(t *testing.T, s *specimens) *faceFit {
	t.Helper()
	f, err := fitFaces(s, drawnCosine)
	must.Do(t, err)
	return f
}

func TestEvidenceFitTellsFacesFromTheRest(t *testing.T) {
	t.Parallel()
	s := drawnSpecimens(1, 1)
	f := fitted(t, s)
	e := f.evidence
	wrong, right := 0, 0
	for _, face := range s.faces {
		m := face.Upright
		m.Norm /= e.NormUnit
		if face.kind == asPhotographed && e.Upright.Sum(m) >= e.Upright.Least {
			right++
		}
		if face.kind == asPhotographed && face.Judge(&e) < .9 {
			t.Errorf("a photograph's face of norm %.1f has the likeness %.2f", face.Norm, face.Judge(&e))
		}
	}
	for _, d := range s.turned {
		if m := d.Upright; e.Upright.Sum(models.Upright{Norm: m.Norm / e.NormUnit, Doubt: m.Doubt, Eyes: m.Eyes, EyesBelow: m.EyesBelow, Odds: m.Odds}) >= e.Upright.Least {
			wrong++
		}
	}
	if right < 390 || wrong > 2 {
		t.Errorf("%d of 400 upright faces and %d of 400 of the wrong way up count as upright", right, wrong)
	}
	missed := 0
	for _, d := range s.shuffled {
		if d.Norm >= f.minNorm && d.Judge(&e) >= .5 {
			missed++
		}
	}
	if missed > 40 {
		t.Errorf("%d of 400 shuffled faces are faces", missed)
	}
	if f.found != 1 || f.foundCopies > .97 || f.foundCopies < .8 || f.foundShuffled != float64(missed)/400 {
		t.Errorf("faces are %.3f of the photographs, %.3f of the copies and %.3f of the shuffled ones", f.found, f.foundCopies, f.foundShuffled)
	}
	if f.shape.Norm != 0 || f.byShape < .9 {
		t.Errorf("without the norm %+v, %.2f at once", f.shape, f.byShape)
	}
}

// The fit of an embedder with other norms is the same, in other units.
func TestEvidenceFitFollowsTheNorm(t *testing.T) {
	t.Parallel()
	a, b := fitted(t, drawnSpecimens(1, 1)), fitted(t, drawnSpecimens(8, 1))
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > .02*math.Abs(want)+.02 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	near("unit", b.evidence.NormUnit, 8*a.evidence.NormUnit)
	near("least norm", b.minNorm, 8*a.minNorm)
	near("share of faces", b.foundCopies, a.foundCopies)
	near("upright", b.evidence.Upright.Norm, a.evidence.Upright.Norm)
	// Of drawn faces one in fifty of norm 7 − ln 49/1.2 = 3.76 reaches the cosine.
	if a.minNorm < 3.5 || a.minNorm > 4 {
		t.Errorf("least norm %v, want 3.76", a.minNorm)
	}
}

func TestNormThatTellsNothingIsNotAsked(t *testing.T) {
	t.Parallel()
	for _, tells := range []float64{0, -1} {
		if f := fitted(t, drawnSpecimens(1, tells)); f.minNorm != 0 || f.evidence.Face.Norm != 0 {
			t.Errorf("the least norm is %v, AUC %.2f, weight %v; want 0", f.minNorm, f.normAUC, f.evidence.Face.Norm)
		}
	}
}

func TestQualityFitOrdersFaces(t *testing.T) {
	t.Parallel()
	s := drawnSpecimens(1, 1)
	q, err := fitQuality(s, drawnCosine, fitted(t, s))
	must.Do(t, err)
	if q.auc < .85 || q.photographs != 400 || q.faces <= 400 || q.faces > 800 {
		t.Errorf("AUC %.3f on %d faces, %d as photographed", q.auc, q.faces, q.photographs)
	}
	for g := range q.reach {
		if p := q.reach[g]; q.share[g] > .04 && (p < grades[g]-.07 || p > grades[g+1]+.07) {
			t.Errorf("of faces of quality %v to %v, %.2f reach 7000", grades[g], grades[g+1], p)
		}
	}
	few := &specimens{faces: s.faces[:3]}
	if _, err := fitFaces(few, drawnCosine); err == nil || !strings.Contains(err.Error(), "too few") {
		t.Errorf("three faces: %v", err)
	}
}

// The fits go into the manifest together, with what each comes from.
func TestCalibrateWritesAllFits(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), models.ManifestName)
	must.Do(t, os.WriteFile(file, models.Default(), 0o600))
	var out bytes.Buffer
	c := Calibration{Dataset: "drawn faces", Write: file, Out: &out}
	measured := &models.Fit{Calibration: &models.Calibration{FMR7000: 1e-5, Data: "drawn", Points: []models.CalibrationPoint{
		{Cosine: -1}, {Cosine: drawnCosine, Score: score7000}, {Cosine: .999, Score: 9999}, {Cosine: 1, Score: 9999},
	}}}
	s := drawnSpecimens(1, 1)
	must.Do(t, c.faces(s, measured))
	must.Do(t, c.save(measured))
	data, err := os.ReadFile(file)
	must.Do(t, err)
	m, err := models.Parse(data)
	must.Do(t, err)
	if f := fitted(t, s); float32(f.minNorm) != m.Detector.MinNorm || m.OwnEvidence == nil || m.OwnEvidence.Face != f.evidence.Face {
		t.Errorf("least norm %v and evidence %+v, fitted %v and %+v", m.Detector.MinNorm, m.OwnEvidence, f.minNorm, f.evidence)
	}
	for _, text := range []string{m.OwnEvidence.Data, m.Quality.Data} {
		if !strings.Contains(text, "drawn faces") || !strings.Contains(text, "comparisons") {
			t.Errorf("the manifest says %q", text)
		}
	}
	for _, want := range []string{"400 as photographed, 400 copies", "4800 comparisons", "least norm", "upright without norm", "quality up to"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
}

// sampleFolder is a folder with a folder of sample photographs for each of two persons.
func sampleFolder(t *testing.T) *photos.Folder {
	t.Helper()
	dir := t.TempDir()
	for who, names := range map[string][]string{"Biden": {"face_recognition/biden.jpg"}, "Obama": enginetest.Obama[1:3]} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, who), 0o700))
		for _, name := range names {
			must.Do(t, os.WriteFile(filepath.Join(dir, who, filepath.Base(name)), enginetest.Photo(t, name), 0o600))
		}
	}
	f, err := photos.Read(context.Background(), dir)
	must.Do(t, err)
	return f
}

func TestSpecimensAreOfPersonsWithMates(t *testing.T) {
	t.Parallel()
	e, folder := enginetest.Shared(t), sampleFolder(t)
	x, err := photos.Extract(t.Context(), e, folder.Photos, photos.Choice{Middle: true}, nil)
	must.Do(t, err)
	s, err := measure(t.Context(), e, folder.Photos, x, nil)
	must.Do(t, err)
	if n := s.photographs(); n != 2 {
		t.Errorf("%d photographs, want the two of one person", n)
	}
	if len(s.faces) < 4 || len(s.turned) == 0 {
		t.Errorf("%d faces and %d of the wrong way up", len(s.faces), len(s.turned))
	}
	for _, f := range s.faces {
		if len(f.mates) != 1 {
			t.Errorf("a face %s has %d mates, want the other photograph", f.kind, len(f.mates))
		}
		if f.kind == asPhotographed && f.reach(.482) != 1 {
			t.Errorf("of the comparisons of a photograph %v reach 7000", f.reach(.482))
		}
	}
	again, err := measure(t.Context(), e, folder.Photos, x, nil)
	must.Do(t, err)
	for i := range again.faces {
		if again.faces[i].Norm != s.faces[i].Norm || again.faces[i].kind != s.faces[i].kind {
			t.Errorf("a second time face %d differs", i)
		}
	}
}

// Every spoiling lowers what a comparison finds, and the stronger of the drawn ones a lot.
func TestSpoilingsSpoil(t *testing.T) {
	t.Parallel()
	e, folder := enginetest.Shared(t), sampleFolder(t)
	photo := folder.Photos[1] // of one man
	x, err := photos.Extract(t.Context(), e, folder.Photos[1:2], photos.Choice{Middle: true}, nil)
	must.Do(t, err)
	data, err := photo.Read()
	must.Do(t, err)
	seen, err := e.Sightings(t.Context(), data, 0)
	must.Do(t, err)
	one := source{e: e, face: x.Templates[0]}
	checkSpoilings(t, &one, data, one.nearest(seen, sameFace))
}

func checkSpoilings(t *testing.T, one *source, data []byte, own *engine.Sighting) {
	t.Helper()
	photo, err := imaging.Decode(data)
	must.Do(t, err)
	plain, err := one.sightings(t.Context(), copyOf(photo, own))
	must.Do(t, err)
	whole := middle(plain, copySide)
	if whole == nil || score.Dot(whole.Template, one.face) < .9 {
		t.Fatal("a copy that is not spoilt does not show the face")
	}
	for _, kind := range spoilings {
		least := float32(1)
		for seed := uint64(0); seed < 4 && least > .97; seed++ {
			spoilt := kind.spoil(copyOf(photo, own), rand.New(rand.NewPCG(seed, 9)))
			seen, err := one.sightings(t.Context(), spoilt)
			must.Do(t, err)
			if f := middle(seen, spoilt.Width); f == nil {
				least = 0
			} else {
				least = min(least, score.Dot(f.Template, whole.Template))
			}
		}
		if least > .97 {
			t.Errorf("%s: all copies have a cosine of %.3f or more with the face", kind.name, least)
		}
	}
	seen, err := one.sightings(t.Context(), scrambled(copyOf(photo, own), rand.New(rand.NewPCG(1, 1))))
	must.Do(t, err)
	if f := one.nearest(seen, .5); f != nil {
		t.Error("a shuffled copy shows the face")
	}
}
