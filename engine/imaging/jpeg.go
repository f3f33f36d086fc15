package imaging

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/jpeg"

	"facet/engine/imaging/turbo"
)

// Limits of a JPEG, checked before it is decoded.
const (
	jpegSegmentsMax = 4096 // before the first scan
	jpegScansMax    = 100
	// A scan costs time for every block that it covers, whatever it says about them. All scans
	// together may cover at most jpegVisitsEach times the image's blocks, or jpegVisitsFree.
	// Encoders make 10 to 14 scans, which cover each block 3 to 10 times.
	jpegVisitsEach = 16
	jpegVisitsFree = 1 << 18

	jpegBlock    = 64   // samples
	jpegMCUMax   = 10   // blocks of an interleaved scan's unit (ITU-T T.81, B.2.3)
	jpegCodes    = 16   // lengths of Huffman codes
	jpegAC       = 0x10 // kind of a Huffman table, and above
	jpegZeros    = 0xf0 // a code for 16 zeros
	jpegExifHead = "Exif\x00\x00"
)

// Markers (ITU-T T.81, table B.1).
const (
	markStuffed     = 0x00
	markTemporary   = 0x01
	markBaseline    = 0xc0
	markExtended    = 0xc1
	markProgressive = 0xc2
	markTables      = 0xc4
	markReserved    = 0xc8
	markArithmetic  = 0xcc
	markRestart0    = 0xd0
	markRestart7    = 0xd7
	markStart       = 0xd8
	markEnd         = 0xd9
	markScan        = 0xda
	markApp0        = 0xe0
	markApp1        = 0xe1
	markApp14       = 0xee
	markFill        = 0xff
)

var errTwoFrames = errors.New("it has two frames")

// jpegHead is the content of the segments before the first scan.
type jpegHead struct {
	width, height int
	progressive   bool
	components    []jpegComponent
	adobe         bool
	bands         bool   // a table has codes that end several blocks
	exif          []byte // a TIFF file, nil if there is none
	scan          int    // offset of the first scan's marker
}

type jpegComponent struct {
	id, across, down uint8
}

func readJPEG(data []byte) (*jpegHead, error) {
	h := new(jpegHead)
	at := 2
	for range jpegSegmentsMax {
		mark, body, next, err := jpegSegment(data, at)
		if err != nil {
			return nil, err
		}
		switch {
		case mark == markScan:
			if h.components == nil {
				return nil, errors.New("a scan comes before the frame")
			}
			h.scan = next - len(body) - 4
			return h, h.checkTables()
		case mark == markEnd:
			return nil, errors.New("it ends before the pixels")
		case isFrame(mark):
			if err := h.frame(mark, body); err != nil {
				return nil, err
			}
		case mark == markTables:
			h.tables(body)
		case isAdobe(mark, body):
			h.adobe = true
		case mark == markApp1 && h.exif == nil && bytes.HasPrefix(body, []byte(jpegExifHead)):
			h.exif = body[len(jpegExifHead):]
		}
		at = next
	}
	return nil, errors.New("too many segments before the pixels")
}

func isFrame(mark byte) bool {
	return mark >= markBaseline && mark < markRestart0 &&
		mark != markTables && mark != markReserved && mark != markArithmetic
}

// jpegSegment finds the next marker from at on, as decoders do. It skips anything between segments,
// including stuffed bytes and restarts. It returns the segment's content and where the next one may
// begin.
func jpegSegment(data []byte, at int) (mark byte, body []byte, next int, err error) {
	for {
		n := bytes.IndexByte(data[min(at, len(data)):], markFill)
		if n < 0 || at+n+1 >= len(data) {
			return 0, nil, 0, errTruncated
		}
		at += n + 1
		mark = data[at]
		switch {
		case mark == markFill: // may be followed by the marker
		case mark == markStuffed || mark == markTemporary || mark == markStart ||
			mark >= markRestart0 && mark <= markRestart7:
			at++
		case mark == markEnd:
			return mark, nil, at + 1, nil
		default:
			if at+3 > len(data) {
				return 0, nil, 0, errTruncated
			}
			size := int(data[at+1])<<8 | int(data[at+2])
			if size < 2 {
				return 0, nil, 0, errors.New("a segment has no length")
			}
			next = at + 1 + size
			if next > len(data) {
				return 0, nil, 0, errTruncated
			}
			return mark, data[at+3 : next], next, nil
		}
	}
}

