package imaging

import "bytes"

// Parts of a head that libjpeg warns about, and the values it assumes then (libjpeg-turbo:
// jdmarker.c, jdapimin.c, jdhuff.c).
const (
	jfifHead    = "JFIF\x00"
	jfifBytes   = 14 // libjpeg ignores a shorter segment
	jfifMajorAt = 5
	jfifMajor   = 1

	adobeHead     = "Adobe"
	adobeBytes    = 12
	adobeColourAt = 11 // the colour transform
	adobeUnknown  = 0
	adobeYCbCr    = 1
	adobeYCCK     = 2

	markerAndLength = 4
)

// wholeBlock ends the header of a scan that is not progressive: first and last coefficient, and bit
// positions.
var wholeBlock = [3]byte{0, jpegBlock - 1, 0}

func isAdobe(mark byte, body []byte) bool {
	return mark == markApp14 && len(body) >= adobeBytes && bytes.HasPrefix(body, []byte(adobeHead))
}

// repairedHead returns a copy of the segments up to the first scan's header. It drops
// stray bytes between segments. Where libjpeg would warn about JFIF's version, Adobe's
// colour transform or the limits of the scan, it sets the value that libjpeg assumes.
func (h *jpegHead) repairedHead(data []byte) []byte {
	_, _, end, _ := jpegSegment(data, h.scan)
	out := append(make([]byte, 0, end), data[:2]...) // never moves: its caller clears it
	for at := 2; at <= h.scan; {
		mark, body, next, err := jpegSegment(data, at)
		if err != nil {
			panic("bug: a JPEG's head is read differently the second time: " + err.Error())
		}
		out = append(out, data[next-len(body)-markerAndLength:next]...)
		h.repair(mark, out[len(out)-len(body):])
		at = next
	}
	return out
}

// repaired returns a copy of the file with a repaired head and repaired headers of later scans. So
// every warning about the copy is about its pixels.
func (h *jpegHead) repaired(data []byte) []byte {
	head := h.repairedHead(data)
	_, _, pixels, _ := jpegSegment(data, h.scan)
	out := append(append(make([]byte, 0, len(data)), head...), data[pixels:]...)
	clear(head)
	for at := len(head); ; {
		mark, body, next, err := jpegSegment(out, at)
		if err != nil || mark == markEnd {
			return out
		}
		if mark == markScan {
			h.repair(mark, body)
		}
		at = next
	}
}

// repair sets the values that libjpeg would warn about to the values that libjpeg
// assumes.
func (h *jpegHead) repair(mark byte, body []byte) {
	switch {
	case mark == markApp0 && len(body) >= jfifBytes && bytes.HasPrefix(body, []byte(jfifHead)):
		body[jfifMajorAt] = jfifMajor
	case isAdobe(mark, body) && body[adobeColourAt] != adobeUnknown && len(h.components) == 4:
		body[adobeColourAt] = adobeYCCK
	case isAdobe(mark, body) && body[adobeColourAt] != adobeUnknown:
		body[adobeColourAt] = adobeYCbCr
	case mark == markScan && !h.progressive && len(body) >= len(wholeBlock):
		copy(body[len(body)-len(wholeBlock):], wholeBlock[:])
	}
}
