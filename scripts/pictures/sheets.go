package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/draw"
	"image/jpeg"
	_ "image/png" // astronaut.png
	"math"
	"os"
	"path/filepath"

	xdraw "golang.org/x/image/draw"

	"facet/engine"
)

const (
	tileWide = 220 // pixels of one face's picture
	tileHigh = 264
	textWide = 172 // pixels of the longest of the words
	// The width of a tile in sides of the face.
	tileFaces = 2.6
)

// photo decodes one of the sample photos.
func (s *studio) photo(name string) (*image.RGBA, error) {
	data, err := os.ReadFile(filepath.Join(s.photos, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	im, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", name, err)
	}
	out := image.NewRGBA(image.Rect(0, 0, im.Bounds().Dx(), im.Bounds().Dy()))
	draw.Draw(out, out.Rect, im, im.Bounds().Min, draw.Src)
	return out, nil
}

// faces are those that the engine finds in the image.
func (s *studio) faces(ctx context.Context, im image.Image) ([]engine.Face, error) {
	var data bytes.Buffer
	if err := jpeg.Encode(&data, im, &jpeg.Options{Quality: 95}); err != nil {
		return nil, err
	}
	return s.engine.Extract(ctx, data.Bytes())
}

// view returns the part of im about (x, y), wide pixels of im in width of its own.
func view(im *image.RGBA, x, y, wide float64, width, height int) *canvas {
	scale := float64(width) / wide
	c := &canvas{
		RGBA:  image.NewRGBA(image.Rect(0, 0, width, height)),
		scale: scale, left: x - wide/2, top: y - float64(height)/scale/2,
	}
	draw.Draw(c, c.Rect, image.NewUniform(paper), image.Point{}, draw.Src)
	from := image.Rect(int(c.left), int(c.top), int(c.left+wide), int(c.top+float64(height)/scale))
	in := from.Intersect(im.Rect)
	x0, y0 := c.at(float64(in.Min.X), float64(in.Min.Y))
	x1, y1 := c.at(float64(in.Max.X), float64(in.Max.Y))
	to := image.Rect(int(math.Round(x0)), int(math.Round(y0)), int(math.Round(x1)), int(math.Round(y1)))
	xdraw.CatmullRom.Scale(c, to, im, in, draw.Src, nil)
	return c
}

// tile is the picture of one face with what is said of it below a title.
func tile(im *image.RGBA, a engine.Attributes, title string, lines ...string) *image.RGBA {
	x, y := float64(a.Face.Left+a.Face.Right)/2, float64(a.Face.Top+a.Face.Bottom)/2
	side := float64(a.Face.Right - a.Face.Left)
	c := view(im, x, y, tileFaces*side, tileWide, tileHigh)
	c.face(a)
	return captioned(c.RGBA, append([]string{title}, append(words(a), lines...)...))
}

// captioned puts lines of text below a picture.
func captioned(im *image.RGBA, lines []string) *image.RGBA {
	out := image.NewRGBA(image.Rect(0, 0, im.Rect.Dx(), im.Rect.Dy()+len(lines)*lineHeight+2))
	c := &canvas{RGBA: out}
	draw.Draw(out, out.Rect, image.NewUniform(paper), image.Point{}, draw.Src)
	draw.Draw(out, im.Rect, im, image.Point{}, draw.Src)
	for i, line := range lines {
		c.text(0, im.Rect.Dy()+2+i*lineHeight, line, nil)
	}
	return out
}

// portraits shows one face each.
func (s *studio) portraits(ctx context.Context) (*image.RGBA, error) {
	var tiles []*image.RGBA
	for _, p := range []struct{ photo, title string }{
		{"face_recognition/obama.jpg", "obama.jpg"},
		{"face_recognition/obama2.jpg", "obama2.jpg"},
		{"face_recognition/biden.jpg", "biden.jpg"},
		{"scikit-image/astronaut.png", "astronaut.png"},
	} {
		im, err := s.photo(p.photo)
		if err != nil {
			return nil, err
		}
		faces, err := s.faces(ctx, im)
		if err != nil || len(faces) == 0 {
			return nil, fmt.Errorf("%s: %d faces: %w", p.photo, len(faces), err)
		}
		tiles = append(tiles, tile(im, faces[0].Attributes, p.title))
	}
	return beside(tiles), nil
}

// group shows all the faces of one photo.
func (s *studio) group(ctx context.Context) (*image.RGBA, error) {
	im, err := s.photo("face-api/sample5.jpg")
	if err != nil {
		return nil, err
	}
	faces, err := s.faces(ctx, im)
	if err != nil {
		return nil, err
	}
	return marked(im, faces, 900), nil
}

// marked is a whole photo with its faces marked and described.
func marked(im *image.RGBA, faces []engine.Face, width int) *image.RGBA {
	w, h := float64(im.Rect.Dx()), float64(im.Rect.Dy())
	c := view(im, w/2, h/2, w, width, int(h*float64(width)/w))
	for _, f := range faces {
		c.face(f.Attributes)
	}
	for _, f := range faces {
		x, y := c.at(float64(f.Attributes.Face.Left), float64(f.Attributes.Head.Bottom))
		for i, line := range words(f.Attributes) {
			c.text(max(2, min(int(x)-20, width-textWide)), int(y)+3+i*lineHeight, line, &paper)
		}
	}
	return c.RGBA
}

// turned shows one photo turned, without a word about it in the file.
func (s *studio) turned(ctx context.Context) (*image.RGBA, error) {
	im, err := s.photo("face_recognition/biden.jpg")
	if err != nil {
		return nil, err
	}
	upright, err := s.faces(ctx, im)
	if err != nil || len(upright) == 0 {
		return nil, fmt.Errorf("%d faces: %w", len(upright), err)
	}
	var tiles []*image.RGBA
	for _, degrees := range []float64{45, 90, 180, 270} {
		turned := turn(im, degrees)
		faces, err := s.faces(ctx, turned)
		if err != nil || len(faces) == 0 {
			return nil, fmt.Errorf("turned by %v: %d faces: %w", degrees, len(faces), err)
		}
		score := s.engine.Compare(upright[0].Template, faces[0].Template)
		tiles = append(tiles, tile(turned, faces[0].Attributes, fmt.Sprintf("turned by %.0f", degrees),
			fmt.Sprintf("with the upright photo: %d", score)))
	}
	return beside(tiles), nil
}

// quality shows one face sharp and spoilt in several ways.
func (s *studio) quality(ctx context.Context) (*image.RGBA, error) {
	whole, err := s.photo("face_recognition/obama.jpg")
	if err != nil {
		return nil, err
	}
	im := view(whole, 465, 270, 480, 300, 360).RGBA
	sharp, err := s.faces(ctx, im)
	if err != nil || len(sharp) == 0 {
		return nil, fmt.Errorf("%d faces: %w", len(sharp), err)
	}
	var tiles []*image.RGBA
	for _, v := range []struct {
		title string
		im    *image.RGBA
	}{
		{"sharp", im},
		{"out of focus", smear(im, 15, 15)},
		{"moved", smear(im, 1, 25)},
		{"dark", darken(im, .1)},
		{"10 x fewer pixels", view(im, 150, 180, 300, 30, 36).RGBA},
	} {
		faces, err := s.faces(ctx, v.im)
		if err != nil || len(faces) == 0 {
			return nil, fmt.Errorf("%s: %d faces: %w", v.title, len(faces), err)
		}
		line := fmt.Sprintf("with the sharp one: %d", s.engine.Compare(sharp[0].Template, faces[0].Template))
		tiles = append(tiles, tile(v.im, faces[0].Attributes, v.title, line))
	}
	return beside(tiles), nil
}

// doubt shows a photo with a face that is hardly to be seen, and one of nobody.
func (s *studio) doubt(ctx context.Context) (*image.RGBA, error) {
	var all []*image.RGBA
	for _, p := range []struct {
		name  string
		width int
	}{{"face-api/sample2.jpg", 620}, {"scikit-image/chelsea.png", 260}} {
		im, err := s.photo(p.name)
		if err != nil {
			return nil, err
		}
		faces, err := s.faces(ctx, im)
		if err != nil {
			return nil, err
		}
		all = append(all, captioned(marked(im, faces, p.width), []string{fmt.Sprintf("%s: %d faces", filepath.Base(p.name), len(faces))}))
	}
	return beside(all), nil
}
