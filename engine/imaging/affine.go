package imaging

import (
	"errors"
	"math"
)

// Point is a position in continuous pixel coordinates.
type Point struct{ X, Y float64 }

// Affine maps (x, y) to (A·x + B·y + C, D·x + E·y + F).
type Affine struct{ A, B, C, D, E, F float64 }

// Apply maps p.
func (m Affine) Apply(p Point) Point {
	return Point{
		X: float64(m.A*p.X) + float64(m.B*p.Y) + m.C,
		Y: float64(m.D*p.X) + float64(m.E*p.Y) + m.F,
	}
}

// Crop returns the map from a width × height output to a rectangle of the source. The rectangle is
// centred on centre and has scale source pixels for one output pixel. Its x axis is turned by angle
// (radians, clockwise on the screen).
func Crop(width, height int, centre Point, scale, angle float64) Affine {
	sin, cos := math.Sincos(angle)
	m := Affine{A: scale * cos, B: -scale * sin, D: scale * sin, E: scale * cos}
	half := m.Apply(Point{X: float64(width) / 2, Y: float64(height) / 2})
	m.C, m.F = centre.X-half.X, centre.Y-half.Y
	return m
}

// Scale returns the length of a unit step along the output's x axis.
func (m Affine) Scale() float64 { return math.Hypot(m.A, m.D) }

// Fit returns the similarity (turn, uniform scale, shift; no mirroring) that maps from to to with
// the least sum of squared distances. Both have the same length, at least 2. It returns an error if
// the points of from coincide.
func Fit(from, to []Point) (Affine, error) {
	if len(from) != len(to) || len(from) < 2 {
		return Affine{}, errors.New("imaging: fit needs two equally long lists of points")
	}
	a, b := mean(from), mean(to)
	var dot, cross, spread float64
	for i := range from {
		px, py := from[i].X-a.X, from[i].Y-a.Y
		qx, qy := to[i].X-b.X, to[i].Y-b.Y
		dot += float64(px*qx) + float64(py*qy)
		cross += float64(px*qy) - float64(py*qx)
		spread += float64(px*px) + float64(py*py)
	}
	if !(spread > 1e-9) || math.IsInf(spread, 0) {
		return Affine{}, errors.New("imaging: points of a fit coincide")
	}
	c, s := dot/spread, cross/spread
	m := Affine{A: c, B: -s, D: s, E: c}
	centre := m.Apply(a)
	m.C, m.F = b.X-centre.X, b.Y-centre.Y
	return m, nil
}

func mean(points []Point) Point {
	var m Point
	for _, p := range points {
		m.X += p.X
		m.Y += p.Y
	}
	return Point{X: m.X / float64(len(points)), Y: m.Y / float64(len(points))}
}
