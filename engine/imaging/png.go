package imaging

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/png"
)

const (
	pngSignature  = "\x89PNG\r\n\x1a\n"
	pngChunkFrame = 12       // length, type and checksum
	exifBytesMax  = 64 << 10 // of an EXIF block; a JPEG's segment can't be longer

	pngHead      = 12 // offsets in the first chunk: its type, and two bytes
	pngDepth     = 24
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
	// The library reads over other chunks, and pngBytes would look at one of them.
	if !bytes.HasPrefix(data[pngHead:], []byte("IHDR")) {
		return errors.New("its first chunk is not IHDR")
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
	n := int64(pngPlainBytes)
	if data[pngDepth] == 16 {
		n = pngDeepBytes
	}
	if data[pngInterlace] != 0 {
		n *= 2
	}
	return n
}

// pngOrientation returns the orientation of a PNG's first eXIf chunk, which may lie
// behind the pixels, or 1 if there is none. The chunks are walked here because the
// metadata library's own walk can be sent backwards by a text chunk that lies about
// its length.
func pngOrientation(data []byte) int {
	rest := data[min(len(data), len(pngSignature)):]
	for len(rest) >= pngChunkFrame {
		n := int(binary.BigEndian.Uint32(rest))
		kind := string(rest[4:8])
		if n > len(rest)-pngChunkFrame || kind == "IEND" {
			break
		}
		if kind == "eXIf" {
			return orientationOf(rest[8 : 8+n])
		}
		rest = rest[pngChunkFrame+n:]
	}
	return 1
}
