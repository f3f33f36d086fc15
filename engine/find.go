package engine

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"facet/engine/imaging"
	"facet/engine/models"
)

// A photo may be on its side, upside down or aslant without a mark in the file. The detector looks
// at the upright frame first. Unless a face there is surely upright, it looks at the quarter turns
// as well, then at the eighths, until one is. The orientation with the surest face wins, with all
// its faces.
//
// The likeness does not show the orientation: of faces turned by 180°, seven of ten are found, and
// one of these seven has a likeness of .999. The embedding's norm, the landmarks' two passes and
// their place in the box do show it; models.UprightEvidence weighs them.
const (
	turnedLeast  = .9 // least likeness of a face that shows that the photo is turned
	turnedLevels = 1  // levels of tiles in each orientation
	normOrder    = 40 // see orderOf

	// A face in a tile needs at least this likeness. Tiles show false faces more often
	// than the frame does (a cat's fur has .62), and the likeness of a real face in a
	// tile is hardly ever in doubt.
	tileLeast = .9
)

// The orientations to try, clockwise on the screen.
var (
	quarterTurns = []float64{math.Pi / 2, -math.Pi / 2, math.Pi}
	eighthTurns  = []float64{math.Pi / 4, -math.Pi / 4, 3 * math.Pi / 4, -3 * math.Pi / 4}
)

// way is one orientation of a photo and the faces found in it.
type way struct {
	angle float64
	boxes []box // faces, and boxes that turned out to be none
	seen  []*sighting
	sure  float64 // of the surest face; −Inf without one
	order float64 // decides between two ways; see orderOf
}

// wayAt returns a way without faces.
func wayAt(angle float64) *way { return &way{angle: angle, sure: math.Inf(-1), order: math.Inf(-1)} }

func (u *way) add(s *sighting) {
	twin := slices.IndexFunc(u.seen, s.twin)
	switch {
	case twin < 0:
		u.seen = append(u.seen, s)
	case s.likeness > u.seen[twin].likeness:
		u.seen[twin] = s
	}
}

// find finds and describes the faces of the worker's image, in the order of Extract.
func (w *worker) find(ctx context.Context, s search) ([]*sighting, error) {
	best, err := w.look(ctx, s, 0, math.Inf(-1))
	if err != nil {
		return nil, err
	}
	for _, turns := range [][]float64{quarterTurns, eighthTurns} {
		if best.sure >= w.evidence.Upright.Least || w.measured == w.candidates() {
			break
		}
		for _, angle := range turns {
			u, err := w.look(ctx, s, angle, best.sure)
			if err != nil {
				return nil, err
			}
			if u.order > best.order {
				best = u
			}
		}
	}
	if err := w.lookCloser(ctx, s, best, levelsMax); err != nil {
		return nil, err
	}
	for _, angle := range quarterTurns {
		if len(best.seen) > 0 || !s.tiles {
			break
		}
		u := wayAt(angle)
		if err := w.lookCloser(ctx, s, u, turnedLevels); err != nil {
			return nil, err
		}
		if u.sure >= w.evidence.Upright.Least {
			best = u
		}
	}
	seen := rank(best.seen, s.share)
	return seen, w.joinAll(ctx, seen)
}

// look searches the whole frame, turned by the angle, for faces. It may return a way without faces
// if none can be upright more surely than that.
func (w *worker) look(ctx context.Context, s search, angle, sure float64) (*way, error) {
	u := wayAt(angle)
	found, err := w.detect(ctx, angle)
	if err != nil {
		return nil, err
	}
	if may, err := w.maybeSurer(ctx, found, sure); !may || err != nil {
		return u, err
	}
	return u, w.describeAll(ctx, u, found, s.share, likenessLeast)
}

// maybeSurer reports whether a face in one of the boxes may be upright more surely than that. If the
// norm does not count, the landmarks alone tell, for a fraction of the embedder's time.
func (w *worker) maybeSurer(ctx context.Context, found []box, sure float64) (bool, error) {
	boxes := merge(nil, slices.Clone(found), float64(w.manifest.Detector.MaxOverlap))
	if w.evidence.Upright.Norm != 0 || math.IsInf(sure, -1) || len(boxes) > w.candidates() {
		return true, nil
	}
	for _, b := range boxes {
		if err := w.pause(ctx); err != nil {
			return false, err
		}
		s := &sighting{box: b}
		err := w.locate(s)
		if err == nil {
			_, s.eyes, err = w.align(s)
		}
		if errors.Is(err, errNoFace) {
			continue
		}
		if err != nil {
			return false, err
		}
		s.turn()
		if w.sureness(s) > sure {
			return true, nil
		}
	}
	return false, nil
}

