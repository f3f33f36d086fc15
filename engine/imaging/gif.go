package imaging

import (
	"bytes"
	"context"
	"image"
	"image/gif"
)

const (
	gifPixelBytes = 2 // for the indices, and for a copy while rows are put in order
	gifTables     = 128 << 10
)

func configGIF(c *Config, data []byte) error {
	head, err := gif.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return err
	}
	c.Width, c.Height = head.Width, head.Height
	c.fixedBytes = gifTables + gifPixelBytes*int64(head.Width)*int64(head.Height)
	c.source = firstFrame(func(data []byte) (image.Image, error) { return gif.Decode(bytes.NewReader(data)) })
	return nil
}

// firstFrame is the source of a format with animations: it decodes the first frame only, whose bounds
// are within the announced size.
type firstFrame func(data []byte) (image.Image, error)

func (f firstFrame) decode(_ context.Context, im *Image, c *Config, s Shrink, data []byte) error {
	frame, err := f(data)
	if err != nil {
		return err
	}
	defer wipe(frame)
	row := rowReader(frame)
	at := frame.Bounds()
	if at != image.Rect(0, 0, c.Width, c.Height) {
		inner := row
		row = func(y int, row []uint8) {
			for i := range row {
				row[i] = 255 // what the frame leaves out is transparent
			}
			if y >= at.Min.Y && y < at.Max.Y {
				inner(y-at.Min.Y, row[3*at.Min.X:3*at.Max.X])
			}
		}
	}
	turn(im, boxRows(row, c.Width, c.Height, s), s.side(c.Width), s.side(c.Height), c.orientation)
	return nil
}
