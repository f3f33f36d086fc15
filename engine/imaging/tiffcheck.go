package imaging

import "errors"

const (
	tiffLZW        = 5 // of tagCompression
	tiffDeflate    = 8
	tiffDeflateOld = 32946
	tiffPlain      = 1 // of tagPredictor
	tiffDifference = 2

	// Types of an entry's values: 16 bits, and 16 and 32 bits with a sign.
	tiffShort       = 3
	tiffSignedShort = 8
	tiffSignedLong  = 9

	tagPalette = 320
)

var errTIFFTags = errors.New("its directory contradicts itself")

// consistent refuses a directory that readers interpret differently: the library takes the first of
// several values, takes a compression of 0 for none, guesses the kind of colours, and ignores
// unknown predictors.
func (h *tiffHead) consistent() error {
	for _, tag := range []uint16{
		tagWidth, tagHeight, tagCompression, tagColours, tagFillOrder, tagOrientation, tagSamples, tagRowsPerStrip,
		tagPlanes, tagGroup3, tagPredictor, tagTileWidth, tagTileHeight,
	} {
		e := h.entries[tag]
		if e == nil {
			continue
		}
		switch kind := h.order.Uint16(e[2:]); {
		case h.count(tag) != 1:
			return errTIFFTags
		case kind == tiffShort || kind == tiffLong:
		case tag != tagOrientation || kind != tiffSignedShort && kind != tiffSignedLong:
			return errTIFFTags
		}
	}
	if h.entries[tagCompression] != nil && h.first[tagCompression] == 0 || h.entries[tagColours] == nil {
		return errTIFFTags
	}
	samples := max(1, h.first[tagSamples])
	apart := h.first[tagPlanes] == tiffApart
	if bits := h.count(tagBits); bits > 0 && bits != samples && (!apart || bits != 1) {
		return errTIFFTags
	}
	colours := int64(1)
	if h.first[tagColours] == tiffRGB {
		colours = 3
	}
	if extra := h.count(tagExtra); extra > 0 && samples != colours+extra {
		return errTIFFTags
	}
	if h.first[tagColours] == tiffPalette && !h.hasPalette() {
		return errTIFFTags
	}
	for _, pair := range [][2]uint16{{tagStripOffsets, tagStripCounts}, {tagTileOffsets, tagTileCounts}} {
		if n := h.count(pair[1]); n > 0 && h.count(pair[0]) != n {
			return errTIFFTags
		}
	}
	return h.checkPredictor()
}

// hasPalette reports whether the file has three numbers of 16 bits for each colour.
func (h *tiffHead) hasPalette() bool {
	bits, e := h.first[tagBits], h.entries[tagPalette]
	return bits <= 8 && h.count(tagPalette) == 3<<bits && h.order.Uint16(e[2:]) == tiffShort
}

// checkPredictor refuses a predictor other than the difference of neighbours, and a
// predictor with a compression for which other readers ignore it.
func (h *tiffHead) checkPredictor() error {
	if h.entries[tagPredictor] == nil || h.first[tagPredictor] == tiffPlain {
		return nil
	}
	switch h.first[tagCompression] {
	case tiffLZW, tiffDeflate, tiffDeflateOld:
		if h.first[tagPredictor] == tiffDifference {
			return nil
		}
	}
	return errors.New("its pixels are differences of a kind that is not read: save it without a predictor")
}

// count returns how many values an entry has, or 0 without the entry.
func (h *tiffHead) count(tag uint16) int64 {
	if e := h.entries[tag]; e != nil {
		return int64(h.order.Uint32(e[4:]))
	}
	return 0
}
