package engine

import (
	"context"
	"fmt"
	"image"
	"math"
	"sync/atomic"

	"facet/engine/imaging"
	"facet/engine/models"
	"facet/engine/onnx"
	"facet/internal/stale"
	"facet/internal/trace"
)

const (
	landmarkCount = 68
	candidatesMax = 60 // boxes of one image that are measured, in all its orientations together
	joinedMax     = 40 // the same, where the faces that are returned cost three further runs each

	// A worker reuses the memory for pixels up to this size. A phone's photo at half its sides has
	// this size.
	keepBytes = 3 * 4_000_000

	// A face's side follows from its landmarks, so its box may be smaller than a share asks for, by
	// this factor.
	boxSlack = .7

	// The distance of the eyes in heights of the detector's box (measured on the
	// sample photos: .30 to .42).
	eyesShare = .36
)

// networks are the pack's models, shared by the workers.
type networks struct {
	detector, landmarks, embedder *onnx.Model
	second                        *onnx.Model     // nil in a pack with one embedder
	projection                    []float32       // nil in a pack without one
	decoded                       [4]atomic.Int64 // images, by binary logarithm of the shrink
}

// role is the role of one network, with its input and outputs.
type role struct {
	role    models.Role
	model   **onnx.Model
	input   models.Input
	outputs []onnx.Tensor
}

// roles returns the networks of a pack.
func (n *networks) roles(m *models.Manifest) []role {
	list := []role{
		{models.RoleDetector, &n.detector, m.Detector.Input, detectorOutputs(&m.Detector)},
		{models.RoleLandmarks, &n.landmarks, m.Landmarks.Input, []onnx.Tensor{{Shape: []int64{1, 2 * landmarkCount}}}},
		{models.RoleEmbedder, &n.embedder, m.Embedder.Input, []onnx.Tensor{{Shape: []int64{1, int64(m.Embedder.Dim)}}}},
	}
	if j := m.Joined; j != nil {
		list = append(list, role{models.RoleEmbedder2, &n.second, j.Embedder.Input, []onnx.Tensor{{Shape: []int64{1, int64(j.Embedder.Dim)}}}})
	}
	return list
}

