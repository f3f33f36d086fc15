package models

import (
	"testing"

	"facet/internal/id"
)

// TestModelIDNeverChanges pins the ids that stored templates carry.
func TestModelIDNeverChanges(t *testing.T) {
	t.Parallel()
	const want = "ac20abbb30a703e3"
	if got := parsed(t, Default()).ModelID().String(); got != want {
		t.Errorf("the default pack's is %s, want %s", got, want)
	}
}

func TestModelIDCoversTemplateFieldsOnly(t *testing.T) {
	t.Parallel()
	own := parsed(t, Default()).ModelID()
	f := func(same bool, change func(m *Manifest)) id.Model {
		t.Helper()
		m := parsed(t, Default())
		change(m)
		got := m.ModelID()
		if (got == own) != same {
			t.Errorf("id is %s, before the change %s, want the same: %v", got, own, same)
		}
		return got
	}
	file := func(m *Manifest, role Role) *File {
		for i := range m.Files {
			if m.Files[i].Role == role {
				return &m.Files[i]
			}
		}
		return nil
	}
	const sum = "00000000000000000000000000000000000000000000000000000000000000ff"
	a := f(false, func(m *Manifest) { file(m, RoleEmbedder).SHA256 = sum })
	b := f(false, func(m *Manifest) { file(m, RoleBasis).SHA256 = sum })
	if a == b {
		t.Error("embedder and basis can stand in for each other")
	}
	f(false, func(m *Manifest) { m.Embedder.Dim = 128 })
	f(false, func(m *Manifest) { m.Embedder.Input.Width = 128 })
	f(false, func(m *Manifest) { m.Embedder.Input.Height = 128 })
	f(false, func(m *Manifest) { m.Embedder.Input.Channels = RGB })
	f(false, func(m *Manifest) { m.Embedder.Input.Mean[2] = 128 })
	f(false, func(m *Manifest) { m.Embedder.Input.Scale[0] = 1 })
	f(false, func(m *Manifest) { m.Embedder.Points[4][1] += .0001 })

	f(true, func(m *Manifest) { m.Name, m.Version, m.Note = "x", "2", "" })
	f(true, func(m *Manifest) { file(m, RoleEmbedder).Name = "x.onnx" })
	f(true, func(m *Manifest) { file(m, RoleDetector).SHA256 = sum })
	f(true, func(m *Manifest) { file(m, RoleLandmarks).SHA256 = sum })
	f(true, func(m *Manifest) { m.Calibration.Points[3].Cosine += .001 })
	f(true, func(m *Manifest) { m.Quality.Bias++ })
}
