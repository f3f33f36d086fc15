package shard

import (
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/engine"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/seal"
)

// goldenFaces are testFace, sealed at testRef by earlier builds with the key of 32
// bytes 1: in version 1, which has no model, and in version 2.
const (
	goldenFace1 = "0174b668a692a34bb786d159eba961e2e195cae6aae92737c8cd9238e0de546281c1836d301a516a0b967c3ee8f0df26ca45d6e0f1c9f8eb297420ea36610f238033f832d1d3c50d2c524a3eab6056171bea715491f2ab2030238756a873448fd2aaa009f6faee907bb2ebad7899e2c7ab"
	goldenFace2 = "02010203040506070828e298c48fcdecfbd97efe3017d63a8a82d6d04d094fdbacfbbaa942585b634e47b31d37bf53fa080c27eedd3c0a04d8e189a1c8a4b486789f563f05e6ca3164fd47877afffff1992a0d141f4de1804858c574681a61599939fb4f3006b16362f0d189f53e5d40aa9cbca5e0381295dd"
)

var testRef = FaceRef{
	Gallery: id.Gallery{UUID: id.UUID{1}}, Generation: 7,
	Subject: id.Subject{UUID: id.UUID{2}}, Event: id.Event{UUID: id.UUID{3}},
}

var testFace = engine.Face{
	Template: engine.Template{.5, -.5, .25},
	Model:    id.Model{1, 2, 3, 4, 5, 6, 7, 8},
	Attributes: engine.Attributes{
		Face: engine.Rect{Left: 1, Top: 2, Right: 3, Bottom: 4}, Head: engine.Rect{Left: 5, Top: 6, Right: 7, Bottom: 8},
		RightEye: engine.Point{X: 9, Y: 10}, LeftEye: engine.Point{X: 11, Y: 12},
		Score: .99, Frontal: .8, Quality: .7, Roll: -1.5, Pan: 2.5, Tilt: -3.5,
	},
}

func TestSealedFaceOpensWhole(t *testing.T) {
	t.Parallel()
	key := testKey(t, 1)
	unhex := func(s string) []byte {
		b, err := hex.DecodeString(s)
		must.Do(t, err)
		return b
	}
	unnamed := testFace
	unnamed.Model = id.Model{}
	f := func(name string, want engine.Face, sealed []byte) {
		t.Helper()
		got, err := OpenFace(key, testRef, sealed)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if m := modelOf(sealed); m != want.Model {
			t.Errorf("%s: its clear part names model %s, want %s", name, m, want.Model)
		}
	}
	f("now", testFace, SealFace(key, testRef, testFace))
	f("now, without a model", unnamed, SealFace(key, testRef, unnamed))
	f("version 2", testFace, unhex(goldenFace2))
	f("version 1", unnamed, unhex(goldenFace1))
}

func TestSealedFaceKeepsModel(t *testing.T) {
	t.Parallel()
	key := testKey(t, 1)
	sealed := SealFace(key, testRef, testFace)
	for i := range modelBytes {
		forged := slices.Clone(sealed)
		forged[1+i] ^= 1
		if _, err := OpenFace(key, testRef, forged); !errors.Is(err, seal.ErrOpen) {
			t.Errorf("byte %d changed: got %v, want seal.ErrOpen", i, err)
		}
	}
	// Nor can it pass for a face of version 1, which names none.
	if _, err := OpenFace(key, testRef, append([]byte{faceUnnamed}, sealed[1+modelBytes:]...)); !errors.Is(err, seal.ErrOpen) {
		t.Errorf("as version 1: got %v, want seal.ErrOpen", err)
	}
	for _, short := range [][]byte{nil, {faceVersion}, sealed[:modelBytes], {3, 0, 0}} {
		if _, err := OpenFace(key, testRef, short); !errors.Is(err, ErrFace) {
			t.Errorf("%x: got %v, want ErrFace", short, err)
		}
	}
}

func TestSealedFaceNeedsItsPlace(t *testing.T) {
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
	f.Add([]byte{2, 0, 0}, make([]byte, attributeBytes))
	f.Add([]byte{}, make([]byte, attributeBytes+4))
	f.Add([]byte{}, make([]byte, attributeBytes+7))
	f.Fuzz(func(t *testing.T, sealed, plain []byte) {
		if face, err := OpenFace(key, testRef, sealed); err == nil && len(face.Template) == 0 {
			t.Fatal("a face without a template")
		}
		// Any plain text, well sealed.
		head := append([]byte{faceVersion}, testFace.Model[:]...)
		sealed = append(head, key.Seal(plain, testRef.aad(head))...)
		face, err := OpenFace(key, testRef, sealed)
		if err != nil && !errors.Is(err, ErrFace) {
			t.Fatal(err)
		}
		if err == nil && 4*len(face.Template)+attributeBytes != len(plain) {
			t.Fatalf("a template of %d numbers in %d bytes", len(face.Template), len(plain))
		}
	})
}
