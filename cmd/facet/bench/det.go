package bench

import (
	"math"
	"strconv"

	"facet/engine/accuracy"
)

// curveStep is the least distance between two points of a curve, in normal deviates.
const curveStep = .01

// Rates at which the axes of a DET plot have ticks. The axes reach from the first to
// the last.
var (
	fmrTicks  = []float64{1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, .1, .4}
	fnmrTicks = []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .4}
)

// plotDET draws the DET curves into an SVG file. Both axes are normal deviates of
// the rates, so normal scores give straight lines.
func plotDET(doc *Document, file string) error {
	p := newDET()
	if doc.all != nil {
		p.addCurve("every pair of photographs", blue, curvePoints(doc.all))
		p.addThresholds(doc.All.At)
	}
	if doc.list != nil {
		p.addCurve("list of pairs", orange, curvePoints(doc.list))
	}
	return p.write(file)
}

// newDET returns a DET plot with the line on which the two rates are equal.
func newDET() *plot {
	p := newPlot(deviateAxis("false match rate (FMR)", fmrTicks), deviateAxis("false non-match rate (FNMR)", fnmrTicks))
	p.addCurve("", pale, []point{{X: p.Y.min, Y: p.Y.min}, {X: p.Y.max, Y: p.Y.max}})
	return p
}

// deviateAxis returns an axis of normal deviates with ticks at rates.
func deviateAxis(label string, rates []float64) axis {
	a := axis{Label: label}
	for _, r := range rates {
		name := strconv.FormatFloat(100*r, 'g', -1, 64) + " %"
		if r < fnmrTicks[0] {
			name = power(r)
		}
		a.Ticks = append(a.Ticks, tick{accuracy.Deviate(r), name})
	}
	return a
}

// curvePoints returns the points of a curve at which neither rate is 0 or 1. It
// leaves out points that the eye could not tell from the one before.
func curvePoints(c *accuracy.Curve) []point {
	var points []point
	for t := range accuracy.Thresholds {
		x, y := accuracy.Deviate(c.FMR[t]), accuracy.Deviate(c.FNMR[t])
		if math.IsInf(x, 0) || math.IsInf(y, 0) {
			continue
		}
		if n := len(points); n > 0 && math.Hypot(points[n-1].X-x, points[n-1].Y-y) < curveStep {
			continue
		}
		points = append(points, point{X: x, Y: y})
	}
	return points
}

// addThresholds marks thresholds with dots, and their intervals with crosses.
func (p *plot) addThresholds(at []accuracy.AtThreshold) {
	dots := series{Name: "score thresholds with 95 % intervals", Colour: blue, Dots: true}
	for _, a := range at {
		x, y := accuracy.Deviate(a.FMR.Value), accuracy.Deviate(a.FNMR.Value)
		if math.IsInf(x, 0) || math.IsInf(y, 0) {
			continue
		}
		dots.Points = append(dots.Points, point{X: x, Y: y, Label: strconv.Itoa(a.Threshold)})
		if low, high, ok := deviates(a.FMR.Interval); ok {
			p.addArm(point{X: low, Y: y}, point{X: high, Y: y})
		}
		if low, high, ok := deviates(a.FNMR.Interval); ok {
			p.addArm(point{X: x, Y: low}, point{X: x, Y: high})
		}
	}
	if len(dots.Points) > 0 {
		p.Series = append(p.Series, dots)
	}
}

// deviates returns the ends of an interval, and whether there is one.
func deviates(in *accuracy.Interval) (low, high float64, ok bool) {
	const far = 9 // outside the picture, instead of infinity
	if in == nil {
		return 0, 0, false
	}
	return max(accuracy.Deviate(in.Low), -far), min(accuracy.Deviate(in.High), far), true
}

// addArm adds one arm of a cross.
func (p *plot) addArm(from, to point) {
	p.Series = append(p.Series, series{Colour: grey, Width: thinWidth, Points: []point{from, to}})
}

// plotDiscard draws the error-versus-discard curve of every pair into an SVG file.
// Beside it is the curve of an ideal quality measure, which knows the pairs that
// are rejected.
func plotDiscard(curve []accuracy.Discard, file string) error {
	var measured, perfect []point
	for _, d := range curve {
		x := 100 * d.Share
		measured = append(measured, point{X: x, Y: 100 * d.FNMR.Value})
		perfect = append(perfect, point{X: x, Y: 100 * max(0, (curve[0].FNMR.Value-d.Share)/(1-d.Share))})
	}
	highest := 0.
	for _, m := range measured {
		highest = max(highest, m.Y)
	}
	p := newPlot(linearAxis("mated pairs discarded for low quality (%)", 100), linearAxis("FNMR at 7000 of those kept (%)", highest))
	p.addCurve("discarded by the pack's quality", blue, measured)
	p.addCurve("by one that knew the outcome", grey, perfect)
	return p.write(file)
}
