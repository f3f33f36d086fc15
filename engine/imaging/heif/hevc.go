package heif

import (
	"bytes"
	"errors"
	"math/bits"
)

// Kinds of NAL units (ITU-T H.265, table 7-1).
const (
	nalCodedMax = 31 // up to here, slices of pictures
	nalSequence = 33 // sequence parameters, which have the size

	hvccHead     = 22
	sequencesMax = 16
	sideMax      = 1 << 16
)

var errHEVC = errors.New("its HEVC parameters are broken")

// codedSize returns the largest size that the sequence parameters in a decoder's
// configuration (hvcC; ISO/IEC 14496-15, 8.3.3) give: it is what libde265 decodes,
// whatever the boxes announce.
func codedSize(body []byte) (width, height int64, err error) {
	r := reader{b: body}
	r.take(hvccHead - 1)
	lengthSize := r.uint(1)&3 + 1
	if r.bad || lengthSize != 4 {
		return 0, 0, errHEVC
	}
	found := 0
	for range r.uint(1) {
		r.uint(1)
		for range r.uint(2) {
			unit := r.take(r.uint(2))
			if r.bad {
				return 0, 0, errHEVC
			}
			if len(unit) < 2 || unit[0]>>1&63 != nalSequence {
				continue
			}
			w, h, err := sequenceSize(unit[2:])
			if found++; err != nil || found > sequencesMax {
				return 0, 0, errHEVC
			}
			width, height = max(width, w), max(height, h)
		}
	}
	if r.bad || found == 0 {
		return 0, 0, errHEVC
	}
	return width, height, nil
}

// sequenceSize reads the size off sequence parameters (H.265, 7.3.2.2).
func sequenceSize(unit []byte) (width, height int64, err error) {
	b := bitReader{b: bytes.ReplaceAll(unit, []byte{0, 0, 3}, []byte{0, 0})}
	b.bits(4)
	layers := b.bits(3)
	b.bits(1)
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
	b.golomb() // identifier
	if b.golomb() == 3 {
		b.bits(1) // separate planes
	}
	w, h := b.golomb(), b.golomb()
	if b.bad || w == 0 || h == 0 || w > sideMax || h > sideMax {
		return 0, 0, errHEVC
	}
	return int64(w), int64(h), nil
}

// onePicture checks that the data of an item, NAL units behind lengths of four
// bytes, begin one picture and no new sequence.
func onePicture(data [][]byte) error {
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
			return errors.New("it changes its size on the way")
		case kind <= nalCodedMax && unit[2]&0x80 != 0:
			pictures++
		}
	}
	if pictures != 1 {
		return errors.New("a part of it is not one picture")
	}
	return nil
}

// bitReader takes bits off a slice, highest first; see reader for its end.
type bitReader struct {
	b   []byte
	at  int
	bad bool
}

// bits returns the next n bits, of more than 32 the last ones.
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

// golomb returns the next number of the code ue(v) (H.265, 9.2).
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
