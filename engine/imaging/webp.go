package imaging

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"io"
	"slices"

	"golang.org/x/image/webp"
)

const (
	webpChunksMax = 1000
	webpHead      = 12 // RIFF, length, WEBP
	webpFrame     = 8  // a chunk's name and length
	webpExtended  = 10 // the body of VP8X
	webpFrameHead = 16 // of an animation's frame
	webpAnimated  = 1 << 1
	webpEXIF      = 1 << 3
	webpClear     = 1 << 4 // transparency beside a lossy picture
	webpFlags     = 0x3e   // that there are
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

var (
	errNoPicture = errors.New("it does not start with a picture")
	errWebPHead  = errors.New("its head is broken")
)

// webpPicture is a picture of a WebP: the only one, or the first frame of an animation.
type webpPicture struct {
	file func() io.Reader // a WebP that has this picture alone
	at   image.Point      // of its left upper corner, on the canvas
	end  image.Point      // of its right lower corner, as the frame says

	lossless, opaque bool
	codes            []byte // of the picture or its transparency, from the first transform
}

// configWebP fills c from the head of a WebP. Of an animated WebP it reads the first frame.
func configWebP(c *Config, data []byte) error {
	chunks, err := webpChunks(data)
	if err != nil {
		return err
	}
	p := webpPicture{file: func() io.Reader { return bytes.NewReader(data) }}
	animated, turned, headed := false, false, false
	var frames []webpPicture
	err = walkWebP(chunks, func(i int, kind string, body []byte) error {
		switch {
		case i == 0 && kind != "VP8X" && kind != "VP8 " && kind != "VP8L":
			return errNoPicture
		case kind == "VP8X" && (i > 0 || len(body) == 0 || body[0]&^webpFlags != 0):
			return errWebPHead
		case kind == "VP8X":
			turned, animated = body[0]&webpEXIF != 0, body[0]&webpAnimated != 0
		case kind == "EXIF" && turned: // the first one counts
			c.orientation = orientationOf(bytes.TrimPrefix(body, []byte(jpegExifHead)))
			turned = false
		case animated && (kind == "VP8 " || kind == "VP8L" || kind == "ALPH"):
			return errors.New("it has a picture beside its frames")
		case animated && kind == "ANIM":
			headed = true
		case animated && kind == "ANMF" && !headed:
			return errWebPHead
		case animated && kind == "ANMF": // each must be sound, as other readers demand
			frames = append(frames, webpPicture{})
			return frames[len(frames)-1].readFrame(body)
		case !animated:
			return p.read(kind, body)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if animated && len(frames) == 0 {
		return errNoPicture
	}
	if animated {
		p = frames[0]
	}
	canvas, err := webp.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return err
	}
	frame, err := webp.DecodeConfig(p.file())
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(frames, func(f webpPicture) bool { return f.end.X > canvas.Width || f.end.Y > canvas.Height }):
		return errors.New("a frame is beyond its edge")
	case animated && p.end != p.at.Add(image.Pt(frame.Width, frame.Height)):
		return errors.New("its first frame has another size than announced")
	}
	c.Width, c.Height, c.fixedBytes = canvas.Width, canvas.Height, p.memory(&canvas, len(data))
	decode := func([]byte) (image.Image, error) {
		if p.codes != nil {
			if err := checkCodes(p.codes, frame.Width, frame.Height); err != nil {
				return nil, err
			}
		}
		return p.decode()
	}
	if c.source = plain(decode); animated {
		c.source = firstFrame(decode)
	}
	return nil
}

// memory returns the bytes that decoding takes, for a canvas and the size of the file.
func (p *webpPicture) memory(canvas *image.Config, size int) int64 {
	pixels := int64(canvas.Width) * int64(canvas.Height)
	if !p.lossless {
		return webpTables + int64(size) + webpLossyBytes*pixels
	}
	groups := min(webpGroupsMax, pixels/16, 8*int64(size)/webpGroupBits)
	return webpTables + int64(size) + (webpLossyBytes+webpPlainBytes)*pixels + webpGroupBytes*groups
}

// walkWebP calls each for all chunks.
func walkWebP(rest []byte, each func(i int, kind string, body []byte) error) error {
	for i := 0; len(rest) > 0; i++ {
		if len(rest) < webpFrame {
			return errTruncated
		}
		// If the file is shorter than the length says, the decoder would still allocate
		// that much.
		n := int64(binary.LittleEndian.Uint32(rest[4:]))
		if n > int64(len(rest)-webpFrame) {
			return errTruncated
		}
		if i == webpChunksMax {
			return errors.New("it has too many parts")
		}
		if err := each(i, string(rest[:4]), rest[webpFrame:webpFrame+n]); err != nil {
			return err
		}
		rest = rest[min(int64(len(rest)), webpFrame+n+n&1):]
	}
	return nil
}

// read reads a chunk of the picture.
func (p *webpPicture) read(kind string, body []byte) error {
	switch {
	case kind == "VP8 " && len(body) > 0 && (body[0]&webpShown == 0 || body[0]&webpVersion > webpVersionMax):
		return errors.New("its picture is of a kind that is not shown")
	case kind == "VP8L" || kind == "ALPH":
		if !p.lossless { // the first picture counts
			p.opaque = kind == "VP8L" && len(body) > webpAlphaAt && body[webpAlphaAt]&webpAlpha == 0
			p.codes = webpCodes(kind, body)
		}
		p.lossless = true
	}
	return nil
}

// readFrame reads a frame of an animation: position, size and duration, and the chunks of its
// picture. The head of a file has the size in the same form.
func (p *webpPicture) readFrame(body []byte) error {
	if len(body) < webpFrameHead {
		return errTruncated
	}
	three := func(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
	p.at = image.Pt(2*three(body), 2*three(body[3:]))
	p.end = p.at.Add(image.Pt(1+three(body[6:]), 1+three(body[9:])))
	chunks := body[webpFrameHead:]
	head := make([]byte, webpHead+webpFrame, webpHead+webpFrame+webpExtended)
	copy(head, "RIFF")
	binary.LittleEndian.PutUint32(head[4:], uint32(cap(head)-webpFrame+len(chunks)))
	copy(head[8:], "WEBPVP8X")
	head[webpHead+4] = webpExtended
	err := walkWebP(chunks, func(i int, kind string, body []byte) error {
		switch {
		case i == 0 && kind == "ALPH":
			head = append(head, webpClear)
		case i == 0 && (kind == "VP8 " || kind == "VP8L"):
			head = append(head, 0)
		case i == 0:
			return errNoPicture
		case kind == "VP8X":
			return errWebPHead
		}
		return p.read(kind, body)
	})
	if err != nil {
		return err
	}
	if len(chunks) == 0 {
		return errNoPicture
	}
	head = append(append(head, 0, 0, 0), body[6:12]...)
	p.file = func() io.Reader { return io.MultiReader(bytes.NewReader(head), bytes.NewReader(chunks)) }
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

// decode decodes the picture, with its place on the canvas in its bounds. It ignores the transparency
// of an opaque picture: damage may have added some, and the library does not compare it with the head.
func (p *webpPicture) decode() (image.Image, error) {
	im, err := webp.Decode(p.file())
	if err != nil {
		return nil, err
	}
	switch m := im.(type) {
	case *image.NRGBA:
		for i := 3; p.opaque && i < len(m.Pix); i += 4 {
			m.Pix[i] = 255
		}
		m.Rect = m.Rect.Add(p.at)
	case *image.YCbCr:
		m.Rect = m.Rect.Add(p.at)
		return video{YCbCr: m}, nil
	case *image.NYCbCrA:
		m.Rect = m.Rect.Add(p.at)
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