func (h *jpegHead) frame(mark byte, body []byte) error {
	switch {
	case h.components != nil:
		return errTwoFrames
	case mark > markProgressive:
		return errors.New("its kind of coding (lossless, hierarchical or arithmetic) is not read")
	case len(body) < 6 || len(body) != 6+3*int(body[5]):
		return errors.New("its frame is broken")
	case body[0] != 8:
		return fmt.Errorf("%d bits a channel are not read, but 8", body[0])
	}
	n := int(body[5])
	if n != 1 && n != 3 && n != 4 {
		return fmt.Errorf("%d channels are not read, but 1, 3 or 4", n)
	}
	h.progressive = mark == markProgressive
	h.height, h.width = int(body[1])<<8|int(body[2]), int(body[3])<<8|int(body[4])
	units := 0
	for i := range n {
		c := jpegComponent{id: body[6+3*i], across: body[7+3*i] >> 4, down: body[7+3*i] & 15}
		if c.across < 1 || c.across > 4 || c.down < 1 || c.down > 4 {
			return errors.New("its channels have impossible sizes")
		}
		units += int(c.across) * int(c.down)
		h.components = append(h.components, c)
	}
	if n > 1 && units > jpegMCUMax {
		return errors.New("its channels have impossible sizes")
	}
	return nil
}

// tables reads the Huffman tables of a segment. Each has a kind, the numbers of codes of each
// length, and the values of the codes.
func (h *jpegHead) tables(body []byte) {
	for len(body) > jpegCodes {
		n := 0
		for _, v := range body[1 : 1+jpegCodes] {
			n += int(v)
		}
		values := body[1+jpegCodes:]
		values = values[:min(n, len(values))]
		for _, v := range values {
			if body[0] >= jpegAC && v&15 == 0 && v != 0 && v != jpegZeros {
				h.bands = true
			}
		}
		body = body[1+jpegCodes+len(values):]
	}
}

// checkTables refuses codes that only a progressive scan may have (ITU-T T.81, F.1.2.2.1 and
// G.1.2.2). In other scans libjpeg ends one block, and the standard library several.
func (h *jpegHead) checkTables() error {
	if h.bands && !h.progressive {
		return errors.New("its Huffman tables are those of a progressive image, which it is not")
	}
	return nil
}

// blocks returns the number of a component's blocks, in whole units of the frame.
func (h *jpegHead) blocks(c jpegComponent) int64 {
	across, down := 1, 1
	for _, o := range h.components {
		across, down = max(across, int(o.across)), max(down, int(o.down))
	}
	wide := (h.width + 8*across - 1) / (8 * across)
	high := (h.height + 8*down - 1) / (8 * down)
	return int64(wide) * int64(high) * int64(c.across) * int64(c.down)
}

func (h *jpegHead) allBlocks() int64 {
	var n int64
	for _, c := range h.components {
		n += h.blocks(c)
	}
	return n
}

// several reports whether the pixels come in more than one scan; then a decoder keeps all
// coefficients until the end.
func (h *jpegHead) several(data []byte) bool {
	components := h.scan + 4 // behind marker and length
	return h.progressive || components < len(data) && int(data[components]) != len(h.components)
}

