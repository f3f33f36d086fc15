package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"facet/engine/imaging"
	"facet/engine/models"
	"facet/engine/onnx"
)

const (
	landmarkCount = 68
	candidatesMax = 60 // boxes of one image that are looked at

	// A worker keeps the pixels of an image up to this size for the next one.
	keepBytes = 3 * 12_000_000

	// A face's side follows from its landmarks, so a box may be this much smaller
	// than a share asks for.
	boxSlack = .7
)

// networks are the pack's models, shared by the workers.
type networks struct {
	detector, landmarks, embedder *onnx.Model
}

func (n *networks) open(p *models.Pack) error {
	m := p.Manifest
	boxes := int64(rfbBoxes(m.Detector.Input.Width, m.Detector.Input.Height))
	for _, net := range []struct {
		model   **onnx.Model
		role    models.Role
		input   models.Input
		outputs []onnx.Tensor
	}{
		{&n.detector, models.RoleDetector, m.Detector.Input, []onnx.Tensor{
			{Name: "scores", Shape: []int64{1, boxes, 2}},
			{Name: "boxes", Shape: []int64{1, boxes, 4}},
		}},
		{&n.landmarks, models.RoleLandmarks, m.Landmarks.Input, []onnx.Tensor{{Shape: []int64{1, 2 * landmarkCount}}}},
		{&n.embedder, models.RoleEmbedder, m.Embedder.Input, []onnx.Tensor{{Shape: []int64{1, int64(m.Embedder.Dim)}}}},
	} {
		network, err := p.Load(net.role)
		if err != nil {
			return err
		}
		in := net.input
		*net.model, err = onnx.Open(onnx.Spec{
			Name:    string(net.role),
			Network: network,
			Input:   onnx.Tensor{Shape: []int64{1, int64(in.Channels.Count()), int64(in.Height), int64(in.Width)}},
			Outputs: net.outputs,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *networks) close() {
	for _, m := range []*onnx.Model{n.detector, n.landmarks, n.embedder} {
		if m != nil {
			m.Close()
		}
	}
}

// stage is one model with its buffers in one worker.
type stage struct {
	run   *onnx.Runner
	input models.Input
	// crop is the piece of the image that the model sees.
	crop *imaging.Image
}

// infer cuts the crop out of the image, m mapping the crop's coordinates to the
// image's, feeds the model and runs it.
func (s *stage) infer(p *imaging.Pyramid, m imaging.Affine, edge imaging.Edge) error {
	p.Sample(s.crop, m, edge)
	fill(s.run.Input(), s.crop.Pix, &s.input)
	return s.run.Run()
}

// worker has all the memory that one image at a time needs.
type worker struct {
	manifest                      *models.Manifest
	detector, landmarks, embedder stage
	image                         imaging.Image // the last one; its memory serves the next
	pyramid                       imaging.Pyramid
	luma                          []float32 // of the embedder's crop
}

func newWorker(m *models.Manifest, n *networks) (*worker, error) {
	w := &worker{manifest: m, luma: make([]float32, m.Embedder.Input.Width*m.Embedder.Input.Height)}
	for _, s := range []struct {
		stage *stage
		model *onnx.Model
		input models.Input
	}{
		{&w.detector, n.detector, m.Detector.Input},
		{&w.landmarks, n.landmarks, m.Landmarks.Input},
		{&w.embedder, n.embedder, m.Embedder.Input},
	} {
		run, err := s.model.NewRunner()
		if err != nil {
			w.close()
			return nil, err
		}
		*s.stage = stage{run: run, input: s.input, crop: imaging.NewImage(s.input.Width, s.input.Height)}
	}
	return w, nil
}

func (w *worker) close() {
	for _, s := range []*stage{&w.detector, &w.landmarks, &w.embedder} {
		if s.run != nil {
			s.run.Close()
		}
	}
}

// search says what an extraction looks for.
type search struct {
	// share of the largest face's side below which faces are left out.
	share float64
	// tiles asks for small faces of large images.
	tiles bool
}

// extract is Engine.Extract on this worker.
func (w *worker) extract(ctx context.Context, head imaging.Config, data []byte, s search) ([]Face, error) {
	im := &w.image
	defer w.shrink()
	if err := head.DecodeInto(im, data); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w.pyramid.Reset(im)
	boxes, err := w.detect(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("detect faces: %w", err)
	}
	seen, err := w.describeAll(ctx, boxes, s.share)
	if err != nil {
		return nil, fmt.Errorf("describe faces: %w", err)
	}
	faces := make([]Face, len(seen))
	for i, f := range seen {
		faces[i] = f.face(w.manifest, im)
	}
	return faces, nil
}

// shrink lets go of the memory of a large image.
func (w *worker) shrink() {
	if len(w.image.Pix) > keepBytes {
		w.image = imaging.Image{}
		w.pyramid.Free()
	}
}

// describeAll measures the faces in the boxes, which come largest first, and
// returns those that are faces, each once, in the order of Extract.
func (w *worker) describeAll(ctx context.Context, boxes []box, share float64) ([]*sighting, error) {
	var seen []*sighting
	for _, b := range boxes[:min(len(boxes), candidatesMax)] {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(seen) > 0 && b.height() < share*boxSlack*seen[0].box.height() {
			break
		}
		f, err := w.describe(b)
		if errors.Is(err, errNoFace) {
			continue
		}
		if err != nil {
			return nil, err
		}
		twin := slices.IndexFunc(seen, f.twin)
		switch {
		case twin < 0:
			seen = append(seen, f)
		case f.likeness > seen[twin].likeness:
			seen[twin] = f
		}
	}
	slices.SortStableFunc(seen, func(a, b *sighting) int {
		return cmp.Or(cmp.Compare(b.side(), a.side()), cmp.Compare(a.middle().X, b.middle().X))
	})
	seen = seen[:min(len(seen), MaxFaces)]
	return slices.DeleteFunc(seen, func(f *sighting) bool { return float64(f.side()) < share*float64(seen[0].side()) }), nil
}

// fill writes pixels as a model takes them: plane after plane, (x − mean) × scale.
func fill(dst []float32, pix []uint8, in *models.Input) {
	n := in.Width * in.Height
	if in.Channels == models.Grey {
		for i := range n {
			px := pix[3*i:][:3]
			luma := .299*float32(px[0]) + .587*float32(px[1]) + .114*float32(px[2])
			dst[i] = (luma - in.Mean[0]) * in.Scale[0]
		}
		return
	}
	for c := range 3 {
		from := c
		if in.Channels == models.BGR {
			from = 2 - c
		}
		var value [256]float32
		for v := range value {
			value[v] = (float32(v) - in.Mean[c]) * in.Scale[c]
		}
		plane := dst[c*n:][:n]
		for i := range plane {
			plane[i] = value[pix[3*i+from]]
		}
	}
}
