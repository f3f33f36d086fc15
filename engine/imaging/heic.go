package imaging

import (
	"errors"
	"fmt"

	"facet/engine/imaging/heif"
)

const (
	// heicPixelsMax is the most pixels of a HEIC. Decoding takes about a third of a second for a
	// million.
	heicPixelsMax = 25_000_000
	// The pictures that the decoder opens have at most this many times the pixels of the image, or
	// heicSpare. Tiles are larger than the image together.
	heicCoverTimes = 2
	heicSpare      = 4 << 20
)

// configHEIC fills c from the boxes of a HEIC. It ignores the EXIF orientation: the boxes say how
// the picture is turned, and the decoder applies it (ISO/IEC 23008-12, 6.5.10). EXIF repeats it for
// other programs.
func configHEIC(c *Config, data []byte) error {
	h, err := heif.ReadHead(data)
	if err != nil {
		return err
	}
	c.Width, c.Height = h.Width, h.Height
	if err := checkSize(h.Width, h.Height); err != nil {
		return err
	}
	pixels := int64(h.Width) * int64(h.Height)
	switch {
	case pixels > heicPixelsMax:
		return fmt.Errorf("%d × %d pixels, the most is %d together", h.Width, h.Height, heicPixelsMax)
	case h.Pixels > max(heicCoverTimes*pixels, heicSpare):
		return errors.New("its parts are larger than the image")
	}
	c.fixedBytes = childBase + h.Memory(len(data)) + ownBytes*pixels
	c.source = heicImage(h)
	return nil
}

// heicImage is a source; see heicchild.go.
type heicImage heif.Head
