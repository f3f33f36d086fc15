package imaging

import (
	"context"
	"errors"
	"fmt"
	"image"
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

var errTruncated = errors.New("it ends early")

// Shrink is what both sides of an image are divided by while it is decoded,
// rounded up. JPEG decoders do it before they reverse the cosine transform, which
// saves most of the time and of the memory; see boxRows for the other formats.
type Shrink int

// The divisors.
const (
	Whole   Shrink = 1
	Half    Shrink = 2
	Quarter Shrink = 4
	Eighth  Shrink = 8
)

func (s Shrink) side(n int) int { return (n + int(s) - 1) / int(s) }

// Config is what the head of an image says.
type Config struct {
	// Format is the format's name, one of Formats.
	Format string
	// Width and Height are as stored, before an EXIF orientation turns them.
	Width, Height int

	orientation int
	source      source
	fixedBytes  int64 // taken at any shrink
	pixelBytes  int64 // taken for a pixel of the result, besides it
}

// source decodes the pixels of one format.
type source interface {
	// decode makes im what c announces of data, shrunk and turned upright. What
	// takes long looks at ctx.
	decode(ctx context.Context, im *Image, c *Config, s Shrink, data []byte) error
}

// Bytes is about the memory that DecodeInto takes, the result and its halves
// (Pyramid) among it; it follows from the head and is never below the truth.
func (c Config) Bytes(s Shrink) int64 {
	return c.fixedBytes + int64(s.side(c.Width))*int64(s.side(c.Height))*(ownBytes+c.pixelBytes)
}

// ownBytes is what a pixel takes: three bytes of RGB, one for all halved images.
const ownBytes = 4

// DecodeConfig reads format and size, and checks the limits. It
// takes no memory for pixels. Errors wrap ErrDecode.
func DecodeConfig(data []byte) (Config, error) {
	f, err := formatOf(data)
	if err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrDecode, err)
	}
	c := Config{Format: f.name, orientation: 1}
	err = f.config(&c, data)
	if err == nil {
		err = checkSize(c.Width, c.Height)
	}
	if err != nil {
		return Config{}, fmt.Errorf("%w: %s: %w", ErrDecode, f.name, err)
	}
	return c, nil
}

func checkSize(w, h int) error {
	switch {
	case w < MinSide || h < MinSide:
		return fmt.Errorf("%d × %d pixels, the least is %d a side", w, h, MinSide)
	case w > MaxSide || h > MaxSide:
		return fmt.Errorf("%d × %d pixels, the most is %d a side", w, h, MaxSide)
	case w*h > MaxPixels:
		return fmt.Errorf("%d × %d pixels, the most is %d together", w, h, MaxPixels)
	}
	return nil
}

// Decode reads an image of one of the Formats and turns it upright as its EXIF
// orientation says. Transparency is laid on white. Errors wrap ErrDecode.
func Decode(data []byte) (*Image, error) {
	c, err := DecodeConfig(data)
	if err != nil {
		return nil, err
	}
	im := new(Image)
	if err := c.DecodeInto(context.Background(), im, data, Whole); err != nil {
		return nil, err
	}
	return im, nil
}

// DecodeInto is Decode for the bytes of which DecodeConfig returned c, shrunk; it
// uses the memory of im if that is large enough. After an error im is undefined.
// If ctx ends the error may be the context's: the slow formats stop.
func (c Config) DecodeInto(ctx context.Context, im *Image, data []byte, s Shrink) error {
	switch s {
	case Whole, Half, Quarter, Eighth:
	default:
		panic(fmt.Sprintf("bug: an image is shrunk by %d", s))
	}
	if c.source == nil {
		panic("bug: an image is decoded without its config")
	}
	if err := c.source.decode(ctx, im, &c, s, data); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %s: %w", ErrDecode, c.Format, err)
	}
	return nil
}

// plain is a source that makes all pixels first.
type plain func(data []byte) (image.Image, error)

func (p plain) decode(_ context.Context, im *Image, c *Config, s Shrink, data []byte) error {
	raw, err := p(data)
	if err != nil {
		return err
	}
	if b := raw.Bounds(); b.Dx() != c.Width || b.Dy() != c.Height {
		return errors.New("its size is not the announced one")
	}
	upright(im, raw, s, c.orientation)
	return nil
}