func (n *networks) open(p *models.Pack) error {
	var err error
	if n.projection, err = p.Projection(); err != nil {
		return err
	}
	for _, net := range n.roles(p.Manifest) {
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
	for _, m := range []*onnx.Model{n.detector, n.landmarks, n.embedder, n.second} {
		if m != nil {
			m.Close()
		}
	}
}

// stage is one model with its buffers in one worker.
type stage struct {
	run   *onnx.Runner
	input models.Input
	// crop is the piece of the image that the model gets.
	crop *imaging.Image
}

// infer crops the image, m mapping the crop's coordinates to the image's, and runs the model on the
// crop.
func (s *stage) infer(p *picture, m imaging.Affine, edge imaging.Edge) error {
	if err := s.sample(p, m, edge); err != nil {
		return err
	}
	return s.inferCrop()
}

// sample crops the image as infer does.
func (s *stage) sample(p *picture, m imaging.Affine, edge imaging.Edge) error {
	stale.Picture(s.crop.Pix, s.crop.Width, s.crop.Height, 3)
	return p.sample(s.crop, m, edge)
}

// inferCrop runs the model on the crop as it is.
func (s *stage) inferCrop() error {
	s.load()
	return s.run.Run()
}

// load makes the model's input of the crop.
func (s *stage) load() {
	stale.Fill(s.run.Input())
	fill(s.run.Input(), s.crop.Pix, &s.input)
}

// worker has all the memory for one image at a time.
type worker struct {
	manifest                      *models.Manifest
	evidence                      models.Evidence
	detector, landmarks, embedder stage
	joiner                        *joiner // nil in a pack with one embedder
	pyramid                       picture
	luma                          []float32          // of the embedder's crop
	regions                       [4]image.Rectangle // of the crop; see regionsOf
	zones                         *zones             // of the crop
	measured                      int                // boxes of the image so far; see candidates
	// pause is called between two steps; see extraction.
	pause func(context.Context) error
}

func newWorker(m *models.Manifest, n *networks) (*worker, error) {
	w := &worker{
		manifest: m, evidence: m.Evidence(), pyramid: picture{decoded: &n.decoded},
		luma: make([]float32, m.Embedder.Input.Width*m.Embedder.Input.Height), regions: regionsOf(&m.Embedder), zones: zonesOf(&m.Embedder),
	}
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
	if m.Joined != nil {
		var err error
		if w.joiner, err = newJoiner(w, n); err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

// candidates returns how many boxes of an image may be measured.
func (w *worker) candidates() int {
	if w.joiner != nil {
		return joinedMax
	}
	return candidatesMax
}

// stages returns the worker's stages.
func (w *worker) stages() []*stage {
	list := []*stage{&w.detector, &w.landmarks, &w.embedder}
	if w.joiner != nil {
		list = append(list, &w.joiner.stage)
	}
	return list
}

func (w *worker) close() {
	for _, s := range w.stages() {
		if s.run != nil {
			s.run.Close()
		}
	}
}

// search says what an extraction looks for.
type search struct {
	// share of the largest face's side; smaller faces are left out.
	share float64
	// tiles asks for small faces of large images.
	tiles bool
}

// extract is Engine.Extract on this worker.
func (w *worker) extract(ctx context.Context, x *extraction, head imaging.Config, data []byte, s search) ([]Face, error) {
	defer w.forget()
	w.pause = x.pause
	_, decoding := trace.Start(ctx, trace.Stage{Name: trace.Decode})
	err := w.pyramid.open(ctx, &x.memory, head, data, w.firstShrink(head))
	decoding.End(err)
	if err != nil {
		return nil, err
	}
	if err := w.pause(ctx); err != nil {
		return nil, err
	}
	ctx, finding := trace.Start(ctx, trace.Stage{Name: trace.Find})
	seen, err := w.find(ctx, s)
	finding.End(err)
	if err != nil {
		return nil, fmt.Errorf("find faces: %w", err)
	}
	faces := make([]Face, len(seen))
	for i, f := range seen {
		faces[i] = f.face(w.manifest, w.pyramid.Image())
	}
	return faces, nil
}

// forget clears what is left of an image.
func (w *worker) forget() {
	w.pyramid.close()
	for _, s := range w.stages() {
		clear(s.crop.Pix)
		s.run.Clear()
	}
	if w.joiner != nil {
		clear(w.joiner.values)
	}
	clear(w.luma)
	w.measured = 0
}

// firstShrink guesses how far the image may be shrunk while it is decoded. The result
// has the detail that the detector needs for tiles; for the frame alone, half of it
// would do. A face of at least a sixth of the frame's height is then large enough for
// the embedder.
func (w *worker) firstShrink(head imaging.Config) imaging.Shrink {
	if !head.Scales() {
		return imaging.Whole
	}
	in := w.manifest.Detector.Input
	width, height := head.Upright()
	return coarsest(max(float64(width)/float64(in.Width), float64(height)/float64(in.Height)) * tileShare)
}

// prepare decodes the image large enough for the smallest box that will be measured, so that it is
// decoded once and not once for each size.
func (w *worker) prepare(boxes []box, share float64) error {
	if len(boxes) == 0 {
		return nil
	}
	least := max(boxes[len(boxes)-1].height(), share*boxSlack*boxes[0].height())
	return w.pyramid.need(least * eyesShare / w.eyesWanted())
}

func (w *worker) eyesWanted() float64 {
	p := w.manifest.Embedder.Points
	return math.Hypot(float64(p[0][0]-p[1][0]), float64(p[0][1]-p[1][1]))
}

// fill converts pixels to a model's input: plane after plane, (x − mean) × scale.
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
