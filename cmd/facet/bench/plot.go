package bench

import (
	"bytes"
	colour "image/color" //nolint:misspell // the standard library spells it so
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"facet/engine/accuracy"
)

const (
	plotWidth  = vg.Length(453) // in points
	plotHeight = vg.Length(340)
)

// apart is the least distance of two points of a curve, in normal deviates.
const apart = .01

// rates at which the axes of a DET plot begin and end, and have a mark.
var (
	fmrMarks  = []float64{1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, .1, .4}
	fnmrMarks = []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .4}
)

var (
	blue   = colour.RGBA{R: 0x1f, G: 0x5f, B: 0xb0, A: 255}
	orange = colour.RGBA{R: 0xd0, G: 0x6a, B: 0x10, A: 255}
	grey   = colour.RGBA{R: 0x80, G: 0x80, B: 0x80, A: 255}
	pale   = colour.RGBA{R: 0xe0, G: 0xe0, B: 0xe0, A: 255}
)

// ink is what a line is drawn with.
type ink = colour.Color //nolint:misspell // a name of the standard library

// newPlot makes an empty plot in one sans-serif type.
func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.Legend.Top = true
	p.Legend.Padding = vg.Points(2)
	for _, s := range []*text.Style{&p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		s.Font.Variant, s.Font.Size = "Sans", vg.Points(10)
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = pale, pale //nolint:misspell // a name of a library
	p.Add(grid)
	return p
}

// plotDET draws the DET curves into a file, SVG or PNG by its suffix. Both axes
// are normal deviates of the rates: normal scores give straight lines.
func plotDET(doc *Document, file string) error {
	p := newPlot("false match rate (FMR)", "false non-match rate (FNMR)")
	low, high := accuracy.Deviate(fnmrMarks[0]), accuracy.Deviate(fnmrMarks[len(fnmrMarks)-1])
	equal, err := line(plotter.XYs{{X: low, Y: low}, {X: high, Y: high}}, pale)
	if err != nil {
		return err
	}
	p.Add(equal)
	if doc.all != nil {
		if err := addCurve(p, doc.all, "every pair of photographs", blue); err != nil {
			return err
		}
		if err := addThresholds(p, doc.All.At, blue); err != nil {
			return err
		}
	}
	if doc.list != nil {
		if err := addCurve(p, doc.list, "list of pairs", orange); err != nil {
			return err
		}
	}
	// Last, since what is added widens the axes.
	deviateAxis(&p.X, fmrMarks)
	deviateAxis(&p.Y, fnmrMarks)
	return save(p, file)
}

