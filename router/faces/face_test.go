package faces

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/portrait"
	"facet/internal/settings"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// album is an Extractor whose images stand for lists of faces, largest first.
type album []engine.Face

func (a album) Extract(context.Context, []byte) ([]engine.Face, error) { return a, nil }

func (a album) ExtractLarge(_ context.Context, _ []byte, share float32) ([]engine.Face, error) {
	var large []engine.Face
	for _, f := range a {
		if f.Attributes.Face.Right >= share*a[0].Attributes.Face.Right {
			large = append(large, f)
		}
	}
	return large, nil
}

// side returns a good face whose box has sides of this size.
func side(pixels float32) engine.Face {
	return engine.Face{Attributes: engine.Attributes{Face: engine.Rect{Right: pixels, Bottom: pixels}, Score: 0.99, Quality: 0.8}}
}

func TestSeveralFacesFollowTheApplication(t *testing.T) {
	t.Parallel()
	f := func(want router.Kind, rule portrait.Rule, faces ...engine.Face) {
		t.Helper()
		r := &FaceRequests{extractor: album(faces)}
		app := metafsm.Application{Application: settings.Application{MinimumQuality: 0.45, MultipleFaces: settings.FaceRule(rule)}}
		if _, err := r.Enrolled(t.Context(), enginetest.Photo(t, "face_recognition/obama.jpg"), app); router.KindOf(err) != want {
			t.Errorf("got %v, want kind %v", err, want)
		}
	}
	f(router.NoFace, portrait.Refuse)
	f(0, portrait.Refuse, side(100))
	f(router.MultipleFaces, portrait.Refuse, side(100), side(35))
	f(router.NoFace, portrait.Dominant)
	f(router.MultipleFaces, portrait.Dominant, side(100), side(99))
	f(router.MultipleFaces, portrait.Rule(9), side(100), side(35)) // of a newer version
}

func TestEnrolmentNeedsMoreQualityThanProbe(t *testing.T) {
	t.Parallel()
	for _, quality := range []float32{0.04, 0.06, 0.44, 0.46} {
		face := side(100)
		face.Attributes.Quality = quality
		r := &FaceRequests{extractor: album{face}}
		kind := func(refused bool) router.Kind {
			if refused {
				return router.PoorQuality
			}
			return 0
		}
		if _, err := r.single(t.Context(), nil, portrait.Refuse, 0.45); router.KindOf(err) != kind(quality < 0.45) {
			t.Errorf("enrolment of a face of quality %v: %v", quality, err)
		}
		if _, err := r.Probe(t.Context(), nil, portrait.Refuse); router.KindOf(err) != kind(quality < 0.05) {
			t.Errorf("probe of quality %v: %v", quality, err)
		}
		if faces, err := r.Extract(t.Context(), nil, 10); err != nil || len(faces) != 1 {
			t.Errorf("extract with quality %v: %v", quality, err)
		}
	}
}

func TestEngineErrorsHaveKinds(t *testing.T) {
	t.Parallel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	f := func(ctx context.Context, in error, kind router.Kind, reason string, is error) {
		t.Helper()
		err := imageError(ctx, in)
		e, _ := errors.AsType[*router.Error](err)
		if router.KindOf(err) != kind || e != nil && e.Reason != reason || is != nil && !errors.Is(err, is) {
			t.Errorf("%v: got %v", in, err)
		}
	}
	f(t.Context(), fmt.Errorf("%w: truncated", engine.ErrImage), router.InvalidRequest, router.ReasonImage, nil)
	f(t.Context(), engine.ErrBusy, router.Busy, "", nil)
	f(late, fmt.Errorf("stopped"), 0, "", context.DeadlineExceeded)
	f(t.Context(), fmt.Errorf("HEIC: %w", context.DeadlineExceeded), 0, "", context.DeadlineExceeded)
}

func TestEnrolmentRefusesDefects(t *testing.T) {
	t.Parallel()
	face := side(100)
	face.Defects = []engine.Defect{engine.DefectMouth, engine.DefectMoved}
	r := &FaceRequests{extractor: album{face}}
	_, err := r.Enrolled(t.Context(), nil, metafsm.Application{Application: settings.Application{MinimumQuality: 0.45}})
	if refused, ok := errors.AsType[*router.Error](err); !ok || refused.Kind != router.PoorQuality || refused.Reason != "MouthCovered" ||
		!strings.Contains(refused.Message, "take off the mask") {
		t.Errorf("an enrolment got %v", err)
	}
	if _, err := r.Probe(t.Context(), nil, portrait.Refuse); err != nil {
		t.Errorf("a probe got %v", err)
	}
}

func TestPoorQualityTellsCause(t *testing.T) {
	t.Parallel()
	face := side(100)
	face.Attributes.Quality, face.Attributes.Frontal = 0.3, 0.2
	face.Measures.EyeDistance.Native = 60
	r := &FaceRequests{extractor: album{face}}
	_, err := r.Enrolled(t.Context(), nil, metafsm.Application{Application: settings.Application{MinimumQuality: 0.45}})
	const want = "the face's quality 0.30 is below the minimum 0.45; turn towards the camera"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
