package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"facet/engine"
	"facet/engine/imaging/turbo"
	"facet/engine/models"
	"facet/engine/onnx"
	"facet/scripts/bench/cluster"
)

// bare has the pack's networks and libjpeg-turbo, without facet's code except the
// bindings.
type bare struct {
	open                          []*onnx.Model
	detector, landmarks, embedder *onnx.Runner
	second                        *onnx.Runner // nil in a pack with one embedder
	published                     *onnx.Runner // the embedder of mobile as published, else nil
	turbo                         *turbo.Library
	pixels                        []byte
}

func openBare(files cluster.Files, pack *models.Pack) (b *bare, err error) {
	b = new(bare)
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	const library = "libturbojpeg.so.0"
	if b.turbo, err = turbo.Open(filepath.Join(files.Assets, "lib", library), library); err != nil {
		return b, err
	}
	m := pack.Manifest
	type role struct {
		role   models.Role
		runner **onnx.Runner
		input  models.Input
	}
	roles := []role{
		{models.RoleDetector, &b.detector, m.Detector.Input},
		{models.RoleLandmarks, &b.landmarks, m.Landmarks.Input},
		{models.RoleEmbedder, &b.embedder, m.Embedder.Input},
	}
	if m.Joined != nil {
		roles = append(roles, role{models.RoleEmbedder2, &b.second, m.Joined.Embedder.Input})
	}
	for _, n := range roles {
		network, err := pack.Load(n.role)
		if err != nil {
			return b, err
		}
		if *n.runner, err = b.runner(network, n.input, outputs(n.role, m)); err != nil {
			return b, err
		}
	}
	if m.Name != models.FolderMobile {
		return b, nil
	}
	network, err := os.ReadFile(filepath.Join(files.Assets, "cache", "fr_feature.onnx"))
	if err != nil {
		return b, fmt.Errorf("read the published embedder: %w", err)
	}
	const published = 512 // outputs
	b.published, err = b.runner(network, m.Embedder.Input, []onnx.Tensor{{Shape: []int64{1, published}}})
	return b, err
}

// outputs returns the outputs that the engine reads from the network of a role (engine:
// networks.open).
func outputs(role models.Role, m *models.Manifest) []onnx.Tensor {
	const points, boxes = 68, 4420 // of the detector's 320 × 240
	switch role {
	case models.RoleDetector:
		return []onnx.Tensor{{Name: "scores", Shape: []int64{1, boxes, 2}}, {Name: "boxes", Shape: []int64{1, boxes, 4}}}
	case models.RoleLandmarks:
		return []onnx.Tensor{{Shape: []int64{1, 2 * points}}}
	case models.RoleEmbedder2:
		return []onnx.Tensor{{Shape: []int64{1, int64(m.Joined.Embedder.Dim)}}}
	default:
		return []onnx.Tensor{{Shape: []int64{1, int64(m.Embedder.Dim)}}}
	}
}

func (b *bare) runner(network []byte, in models.Input, out []onnx.Tensor) (*onnx.Runner, error) {
	m, err := onnx.Open(onnx.Spec{
		Name: "bare", Network: network, Outputs: out,
		Input: onnx.Tensor{Shape: []int64{1, int64(in.Channels.Count()), int64(in.Height), int64(in.Width)}},
	})
	if err != nil {
		return nil, err
	}
	b.open = append(b.open, m)
	return m.NewRunner()
}

func (b *bare) close() {
	for _, r := range []*onnx.Runner{b.detector, b.landmarks, b.embedder, b.second, b.published} {
		if r != nil {
			r.Close()
		}
	}
	for _, m := range b.open {
		m.Close()
	}
}

// models runs each network as often as an extraction did.
func (b *bare) models(w engine.Work) error {
	for _, n := range []struct {
		runner *onnx.Runner
		times  int64
	}{{b.detector, w.Detector}, {b.landmarks, w.Landmarks}, {b.embedder, w.Embedder}, {b.second, w.Second}} {
		for range n.times {
			if err := n.runner.Run(); err != nil {
				return err
			}
		}
	}
	return nil
}

// decode decodes the photo at each scale as often as an extraction did.
func (b *bare) decode(p photo, w engine.Work) error {
	var errs []error
	for i, times := range w.Decoded {
		scale := 1 << i
		t := turbo.Target{
			Width: (p.head.Width + scale - 1) / scale, Height: (p.head.Height + scale - 1) / scale, Pixels: turbo.RGB,
		}
		if n := t.Width * t.Height * turbo.RGB.Bytes(); n > len(b.pixels) {
			b.pixels = make([]byte, n)
		}
		for range times {
			errs = append(errs, b.turbo.Decode(b.pixels, t, p.data))
		}
	}
	return errors.Join(errs...)
}