// save writes a plot, SVG or PNG by the file's suffix. In an SVG other sans-serif
// types may stand in for the one that the plot was laid out with.
func save(p *plot.Plot, file string) error {
	drawn, err := p.WriterTo(plotWidth, plotHeight, strings.TrimPrefix(filepath.Ext(file), "."))
	if err != nil {
		return err
	}
	var data bytes.Buffer
	if _, err := drawn.WriteTo(&data); err != nil {
		return err
	}
	text := data.Bytes()
	if filepath.Ext(file) == ".svg" {
		text = bytes.ReplaceAll(text, []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
	}
	return os.WriteFile(file, text, 0o644)
}

// deviateAxis makes an axis of normal deviates with marks at rates.
func deviateAxis(a *plot.Axis, marks []float64) {
	var ticks plot.ConstantTicks
	for _, m := range marks {
		label := strconv.FormatFloat(100*m, 'g', -1, 64) + " %"
		if m < fnmrMarks[0] {
			label = power(m)
		}
		ticks = append(ticks, plot.Tick{Value: accuracy.Deviate(m), Label: label})
	}
	a.Min, a.Max = ticks[0].Value, ticks[len(ticks)-1].Value
	a.Tick.Marker = ticks
}

func line(points plotter.XYs, c ink) (*plotter.Line, error) {
	l, err := plotter.NewLine(points)
	if err != nil {
		return nil, err
	}
	l.Color, l.Width = c, vg.Points(1.5) //nolint:misspell // a name of a library
	return l, nil
}

// addCurve adds the points of a curve at which neither rate is 0 or 1.
func addCurve(p *plot.Plot, c *accuracy.Curve, name string, as ink) error {
	var points plotter.XYs
	for t := range accuracy.Thresholds {
		x, y := accuracy.Deviate(c.FMR[t]), accuracy.Deviate(c.FNMR[t])
		if math.IsInf(x, 0) || math.IsInf(y, 0) {
			continue
		}
		// Points nearer than the eye can tell would only make the file large.
		if n := len(points); n > 0 && math.Hypot(points[n-1].X-x, points[n-1].Y-y) < apart {
			continue
		}
		points = append(points, plotter.XY{X: x, Y: y})
	}
	if len(points) == 0 { // no threshold makes errors of both kinds
		return nil
	}
	l, err := line(points, as)
	if err != nil {
		return err
	}
	p.Add(l)
	p.Legend.Add(name, l)
	return nil
}

// addThresholds marks thresholds on a curve, with their intervals as crosses.
func addThresholds(p *plot.Plot, at []accuracy.AtThreshold, as ink) error {
	var marks plotter.XYs
	var names []string
	for _, a := range at {
		if a.FMR.Value == 0 || a.FNMR.Value == 0 || a.FMR.Value == 1 || a.FNMR.Value == 1 {
			continue
		}
		x, y := accuracy.Deviate(a.FMR.Value), accuracy.Deviate(a.FNMR.Value)
		marks = append(marks, plotter.XY{X: x, Y: y})
		names = append(names, strconv.Itoa(a.Threshold))
		for _, arm := range []struct {
			in *accuracy.Interval
			at func(deviate float64) plotter.XY
		}{
			{a.FMR.Interval, func(d float64) plotter.XY { return plotter.XY{X: d, Y: y} }},
			{a.FNMR.Interval, func(d float64) plotter.XY { return plotter.XY{X: x, Y: d} }},
		} {
			if arm.in == nil {
				continue
			}
			const far = 9 // out of the picture, instead of infinity
			low, high := max(accuracy.Deviate(arm.in.Low), -far), min(accuracy.Deviate(arm.in.High), far)
			l, err := line(plotter.XYs{arm.at(low), arm.at(high)}, grey)
			if err != nil {
				return err
			}
			l.Width = vg.Points(.7)
			p.Add(l)
		}
	}
	if len(marks) == 0 {
		return nil
	}
	dots, err := plotter.NewScatter(marks)
	if err != nil {
		return err
	}
	dots.GlyphStyle = draw.GlyphStyle{Color: as, Radius: vg.Points(3), Shape: draw.CircleGlyph{}} //nolint:misspell // a name of a library
	labels, err := plotter.NewLabels(plotter.XYLabels{XYs: marks, Labels: names})
	if err != nil {
		return err
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i].Font.Variant, labels.TextStyle[i].Font.Size = "Sans", vg.Points(9)
	}
	labels.Offset = vg.Point{X: vg.Points(5), Y: vg.Points(4)}
	p.Add(dots, labels)
	p.Legend.Add("score thresholds with 95 % intervals", dots)
	return nil
}

// plotDiscard draws the error-versus-discard curve of every pair into a file, and
// beside it that of a quality that knew which pairs are rejected.
func plotDiscard(curve []accuracy.Discard, file string) error {
	p := newPlot("mated pairs discarded for low quality (%)", "FNMR at 7000 of those kept (%)")
	var measured, perfect plotter.XYs
	for _, d := range curve {
		measured = append(measured, plotter.XY{X: 100 * d.Share, Y: 100 * d.FNMR.Value})
		best := max(0, (curve[0].FNMR.Value-d.Share)/(1-d.Share))
		perfect = append(perfect, plotter.XY{X: 100 * d.Share, Y: 100 * best})
	}
	for _, c := range []struct {
		points plotter.XYs
		name   string
		as     ink
	}{{measured, "discarded by the pack's quality", blue}, {perfect, "by one that knew the outcome", grey}} {
		l, err := line(c.points, c.as)
		if err != nil {
			return err
		}
		p.Add(l)
		p.Legend.Add(c.name, l)
	}
	p.X.Min, p.Y.Min = 0, 0
	return save(p, file)
}
