package engine

import (
	"fmt"
	"math"

	"facet/engine/models"
	"facet/engine/onnx"
)

// detection is a box that the detector sees, in pixels of its input.
type detection struct{ left, top, right, bottom, score float64 }

// yunetStrides are the sides of YuNet's cells, in pixels of its input.
var yunetStrides = [...]int{8, 16, 32}

// yunetOdds are the log odds of a face in those of YuNet's score. YuNet gives sure faces .85 to .95
// where the RFB detector, to which the evidence was fitted, gives .999. With 2 a face of the sample
// photos is lost; 4 is like 3.
const yunetOdds = 3

// detectorOutputs returns the outputs that detections reads.
func detectorOutputs(d *models.Detector) []onnx.Tensor {
	in := d.Input
	if d.Kind != models.KindYuNet {
		boxes := int64(rfbBoxes(in.Width, in.Height))
		return []onnx.Tensor{{Name: "scores", Shape: []int64{1, boxes, 2}}, {Name: "boxes", Shape: []int64{1, boxes, 4}}}
	}
	var list []onnx.Tensor
	for _, stride := range yunetStrides {
		cells := int64(in.Width/stride) * int64(in.Height/stride)
		for _, o := range []struct {
			name string
			each int64
		}{{"cls", 1}, {"obj", 1}, {"bbox", 4}} {
			list = append(list, onnx.Tensor{Name: fmt.Sprintf("%s_%d", o.name, stride), Shape: []int64{1, cells, o.each}})
		}
	}
	return list
}

// detections returns what the detector saw on its last run, from the least score on.
func (w *worker) detections(least float32) (list []detection) {
	in := &w.manifest.Detector.Input
	out := w.detector.run.Output
	if w.manifest.Detector.Kind != models.KindYuNet {
		return rfbDetections(in, out(0), out(1), least)
	}
	for i, stride := range yunetStrides {
		list = append(list, yunetDetections(in, stride, [3][]float32{out(3 * i), out(3*i + 1), out(3*i + 2)}, least)...)
	}
	return list
}

func rfbDetections(in *models.Input, scores, rects []float32, least float32) (list []detection) {
	width, height := float64(in.Width), float64(in.Height)
	for i := range len(scores) / 2 {
		if !(scores[2*i+1] >= least) {
			continue
		}
		r := rects[4*i:][:4]
		list = append(list, detection{
			left: float64(r[0]) * width, top: float64(r[1]) * height,
			right: float64(r[2]) * width, bottom: float64(r[3]) * height,
			score: float64(min(scores[2*i+1], 1)),
		})
	}
	return list
}

// yunetDetections reads class, object and box of each cell of one stride. A box is its middle in
// cells from the cell's corner, and the logarithms of its sides in cells.
func yunetDetections(in *models.Input, stride int, out [3][]float32, least float32) (list []detection) {
	columns, side := in.Width/stride, float64(stride)
	for cell, class := range out[0] {
		score := math.Sqrt(float64(max(0, min(class, 1)) * max(0, min(out[1][cell], 1))))
		if score < float64(least) {
			continue
		}
		r := out[2][4*cell:][:4]
		x, y := side*(float64(cell%columns)+float64(r[0])), side*(float64(cell/columns)+float64(r[1]))
		halfWidth, halfHeight := side*math.Exp(float64(r[2]))/2, side*math.Exp(float64(r[3]))/2
		if halfWidth > float64(in.Width) || halfHeight > float64(in.Height) {
			continue // no face, and perhaps infinite
		}
		list = append(list, detection{x - halfWidth, y - halfHeight, x + halfWidth, y + halfHeight, logistic(yunetOdds * logOdds(score))})
	}
	return list
}
