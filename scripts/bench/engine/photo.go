package engine

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/jpeg"
	"math"
	"math/rand/v2"

	"golang.org/x/image/draw"

	"facet/engine/imaging"
)

// photo is one portrait as a client sends it.
type photo struct {
	name string
	data []byte
	head imaging.Config
}

func encoded(photo []byte) string { return base64.StdEncoding.EncodeToString(photo) }

// photos returns the portrait in its own size and in 12 megapixels.
func (b *bench) photos() ([]photo, error) {
	data, err := b.files.Portrait()
	if err != nil {
		return nil, err
	}
	large, err := resized(data, 12e6, 90)
	if err != nil {
		return nil, err
	}
	var list []photo
	for _, d := range [][]byte{data, large} {
		head, err := imaging.DecodeConfig(d)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("%.0f MP (%d × %d, %d KB)", float64(head.Width*head.Height)/1e6, head.Width, head.Height, len(d)>>10)
		list = append(list, photo{name: name, data: d, head: head})
	}
	return list, nil
}

// resized returns the photo as a JPEG of about this many pixels. Enlarged photos get
// grain like that of a sensor, because otherwise the decoder would have next to nothing
// to do.
func resized(data []byte, pixels float64, quality int) ([]byte, error) {
	whole, err := jpeg.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	b := whole.Bounds()
	by := math.Sqrt(pixels / float64(b.Dx()*b.Dy()))
	im := image.NewRGBA(image.Rect(0, 0, int(by*float64(b.Dx())), int(by*float64(b.Dy()))))
	draw.CatmullRom.Scale(im, im.Rect, whole, b, draw.Src, nil)
	if by > 1 {
		addGrain(im)
	}
	var out bytes.Buffer
	if err := jpeg.Encode(&out, im, &jpeg.Options{Quality: quality}); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func addGrain(im *image.RGBA) {
	const sigma = 3
	random := rand.New(rand.NewPCG(1, 2))
	for i := 0; i+3 < len(im.Pix); i += 4 {
		grain := int(math.Round(sigma * random.NormFloat64()))
		for c := range 3 {
			im.Pix[i+c] = uint8(min(max(int(im.Pix[i+c])+grain, 0), 255))
		}
	}
}
