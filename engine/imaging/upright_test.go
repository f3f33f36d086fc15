package imaging_test

import (
	"context"
	"encoding/binary"
	"testing"

	"facet/engine/imaging"
	"facet/internal/must"
)

func TestShrunkMapMatchesBoxFilter(t *testing.T) {
	t.Parallel()
	picture := drawn(61, 43) // a multiple of no divisor
	whole := decode(t, asPNG(t, picture))
	for o := 1; o <= 8; o++ {
		data := withChunk(asPNG(t, storedAs(picture, o)), chunk("eXIf", tiff(binary.BigEndian, uint16(o))))
		c, err := imaging.DecodeConfig(data)
		must.Do(t, err)
		if w, h := c.Upright(); w != 61 || h != 43 {
			t.Errorf("orientation %d: upright size %d × %d, want 61 × 43", o, w, h)
		}
		for _, s := range []imaging.Shrink{imaging.Whole, imaging.Half, imaging.Quarter, imaging.Eighth} {
			var small imaging.Image
			must.Do(t, c.DecodeInto(context.Background(), &small, data, s))
			m := c.Shrunk(s)
			back := func(x, y int) imaging.Point {
				return imaging.Point{X: (float64(x) - m.C) / m.A, Y: (float64(y) - m.F) / m.E}
			}
			for y := range small.Height {
				for x := range small.Width {
					a, b := back(x, y), back(x+1, y+1)
					for ch := range 3 {
						got, want := float64(small.Pix[3*(y*small.Width+x)+ch]), meanOf(whole, a, b, ch)
						if got < want-.51 || got > want+.51 {
							t.Fatalf("orientation %d, shrink %d: pixel %d,%d channel %d is %v, want %.1f", o, s, x, y, ch, got, want)
						}
					}
				}
			}
		}
	}
}

// meanOf is a channel's mean over the pixels from a to b that exist.
func meanOf(im *imaging.Image, a, b imaging.Point, channel int) float64 {
	var sum, n float64
	for y := max(0, int(a.Y+.5)); y < min(im.Height, int(b.Y+.5)); y++ {
		for x := max(0, int(a.X+.5)); x < min(im.Width, int(b.X+.5)); x++ {
			sum += float64(im.Pix[3*(y*im.Width+x)+channel])
			n++
		}
	}
	return sum / n
}

func TestAfterComposesMaps(t *testing.T) {
	t.Parallel()
	first := imaging.Crop(320, 240, imaging.Point{X: 70, Y: -20}, 2.5, .7)
	m := imaging.Affine{A: .25, B: .1, C: 3, D: -.2, E: .5, F: -4}
	p := imaging.Point{X: 12, Y: 99}
	got, want := m.After(first).Apply(p), m.Apply(first.Apply(p))
	if d := max(got.X-want.X, want.X-got.X, got.Y-want.Y, want.Y-got.Y); d > 1e-9 {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestGarbageIsLeftByGoDecoders(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"alpha.webp": true, "bilevel.png": true, "lzw.tif": true, "plain.gif": true, "24.bmp": false, "grey.heic": false,
	} {
		c, err := imaging.DecodeConfig(fixture(t, name))
		must.Do(t, err)
		if got := c.LeavesGarbage(); got != want {
			t.Errorf("%s: got %t, want %t", name, got, want)
		}
	}
	both(t, fixture(t, "420.jpg"), func(by string, c imaging.Config) {
		if got := c.LeavesGarbage(); got == c.Scales() {
			t.Errorf("JPEG by %s: got %t", by, got)
		}
	})
}
