package imaging

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"

	"golang.org/x/image/tiff"
)

// Limits of a TIFF, checked before it is decoded. Its strips or tiles may lie anywhere in the file,
// even all in the same place, and each takes time to set up.
const (
	tiffEntriesMax = 1000
	tiffBlocksMax  = 16_384
	// All blocks together may have at most tiffReadTimes times the file's bytes. They may cover at
	// most tiffCoverTimes times the image, or tiffSpare pixels.
	tiffReadTimes  = 2
	tiffCoverTimes = 2
	tiffSpare      = 1 << 20

	tiffPixelBytes = 8  // of 16 bits a channel
	tiffBlockBytes = 24 // for a pixel of a block: 8, in a buffer that grows by doubling
	tiffTables     = 256 << 10
	tiffEntry      = 12
)

// Tags (TIFF 6.0).
const (
	tagWidth        = 256
	tagHeight       = 257
	tagBits         = 258
	tagCompression  = 259
	tagColours      = 262
	tagFillOrder    = 266
	tagStripOffsets = 273
	tagOrientation  = 274
	tagSamples      = 277
	tagRowsPerStrip = 278
	tagStripCounts  = 279
	tagPlanes       = 284
	tagGroup3       = 292
	tagPredictor    = 317
	tagTileWidth    = 322
	tagTileHeight   = 323
	tagTileOffsets  = 324
	tagTileCounts   = 325
	tagExtra        = 338
	tagFormat       = 339
)

// Values of the tags.
const (
	tiffGroup3   = 3 // of tagCompression
	tiffGroup4   = 4
	tiffLines    = 3 // bits of tagGroup3: two-dimensional, or uncompressed
	tiffJPEGOld  = 6
	tiffJPEG     = 7
	tiffZeroDark = 1 // of tagColours
	tiffRGB      = 2
	tiffPalette  = 3
	tiffApart    = 2 // of tagPlanes
	tiffPremixed = 1 // of tagExtra
	tiffUnmixed  = 2
)

// tiffHead is the content of the first directory.
type tiffHead struct {
	data  []byte
	order byteOrder
	// first is the first value of an entry, by tag, or 0.
	first map[uint16]int64
	// entries are the bytes of the entries, by tag.
	entries map[uint16][]byte
	// read is the sum of the lengths of all blocks.
	read int64
}

// byteOrder is one of the two byte orders of a TIFF.
type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// configTIFF fills c from the first directory of a TIFF. It ignores further ones.
func configTIFF(c *Config, data []byte) error {
	h, err := readTIFF(data)
	if err != nil {
		return err
	}
	if err := h.refuse(); err != nil {
		return err
	}
	if err := h.configSource(c); err != nil {
		return err
	}
	if err := h.consistent(); err != nil {
		return err
	}
	if err := checkSize(c.Width, c.Height); err != nil {
		return err
	}
	block, err := h.check(c.Width, c.Height)
	if err != nil {
		return err
	}
	if o := h.first[tagOrientation]; o >= 1 && o <= 8 {
		c.orientation = int(o)
	}
	c.fixedBytes += tiffTables + tiffPixelBytes*int64(c.Width)*int64(c.Height) + tiffBlockBytes*block
	return nil
}

func (h *tiffHead) configSource(c *Config) error {
	if h.first[tagPlanes] == tiffApart && h.first[tagSamples] > 1 {
		p, err := h.planes()
		if err != nil {
			return err
		}
		c.Width, c.Height = int(h.first[tagWidth]), int(h.first[tagHeight])
		c.source, c.fixedBytes = p, int64(len(h.data))
		return nil
	}
	head, err := tiff.DecodeConfig(bytes.NewReader(h.data))
	if err != nil {
		return err
	}
	c.Width, c.Height = head.Width, head.Height
	c.source = plain(h.decode)
	return nil
}

// refuse returns an error that says why the picture is not read, or nil if it is.
func (h *tiffHead) refuse() error {
	compression, colours := h.first[tagCompression], h.first[tagColours]
	switch {
	case compression == tiffJPEG || compression == tiffJPEGOld:
		return errors.New("it has JPEG inside: save it without compression, or as JPEG")
	case colours > tiffPalette:
		return errors.New("its colours are CMYK or of another kind that is not read: save it as RGB")
	case compression == tiffGroup3 && h.first[tagGroup3]&tiffLines != 0:
		return errors.New("it has the two-dimensional compression of faxes (group 3): save it with group 4")
	case h.fax() && colours == tiffPalette:
		return errors.New("it has a palette and the compression of faxes: save it as black and white")
	}
	return nil
}

