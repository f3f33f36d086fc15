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
	exifBytesMax  = 64 << 10 // of an EXIF block; a JPEG's segment is never longer

	pngHead      = 12 // offsets of the first chunk: its type, and three bytes
	pngDepth     = 24
	pngColours   = 25
	pngInterlace = 28
	pngGrey      = 0 // at pngColours

	pngDeepBytes  = 8 // a pixel, of 16 bits a channel
	pngPlainBytes = 4
	pngTables     = 128 << 10
)

// configPNG fills c from the head of a PNG. Of an animated PNG it reads the picture that programs
// without animation show.
func configPNG(c *Config, data []byte) error {
	head, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return err
	}
	// The library skips other chunks, but pngBytes expects IHDR first.
	if !bytes.HasPrefix(data[pngHead:], []byte("IHDR")) {
		return errors.New("its first chunk is not IHDR")
	}
	if err := checkPNGTransparent(data); err != nil {
		return err
	}
	c.Width, c.Height = head.Width, head.Height
	c.fixedBytes = pngTables + pngBytes(data)*int64(head.Width)*int64(head.Height)
	c.orientation = pngOrientation(data)
	c.source = plain(func(data []byte) (image.Image, error) { return png.Decode(bytes.NewReader(data)) })
	return nil
}

// pngBytes returns the memory for a pixel of a PNG. An interlaced image is decoded in passes, each
// with its own pixels, besides the whole.
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

// checkPNGTransparent refuses a transparent grey with more bits than the samples. The standard
// ignores the upper bits (PNG, 11.3.1.1), the library does not.
func checkPNGTransparent(data []byte) error {
	grey, depth := pngChunk(data, "tRNS"), data[pngDepth]
	if data[pngColours] == pngGrey && depth < 8 && len(grey) == 2 && grey[1]>>depth != 0 {
		return errors.New("its transparent colour has more bits than its pixels")
	}
	return nil
}

// pngOrientation returns the orientation in a PNG's first eXIf chunk, which may follow the pixels,
// or 1.
func pngOrientation(data []byte) int {
	if exif := pngChunk(data, "eXIf"); exif != nil {
		return orientationOf(exif)
	}
	return 1
}

// pngChunk returns the content of the first chunk of a kind, or nil. It does not use
// the metadata library, which reads backwards after a text chunk with a wrong length.
func pngChunk(data []byte, kind string) []byte {
	rest := data[min(len(data), len(pngSignature)):]
	for len(rest) >= pngChunkFrame {
		n := int(binary.BigEndian.Uint32(rest))
		found := string(rest[4:8])
		if n > len(rest)-pngChunkFrame || found == "IEND" {
			break
		}
		if found == kind {
			return rest[8 : 8+n]
		}
		rest = rest[pngChunkFrame+n:]
	}
	return nil
}
