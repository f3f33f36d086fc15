package engine

import (
	"cmp"
	"context"
	"math"
	"slices"

	"facet/engine/imaging"
)

// The detector looks for faces in views: pieces of the image, scaled to its input. The first view
// is the whole frame. Level n of tiles are overlapping pieces of tileShareⁿ of the frame's sides,
// so that faces too small in the frame become large enough. A view of twice the frame helps with
// faces that fill it.
const (
	boxesMax  = 200 // boxes considered of one level
	tileShare = .5
	tileStep  = .3 // of the frame's sides, from tile to tile on the first level
	levelsMax = 3
	viewsMax  = 64

	// A level of tiles is searched only if it can show new faces of use: a face that the level
	// above can't see, of smallSide pixels of the detector's input, must be usefulSide pixels in
	// the image.
	smallSide  = 20
	usefulSide = 30
	// Deeper levels are searched only if the levels before saw a crowd: a face of at most this many
	// pixels of the detector's input.
	crowdSide = 32

	// The largest part of the smaller of two boxes that may lie in the other.
	containedMax = .65
)

// box is a detection, in pixels of the upright image turned about its origin by −angle, so that
// the face is upright in it.
type box struct {
	left, top, right, bottom float64
	score                    float64
	angle                    float64 // radians, clockwise on the screen
}

func (b box) width() float64  { return b.right - b.left }
func (b box) height() float64 { return b.bottom - b.top }

// centre returns the centre in the upright image.
func (b box) centre() imaging.Point {
	return turnedPoint(imaging.Point{X: (b.left + b.right) / 2, Y: (b.top + b.bottom) / 2}, b.angle)
}

// turnedPoint returns p turned about the origin by the angle, clockwise on the
// screen.
func turnedPoint(p imaging.Point, angle float64) imaging.Point {
	sin, cos := math.Sincos(angle)
	return imaging.Point{X: cos*p.X - sin*p.Y, Y: sin*p.X + cos*p.Y}
}

func (b box) shared(o box) float64 {
	w := min(b.right, o.right) - max(b.left, o.left)
	h := min(b.bottom, o.bottom) - max(b.top, o.top)
	return max(w, 0) * max(h, 0)
}

// same reports whether two boxes show one face: their intersection is more than the share most of
// their union, or nearly covers the smaller one.
func (b box) same(o box, most float64) bool {
	shared := b.shared(o)
	one, other := b.width()*b.height(), o.width()*o.height()
	return shared > most*(one+other-shared) || shared > containedMax*min(one, other)
}

// rfbBoxes returns the number of boxes of an RFB detector: two or three anchors a cell of strides
// 8, 16, 32 and 64.
func rfbBoxes(width, height int) int {
	n := 0
	for _, l := range []struct{ stride, anchors int }{{8, 3}, {16, 2}, {32, 2}, {64, 3}} {
		n += ((width + l.stride - 1) / l.stride) * ((height + l.stride - 1) / l.stride) * l.anchors
	}
	return n
}

// fit returns the scale at which the whole frame, turned by the angle, fits the detector's input.
func (w *worker) fit(angle float64) float64 {
	in := w.manifest.Detector.Input
	width, height := w.frame(angle)
	return max(width/float64(in.Width), height/float64(in.Height))
}

func (w *worker) frame(angle float64) (width, height float64) {
	im := w.pyramid.Image()
	sin, cos := math.Sincos(angle)
	sin, cos = math.Abs(sin), math.Abs(cos)
	width, height = float64(im.Width), float64(im.Height)
	return cos*width + sin*height, sin*width + cos*height
}

// detect returns the boxes in the whole frame, turned by the angle. If there are none, it returns
// those in a view of twice the frame.
func (w *worker) detect(ctx context.Context, angle float64) ([]box, error) {
	d := &w.manifest.Detector
	im := w.pyramid.Image()
	v := view{
		centre: imaging.Point{X: float64(im.Width) / 2, Y: float64(im.Height) / 2},
		scale:  w.fit(angle), angle: angle, least: d.MinScore,
	}
	boxes, err := w.view(nil, v)
	if err == nil && len(boxes) == 0 {
		v.scale, v.least = 2*v.scale, d.MinTileScore
		boxes, err = w.view(nil, v)
	}
	if err != nil {
		return nil, err
	}
	return boxes, ctx.Err()
}