func (h *tiffHead) fax() bool {
	return h.first[tagCompression] == tiffGroup3 || h.first[tagCompression] == tiffGroup4
}

// decode is tiff.Decode with the colours of a fax corrected. A white run is bits of 0 (TIFF 6.0,
// section 10), which are black if the file says so; the library always takes them for white.
func (h *tiffHead) decode(data []byte) (image.Image, error) {
	im, err := tiff.Decode(bytes.NewReader(data))
	if grey, ok := im.(*image.Gray); ok && h.fax() && h.first[tagColours] == tiffZeroDark {
		for i, v := range grey.Pix {
			grey.Pix[i] = 255 - v
		}
	}
	return im, err
}

func readTIFF(data []byte) (*tiffHead, error) {
	if len(data) < 8 {
		return nil, errTruncated
	}
	h := &tiffHead{data: data, order: binary.LittleEndian, first: make(map[uint16]int64), entries: make(map[uint16][]byte)}
	if data[0] == 'M' {
		h.order = binary.BigEndian
	}
	at := int64(h.order.Uint32(data[4:]))
	if at+2 > int64(len(data)) {
		return nil, errTruncated
	}
	n := int64(h.order.Uint16(data[at:]))
	if n > tiffEntriesMax || at+2+n*tiffEntry > int64(len(data)) {
		return nil, errors.New("its directory is broken")
	}
	for i := range n {
		if err := h.entry(data[at+2+i*tiffEntry:][:tiffEntry]); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// entry notes an entry of the directory if its values are numbers of 1, 2 or 4 bytes.
func (h *tiffHead) entry(e []byte) error {
	tag, count := h.order.Uint16(e), int64(h.order.Uint32(e[4:]))
	size := h.size(e)
	if size == 0 || count == 0 {
		return nil
	}
	values := e[8:]
	if size*count > 4 {
		at := int64(h.order.Uint32(e[8:]))
		if at+size*count > int64(len(h.data)) {
			return errTruncated
		}
		values = h.data[at:]
	}
	h.first[tag], h.entries[tag] = h.value(values, size), e
	if tag != tagStripCounts && tag != tagTileCounts {
		return nil
	}
	if count > tiffBlocksMax {
		return errors.New("it has too many parts")
	}
	for i := range count {
		h.read += h.value(values[i*size:], size)
	}
	return nil
}

// size returns the bytes of a value of an entry, or 0 if it is no number.
func (h *tiffHead) size(e []byte) int64 {
	return map[uint16]int64{1: 1, 3: 2, 4: 4, 6: 1, 8: 2, 9: 4, 13: 4}[h.order.Uint16(e[2:])]
}

func (h *tiffHead) value(b []byte, size int64) int64 {
	switch size {
	case 1:
		return int64(b[0])
	case 2:
		return int64(h.order.Uint16(b))
	}
	return int64(h.order.Uint32(b))
}

// check returns the pixels of a strip or tile, or an error if they break a limit.
func (h *tiffHead) check(width, height int) (int64, error) {
	w, t := h.block(int64(width), int64(height))
	if w < 1 || t < 1 || w > 2*MaxSide || t > 2*MaxSide {
		return 0, errors.New("its parts have impossible sizes")
	}
	blocks := (int64(width) + w - 1) / w * ((int64(height) + t - 1) / t)
	whole := int64(width) * int64(height)
	switch {
	case blocks > tiffBlocksMax:
		return 0, errors.New("it has too many parts")
	case blocks*w*t > max(tiffCoverTimes*whole, tiffSpare):
		return 0, errors.New("its parts are larger than the image")
	case h.read > tiffReadTimes*int64(len(h.data)):
		return 0, errors.New("its parts lie upon each other")
	}
	return w * t, nil
}

func (h *tiffHead) block(width, height int64) (w, t int64) {
	if h.first[tagTileWidth] != 0 {
		return h.first[tagTileWidth], h.first[tagTileHeight]
	}
	if rows := h.first[tagRowsPerStrip]; rows > 0 && rows < height {
		height = rows
	}
	return width, height
}
