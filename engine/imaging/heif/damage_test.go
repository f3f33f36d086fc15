package heif_test

import (
	"bytes"
	"encoding/binary"
	"image"
	"math/rand/v2"
	"testing"

	"facet/engine/imaging/heif"
	"facet/internal/must"
)

// decoded returns a copy of a file's picture.
func decoded(t testing.TB, data []byte) (*image.YCbCr, error) {
	t.Helper()
	h, err := heif.ReadHead(data)
	if err != nil {
		return nil, err
	}
	return decodedAs(t, data, h)
}

// decodedAs returns a copy of the picture of a file, for which the head is taken.
func decodedAs(t testing.TB, data []byte, h heif.Head) (*image.YCbCr, error) {
	t.Helper()
	var out image.YCbCr
	err := heif.Decode(t.Context(), data, h, func(im image.Image) error {
		out = *im.(*image.YCbCr)
		out.Y, out.Cb, out.Cr = bytes.Clone(out.Y), bytes.Clone(out.Cb), bytes.Clone(out.Cr)
		return nil
	})
	return &out, err
}

// holes counts samples that no decoder wrote: all three are 0, which no colour is.
func holes(im *image.YCbCr) int {
	n := 0
	for y := range im.Rect.Dy() {
		for x := range im.Rect.Dx() {
			c := im.COffset(x, y)
			if im.Y[im.YOffset(x, y)]|im.Cb[c]|im.Cr[c] == 0 {
				n++
			}
		}
	}
	return n
}

// apart returns the mean difference of two pictures' luma.
func apart(a, b *image.YCbCr) float64 {
	if a.Rect != b.Rect {
		return 255
	}
	sum := 0
	for i := range a.Y {
		sum += max(int(a.Y[i])-int(b.Y[i]), int(b.Y[i])-int(a.Y[i]))
	}
	return float64(sum) / float64(len(a.Y))
}

// content is where the data of a file's pictures begin.
func content(data []byte) int { return bytes.LastIndex(data, []byte("mdat")) + 4 }

// damage returns the file with one damage of some kind in the data of its pictures.
func damage(random *rand.Rand, data []byte) (kind string, out []byte) {
	out = bytes.Clone(data)
	at := content(data) + random.IntN(len(data)-content(data))
	part := out[at:min(at+1+random.IntN(400), len(out))]
	switch random.IntN(5) {
	case 0:
		part[0] ^= 1 << random.IntN(8)
		return "bit", out
	case 1:
		part[0] = byte(random.IntN(256))
		return "byte", out
	case 2:
		clear(part)
		return "zeros", out
	case 3:
		for i := range part {
			part[i] = byte(random.IntN(256))
		}
		return "noise", out
	}
	copy(part, out[at+len(part):]) // what lies behind moves up
	return "gap", out
}

// What is damaged is refused, or so little that the picture stays the same.
func TestDamagedPictureIsRefused(t *testing.T) {
	t.Parallel()
	for name, rounds := range map[string]uint64{"slices.heic": 60, "grid.heic": 30} {
		data := fixture(t, name)
		truth, err := decoded(t, data)
		if err != nil || holes(truth) > 0 {
			t.Fatalf("%s: %v, or it has holes", name, err)
		}
		refused := 0
		for seed := range rounds {
			kind, out := damage(rand.New(rand.NewPCG(seed, 1)), data)
			im, err := decoded(t, out)
			if err != nil {
				refused++
				continue
			}
			if n, d := holes(im), apart(im, truth); n > 0 || d > 1 {
				t.Errorf("%s, %s, seed %d: %d samples are missing, mean difference %.1f", name, kind, seed, n, d)
			}
		}
		t.Logf("%s: %d of %d damages are refused", name, refused, rounds)
		if refused < int(rounds)*8/10 {
			t.Errorf("%s: %d of %d damages are refused", name, refused, rounds)
		}
	}
}

// A slice of another kind (ITU-T H.265, table 7-1: reserved) is none to the decoder.
func TestPictureWithoutSliceIsRefused(t *testing.T) {
	t.Parallel()
	const reserved, slices = 22 << 1, 4
	data := fixture(t, "slices.heic")
	at := content(data)
	for i := range slices {
		if i > 0 { // without the first one there is no picture
			out := bytes.Clone(data)
			out[at+4] = reserved
			if _, err := decoded(t, out); err == nil {
				t.Errorf("a picture without slice %d of %d is read", i+1, slices)
			}
		}
		at += 4 + int(binary.BigEndian.Uint32(data[at:]))
	}
	if at != len(data) {
		t.Fatalf("the fixture's slices end at %d of %d", at, len(data))
	}
}

// Sizes that the boxes announce and the decoder does not make would leave parts
// of the picture to chance.
func TestWrongAnnouncementIsRefused(t *testing.T) {
	t.Parallel()
	change := func(name, box string, at int, to ...byte) {
		t.Helper()
		data := bytes.Clone(fixture(t, name))
		n := bytes.Index(data, []byte(box))
		if n < 0 {
			t.Fatalf("%s has no %s", name, box)
		}
		copy(data[n+4+at:], to)
		if _, err := heif.ReadHead(data); err == nil {
			t.Errorf("%s with %v at %d of %s is read", name, to, at, box)
		}
	}
	change("slices.heic", "ispe", 4, 0, 0, 1, 0x50) // 336 wide, not 320
	change("slices.heic", "ispe", 8, 0, 0, 1, 0x30) // 304 high
	change("plain.heic", "clap", 16, 0, 0, 0, 9)    // 4.5 pixels to the right
	change("plain.heic", "clap", 16, 0, 0, 0, 7)    // half a pixel
	change("plain.heic", "clap", 0, 0, 0, 0, 80)    // 80 of 64 pixels
	change("grid.heic", "idat", 3, 2)               // three columns of two parts
	change("grid.heic", "idat", 4, 0, 200)          // 200 wide
}

// A second file behind the first would decode to more than the head announced.
func TestSecondFileBehindIsIgnored(t *testing.T) {
	t.Parallel()
	data := fixture(t, "slices.heic")
	want, err := decoded(t, data)
	must.Do(t, err)
	got, err := decoded(t, append(bytes.Clone(data), fixture(t, "plain.heic")...))
	if err != nil || apart(got, want) > 0 {
		t.Errorf("error %v, or another picture", err)
	}
}