// checkScans counts the blocks that the scans cover, and looks for the end of the file.
func (h *jpegHead) checkScans(data []byte) error {
	limit := max(jpegVisitsFree, jpegVisitsEach*h.allBlocks())
	scans := 0
	var visits int64
	for at := h.scan; ; {
		mark, body, next, err := jpegSegment(data, at)
		if err != nil {
			return err
		}
		switch {
		case mark == markEnd:
			return nil
		case isFrame(mark):
			return errTwoFrames
		case mark == markTables:
			h.tables(body)
		case mark == markScan:
			if err := h.checkTables(); err != nil {
				return err
			}
			scans++
			visits += h.touched(body)
			if scans > jpegScansMax || visits > limit {
				return fmt.Errorf("it has too many scans (%d or more)", scans)
			}
			if scans > 1 && !h.several(data) {
				return errors.New("it has a scan behind that of all channels")
			}
		}
		at = next
	}
}

// touched returns the number of blocks of the components in a scan.
func (h *jpegHead) touched(body []byte) int64 {
	var n int64
	if len(body) == 0 {
		return 0
	}
	for i := 1; i < len(body) && i <= 2*int(body[0]); i += 2 {
		for _, c := range h.components {
			if c.id == body[i] {
				n += h.blocks(c)
			}
		}
	}
	return n
}

func configJPEG(c *Config, data []byte) error {
	h, err := readJPEG(data)
	if err != nil {
		return err
	}
	c.Width, c.Height = h.width, h.height
	if err := checkSize(h.width, h.height); err != nil {
		return err
	}
	if len(h.components) == 4 && !h.adobe {
		return errors.New("it has four channels and does not say which (Adobe's segment is missing)")
	}
	several := h.several(data)
	if several {
		if err := h.checkScans(data); err != nil {
			return err
		}
	}
	if h.exif != nil {
		c.orientation = orientationOf(h.exif)
	}
	j := &jpegImage{head: h, library: library.Load()}
	c.source, c.fixedBytes, c.pixelBytes = j, j.memory(several), j.pixelMemory(c.orientation)
	if j.library != nil {
		repaired := h.repairedHead(data)
		if j.odd = !bytes.HasPrefix(data, repaired); j.odd {
			c.fixedBytes += int64(len(data)) // for the repaired copy
		}
		clear(repaired) // it may have a thumbnail
	}
	return nil
}

// jpegImage decodes with libjpeg-turbo, if it is loaded, or with the standard library.
type jpegImage struct {
	head    *jpegHead
	odd     bool // libjpeg would warn about the head
	library *turbo.Library
}

// Memory of the decoders.
const (
	turboRowBytes       = 160 // for a pixel of the width: rows of blocks, and their colours
	turboCoefficient    = 2
	turboTables         = 256 << 10
	standardCoefficient = 4
	standardTables      = 64 << 10
)

// memory returns the memory for decoding besides the result, at any shrink.
func (j *jpegImage) memory(several bool) int64 {
	blocks := j.head.allBlocks()
	var n int64
	if j.library != nil {
		n = turboTables + turboRowBytes*int64(j.head.width)
		if several {
			n += turboCoefficient * jpegBlock * blocks
		}
		return n
	}
	n = standardTables + jpegBlock*blocks // whole planes
	if j.head.progressive {
		n += standardCoefficient * jpegBlock * blocks
	}
	if len(j.head.components) == 4 { // copied, three of them as 4:4:4 and one filled up
		n += 8 * int64(j.head.width) * int64(j.head.height)
	}
	return n
}

// pixelMemory returns the memory for each pixel of the result, besides the result; see decode.
func (j *jpegImage) pixelMemory(orientation int) int64 {
	switch {
	case j.library == nil:
		return 0
	case len(j.head.components) == 4:
		return int64(turbo.CMYK.Bytes())
	case orientation > 1:
		return int64(turbo.RGB.Bytes())
	}
	return 0
}

func decodeStandardJPEG(data []byte) (image.Image, error) { return jpeg.Decode(bytes.NewReader(data)) }
