package shard

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/engine"
	"facet/internal/id"
	"facet/shard/seal"
)

// goldenFace is testFace, sealed at testRef by an earlier build with the key of 32
// bytes 1.
const goldenFace = "0174b668a692a34bb786d159eba961e2e195cae6aae92737c8cd9238e0de546281c1836d301a516a0b967c3ee8f0df26ca45d6e0f1c9f8eb297420ea36610f238033f832d1d3c50d2c524a3eab6056171bea715491f2ab2030238756a873448fd2aaa009f6faee907bb2ebad7899e2c7ab"

var testRef = FaceRef{
	Gallery: id.Gallery{UUID: id.UUID{1}}, Generation: 7,
	Subject: id.Subject{UUID: id.UUID{2}}, Event: id.Event{UUID: id.UUID{3}},
}

var testFace = engine.Face{
	Template: engine.Template{.5, -.5, .25},
	Attributes: engine.Attributes{
		Face: engine.Rect{Left: 1, Top: 2, Right: 3, Bottom: 4}, Head: engine.Rect{Left: 5, Top: 6, Right: 7, Bottom: 8},
		RightEye: engine.Point{X: 9, Y: 10}, LeftEye: engine.Point{X: 11, Y: 12},
		Score: .99, Frontal: .8, Quality: .7, Roll: -1.5, Pan: 2.5, Tilt: -3.5,
	},
}

func TestASealedFaceComesBackWhole(t *testing.T) {
	t.Parallel()
	key := testKey(t, 1)
	old, err := hex.DecodeString(goldenFace)
	if err != nil {
		t.Fatal(err)
	}
	for name, sealed := range map[string][]byte{"now": SealFace(key, testRef, testFace), "golden": old} {
		got, err := OpenFace(key, testRef, sealed)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(testFace, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestASealedFaceOpensAtNoOtherPlace(t *testing.T) {
	t.Parallel()
	key := testKey(t, 1)
	sealed := SealFace(key, testRef, testFace)
	f := func(name string, move func(*FaceRef)) {
		t.Helper()
		ref := testRef
		move(&ref)
		if _, err := OpenFace(key, ref, sealed); !errors.Is(err, seal.ErrOpen) {
			t.Errorf("another %s: got %v, want seal.ErrOpen", name, err)
		}
	}
	f("gallery", func(r *FaceRef) { r.Gallery.UUID[15]++ })
	f("generation", func(r *FaceRef) { r.Generation++ })
	f("subject", func(r *FaceRef) { r.Subject.UUID[15]++ })
	f("event", func(r *FaceRef) { r.Event.UUID[15]++ })
	f("revision", func(r *FaceRef) { r.Revision++ })
}

func FuzzOpenFaceNeverPanics(f *testing.F) {
	key := testKey(f, 1)
	f.Add(SealFace(key, testRef, testFace), []byte{})
	f.Add([]byte{1}, make([]byte, attributeBytes))
	f.Add([]byte{}, make([]byte, attributeBytes+4))
	f.Add([]byte{}, make([]byte, attributeBytes+7))
	f.Fuzz(func(t *testing.T, sealed, plain []byte) {
		if face, err := OpenFace(key, testRef, sealed); err == nil && len(face.Template) == 0 {
			t.Fatal("a face without a template")
		}
		// Any plain text, well sealed.
		sealed = append([]byte{faceVersion}, key.Seal(plain, testRef.aad())...)
		face, err := OpenFace(key, testRef, sealed)
		if err != nil && !errors.Is(err, ErrFace) {
			t.Fatal(err)
		}
		if err == nil && 4*len(face.Template)+attributeBytes != len(plain) {
			t.Fatalf("a template of %d numbers in %d bytes", len(face.Template), len(plain))
		}
	})
}
