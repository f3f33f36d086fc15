package engine

import (
	"errors"
	"math"

	"facet/engine/imaging"
)

const (
	// The second crop in units of the eye distance: how far its centre lies below the middle of the
	// eyes, and its side with a CropScale of 1.05. Measured on LFW at a false match rate of 1e-5:
	// 4.9 % false non-matches. One pass alone, or a crop a third of an eye distance higher, has 5.5
	// %. A third pass does not help, nor does the mean with a mirrored crop.
	cropBelow = .68
	cropSide  = 3.18 / 1.05
)

var errNoFace = errors.New("landmarks are not those of a face")

// locate finds the landmarks of the face in the sighting's box, in two passes. The first looks at
// the detector's box. The second looks at an upright crop around the first one's points, which
// corrects the box's errors and the face's roll.
func (w *worker) locate(s *sighting) error {
	in := w.manifest.Landmarks.Input
	side := s.box.height() * float64(w.manifest.Landmarks.CropScale)
	m := imaging.Crop(in.Width, in.Height, s.box.centre(), side/float64(in.Height), s.box.angle)
	if err := w.landmarksAt(s, m); err != nil {
		return err
	}
	first := s.points
	toImage, eyes, err := w.align(s)
	if err != nil {
		return err
	}
	angle := math.Atan2(toImage.D, toImage.A)
	five := fivePoints(&s.points)
	sin, cos := math.Sincos(angle)
	centre := imaging.Point{
		X: (five[0].X+five[1].X)/2 - cropBelow*eyes*sin,
		Y: (five[0].Y+five[1].Y)/2 + cropBelow*eyes*cos,
	}
	side = cropSide * float64(w.manifest.Landmarks.CropScale) * eyes
	m = imaging.Crop(in.Width, in.Height, centre, side/float64(in.Height), angle)
	if err := w.landmarksAt(s, m); err != nil {
		return err
	}
	s.doubt = meanDistance(&first, &s.points) / eyes
	return nil
}

// align returns the map from the embedder's input to the image according to the landmarks, and the
// eye distance in the image.
func (w *worker) align(s *sighting) (toImage imaging.Affine, eyes float64, err error) {
	return s.alignTo(&w.manifest.Embedder.Points)
}

// alignTo is align for an embedder with these points.
func (s *sighting) alignTo(points *[5][2]float32) (toImage imaging.Affine, eyes float64, err error) {
	var want [5]imaging.Point
	for i, p := range points {
		// The manifest counts a pixel's centre as a whole number.
		want[i] = imaging.Point{X: float64(p[0]) + .5, Y: float64(p[1]) + .5}
	}
	five := fivePoints(&s.points)
	toImage, err = imaging.Fit(want[:], five[:])
	if err != nil || !(toImage.Scale() > 1e-3) {
		return toImage, 0, errNoFace
	}
	return toImage, toImage.Scale() * math.Hypot(want[0].X-want[1].X, want[0].Y-want[1].Y), nil
}

func (w *worker) landmarksAt(s *sighting, m imaging.Affine) error {
	in := w.manifest.Landmarks.Input
	if err := w.landmarks.infer(&w.pyramid, m, imaging.Replicate); err != nil {
		return err
	}
	out := w.landmarks.run.Output(0)
	for i := range s.points {
		s.points[i] = m.Apply(imaging.Point{
			X: float64(out[2*i]) * float64(in.Width),
			Y: float64(out[2*i+1]) * float64(in.Height),
		})
	}
	return nil
}

func meanDistance(a, b *[landmarkCount]imaging.Point) float64 {
	var sum float64
	for i := range a {
		sum += math.Hypot(a[i].X-b[i].X, a[i].Y-b[i].Y)
	}
	return sum / landmarkCount
}

// fivePoints returns the image-left and image-right eye, the nose tip and the
// image-left and image-right mouth corner of the 68 points.
func fivePoints(p *[landmarkCount]imaging.Point) [5]imaging.Point {
	return [5]imaging.Point{
		centroid(p, 37, 38, 40, 41),
		centroid(p, 43, 44, 46, 47),
		p[30],
		centroid(p, 48, 60),
		centroid(p, 54, 64),
	}
}

func centroid(p *[landmarkCount]imaging.Point, of ...int) imaging.Point {
	var c imaging.Point
	for _, i := range of {
		c.X += p[i].X
		c.Y += p[i].Y
	}
	return imaging.Point{X: c.X / float64(len(of)), Y: c.Y / float64(len(of))}
}