// tiles returns the boxes in the overlapping tiles of the given scale.
func (w *worker) tiles(ctx context.Context, angle, scale float64) ([]box, error) {
	d := &w.manifest.Detector
	im := w.pyramid.Image()
	width, height := w.frame(angle)
	xs := places(width, scale*float64(d.Input.Width))
	ys := places(height, scale*float64(d.Input.Height))
	if len(xs)*len(ys) > viewsMax {
		return nil, nil
	}
	var boxes []box
	for _, y := range ys {
		for _, x := range xs {
			if err := w.pause(ctx); err != nil {
				return nil, err
			}
			var err error
			off := turnedPoint(imaging.Point{X: x - width/2, Y: y - height/2}, angle)
			v := view{
				centre: imaging.Point{X: float64(im.Width)/2 + off.X, Y: float64(im.Height)/2 + off.Y},
				scale:  scale, angle: angle, least: d.MinTileScore, tile: true,
			}
			if boxes, err = w.view(boxes, v); err != nil {
				return nil, err
			}
		}
	}
	return boxes, nil
}

// places returns the centres of tiles of the given length, evenly spread so that
// neighbours overlap by at least two fifths.
func places(length, tile float64) []float64 {
	if length <= tile {
		return []float64{length / 2}
	}
	n := int(math.Ceil((length-tile)/(tile*tileStep/tileShare))) + 1
	at := make([]float64, n)
	for i := range at {
		at[i] = tile/2 + (length-tile)*float64(i)/float64(n-1)
	}
	return at
}

func smallest(boxes []box) float64 {
	least := math.Inf(1)
	for _, b := range boxes {
		least = min(least, b.height())
	}
	return least
}

// view is a piece of the image for the detector.
type view struct {
	centre imaging.Point
	scale  float64 // image pixels to one of the detector's
	angle  float64 // of its x axis, radians, clockwise on the screen
	least  float32 // least score of a detection
	tile   bool
}

// view appends the boxes that the detector finds in the view. In a tile it leaves out boxes that
// the border cuts: a neighbour or the level above shows them whole.
func (w *worker) view(boxes []box, v view) ([]box, error) {
	in := w.manifest.Detector.Input
	im := w.pyramid.Image()
	m := imaging.Crop(in.Width, in.Height, v.centre, v.scale, v.angle)
	origin := turnedPoint(imaging.Point{X: m.C, Y: m.F}, -v.angle)
	upright := imaging.Affine{A: v.scale, C: origin.X, E: v.scale, F: origin.Y}
	if err := w.detector.infer(&w.pyramid, m, imaging.Grey); err != nil {
		return nil, err
	}
	width, height := float64(in.Width), float64(in.Height)
	for _, d := range w.detections(v.least) {
		a, b := imaging.Point{X: d.left, Y: d.top}, imaging.Point{X: d.right, Y: d.bottom}
		cut := a.X < 1 || a.Y < 1 || b.X > width-1 || b.Y > height-1
		inside := within(m.Apply(a), im) && within(m.Apply(b), im)
		a, b = upright.Apply(a), upright.Apply(b)
		if !(b.X-a.X >= 1 && b.Y-a.Y >= 1) || v.tile && cut && inside {
			continue
		}
		boxes = append(boxes, box{left: a.X, top: a.Y, right: b.X, bottom: b.Y, score: d.score, angle: v.angle})
	}
	return boxes, nil
}

func within(p imaging.Point, im *imaging.Image) bool {
	return p.X > 0 && p.Y > 0 && p.X < float64(im.Width) && p.Y < float64(im.Height)
}

// merge adds the best box of each new face in found to kept. It never replaces a box, so looking
// for small faces does not change the box, and template, of a large one.
func merge(kept, found []box, most float64) []box {
	slices.SortStableFunc(found, func(a, b box) int { return cmp.Compare(b.score, a.score) })
	for _, b := range found[:min(len(found), boxesMax)] {
		if !slices.ContainsFunc(kept, func(k box) bool { return k.same(b, most) }) {
			kept = append(kept, b)
		}
	}
	return kept
}
