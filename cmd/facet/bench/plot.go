package bench

import (
	_ "embed"
	"math"
	"os"
	"strconv"
	"strings"
	"text/template"
)

//go:embed plot.svg.tmpl
var plotText string

// Colours of curves.
const (
	blue   = "#1f5fb0"
	orange = "#d06a10"
	grey   = "#808080"
	pale   = "#e0e0e0"
)

// Edges of the frame that curves are drawn in, in points of the picture.
const (
	frameLeft, frameRight = 56, 434
	frameTop, frameBottom = 6, 304
)

const (
	curveWidth = 1.5
	thinWidth  = .7
)

// plot is a picture of series over two axes. plot.svg.tmpl lays it out.
type plot struct {
	X, Y   axis
	Series []series // drawn in this order
}

// axis maps the values from min to max to the picture's points from Low to High.
type axis struct {
	Label     string
	Ticks     []tick
	Low, High float64
	min, max  float64
}

type tick struct {
	Value float64
	Label string
}

// series is a curve or, with Dots, a set of labelled dots. One without a Name is
// not in the legend.
type series struct {
	Name, Colour string
	Width        float64 // of a curve
	Dots         bool
	Points       []point
}

// point is a place in values of the axes.
type point struct {
	X, Y  float64
	Label string // of a dot
}

// newPlot returns a picture without series. Each axis reaches from its first tick to
// its last.
func newPlot(x, y axis) *plot {
	p := &plot{X: x, Y: y}
	p.X.Low, p.X.High = frameLeft, frameRight
	p.Y.Low, p.Y.High = frameBottom, frameTop
	for _, a := range []*axis{&p.X, &p.Y} {
		a.min, a.max = a.Ticks[0].Value, a.Ticks[len(a.Ticks)-1].Value
	}
	return p
}

// linearAxis returns an axis from 0 to the first tick that is at least most.
func linearAxis(label string, most float64) axis {
	const ticksMax = 6 // beside the one at 0
	decade := 1.
	if most > 0 {
		decade = math.Pow(10, math.Floor(math.Log10(most))-1)
	}
	var step float64
	for _, n := range []float64{1, 2, 5, 10, 20} {
		if step = n * decade; step*ticksMax >= most {
			break
		}
	}
	a := axis{Label: label, Ticks: []tick{{0, "0"}}}
	for i := 1; i <= ticksMax; i++ {
		v := float64(i) * step
		a.Ticks = append(a.Ticks, tick{v, strconv.FormatFloat(v, 'g', 4, 64)})
		if v >= most {
			break
		}
	}
	return a
}

// addCurve adds a curve, unless it has no points.
func (p *plot) addCurve(name, colour string, points []point) {
	if len(points) > 0 {
		p.Series = append(p.Series, series{Name: name, Colour: colour, Width: curveWidth, Points: points})
	}
}

// write draws the picture into an SVG file.
func (p *plot) write(file string) error {
	var out strings.Builder
	if err := template.Must(template.New("plot").Parse(plotText)).Execute(&out, p); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(out.String()), 0o644)
}

// At returns the place of a value, to a tenth of a point.
func (a *axis) At(value float64) string {
	at := a.Low + (value-a.min)/(a.max-a.min)*(a.High-a.Low)
	return strconv.FormatFloat(math.Round(at*10)/10, 'f', -1, 64)
}

// Middle returns the place between Low and High.
func (a *axis) Middle() float64 { return (a.Low + a.High) / 2 }

// Width returns the width of the frame.
func (p *plot) Width() float64 { return p.X.High - p.X.Low }

// Height returns the height of the frame.
func (p *plot) Height() float64 { return p.Y.Low - p.Y.High }

// Legend returns the series that have a name.
func (p *plot) Legend() []series {
	var named []series
	for _, s := range p.Series {
		if s.Name != "" {
			named = append(named, s)
		}
	}
	return named
}

// Row returns the height of line i of the legend.
func (p *plot) Row(i int) int { return int(p.Y.High) + 8 + 14*i }
