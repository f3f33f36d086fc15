package engine_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/models"
	"facet/internal/must"
)

// noLeastNorm returns an engine of the default pack without a least norm.
func noLeastNorm(t *testing.T) *engine.Engine {
	t.Helper()
	return kept(t, "no least norm", func() *models.Pack {
		return enginetest.PackOf(t, models.Default(), nil, func(m object) { m["detector"].(object)["minNorm"] = 0 })
	})
}

// A pack without a least norm knows by the landmarks and the detector that a face is upright. It
// does not try every orientation.
func TestNoLeastNormCostsNothing(t *testing.T) {
	fitted, without := single(t), noLeastNorm(t)
	for _, name := range []string{"scikit-image/astronaut.png", "face-api/sample1.jpg"} {
		data := enginetest.Photo(t, name)
		before := []engine.Work{fitted.Work(), without.Work()}
		want, err := fitted.ExtractLarge(context.Background(), data, .35)
		must.Do(t, err)
		got, err := without.ExtractLarge(context.Background(), data, .35)
		must.Do(t, err)
		a, b := fitted.Work(), without.Work()
		if wantRuns, gotRuns := a.Detector-before[0].Detector, b.Detector-before[1].Detector; gotRuns > wantRuns+int64(len(want)) { // a second look at each face
			t.Errorf("%s: the detector runs %d times, with the least norm %d times", name, gotRuns, wantRuns)
		}
		if wantRuns, gotRuns := a.Embedder-before[0].Embedder, b.Embedder-before[1].Embedder; gotRuns > wantRuns {
			t.Errorf("%s: the embedder runs %d times, with the least norm %d times", name, gotRuns, wantRuns)
		}
		if !slices.EqualFunc(got, want, func(a, b engine.Face) bool { return sameBits(a.Template, b.Template) }) {
			t.Errorf("%s: the faces are %+v, with the least norm %+v", name, got, want)
		}
	}
}

func TestExtractLargeFindsTurnedFaces(t *testing.T) {
	t.Parallel()
	f := func(e *engine.Engine, name string, turns ...float64) {
		t.Helper()
		im, upright := halved(pixels(t, name)), one(t, name)
		for _, degrees := range turns {
			faces, err := e.ExtractLarge(t.Context(), asJPEG(t, turnedFrame(im, degrees)), .35)
			must.Do(t, err)
			if len(faces) != 1 || e.Compare(faces[0].Template, upright.Template) < 9000 {
				t.Errorf("%s turned by %v: got %d faces, want the upright one", name, degrees, len(faces))
			}
		}
	}
	f(enginetest.Shared(t), "face_recognition/obama2.jpg", 45, 270)
	f(noLeastNorm(t), "scikit-image/astronaut.png", 90)
	f(noLeastNorm(t), "face_recognition/obama3.jpg", 45, 180)
}

// A manifest that states what the default pack leaves out gives the same faces, bit for bit.
func TestStatedEvidenceGivesSameFaces(t *testing.T) {
	t.Parallel()
	evidence := enginetest.Pack(t).Manifest.Evidence()
	evidence.Data = "as without"
	stated := kept(t, "stated", func() *models.Pack {
		return enginetest.PackOf(t, models.Default(), nil, func(m object) { m["evidence"] = evidence })
	})
	for _, name := range []string{"scikit-image/astronaut.png", "scikit-image/chelsea.png"} {
		got, err := stated.Extract(t.Context(), enginetest.Photo(t, name))
		must.Do(t, err)
		want := photo(t, name)
		for i := range min(len(got), len(want)) {
			got[i].Model = want[i].Model
		}
		if !sameBits(got, want) {
			t.Errorf("%s: the faces are %+v, want %+v", name, got, want)
		}
	}
}

// A fit sees what the engine weighs: the same template, likeness and quality. Without the norm the
// detector looks a second time at two faces of the group.
func TestSightingsAreJudgedLikeFaces(t *testing.T) {
	t.Parallel()
	group := enginetest.Photo(t, "face-api/sample1.jpg")
	for _, e := range []*engine.Engine{enginetest.Shared(t), noLeastNorm(t)} {
		faces, err := e.ExtractLarge(t.Context(), group, 0)
		must.Do(t, err)
		seen, err := e.Sightings(t.Context(), group, 0)
		must.Do(t, err)
		for i, face := range faces {
			at := slices.IndexFunc(seen, func(s engine.Sighting) bool { return sameBits(s.Template, face.Template) })
			if at < 0 {
				t.Errorf("no sighting has the template of face %d", i)
				continue
			}
			checkJudged(t, e.Pack().Manifest, &seen[at], face)
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
	for _, name := range append(enginetest.Others, enginetest.Obama[:4]...) {
		seen, err := e.Sightings(context.Background(), enginetest.Photo(t, name), math.Pi)
		must.Do(t, err)
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
