package engine_test

import (
	"encoding/json"
	"errors"
	"image"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/models"
	"facet/engine/score"
	"facet/internal/must"
)

type object = map[string]any

// twoEmbedders returns a pack of the embedders of the packs sface and mobile after a change of its
// manifest. Its projection leaves their values as they are.
func twoEmbedders(t *testing.T, change func(m object)) *models.Pack {
	t.Helper()
	founding, _ := models.Builtin(models.FoundingPack)
	return joinedWith(t, founding, sface(t), models.Projection{Rows: 320, Cols: 320}, nil, change)
}

// twins is twoEmbedders with mobile's embedder twice, which runs in a tenth of SFace's time. Its
// projection is identity, unless a file is given.
func twins(t *testing.T, size models.Projection, projection []byte, change func(m object)) *models.Pack {
	t.Helper()
	return joinedWith(t, models.Default(), mobile(t), size, projection, change)
}

// joinedWith returns the pack of a manifest with mobile's embedder as its second one.
func joinedWith(t *testing.T, manifest, embedder []byte, size models.Projection, projection []byte, change func(m object)) *models.Pack {
	t.Helper()
	if projection == nil {
		values := make([]float32, size.Rows*size.Cols)
		for i := range size.Rows {
			values[i*size.Cols+i] = 1
		}
		projection = size.Encode(values)
	}
	first, second := make(object), make(object)
	must.Do(t, errors.Join(json.Unmarshal(manifest, &first), json.Unmarshal(models.Default(), &second)))
	for _, m := range []object{first, second} {
		e := m["embedder"].(object)
		delete(e, "spectrum")
		delete(e, "basis")
	}
	files := slices.DeleteFunc(first["files"].([]any), func(f any) bool { return f.(object)["role"] == "basis" })
	for _, role := range []models.Role{models.RoleEmbedder2, models.RoleProjection} {
		files = append(files, object{"role": role, "name": role, "licence": "MIT", "source": "a test"})
	}
	first["files"] = files
	first["joined"] = object{"embedder": second["embedder"], "weights": []float64{1, 2}, "projection": size}
	text, err := json.Marshal(first)
	must.Do(t, err)
	return enginetest.PackOf(t, text, map[models.Role][]byte{
		models.RoleEmbedder: embedder, models.RoleEmbedder2: append(mobile(t), remark...), models.RoleProjection: projection,
	}, change)
}

// remark is an ONNX model's field for remarks: a pack's two embedders must be different files.
const remark = "\x32\x01x"

// mobile returns the embedder of the default pack.
func mobile(t *testing.T) []byte {
	t.Helper()
	network, err := enginetest.Pack(t).Load(models.RoleEmbedder)
	must.Do(t, err)
	return network
}

// sface returns the embedder of the pack sface.
func sface(t *testing.T) []byte {
	t.Helper()
	network, err := os.ReadFile(filepath.Join(enginetest.Assets(t), "packs", models.FoundingPack, "sface_128.onnx"))
	must.Do(t, err)
	return network
}

// whole is the size of a projection that keeps all values of twins.
var whole = models.Projection{Rows: 384, Cols: 384}

// joined returns an engine of twins.
func joined(t *testing.T) *engine.Engine {
	t.Helper()
	return kept(t, "joined", func() *models.Pack { return twins(t, whole, nil, asItIs) })
}

// mirrors returns an engine of twins that read each crop and its mirror image.
func mirrors(t *testing.T) *engine.Engine {
	t.Helper()
	return kept(t, "mirrors", func() *models.Pack {
		return twins(t, whole, nil, func(m object) { m["joined"].(object)["mirrored"] = true })
	})
}

// faceBy extracts the one face of a picture.
func faceBy(t *testing.T, e *engine.Engine, im *image.RGBA) engine.Face {
	t.Helper()
	faces, err := e.ExtractLarge(t.Context(), asPNG(t, im), 0)
	if err != nil || len(faces) != 1 {
		t.Fatalf("%d faces, error %v", len(faces), err)
	}
	if n := len(faces[0].Template); n != e.Dim() {
		t.Errorf("a template has %d values, Dim says %d", n, e.Dim())
	}
	if norm := score.Dot(faces[0].Template, faces[0].Template); math.Abs(float64(norm)-1) > 1e-5 {
		t.Errorf("the template has the square %v", norm)
	}
	return faces[0]
}

func asItIs(object) {}

