package imaging_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"facet/engine/enginetest"
	"facet/engine/imaging"
	"facet/engine/imaging/heif/heiftest"
)

// riff is a WebP file of one chunk that announces a length.
func riff(kind string, announced uint32, body []byte) []byte {
	out := binary.LittleEndian.AppendUint32([]byte("RIFF"), announced+12)
	out = append(out, "WEBP"+kind...)
	return append(binary.LittleEndian.AppendUint32(out, announced), body...)
}

// tiffOf is a little-endian TIFF whose directory has the entries, of 32 bits each,
// which are in order; data follows it.
func tiffOf(entries [][2]uint32, data []byte) []byte {
	o := binary.LittleEndian
	out := o.AppendUint16([]byte("II*\x00\x08\x00\x00\x00"), uint16(len(entries)))
	for _, e := range entries {
		out = o.AppendUint16(out, uint16(e[0]))
		out = o.AppendUint32(o.AppendUint16(out, 4), 1)
		out = o.AppendUint32(out, e[1])
	}
	return append(o.AppendUint32(out, 0), data...)
}

// scans is a progressive JPEG, w × h and grey, of n scans that say nothing.
func scans(w, h uint16, n int) []byte {
	out := []byte{0xff, 0xd8, 0xff, 0xc2, 0, 11, 8, byte(h >> 8), byte(h), byte(w >> 8), byte(w), 1, 1, 0x11, 0}
	for range n {
		out = append(out, 0xff, 0xda, 0, 8, 1, 1, 0, 0, 0, 0, 0x55)
	}
	return append(out, 0xff, 0xd9)
}

func TestHostileHeadsAreRefusedCheaply(t *testing.T) {
	grid := fixture(t, "grid.heic")
	video := bytes.Clone(grid) // one part twelve times as large: its HEVC size says so
	at := bytes.Index(video, []byte("hvcC"))
	sps := at + bytes.Index(video[at:], []byte{0x42, 0x01}) // the sequence parameters
	if at < 0 || sps < at {
		t.Fatal("the fixture's parameters are not there")
	}
	// Behind profile and level (15 bytes with a layer's) the code of the size is
	// shortened: fewer leading zeros are another number.
	video[sps+15] ^= 0xff
	tile := heiftest.Coded(t, fixture(t, "plain.heic"))
	tiles := heiftest.File{Items: []heiftest.Item{ // the third makes the file large enough for them
		heiftest.Grid(41, 64, 64, slices.Repeat([]int{2}, 41*25)...), tile, {Kind: "Exif", Data: make([]byte, 4<<20)},
	}}
	large := asJPEG(t, drawn(64, 48))
	frame := bytes.Index(large, []byte{0xff, 0xc0})
	copy(large[frame+5:], []byte{0x1f, 0x40, 0x1f, 0x40}) // 8,000 × 8,000
	for name, data := range map[string][]byte{
		"PNG, 30,000²":              pngHead(30_000, 30_000, 100<<10),
		"WebP, a chunk of 2 GB":     riff("VP8 ", 1<<31-20, make([]byte, 100)),
		"WebP, lossless 16,384²":    riff("VP8L", 100, append([]byte{0x2f, 0xff, 0xff, 0xff, 0x0f}, make([]byte, 95)...)),
		"GIF, 65,535²":              []byte("GIF89a\xff\xff\xff\xff\x00\x00\x00,\x00\x00\x00\x00\xff\xff\xff\xff\x00\x02"),
		"BMP, 2 G wide":             append([]byte("BM\x00\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00\xff\xff\xff\x7f\x10\x00\x00\x00\x01\x00\x18\x00"), make([]byte, 100)...),
		"TIFF, 60,000²":             tiffOf([][2]uint32{{256, 60000}, {257, 60000}, {258, 8}, {262, 1}, {273, 8}, {279, 1}}, nil),
		"TIFF, a million tiles":     tiffOf([][2]uint32{{256, 6000}, {257, 6000}, {258, 8}, {259, 8}, {262, 1}, {322, 8}, {323, 8}, {324, 8}, {325, 1}}, nil),
		"TIFF, tiles beyond it":     tiffOf([][2]uint32{{256, 12000}, {257, 16}, {258, 8}, {259, 8}, {262, 1}, {322, 8}, {323, 20000}, {324, 8}, {325, 1}}, nil),
		"TIFF, a strip too long":    tiffOf([][2]uint32{{256, 100}, {257, 100}, {258, 8}, {262, 1}, {273, 8}, {278, 100}, {279, 1 << 30}}, make([]byte, 100)),
		"JPEG, 64 million pixels":   large,
		"JPEG, 101 scans":           scans(64, 64, 101),
		"JPEG, 90 scans of 36 MP":   scans(6000, 6000, 90),
		"JPEG, arithmetic coding":   []byte("\xff\xd8\xff\xc9\x00\x0b\x08\x00\x40\x00\x40\x01\x01\x11\x00\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00"),
		"HEIC, coded larger":        video,
		"HEIC, a tile of itself":    bytes.Replace(grid, []byte("dimg\x00\x03\x00\x02\x00\x01\x00\x02"), []byte("dimg\x00\x03\x00\x02\x00\x01\x00\x03"), 1),
		"HEIC, 1,025 tiles for one": tiles.Bytes(),
		"HEIC, no boxes":            []byte("\x00\x00\x00\x10ftypheic\x00\x00\x00\x00"),
	} {
		var err error
		took, fastest := int64(0), time.Hour
		for range 5 { // other work may hold one of them up
			start := time.Now()
			took = taken(func() { _, err = imaging.DecodeConfig(data) })
			fastest = min(fastest, time.Since(start))
		}
		if !errors.Is(err, imaging.ErrDecode) {
			t.Errorf("%s: got %v, want ErrDecode", name, err)
		}
		if fastest > 20*time.Millisecond || took > int64(len(data))+128<<10 {
			t.Errorf("%s: took %v and %d bytes", name, fastest, took)
		}
		t.Logf("%-30s %v", name, err)
	}
}