// lookCloser searches level after level of tiles for faces that are small in the frame, if the
// search asks for them or has found none.
func (w *worker) lookCloser(ctx context.Context, s search, u *way, levels int) error {
	fit := w.fit(u.angle)
	for level := 1; level <= levels; level++ {
		if len(u.seen) > 0 && !s.tiles || fit*smallSide < usefulSide {
			return nil
		}
		if level > 1 && len(u.boxes) > 0 && smallest(u.boxes)/fit > crowdSide {
			return nil
		}
		fit *= tileShare
		found, err := w.tiles(ctx, u.angle, fit)
		if err != nil {
			return err
		}
		if err := w.describeAll(ctx, u, found, s.share, tileLeast); err != nil {
			return err
		}
	}
	return nil
}

// describeAll measures the faces in boxes that u does not know yet. It adds those of at least the
// given likeness, each once.
func (w *worker) describeAll(ctx context.Context, u *way, found []box, share, least float64) error {
	known := len(u.boxes)
	u.boxes = merge(u.boxes, found, float64(w.manifest.Detector.MaxOverlap))
	fresh := slices.Clone(u.boxes[known:])
	slices.SortStableFunc(fresh, func(a, b box) int { return cmp.Compare(b.height(), a.height()) })
	fresh = fresh[:min(len(fresh), w.candidates()-w.measured)]
	if err := w.prepare(fresh, share); err != nil {
		return err
	}
	for _, b := range fresh {
		if err := w.pause(ctx); err != nil {
			return err
		}
		if len(u.seen) > 0 && b.height() < share*boxSlack*u.seen[0].box.height() {
			break
		}
		w.measured++
		f, err := w.describe(ctx, b)
		if errors.Is(err, errNoFace) {
			continue
		}
		if err != nil {
			return err
		}
		if f.likeness < least {
			continue
		}
		u.add(f)
		if u.angle == 0 || f.likeness >= turnedLeast {
			sure := w.sureness(f)
			u.sure, u.order = max(u.sure, sure), max(u.order, w.orderOf(f, sure))
		}
	}
	return ctx.Err()
}

// rank sorts sightings in the order of Extract and removes those that are too small a share of the
// largest.
func rank(seen []*sighting, share float64) []*sighting {
	slices.SortStableFunc(seen, func(a, b *sighting) int {
		return cmp.Or(cmp.Compare(b.side(), a.side()), cmp.Compare(a.middle().X, b.middle().X))
	})
	seen = seen[:min(len(seen), MaxFaces)]
	return slices.DeleteFunc(seen, func(f *sighting) bool { return float64(f.side()) < share*float64(seen[0].side()) })
}

// sureness returns how surely a sighting is upright.
func (w *worker) sureness(s *sighting) float64 {
	return w.evidence.Upright.Sum(w.upright(s))
}

// orderOf returns what decides between two orientations of a photo: how surely the sighting is
// upright. If the pack does not know the scale of the norm, that of the same face the wrong way up
// is still smaller: by half on LFW.
func (w *worker) orderOf(s *sighting, sure float64) float64 {
	if w.evidence.Upright.Norm != 0 {
		return sure
	}
	return sure + normOrder*math.Log(s.norm)
}

// upright returns the measurements of a sighting that show whether it is upright.
func (w *worker) upright(s *sighting) models.Upright {
	centre, height := s.box.centre(), s.box.height()
	eyes := imaging.Point{X: (s.rightEye.X+s.leftEye.X)/2 - centre.X, Y: (s.rightEye.Y+s.leftEye.Y)/2 - centre.Y}
	return models.Upright{
		Norm: s.norm / w.evidence.NormUnit, Doubt: s.doubt,
		Eyes: s.eyes / height, EyesBelow: turnedPoint(eyes, -s.box.angle).Y / height,
		Odds: logOdds(s.box.score),
	}
}
