package imaging

import (
	"bytes"
	"image"

	"golang.org/x/image/bmp"
)

const (
	bmpPixelBytes = 4
	bmpTables     = 128 << 10 // and a row
)

// configBMP fills c from the head of a BMP. What is compressed or has 16 bits a
// pixel is refused.
func configBMP(c *Config, data []byte) error {
	head, err := bmp.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return err
	}
	c.Width, c.Height = head.Width, head.Height
	c.fixedBytes = bmpTables + bmpPixelBytes*int64(head.Width)*int64(head.Height)
	c.source = plain(func(data []byte) (image.Image, error) { return bmp.Decode(bytes.NewReader(data)) })
	return nil
}
