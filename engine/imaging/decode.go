package imaging

import (
	"context"
	"errors"
	"fmt"
	"image"
)

// Limits of an image, checked before its pixels are allocated.
const (
	MinSide   = 16
	MaxSide   = 12_000
	MaxPixels = 40_000_000
)

// ErrDecode is returned for bytes that are not an image that Decode reads. The text after it tells
// the client why.
var ErrDecode = errors.New("not a usable image")

var errTruncated = errors.New("it ends early")

// Shrink divides both sides of an image while it is decoded, rounded up. JPEG decoders shrink
// before they reverse the cosine transform, which saves most of the time and the memory; see
// boxRows for the other formats.
type Shrink int

// The divisors.
const (
	Whole   Shrink = 1
	Half    Shrink = 2
	Quarter Shrink = 4
	Eighth  Shrink = 8
)

func (s Shrink) side(n int) int { return (n + int(s) - 1) / int(s) }

// Config is the content of an image's head.
type Config struct {
	// Format is the format's name, one of Formats.
	Format string
	// Width and Height are as stored, before the EXIF orientation is applied.
	Width, Height int

	orientation int
	source      source
	fixedBytes  int64 // memory for decoding at any shrink
	pixelBytes  int64 // memory for each pixel of the result, besides it
}

// source decodes the pixels of one format.
type source interface {
	// decode decodes data into im, shrunk and upright; c is its config. Slow decoders check ctx.
	decode(ctx context.Context, im *Image, c *Config, s Shrink, data []byte) error
}

// Bytes returns an upper bound of DecodeInto's memory, including the result and its halves
// (Pyramid). It follows from the head.
func (c Config) Bytes(s Shrink) int64 {
	return c.fixedBytes + int64(s.side(c.Width))*int64(s.side(c.Height))*(ownBytes+c.pixelBytes)
}

// ownBytes is the memory of a pixel: three bytes of RGB, and one for all halved images.
const ownBytes = 4

// DecodeConfig reads format and size and checks the limits. It allocates no pixels. Errors wrap
// ErrDecode.
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

// Decode decodes an image of one of the Formats and applies its EXIF orientation. It lays
// transparency on white. Errors are those of DecodeInto.
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

// DecodeInto is Decode for the bytes for which DecodeConfig returned c, with a shrink. It reuses
// the memory of im if that is large enough. After an error im is undefined. If ctx ends, slow
// formats stop and return its error. Errors wrap ErrDecode if the file is at fault,
// context.DeadlineExceeded if the node gave the decoder too little processor time, or neither if it
// could not run one.
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
		if errors.Is(err, errWall) || errors.Is(err, errNoDecoder) {
			return fmt.Errorf("%s: %w", c.Format, err)
		}
		return fmt.Errorf("%w: %s: %w", ErrDecode, c.Format, err)
	}
	return nil
}

// plain is a source that decodes all pixels first.
type plain func(data []byte) (image.Image, error)

func (p plain) decode(_ context.Context, im *Image, c *Config, s Shrink, data []byte) error {
	raw, err := p(data)
	if err != nil {
		return err
	}
	defer wipe(raw)
	if b := raw.Bounds(); b.Dx() != c.Width || b.Dy() != c.Height {
		return errors.New("its size is not the announced one")
	}
	upright(im, raw, s, c.orientation)
	return nil
}
