package imaging

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
)

// Limits of an image, checked before memory for its pixels is taken.
const (
	MinSide   = 16
	MaxSide   = 12_000
	MaxPixels = 40_000_000
)

// ErrDecode says that the bytes are not an image that Decode reads. The text
// behind it says why, in words for the caller who sent it.
var ErrDecode = errors.New("not a usable image")

// Config is what the head of an image says.
type Config struct {
	// Width and Height are as stored, before any turn.
	Width, Height int
	// Bytes is about the memory that Decode will take, the result and its halves
	// (Pyramid) among it; it follows from the head and is never below the truth.
	Bytes int64

	decode      func(io.Reader) (image.Image, error)
	orientation func([]byte) int
}

// DecodeConfig reads format and size, and checks the limits. It
// takes no memory for pixels. Errors wrap ErrDecode.
func DecodeConfig(data []byte) (Config, error) {
	var c Config
	var head image.Config
	var err error
	perPixel := 0
	switch {
	case len(data) == 0:
		return c, fmt.Errorf("%w: no bytes", ErrDecode)
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		head, err = jpeg.DecodeConfig(bytes.NewReader(data))
		c.decode, c.orientation = jpeg.Decode, jpegOrientation
		perPixel = jpegBytes(data)
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		head, err = png.DecodeConfig(bytes.NewReader(data))
		c.decode, c.orientation = png.Decode, pngOrientation
		perPixel = pngBytes(data)
	default:
		return c, fmt.Errorf("%w: neither JPEG nor PNG", ErrDecode)
	}
	if err != nil {
		return c, fmt.Errorf("%w: %w", ErrDecode, err)
	}
	if err := checkSize(head.Width, head.Height); err != nil {
		return c, err
	}
	c.Width, c.Height = head.Width, head.Height
	c.Bytes = int64(perPixel) * int64(head.Width) * int64(head.Height)
	return c, nil
}

func checkSize(w, h int) error {
	switch {
	case w < MinSide || h < MinSide:
		return fmt.Errorf("%w: %d × %d pixels, the least is %d a side", ErrDecode, w, h, MinSide)
	case w > MaxSide || h > MaxSide:
		return fmt.Errorf("%w: %d × %d pixels, the most is %d a side", ErrDecode, w, h, MaxSide)
	case w*h > MaxPixels:
		return fmt.Errorf("%w: %d × %d pixels, the most is %d together", ErrDecode, w, h, MaxPixels)
	}
	return nil
}

// Decode reads a JPEG or PNG image and turns it upright as its EXIF orientation
// says. Transparency is laid on white. Errors wrap ErrDecode.
func Decode(data []byte) (*Image, error) {
	c, err := DecodeConfig(data)
	if err != nil {
		return nil, err
	}
	im := new(Image)
	if err := c.DecodeInto(im, data); err != nil {
		return nil, err
	}
	return im, nil
}

// DecodeInto is Decode for the bytes of which DecodeConfig returned c; it uses
// the memory of im if that is large enough. After an error im is undefined.
func (c Config) DecodeInto(im *Image, data []byte) error {
	raw, err := c.decode(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDecode, err)
	}
	if b := raw.Bounds(); b.Dx() != c.Width || b.Dy() != c.Height {
		return fmt.Errorf("%w: its size is not the announced one", ErrDecode)
	}
	upright(im, raw, c.orientation(data))
	return nil
}

// What a pixel takes: three bytes of RGB, one for all the halved images, and what
// the standard library's decoders allocate.
const (
	ownBytes         = 4
	jpegPlanes       = 4     // CMYK has four, none subsampled
	jpegCoefficients = 4 * 4 // of 32 bits, kept of all planes if progressive
	jpegSlack        = 3     // planes are padded to whole blocks; CMYK is copied
	pngDeepBytes     = 8     // 16 bits a channel
	pngPlainBytes    = 4
	pngInterlace     = 28 // offset of the byte in the file
	pngDepth         = 24
)

// jpegBytes returns the bytes for a pixel of a JPEG: it looks for a frame that is
// not a baseline one before the first scan.
func jpegBytes(data []byte) int {
	const (
		startOfScan = 0xda
		extended    = 0xc1 // sequential as well
	)
	plain := ownBytes + jpegPlanes + jpegSlack
	for at := 2; at+4 <= len(data); {
		if data[at] != 0xff {
			at++ // as the decoder does: whatever is between segments is skipped
			continue
		}
		switch kind := data[at+1]; {
		case kind == 0xff || kind == 0 || kind >= 0xd0 && kind <= 0xd7:
			at++ // fill, a stuffed byte or a marker without a length
			continue
		case kind == startOfScan:
			return plain
		case kind > extended && kind < 0xd0 && kind != 0xc4 && kind != 0xc8 && kind != 0xcc:
			return plain + jpegCoefficients
		}
		at += 2 + int(data[at+2])<<8 + int(data[at+3])
	}
	return plain + jpegCoefficients
}

// pngBytes returns the bytes for a pixel of a PNG, whose first chunk, of fixed
// place, has depth and interlacing. An interlaced image is decoded in passes,
// each with its own pixels, beside the whole.
func pngBytes(data []byte) int {
	if len(data) <= pngInterlace {
		return ownBytes + 2*pngDeepBytes
	}
	n := pngPlainBytes
	if data[pngDepth] == 16 {
		n = pngDeepBytes
	}
	if data[pngInterlace] != 0 {
		n *= 2
	}
	return ownBytes + n
}
