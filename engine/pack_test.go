package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/models"
	"facet/engine/score"
	"facet/internal/id"
	"facet/scripts/setup/convert"
	"facet/scripts/setup/convert/converttest"
)

// packOf writes a pack with these files of some roles, the rest those of the
// default pack, and a manifest after a change, and opens it.
func packOf(t *testing.T, manifest []byte, files map[models.Role][]byte, change func(m map[string]any)) *models.Pack {
	t.Helper()
	m := make(map[string]any)
	if err := json.Unmarshal(manifest, &m); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range m["files"].([]any) {
		f := f.(map[string]any)
		role := models.Role(f["role"].(string))
		data, ok := files[role]
		if !ok {
			var err error
			if data, err = enginetest.Pack(t).Load(role); err != nil {
				t.Fatal(err)
			}
		}
		sum := sha256.Sum256(data)
		f["size"], f["sha256"] = len(data), hex.EncodeToString(sum[:])
		write(f["name"].(string), data)
	}
	change(m)
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	write(models.ManifestName, data)
	p, err := models.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func engineOf(t *testing.T, p *models.Pack) *engine.Engine {
	t.Helper()
	e, err := engine.New(p, engine.Config{Library: enginetest.Library(t), Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func TestPackOfOtherDimensionMatches(t *testing.T) {
	t.Parallel()
	published, err := os.ReadFile(filepath.Join(enginetest.Assets(t), "cache", "fr_feature.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	const dim = 128
	made, err := convert.Embedder(published, dim)
	if err != nil {
		t.Fatal(err)
	}
	files := map[models.Role][]byte{models.RoleEmbedder: made.Model, models.RoleBasis: made.Basis}
	p := packOf(t, models.Default(), files, func(m map[string]any) {
		e := m["embedder"].(map[string]any)
		e["dim"], e["basis"].(map[string]any)["rows"] = dim, dim
	})
	e := engineOf(t, p)
	face := func(name string) engine.Face {
		t.Helper()
		faces, err := e.ExtractLarge(context.Background(), enginetest.Photo(t, name), .35)
		if err != nil || len(faces) != 1 {
			t.Fatalf("%s: %d faces, error %v", name, len(faces), err)
		}
		f := faces[0]
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
	def := one(t, "face_recognition/obama.jpg")
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
	// The network of the pack "dlib" with random weights: 150 × 150 in, 128 out.
	network, err := convert.Dlib(converttest.Dlib(3))
	if err != nil {
		t.Fatal(err)
	}
	manifest, ok := models.Builtin("dlib")
	if !ok {
		t.Fatal("there is no manifest of dlib")
	}
	p := packOf(t, manifest, map[models.Role][]byte{models.RoleEmbedder: network}, func(map[string]any) {})
	faces, err := engineOf(t, p).ExtractLarge(context.Background(), enginetest.Photo(t, "face_recognition/obama.jpg"), .35)
	if err != nil || len(faces) != 1 || len(faces[0].Template) != 128 {
		t.Fatalf("%d faces, error %v; want one with 128 numbers", len(faces), err)
	}
	// The side follows from the whole template of the alignment: it may differ a little.
	got, want := faces[0].Attributes.Face, one(t, "face_recognition/obama.jpg").Attributes.Face
	side := want.Right - want.Left
	middle := math.Hypot(float64(got.Left+got.Right-want.Left-want.Right), float64(got.Top+got.Bottom-want.Top-want.Bottom)) / 2
	if grown := (got.Right - got.Left) / side; middle > .05*float64(side) || grown < .9 || grown > 1.1 {
		t.Errorf("the face is at %+v, with the default pack at %+v", got, want)
	}
}

func TestNetworkUnlikeManifestIsRefused(t *testing.T) {
	t.Parallel()
	f := func(name string, change func(embedder map[string]any)) {
		t.Helper()
		p := packOf(t, models.Default(), nil, func(m map[string]any) {
			m["files"] = slices.DeleteFunc(m["files"].([]any), func(f any) bool { return f.(map[string]any)["role"] == "basis" })
			e := m["embedder"].(map[string]any)
			delete(e, "basis")
			change(e)
		})
		e, err := engine.New(p, engine.Config{Library: enginetest.Library(t), Workers: 1})
		if err == nil {
			e.Close()
			t.Errorf("%s: it runs", name)
		}
	}
	f("another dimension", func(e map[string]any) { e["dim"] = 128 })
	f("another size", func(e map[string]any) {
		maps.Copy(e["input"].(map[string]any), map[string]any{"width": 150, "height": 150})
	})
	f("grey", func(e map[string]any) {
		maps.Copy(e["input"].(map[string]any), map[string]any{"channels": "GREY", "mean": []any{0}, "scale": []any{1}})
	})
}
