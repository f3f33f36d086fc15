package convert_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/models"
	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/scripts/setup/convert"
)

func engineOf(t *testing.T, p *models.Pack) *engine.Engine {
	t.Helper()
	e, err := engine.New(p, engine.Config{Library: enginetest.Library(t), Workers: 1})
	must.Do(t, err)
	t.Cleanup(e.Close)
	return e
}

// only returns the face of a photo with one.
func only(t *testing.T, e *engine.Engine, name string) engine.Face {
	t.Helper()
	faces, err := e.ExtractLarge(t.Context(), enginetest.Photo(t, name), .35)
	if err != nil || len(faces) != 1 {
		t.Fatalf("%s: %d faces, error %v", name, len(faces), err)
	}
	return faces[0]
}

// Of the 512 published outputs the first are enough, and decomposed in a fraction of the time.
func TestPackOfOtherDimensionMatches(t *testing.T) {
	t.Parallel()
	const outputs, dim = 192, 128
	made, err := convert.Embedder(convert.FirstOutputs(published(t, "fr_feature.onnx"), outputs), dim)
	must.Do(t, err)
	files := map[models.Role][]byte{models.RoleEmbedder: made.Model, models.RoleBasis: made.Basis}
	p := enginetest.PackOf(t, models.Default(), files, func(m map[string]any) {
		e := m["embedder"].(map[string]any)
		e["dim"], e["basis"] = dim, map[string]any{"rows": dim, "cols": outputs}
	})
	e := engineOf(t, p)
	face := func(name string) engine.Face {
		t.Helper()
		f := only(t, e, name)
		if norm := score.Dot(f.Template, f.Template); len(f.Template) != dim || math.Abs(float64(norm)-1) > 1e-5 {
			t.Errorf("%s: %d numbers of squared norm %v", name, len(f.Template), norm)
		}
		return f
	}
	a, b, other := face("face_recognition/obama.jpg"), face("face_recognition/obama2.jpg"), face("face_recognition/biden.jpg")
	if s := e.Compare(a.Template, b.Template); s < 7000 {
		t.Errorf("one man has score %d", s)
	}
	if s := e.Compare(a.Template, other.Template); s >= 7000 {
		t.Errorf("two men have score %d", s)
	}
	def := only(t, enginetest.Shared(t), "face_recognition/obama.jpg")
	if a.Model != p.Manifest.ModelID() || def.Model != enginetest.Pack(t).Manifest.ModelID() {
		t.Errorf("models are %s and %s, want those of the packs", a.Model, def.Model)
	}
	var differ *id.ModelError
	if err := id.SameModel(a.Model, def.Model); !errors.As(err, &differ) {
		t.Errorf("the packs' templates can be compared: %v", err)
	}
}

func TestEmbedderInputFollowsManifest(t *testing.T) {
	t.Parallel()
	network := convert.Plain(150, 128)
	p := enginetest.PackOf(t, models.Default(), map[models.Role][]byte{models.RoleEmbedder: network, models.RoleBasis: {0}}, func(m map[string]any) {
		e := m["embedder"].(map[string]any)
		e["dim"] = 128
		delete(e, "basis")
		in := e["input"].(map[string]any)
		in["width"], in["height"] = 150, 150
		for _, p := range e["points"].([]any) {
			for i, v := range p.([]any) {
				p.([]any)[i] = v.(float64) * 150 / 112
			}
		}
		files := m["files"].([]any)
		m["files"] = slices.DeleteFunc(files, func(f any) bool { return f.(map[string]any)["role"] == "basis" })
		m["detector"].(map[string]any)["minNorm"] = 0
	})
	face := only(t, engineOf(t, p), "face_recognition/obama.jpg")
	if len(face.Template) != 128 {
		t.Fatalf("a template of %d numbers, want 128", len(face.Template))
	}
	// The side follows from the whole template of the alignment: it may differ a little.
	got, want := face.Attributes.Face, only(t, enginetest.Shared(t), "face_recognition/obama.jpg").Attributes.Face
	side := want.Right - want.Left
	middle := math.Hypot(float64(got.Left+got.Right-want.Left-want.Right), float64(got.Top+got.Bottom-want.Top-want.Bottom)) / 2
	if grown := (got.Right - got.Left) / side; middle > .05*float64(side) || grown < .9 || grown > 1.1 {
		t.Errorf("the face is at %+v, with the default pack at %+v", got, want)
	}
}