// The template of both embedders contains those that each of them makes alone, by the weights.
func TestJoinedTemplateContainsBothEmbedders(t *testing.T) {
	t.Parallel()
	im := portrait(t)
	f := func(moveBy float64, joined, first, second *engine.Engine) {
		t.Helper()
		both, one, other := faceBy(t, joined, im), faceBy(t, first, im), faceBy(t, second, im)
		for _, half := range []struct {
			name  string
			got   engine.Template
			want  engine.Template
			share float64
		}{
			{"first", both.Template[:first.Dim()], one.Template, 1 / math.Sqrt(5)},
			{"second", both.Template[first.Dim():], other.Template, 2 / math.Sqrt(5)},
		} {
			if got := float64(score.Dot(half.got, half.want)); math.Abs(got-half.share) > 1e-6 {
				t.Errorf("points moved by %v: the %s embedder's part has the cosine %v, want %v", moveBy, half.name, got, half.share)
			}
		}
		if both.Attributes != one.Attributes {
			t.Errorf("attributes are %+v, of the first embedder alone %+v", both.Attributes, one.Attributes)
		}
		if both.Model == one.Model || both.Model == other.Model {
			t.Errorf("the templates have the model %s of one embedder", both.Model)
		}
	}
	founding, _ := models.Builtin(models.FoundingPack)
	alone := enginetest.Of(t, enginetest.PackOf(t, founding, map[models.Role][]byte{models.RoleEmbedder: sface(t)}, asItIs))
	f(0, enginetest.Of(t, twoEmbedders(t, asItIs)), alone, single(t)) // the second embedder reads the first one's crop
	const by = 1.5
	move := func(embedder any) {
		for _, p := range embedder.(object)["points"].([]any) {
			p := p.([]any)
			p[0] = p[0].(float64) + by
		}
	}
	f(by, enginetest.Of(t, twins(t, whole, nil, func(m object) { move(m["joined"].(object)["embedder"]) })), single(t),
		enginetest.Of(t, enginetest.PackOf(t, models.Default(), nil, func(m object) { move(m["embedder"]) })))
}

// A face and its mirror image have one template if the embedders read both.
func TestMirroredFaceHasSameTemplate(t *testing.T) {
	t.Parallel()
	im := halved(pixels(t, "face_recognition/obama.jpg"))
	mirror := mirrored(im)
	f := func(e *engine.Engine) float64 {
		t.Helper()
		return float64(score.Dot(faceBy(t, e, im).Template, faceBy(t, e, mirror).Template))
	}
	// The landmarks of the two differ a little, and so do the crops.
	plain, both := f(joined(t)), f(mirrors(t))
	t.Logf("cosine %v, of both crops together %v", plain, both)
	if both < .985 || 1-both > (1-plain)/2 {
		t.Errorf("a face and its mirror image have the cosine %v, of one crop alone %v", both, plain)
	}
}

func TestProjectionReducesTemplate(t *testing.T) {
	t.Parallel()
	all := faceBy(t, joined(t), portrait(t))
	p := models.Projection{Rows: 16, Cols: whole.Cols}
	values := make([]float32, p.Rows*p.Cols)
	want := make(engine.Template, p.Rows)
	var square float64
	for r := range p.Rows {
		values[r*p.Cols+r], values[r*p.Cols+300-r] = 2, -1
		want[r] = 2*all.Template[r] - all.Template[300-r]
		square += float64(want[r]) * float64(want[r])
	}
	got := faceBy(t, enginetest.Of(t, twins(t, p, p.Encode(values), asItIs)), portrait(t))
	for i := range want {
		if w := float64(want[i]) / math.Sqrt(square); math.Abs(float64(got.Template[i])-w) > 1e-6 {
			t.Errorf("value %d is %v, want %v", i, got.Template[i], w)
		}
	}
}

// Fits of a pack start from the templates that a search compares.
func TestSightingHasJoinedTemplate(t *testing.T) {
	t.Parallel()
	e, im := joined(t), portrait(t)
	want := faceBy(t, e, im)
	seen, err := e.Sightings(t.Context(), asPNG(t, im), 0)
	if err != nil || len(seen) == 0 {
		t.Fatalf("%d sightings, error %v", len(seen), err)
	}
	if !slices.Equal(seen[0].Template, want.Template) {
		t.Errorf("a sighting's template has the cosine %v with the face's", score.Dot(seen[0].Template, want.Template))
	}
}