func TestDamagedPhotosTakeNoLonger(t *testing.T) {
	t.Parallel()
	const most = time.Second // a whole photo takes 30 ms
	photo := enginetest.Photo(t, "face_recognition/obama.jpg")
	for i := 4; i < 16; i += 3 { // before that it is all EXIF
		for name, data := range map[string][]byte{
			"cut":     photo[:len(photo)*i/16],
			"damaged": append(append(bytes.Clone(photo[:len(photo)*i/16]), bytes.Repeat([]byte{0xff, 0xd9, 0x31}, 20)...), photo[len(photo)*i/16:]...),
			"refused": append(bytes.Clone(photo[:len(photo)*i/16]), bytes.Repeat([]byte{0xff, 0xd0}, 5000)...),
		} {
			var err error
			took := quickest(most, func() {
				var c imaging.Config
				if c, err = imaging.DecodeConfig(data); err == nil {
					err = c.DecodeInto(t.Context(), new(imaging.Image), data, imaging.Whole)
				}
			})
			if !errors.Is(err, imaging.ErrDecode) {
				t.Errorf("%s at %d of 16: got %v, want ErrDecode", name, i, err)
			}
			if took > most {
				t.Errorf("%s at %d of 16: took %v", name, i, took)
			}
		}
	}
}

func TestBothJPEGDecodersAgree(t *testing.T) {
	t.Parallel()
	const mean, most = 0.5, 8 // of 255: the transforms round differently
	for _, name := range []string{"face_recognition/obama.jpg", "face-api/sample1.jpg"} {
		data := enginetest.Photo(t, name)
		var ims []*imaging.Image
		both(t, data, func(by string, c imaging.Config) {
			im := new(imaging.Image)
			if err := c.DecodeInto(t.Context(), im, data, imaging.Whole); err != nil {
				t.Fatalf("%s by %s: %v", name, by, err)
			}
			ims = append(ims, im)
		})
		worst := 0
		for i, v := range ims[0].Pix {
			worst = max(worst, int(v)-int(ims[1].Pix[i]), int(ims[1].Pix[i])-int(v))
		}
		t.Logf("%s: mean difference %.3f, largest %d", name, distance(ims[0], ims[1]), worst)
		if d := distance(ims[0], ims[1]); d > mean || worst > most {
			t.Errorf("%s: mean difference %.3f, largest %d; want %v and %d or less", name, d, worst, mean, most)
		}
	}
}

func TestRefusalSaysWhy(t *testing.T) {
	t.Parallel()
	f := func(name, want string, change func(data []byte)) {
		t.Helper()
		data := fixture(t, name)
		change(data)
		if _, err := imaging.Decode(data); !errors.Is(err, imaging.ErrDecode) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want ErrDecode that says %q", name, err, want)
		}
	}
	f("animated.webp", "beyond its edge", func(data []byte) { data[bytes.Index(data, []byte("ANMF"))+8] = 1 })
	f("animated.webp", "beside its frames", func(data []byte) { copy(data[bytes.Index(data, []byte("ANIM")):], "VP8L") })
	f("animated.webp", "not start with a picture", func(data []byte) { copy(data[bytes.Index(data, []byte("ANMF"))+24:], "abcd") })
	f("cmyk.jpg", "Adobe", func(data []byte) { data[bytes.Index(data, []byte("Adobe"))] = 'a' })
	at := func(n int, to byte) func([]byte) { return func(data []byte) { data[n] = to } }
	f("24.bmp", "its header of 41 bytes", at(14, 41))
	f("8.bmp", "it is compressed", at(30, 1))
	f("os2-64.bmp", "it is compressed", at(30, 3))
	f("24.bmp", "its kind 5 is not read", at(30, 5))
	f("24.bmp", "masks for 24 bits", at(30, 3))
	f("8.bmp", "masks and a palette", at(30, 3))
	f("24.bmp", "5 bits a pixel", at(28, 5))
	f("8.bmp", "begin in its header", func(data []byte) { copy(data[10:], []byte{20, 0}) })

	// entry changes the first value of an entry of a little-endian TIFF.
	entry := func(tag uint16, to byte) func([]byte) {
		return func(data []byte) {
			o := binary.LittleEndian
			first := int(o.Uint32(data[4:])) + 2
			for i := range int(o.Uint16(data[first-2:])) {
				if e := data[first+12*i:]; o.Uint16(e) == tag {
					e[8] = to
					return
				}
			}
			t.Fatalf("the fixture has no entry %d", tag)
		}
	}
	f("raw.tif", "JPEG inside", entry(259, 7))
	f("raw.tif", "CMYK", entry(262, 5))
	f("bilevel-g4.tif", "palette", entry(262, 3))
	f("planes.tif", "lie apart", entry(277, 5))
	f("planes.tif", "lie apart", entry(277, 4)) // no word on what the fourth is
	f("planes.tif", "lie apart", entry(262, 0))
}
