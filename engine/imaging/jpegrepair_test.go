package imaging_test

import (
	"bytes"
	"errors"
	"testing"

	"facet/engine/enginetest"
	"facet/engine/imaging"
)

// oddHead is a JPEG file whose head is unusual and whose pixels are whole, and a
// file that shows the same.
type oddHead struct{ data, like []byte }

func oddHeads(t *testing.T) map[string]oddHead {
	t.Helper()
	plain, cmyk, progressive := fixture(t, "420.jpg"), fixture(t, "cmyk.jpg"), fixture(t, "progressive.jpg")
	set := func(data []byte, mark string, offset int, v byte) []byte {
		at := bytes.Index(data, []byte(mark))
		if at < 0 {
			t.Fatalf("the fixture has no %q", mark)
		}
		out := bytes.Clone(data)
		out[at+offset] = v
		return out
	}
	before := func(data []byte, mark, bytesBefore string) []byte {
		at := bytes.LastIndex(data, []byte(mark))
		return append(append(bytes.Clone(data[:at]), bytesBefore...), data[at:]...)
	}
	scan := bytes.Index(plain, []byte("\xff\xda"))
	end := int(plain[scan+3]) + scan + 2
	files := map[string][]byte{
		"JFIF version 255":               set(plain, "JFIF\x00", 5, 255),
		"JFIF version 3":                 set(plain, "JFIF\x00", 5, 3),
		"progressive, JFIF version 3":    set(progressive, "JFIF\x00", 5, 3),
		"zeros between segments":         before(plain, "\xff\xc4", "\x00\x00"),
		"a byte before the scan":         before(plain, "\xff\xda", "\x07"),
		"progressive, a byte before it":  append(append(bytes.Clone(progressive[:20]), 7), progressive[20:]...),
		"fill bytes before the scan":     before(plain, "\xff\xda", "\xff\xff\xff"),
		"a scan of one coefficient":      set(plain, "\xff\xda", end-scan-2, 0),
		"a scan of shifted coefficients": set(plain, "\xff\xda", end-scan-1, 0x11),
		"bytes before the end":           before(plain, "\xff\xd9", "\x01\x02\x03"),
	}
	adobe := append([]byte("\xff\xee\x00\x0eAdobe"), 0, 100, 0, 0, 0, 0, 5)
	colour := fixture(t, "444.jpg")
	files["Adobe transform 5"] = append(append(bytes.Clone(colour[:2]), adobe...), colour[2:]...)
	heads := map[string]oddHead{"CMYK, Adobe transform 5": {set(cmyk, "Adobe", 11, 5), set(cmyk, "Adobe", 11, 2)}}
	for name, data := range files {
		heads[name] = oddHead{data, fixture(t, "truth.png")}
	}
	return heads
}

// Each file follows a portrait in the same memory, at each scale.
func TestOddHeadsShowTheirOwnPicture(t *testing.T) {
	portrait := enginetest.Photo(t, "face_recognition/obama.jpg")
	for name, odd := range oddHeads(t) {
		data, want := odd.data, decode(t, odd.like)
		both(t, data, func(by string, c imaging.Config) {
			for _, s := range []imaging.Shrink{imaging.Whole, imaging.Half, imaging.Quarter, imaging.Eighth} {
				im, fresh := decode(t, portrait), new(imaging.Image)
				if err := c.DecodeInto(t.Context(), im, data, s); err != nil {
					t.Errorf("%s by %s: %v", name, by, err)
					continue
				}
				if err := c.DecodeInto(t.Context(), fresh, data, s); err != nil || !bytes.Equal(im.Pix, fresh.Pix) {
					t.Errorf("%s by %s, 1/%d: error %v, or the picture before shows", name, by, s, err)
				}
				if s == imaging.Whole && distance(im, want) > 25 {
					t.Errorf("%s by %s: mean difference %.1f", name, by, distance(im, want))
				}
			}
		})
	}
}

// libjpeg would fill what it can't read with grey, and warns of the first damage
// only: damage behind an odd head must not pass with it.
func TestOddHeadsDoNotExcuseDamage(t *testing.T) {
	for name, odd := range oddHeads(t) {
		data := odd.data
		for _, cut := range []int{len(data) / 8, len(data) / 4} {
			damaged := append(bytes.Clone(data[:len(data)-cut]), 0xff, 0xd9)
			c, err := imaging.DecodeConfig(damaged)
			if err == nil {
				err = c.DecodeInto(t.Context(), new(imaging.Image), damaged, imaging.Whole)
			}
			if !errors.Is(err, imaging.ErrDecode) {
				t.Errorf("%s, %d bytes cut out: got %v, want ErrDecode", name, cut, err)
			}
		}
	}
}
