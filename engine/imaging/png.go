package imaging

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/png"
)

const (
	pngSignature  = "\x89PNG\r\n\x1a\n"
	pngChunksMax  = 1000     // before the pixels
	pngChunkFrame = 12       // length, type and checksum
	exifBytesMax  = 64 << 10 // of an EXIF block; a JPEG's segment can't be longer

	pngDepth     = 24 // offsets of bytes in the first chunk, which has a fixed place
	pngInterlace = 28

	pngDeepBytes  = 8 // a pixel, of 16 bits a channel
	pngPlainBytes = 4
	pngTables     = 128 << 10
)

// configPNG fills c from the head of a PNG. Of an animated one the picture is
// read that programs without animation show.
func configPNG(c *Config, data []byte) error {
	head, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return err
	}
	c.Width, c.Height = head.Width, head.Height
	c.fixedBytes = pngTables + pngBytes(data)*int64(head.Width)*int64(head.Height)
	c.orientation = pngOrientation(data)
	c.source = plain(func(data []byte) (image.Image, error) { return png.Decode(bytes.NewReader(data)) })
	return nil
}

// pngBytes returns the bytes for a pixel of a PNG. An interlaced image is decoded
// in passes, each with its own pixels, beside the whole.
func pngBytes(data []byte) int64 {
	if len(data) <= pngInterlace {
		return 2 * pngDeepBytes
	}
	n := int64(pngPlainBytes)
	if data[pngDepth] == 16 {
		n = pngDeepBytes
	}
	if data[pngInterlace] != 0 {
		n *= 2
	}
	return n
}

// pngOrientation returns the orientation of a PNG's eXIf chunk, 1 if there is
// none. The chunks are walked here because the metadata library's own walk can
// be sent backwards by a text chunk that lies about its length.
func pngOrientation(data []byte) int {
	rest := data[min(len(data), len(pngSignature)):]
	for range pngChunksMax {
		if len(rest) < pngChunkFrame {
			return 1
		}
		n := int(binary.BigEndian.Uint32(rest))
		kind := string(rest[4:8])
		if n > len(rest)-pngChunkFrame || kind == "IDAT" {
			return 1
		}
		if kind == "eXIf" {
			return orientationOf(rest[8 : 8+n])
		}
		rest = rest[pngChunkFrame+n:]
	}
	return 1
}
