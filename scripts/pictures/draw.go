package main

import (
	"fmt"
	"image"
	colour "image/color" //nolint:misspell // the standard library spells it so
	"image/draw"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"

	"facet/engine"
)

const (
	lineHeight = 15
	margin     = 6
)

var (
	paper  = colour.RGBA{250, 250, 248, 255}
	ink    = colour.RGBA{30, 30, 30, 255}
	green  = colour.RGBA{40, 200, 90, 255}
	yellow = colour.RGBA{240, 200, 40, 255}
	red    = colour.RGBA{235, 60, 50, 255}
	blue   = colour.RGBA{60, 130, 255, 255}
)

// canvas is a picture with a map from the photo's pixels to its own.
type canvas struct {
	*image.RGBA
	// A photo's point (x, y) is at (x − left) × scale, (y − top) × scale.
	left, top, scale float64
}

func (c *canvas) at(x, y float64) (px, py float64) {
	return (x - c.left) * c.scale, (y - c.top) * c.scale
}

// dot covers the pixel by a share of the colour.
func (c *canvas) dot(x, y int, col colour.RGBA, share float64) {
	if share <= 0 || !image.Pt(x, y).In(c.Rect) {
		return
	}
	share = min(share, 1)
	was := c.RGBAAt(x, y)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a)*(1-share) + float64(b)*share)) }
	c.SetRGBA(x, y, colour.RGBA{mix(was.R, col.R), mix(was.G, col.G), mix(was.B, col.B), 255})
}

// line draws a line of the given width, both in pixels of the canvas.
func (c *canvas) line(x0, y0, x1, y1, width float64, col colour.RGBA) {
	dx, dy := x1-x0, y1-y0
	long := max(dx*dx+dy*dy, 1e-9)
	for y := int(min(y0, y1) - width - 1); y <= int(max(y0, y1)+width+1); y++ {
		for x := int(min(x0, x1) - width - 1); x <= int(max(x0, x1)+width+1); x++ {
			px, py := float64(x)+.5, float64(y)+.5
			along := max(0, min(1, ((px-x0)*dx+(py-y0)*dy)/long))
			c.dot(x, y, col, width/2+.5-math.Hypot(px-x0-along*dx, py-y0-along*dy))
		}
	}
}

func (c *canvas) rect(r engine.Rect, width float64, col colour.RGBA) {
	x0, y0 := c.at(float64(r.Left), float64(r.Top))
	x1, y1 := c.at(float64(r.Right), float64(r.Bottom))
	c.line(x0, y0, x1, y0, width, col)
	c.line(x1, y0, x1, y1, width, col)
	c.line(x1, y1, x0, y1, width, col)
	c.line(x0, y1, x0, y0, width, col)
}

func (c *canvas) ring(p engine.Point, radius float64, col colour.RGBA) {
	const width = 2
	cx, cy := c.at(float64(p.X), float64(p.Y))
	for y := int(cy - radius - width); y <= int(cy+radius+width); y++ {
		for x := int(cx - radius - width); x <= int(cx+radius+width); x++ {
			far := math.Hypot(float64(x)+.5-cx, float64(y)+.5-cy)
			c.dot(x, y, col, width/2+.5-math.Abs(far-radius))
		}
	}
}

// text writes a line whose box begins at (x, y), on paper or straight on the picture.
func (c *canvas) text(x, y int, s string, on *colour.RGBA) {
	d := font.Drawer{Dst: c, Src: image.NewUniform(ink), Face: basicfont.Face7x13}
	if on != nil {
		width := d.MeasureString(s).Ceil()
		draw.Draw(c, image.Rect(x-2, y, x+width+2, y+lineHeight), image.NewUniform(*on), image.Point{}, draw.Src)
	}
	d.Dot = fixed.P(x, y+11)
	d.DrawString(s)
}

// face draws the areas, the eyes and the axes of a face: to its left (red), down
// (green) and ahead (blue).
func (c *canvas) face(a engine.Attributes) {
	c.rect(a.Head, 1.5, yellow)
	c.rect(a.Face, 2, green)
	side := float64(a.Face.Right-a.Face.Left) * c.scale
	c.ring(a.RightEye, max(3, side/22), red)
	c.ring(a.LeftEye, max(3, side/22), blue)
	radians := func(degrees float32) float64 { return float64(degrees) * math.Pi / 180 }
	sinP, cosP := math.Sincos(radians(a.Pan))
	sinT, cosT := math.Sincos(radians(a.Tilt))
	sinR, cosR := math.Sincos(radians(-a.Roll))
	x, y := c.at(float64(a.Face.Left+a.Face.Right)/2, float64(a.Face.Top+a.Face.Bottom)/2)
	for _, axis := range []struct {
		x, y float64
		col  colour.RGBA
	}{{cosP, 0, red}, {sinP * sinT, cosT, green}, {sinP * cosT, -sinT, blue}} {
		const long = .45
		dx, dy := cosR*axis.x-sinR*axis.y, sinR*axis.x+cosR*axis.y
		c.line(x, y, x+long*side*dx, y+long*side*dy, 3, axis.col)
	}
}

// words are what the engine says of a face.
func words(a engine.Attributes) []string {
	return []string{
		fmt.Sprintf("quality %.2f  score %.2f", a.Quality, a.Score),
		fmt.Sprintf("frontal %.2f  roll %+.0f", a.Frontal, a.Roll),
		fmt.Sprintf("pan %+.0f  tilt %+.0f", a.Pan, a.Tilt),
	}
}

// beside puts pictures of one height in a row.
func beside(pictures []*image.RGBA) *image.RGBA {
	width, height := margin, 0
	for _, p := range pictures {
		width, height = width+p.Rect.Dx()+margin, max(height, p.Rect.Dy())
	}
	out := image.NewRGBA(image.Rect(0, 0, width, height+2*margin))
	draw.Draw(out, out.Rect, image.NewUniform(paper), image.Point{}, draw.Src)
	x := margin
	for _, p := range pictures {
		draw.Draw(out, image.Rect(x, margin, x+p.Rect.Dx(), margin+p.Rect.Dy()), p, p.Rect.Min, draw.Src)
		x += p.Rect.Dx() + margin
	}
	return out
}
