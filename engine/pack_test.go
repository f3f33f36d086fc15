package engine_test

import (
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/models"
	"facet/internal/must"
)

func TestNetworkUnlikeManifestIsRefused(t *testing.T) {
	t.Parallel()
	refused := func(name string, p *models.Pack) {
		t.Helper()
		e, err := engine.New(p, engine.Config{Library: enginetest.Library(t), Workers: 1})
		if err == nil {
			e.Close()
			t.Errorf("%s: it runs", name)
		}
	}
	f := func(name string, change func(embedder object)) {
		t.Helper()
		refused(name, enginetest.PackOf(t, models.Default(), nil, func(m object) {
			m["files"] = slices.DeleteFunc(m["files"].([]any), func(f any) bool { return f.(object)["role"] == "basis" })
			e := m["embedder"].(object)
			delete(e, "basis")
			change(e)
		}))
	}
	f("another dimension", func(e object) { e["dim"] = 128 })
	f("another size", func(e object) {
		maps.Copy(e["input"].(object), object{"width": 150, "height": 150})
	})
	f("grey", func(e object) {
		maps.Copy(e["input"].(object), object{"channels": "GREY", "mean": []any{0}, "scale": []any{1}})
	})
	refused("a second embedder of another size", twins(t, whole, nil, func(m object) {
		m["joined"].(object)["embedder"].(object)["input"].(object)["width"] = 111
	}))
}

// The network is a 1 × 1 convolution of random weights, from [n, 3, 150, 150] to [n, 128].
func TestEmbedderInputFollowsManifest(t *testing.T) {
	t.Parallel()
	network, err := os.ReadFile("testdata/plain150.onnx")
	must.Do(t, err)
	p := enginetest.PackOf(t, models.Default(), map[models.Role][]byte{models.RoleEmbedder: network, models.RoleBasis: {0}}, func(m object) {
		e := m["embedder"].(object)
		e["dim"] = 128
		delete(e, "basis")
		in := e["input"].(object)
		in["width"], in["height"] = 150, 150
		for _, p := range e["points"].([]any) {
			for i, v := range p.([]any) {
				p.([]any)[i] = v.(float64) * 150 / 112
			}
		}
		files := m["files"].([]any)
		m["files"] = slices.DeleteFunc(files, func(f any) bool { return f.(object)["role"] == "basis" })
		m["detector"].(object)["minNorm"] = 0
	})
	of := func(e *engine.Engine) engine.Face {
		t.Helper()
		faces, err := e.ExtractLarge(t.Context(), enginetest.Photo(t, "face_recognition/obama.jpg"), .35)
		if err != nil || len(faces) != 1 {
			t.Fatalf("%d faces, error %v", len(faces), err)
		}
		return faces[0]
	}
	face := of(enginetest.Of(t, p))
	if len(face.Template) != 128 {
		t.Fatalf("a template of %d numbers, want 128", len(face.Template))
	}
	// The side follows from the whole template of the alignment: it may differ a little.
	got, want := face.Attributes.Face, of(enginetest.Shared(t)).Attributes.Face
	side := want.Right - want.Left
	middle := math.Hypot(float64(got.Left+got.Right-want.Left-want.Right), float64(got.Top+got.Bottom-want.Top-want.Bottom)) / 2
	if grown := (got.Right - got.Left) / side; middle > .05*float64(side) || grown < .9 || grown > 1.1 {
		t.Errorf("the face is at %+v, with the default pack at %+v", got, want)
	}
}
