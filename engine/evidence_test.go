package engine_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/models"
)

// changedPack runs the default pack with another manifest.
func changedPack(t *testing.T, change func(m map[string]any)) *engine.Engine {
	t.Helper()
	e, err := engine.New(enginetest.PackOf(t, models.Default(), nil, change), engine.Config{Library: enginetest.Library(t), Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func noLeastNorm(m map[string]any) { m["detector"].(map[string]any)["minNorm"] = 0 }

func uprightPortraits() []string {
	return append(append([]string{}, enginetest.Obama[:4]...), enginetest.Others...)
}

// A pack without a least norm knows by the landmarks and the detector that a face is upright. It
// does not try every orientation.
func TestNoLeastNormCostsNothing(t *testing.T) {
	t.Parallel()
	fitted, without := enginetest.New(t, engine.Config{Workers: 1}), changedPack(t, noLeastNorm)
	for _, name := range append(uprightPortraits(), "face-api/sample1.jpg", "face-api/sample5.jpg") {
		data := enginetest.Photo(t, name)
		before := []engine.Work{fitted.Work(), without.Work()}
		want, err := fitted.ExtractLarge(context.Background(), data, .35)
		if err != nil {
			t.Fatal(err)
		}
		got, err := without.ExtractLarge(context.Background(), data, .35)
		if err != nil {
			t.Fatal(err)
		}
		a, b := fitted.Work(), without.Work()
		if wantRuns, gotRuns := a.Detector-before[0].Detector, b.Detector-before[1].Detector; gotRuns > wantRuns+int64(len(want)) { // a second look at each face
			t.Errorf("%s: the detector runs %d times, with the least norm %d times", name, gotRuns, wantRuns)
		}
		if wantRuns, gotRuns := a.Embedder-before[0].Embedder, b.Embedder-before[1].Embedder; gotRuns > wantRuns {
			t.Errorf("%s: the embedder runs %d times, with the least norm %d times", name, gotRuns, wantRuns)
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d faces, with the least norm %d", name, len(got), len(want))
			continue
		}
		for i := range got {
			if !sameBits(got[i].Template, want[i].Template) {
				t.Errorf("%s: the template of face %d differs", name, i)
			}
		}
	}
}

func TestNoLeastNormFindsTurnedFaces(t *testing.T) {
	t.Parallel()
	e := changedPack(t, noLeastNorm)
	for _, name := range uprightPortraits() {
		im := pixels(t, name)
		upright := one(t, name)
		for _, degrees := range []float64{45, 90, 180, 270} {
			faces, err := e.ExtractLarge(context.Background(), asJPEG(t, turnedFrame(im, degrees)), .35)
			if err != nil {
				t.Fatal(err)
			}
			if len(faces) != 1 || e.Compare(faces[0].Template, upright.Template) < 9000 {
				t.Errorf("%s turned by %v: got %d faces, want the upright one", name, degrees, len(faces))
			}
		}
	}
}

// A manifest that states what the default pack leaves out gives the same faces, bit for bit.
func TestStatedEvidenceGivesSameFaces(t *testing.T) {
	t.Parallel()
	evidence := enginetest.Pack(t).Manifest.Evidence()
	evidence.Data = "as without"
	e := changedPack(t, func(m map[string]any) { m["evidence"] = evidence })
	for _, name := range append(uprightPortraits(), "face-api/sample5.jpg", "scikit-image/hubble_deep_field.jpg") {
		data := enginetest.Photo(t, name)
		want := extract(t, data)
		got, err := e.Extract(context.Background(), data)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d faces, want %d", name, len(got), len(want))
			continue
		}
		for i := range got {
			if !sameBits(got[i].Template, want[i].Template) || got[i].Attributes != want[i].Attributes {
				t.Errorf("%s: face %d is %+v, want %+v", name, i, got[i].Attributes, want[i].Attributes)
			}
		}
	}
}

// A fit sees what the engine weighs: the same template, likeness and quality. Without the norm the
// detector looks a second time at two faces of the group.
func TestSightingsAreJudgedLikeFaces(t *testing.T) {
	t.Parallel()
	for _, e := range []*engine.Engine{enginetest.Shared(t), changedPack(t, noLeastNorm)} {
		for _, name := range append(uprightPortraits(), "face-api/sample1.jpg") {
			faces, err := e.ExtractLarge(context.Background(), enginetest.Photo(t, name), 0)
			if err != nil {
				t.Fatal(err)
			}
			seen, err := e.Sightings(context.Background(), enginetest.Photo(t, name), 0)
			if err != nil {
				t.Fatal(err)
			}
			for i, face := range faces {
				at := slices.IndexFunc(seen, func(s engine.Sighting) bool { return sameBits(s.Template, face.Template) })
				if at < 0 {
					t.Errorf("%s: no sighting has the template of face %d", name, i)
					continue
				}
				checkJudged(t, e.Pack().Manifest, &seen[at], face)
			}
		}
	}
}

// checkJudged compares what the manifest makes of a sighting with the face that the engine reported.
func checkJudged(t *testing.T, m *models.Manifest, s *engine.Sighting, face engine.Face) {
	t.Helper()
	evidence := m.Evidence()
	if got := s.Judge(&evidence); float32(got) != face.Attributes.Score {
		t.Errorf("likeness %v, want %v", got, face.Attributes.Score)
	}
	sum := m.Quality.Bias
	for f, w := range m.Quality.Weights {
		sum += w * s.Features[f]
	}
	if got := 1 / (1 + math.Exp(-sum)); math.Abs(got-float64(face.Attributes.Quality)) > 1e-6 {
		t.Errorf("quality %v, want %v", got, face.Attributes.Quality)
	}
	u := s.Upright
	u.Norm = s.Norm / evidence.NormUnit
	if evidence.Upright.Sum(u) < evidence.Upright.Least {
		t.Errorf("%+v is not upright", u)
	}
}

func TestUpsideDownSightingsAreNotUpright(t *testing.T) {
	t.Parallel()
	e := enginetest.Shared(t)
	m := *e.Pack().Manifest
	byNorm := m.Evidence()
	m.Detector.MinNorm = 0
	byShape := m.Evidence()
	found := 0
	for _, name := range uprightPortraits() {
		seen, err := e.Sightings(context.Background(), enginetest.Photo(t, name), math.Pi)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range seen {
			found++
			u := s.Upright
			shape := byShape.Upright.Sum(u)
			u.Norm = s.Norm / byNorm.NormUnit
			if norm := byNorm.Upright.Sum(u); norm >= byNorm.Upright.Least || shape >= byShape.Upright.Least {
				t.Errorf("%s upside down: %+v is upright by norm %.2f or by shape %.2f", name, u, norm, shape)
			}
		}
	}
	if found == 0 {
		t.Error("no portrait shows a face upside down")
	}
}
