package heif

import (
	"bytes"
	"errors"
	"math/bits"
)

// Kinds of NAL units (ITU-T H.265, table 7-1).
const (
	nalCodedMax = 31 // slices of pictures have the kinds up to this one
	nalSequence = 33 // sequence parameters, with the size

	hvccHead    = 22
	blockLogMax = 6 // 64 × 64 samples
	sideMax     = 1 << 16
	bitsMax     = 16
)

var errHEVC = errors.New("its HEVC parameters are broken")

// sequence holds the sequence parameters of a picture (H.265, 7.3.2.2).
type sequence struct {
	// width and height are the coded size, whole blocks.
	width, height int64
	// shownWidth and shownHeight are the size of the conformance window.
	shownWidth, shownHeight int64
	// blocks is the number of coding tree blocks.
	blocks int64
	// bits is how many bits a sample of luma has.
	bits int64
}

// readSequence returns the sequence parameters in a decoder's configuration (hvcC; ISO/IEC
// 14496-15, 8.3.3). libde265 follows these, whatever the boxes announce.
func readSequence(body []byte) (sequence, error) {
	r := reader{b: body}
	r.take(hvccHead - 1)
	lengthSize := r.uint(1)&3 + 1
	if r.bad || lengthSize != 4 {
		return sequence{}, errHEVC
	}
	found := sequence{}
	for range r.uint(1) {
		r.uint(1)
		for range r.uint(2) {
			unit := r.take(r.uint(2))
			if r.bad {
				return sequence{}, errHEVC
			}
			if len(unit) < 2 || unit[0]>>1&63 != nalSequence {
				continue
			}
			s, err := parseSequence(unit[2:])
			if err != nil || found != (sequence{}) && s != found {
				return sequence{}, errHEVC
			}
			found = s
		}
	}
	if r.bad || found == (sequence{}) {
		return sequence{}, errHEVC
	}
	return found, nil
}

func parseSequence(unit []byte) (sequence, error) {
	b := bitReader{b: bytes.ReplaceAll(unit, []byte{0, 0, 3}, []byte{0, 0})}
	b.bits(4)
	layers := b.bits(3)
	b.bits(1)
	b.levels(layers)
	b.golomb() // identifier
	chroma := b.golomb()
	if chroma == 3 {
		b.bits(1) // separate planes
	}
	w, h := b.golomb(), b.golomb()
	if b.bad || w == 0 || h == 0 || w > sideMax || h > sideMax {
		return sequence{}, errHEVC
	}
	s := sequence{width: int64(w), height: int64(h)}
	across, down := b.window(chroma)
	s.shownWidth, s.shownHeight = s.width-across, s.height-down
	s.bits = 8 + int64(b.golomb())
	if other := 8 + int64(b.golomb()); chroma > 0 && other != s.bits { // no encoder is known to write it
		return sequence{}, errHEVC
	}
	log := b.blockLog(layers)
	if b.bad || s.shownWidth < 1 || s.shownHeight < 1 || log > blockLogMax || s.bits > bitsMax {
		return sequence{}, errHEVC
	}
	block := int64(1) << log
	s.blocks = ((s.width + block - 1) / block) * ((s.height + block - 1) / block)
	return s, nil
}

// levels skips profile_tier_level (H.265, 7.3.3).
func (b *bitReader) levels(layers uint32) {
	b.bits(88) // profile
	b.bits(8)  // level
	var profile, level [8]bool
	for i := range layers {
		profile[i], level[i] = b.bits(1) == 1, b.bits(1) == 1
	}
	if layers > 0 {
		b.bits(2 * (8 - int(layers)))
	}
	for i := range layers {
		if profile[i] {
			b.bits(88)
		}
		if level[i] {
			b.bits(8)
		}
	}
}

// window returns how many columns and rows the conformance window leaves out.
func (b *bitReader) window(chroma uint64) (across, down int64) {
	if b.bits(1) == 0 {
		return 0, 0
	}
	left, right, top, bottom := b.golomb(), b.golomb(), b.golomb(), b.golomb()
	if max(left, right, top, bottom) > sideMax {
		b.bad = true
		return 0, 0
	}
	across, down = int64(left+right), int64(top+bottom)
	if chroma == 1 || chroma == 2 { // in chroma samples
		across *= 2
	}
	if chroma == 1 {
		down *= 2
	}
	return across, down
}

// blockLog returns the binary logarithm of the side of a coding tree block.
func (b *bitReader) blockLog(layers uint32) uint64 {
	b.golomb() // bits of the picture order count
	first := layers
	if b.bits(1) == 1 {
		first = 0
	}
	for range layers - first + 1 {
		b.golomb()
		b.golomb()
		b.golomb()
	}
	least, more := b.golomb(), b.golomb()
	return 3 + least + more
}

// onePicture returns an error unless the data of an item begin exactly one picture, and all sequence
// parameters among them are the given ones, as the decoder follows the last ones. The data are NAL
// units, each after its length of four bytes.
func onePicture(data [][]byte, want sequence) error {
	var r reader
	if len(data) == 1 {
		r.b = data[0]
	} else {
		r.b = bytes.Join(data, nil)
	}
	pictures := 0
	for len(r.b) > 0 {
		unit := r.take(r.uint(4))
		if r.bad {
			return errors.New("it ends early")
		}
		if len(unit) < 3 {
			continue
		}
		switch kind := unit[0] >> 1 & 63; {
		case kind == nalSequence:
			if s, err := parseSequence(unit[2:]); err != nil || s != want {
				return errors.New("its boxes and its data give different sizes")
			}
		case kind <= nalCodedMax && unit[2]&0x80 != 0:
			pictures++
		}
	}
	if pictures != 1 {
		return errors.New("a part of it is not one picture")
	}
	return nil
}

// bitReader reads bits off a slice, highest first. After the end it returns zeros and sets bad.
type bitReader struct {
	b   []byte
	at  int
	bad bool
}

// bits returns the next n bits, or the last 32 of them if n is larger.
func (b *bitReader) bits(n int) uint32 {
	var v uint32
	for range n {
		if b.at >= 8*len(b.b) {
			b.bad = true
			return 0
		}
		v = v<<1 | uint32(b.b[b.at/8]>>(7-b.at%8)&1)
		b.at++
	}
	return v
}

// golomb returns the next number in the code ue(v) (H.265, 9.2).
func (b *bitReader) golomb() uint64 {
	zeros := 0
	for b.bits(1) == 0 {
		if zeros++; b.bad || zeros >= bits.UintSize/2 {
			b.bad = true
			return 0
		}
	}
	return 1<<zeros - 1 + uint64(b.bits(zeros))
}
