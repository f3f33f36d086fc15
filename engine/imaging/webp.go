package imaging

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"

	"golang.org/x/image/webp"
)

const (
	webpChunksMax = 1000
	webpHead      = 12 // RIFF, length, WEBP
	webpFrame     = 8  // a chunk's name and length
	webpAnimated  = 1 << 1
	webpEXIF      = 1 << 3
	webpFlags     = 0x3e // that there are
	// The alpha flag in the head of a lossless picture (RFC 9649, 3.4).
	webpAlphaAt = 4
	webpAlpha   = 1 << 4
	// The compression in the first byte of transparency beside a lossy picture.
	webpCompression = 3
	webpLossless    = 1
	// Fields of the first byte of a lossy picture (RFC 6386, 9.1).
	webpVersion    = 7 << 1
	webpVersionMax = 3 << 1
	webpShown      = 1 << 4

	// Bytes for a pixel of a lossy picture: the planes of whole macroblocks, the filter
	// values of macroblocks, and transparency with the 32-bit pixels that it is
	// unpacked to.
	webpLossyBytes = 2 + 5
	// Bytes for a pixel of a lossless picture: the 32-bit pixel, another one while an
	// inverse transform makes new pixels, and the small images of the transforms, which
	// are read twice.
	webpPlainBytes = 4 + 4 + 2
	// Memory of the Huffman trees of a group of a lossless picture, and the fewest bits
	// of the file that a group takes. The decoder accepts at most webpGroupsMax groups,
	// of at least 4 × 4 pixels each.
	webpGroupBytes = 64 << 10
	webpGroupBits  = 20
	webpGroupsMax  = 2600
	webpTables     = 256 << 10
)

// configWebP fills c from the head of a WebP. It refuses an animated WebP, because the
// decoder does not read it.
func configWebP(c *Config, data []byte) error {
	rest, err := webpChunks(data)
	if err != nil {
		return err
	}
	lossless, opaque, turned := false, false, false
	var codes []byte // of the picture or its transparency, from the first transform
	for parts := 0; len(rest) > 0; parts++ {
		if len(rest) < webpFrame {
			return errTruncated
		}
		// If the file is shorter than the length says, the decoder would still allocate
		// that much.
		n := int64(binary.LittleEndian.Uint32(rest[4:]))
		if n > int64(len(rest)-webpFrame) {
			return errTruncated
		}
		kind, body := string(rest[:4]), rest[webpFrame:webpFrame+n]
		switch {
		case parts == webpChunksMax:
			return errors.New("it has too many parts")
		case parts == 0 && kind != "VP8X" && kind != "VP8 " && kind != "VP8L":
			return errors.New("it does not start with a picture")
		case kind == "VP8X" && (parts > 0 || n == 0 || body[0]&^webpFlags != 0):
			return errors.New("its head is broken")
		case kind == "VP8X" && body[0]&webpAnimated != 0:
			return errors.New("it is animated")
		case kind == "VP8X":
			turned = body[0]&webpEXIF != 0
		case kind == "VP8 " && n > 0 && (body[0]&webpShown == 0 || body[0]&webpVersion > webpVersionMax):
			return errors.New("its picture is of a kind that is not shown")
		case kind == "VP8L" || kind == "ALPH":
			if !lossless { // the first picture counts
				opaque = kind == "VP8L" && len(body) > webpAlphaAt && body[webpAlphaAt]&webpAlpha == 0
				codes = webpCodes(kind, body)
			}
			lossless = true
		case kind == "EXIF" && turned: // the first one counts
			c.orientation = orientationOf(bytes.TrimPrefix(body, []byte(jpegExifHead)))
			turned = false
		}
		rest = rest[min(int64(len(rest)), webpFrame+n+n&1):]
	}
	head, err := webp.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return err
	}
	c.Width, c.Height = head.Width, head.Height
	pixels := int64(head.Width) * int64(head.Height)
	c.fixedBytes = webpTables + int64(len(data)) + webpLossyBytes*pixels
	if lossless {
		groups := min(webpGroupsMax, pixels/16, 8*int64(len(data))/webpGroupBits)
		c.fixedBytes = webpTables + int64(len(data)) + (webpLossyBytes+webpPlainBytes)*pixels + webpGroupBytes*groups
	}
	c.source = plain(func(data []byte) (image.Image, error) {
		if codes != nil {
			if err := checkCodes(codes, head.Width, head.Height); err != nil {
				return nil, err
			}
		}
		return decodeWebP(data, opaque)
	})
	return nil
}

// webpCodes returns the part of a chunk that starts with the first transform, nil if
// the chunk has no lossless picture.
func webpCodes(kind string, body []byte) []byte {
	switch {
	case kind == "VP8L" && len(body) > losslessHead:
		return body[losslessHead:]
	case kind == "ALPH" && len(body) > 0 && body[0]&webpCompression == webpLossless:
		return body[1:]
	}
	return nil
}

// webpChunks returns the chunks of a file. What lies behind them is not looked at.
func webpChunks(data []byte) ([]byte, error) {
	if len(data) < webpHead {
		return nil, errTruncated
	}
	end := webpFrame + int64(binary.LittleEndian.Uint32(data[4:]))
	if end < webpHead || end > int64(len(data)) {
		return nil, errTruncated
	}
	return data[webpHead:end], nil
}

// decodeWebP decodes a picture. If opaque is set it ignores transparency: damage may
// have added some, and the library does not compare it with the head.
func decodeWebP(data []byte, opaque bool) (image.Image, error) {
	im, err := webp.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	switch m := im.(type) {
	case *image.NRGBA:
		for i := 3; opaque && i < len(m.Pix); i += 4 {
			m.Pix[i] = 255
		}
	case *image.YCbCr:
		return video{YCbCr: m}, nil
	case *image.NYCbCrA:
		return video{YCbCr: &m.YCbCr, alpha: m.A, stride: m.AStride}, nil
	}
	return im, nil
}

// video is an image in the colours of video: luma is from 16 to 235, chroma from
// 16 to 240 (ITU-R BT.601). The library does not tell it from JPEG's colours,
// which use the whole range.
type video struct {
	*image.YCbCr
	alpha  []uint8 // not premultiplied; nil if opaque
	stride int
}

func (v video) rows() func(y int, row []uint8) {
	return func(y int, row []uint8) {
		luma := v.Y[y*v.YStride:][:v.Rect.Dx()]
		cb, cr := v.Cb[y/2*v.CStride:], v.Cr[y/2*v.CStride:]
		for x, l := range luma {
			bright, b, r := 298*(int(l)-16)+128, int(cb[x/2])-128, int(cr[x/2])-128
			row[3*x] = uint8(min(max((bright+409*r)>>8, 0), 255))
			row[3*x+1] = uint8(min(max((bright-100*b-208*r)>>8, 0), 255))
			row[3*x+2] = uint8(min(max((bright+516*b)>>8, 0), 255))
		}
		if v.alpha == nil {
			return
		}
		for x, a := range v.alpha[y*v.stride:][:v.Rect.Dx()] {
			for c := range 3 {
				row[3*x+c] = onWhite(row[3*x+c], a)
			}
		}
	}
}
