package imaging_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	colour "image/color" //nolint:misspell // the standard library spells it so
	"image/jpeg"
	"image/png"
	"math"
	"runtime"
	"strings"
	"testing"

	"facet/engine/enginetest"
	"facet/engine/imaging"
	"facet/internal/must"
)

// drawn returns a w × h picture without symmetry, coarse enough for JPEG.
func drawn(w, h int) *image.NRGBA {
	im := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			im.SetNRGBA(x, y, colour.NRGBA{R: uint8(255 * x / w), G: uint8(255 * y / h), B: uint8(64 * ((2*x/w)*2 + 2*y/h)), A: 255})
		}
	}
	return im
}

func asPNG(t testing.TB, im image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, png.Encode(&out, im))
	return out.Bytes()
}

func asJPEG(t testing.TB, im image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, jpeg.Encode(&out, im, &jpeg.Options{Quality: 95}))
	return out.Bytes()
}

// tiff is a TIFF header with one directory that holds the orientation.
func tiff(order binary.AppendByteOrder, orientation uint16) []byte {
	b := []byte("II")
	if order == binary.AppendByteOrder(binary.BigEndian) {
		b = []byte("MM")
	}
	b = order.AppendUint16(b, 42)
	b = order.AppendUint32(b, 8)
	b = order.AppendUint16(b, 1) // entries
	b = order.AppendUint16(b, 0x0112)
	b = order.AppendUint16(b, 3) // of 16 bits
	b = order.AppendUint32(b, 1)
	b = order.AppendUint16(b, orientation)
	b = order.AppendUint16(b, 0)
	return order.AppendUint32(b, 0)
}

// withEXIF puts an EXIF block into a JPEG.
func withEXIF(data, block []byte) []byte {
	segment := append([]byte("Exif\x00\x00"), block...)
	out := append([]byte{0xff, 0xd8, 0xff, 0xe1}, byte((len(segment)+2)>>8), byte(len(segment)+2))
	return append(append(out, segment...), data[2:]...)
}

// chunk is a PNG chunk with its checksum.
func chunk(kind string, body []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	out = append(append(out, kind...), body...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

// withChunk puts a chunk behind a PNG's header.
func withChunk(data, chunk []byte) []byte {
	const head = 8 + 25
	out := append([]byte(nil), data[:head]...)
	return append(append(out, chunk...), data[head:]...)
}

// pngHead is a PNG that announces a size and holds nothing.
func pngHead(w, h uint32, bytesBehind int) []byte {
	body := binary.BigEndian.AppendUint32(nil, w)
	body = binary.BigEndian.AppendUint32(body, h)
	body = append(body, 8, 2, 0, 0, 0)
	out := append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", body)...)
	return append(out, chunk("IDAT", make([]byte, bytesBehind))...)
}

// storedAs returns the picture whose pixels, stored with the orientation, show im.
func storedAs(im image.Image, orientation int) image.Image {
	w, h := im.Bounds().Dx(), im.Bounds().Dy()
	sw, sh := w, h
	if orientation >= 5 {
		sw, sh = h, w
	}
	out := image.NewNRGBA(image.Rect(0, 0, sw, sh))
	for y := range sh {
		for x := range sw {
			// Where the first row and column of the storage are on the picture
			// (EXIF 2.32, tag 274).
			px, py := x, y
			switch orientation {
			case 2:
				px = w - 1 - x
			case 3:
				px, py = w-1-x, h-1-y
			case 4:
				py = h - 1 - y
			case 5:
				px, py = y, x
			case 6:
				px, py = w-1-y, x
			case 7:
				px, py = w-1-y, h-1-x
			case 8:
				px, py = y, h-1-x
			}
			out.Set(x, y, im.At(px, py))
		}
	}
	return out
}

func distance(a, b *imaging.Image) float64 {
	if a.Width != b.Width || a.Height != b.Height {
		return math.Inf(1)
	}
	var sum float64
	for i := range a.Pix {
		sum += math.Abs(float64(a.Pix[i]) - float64(b.Pix[i]))
	}
	return sum / float64(len(a.Pix))
}

func decode(t testing.TB, data []byte) *imaging.Image {
	t.Helper()
	im, err := imaging.Decode(data)
	must.Do(t, err)
	return im
}

// Some programs write the orientation as a BYTE or a LONG instead of a SHORT.
func TestOrientationIsReadInEveryWidth(t *testing.T) {
	t.Parallel()
	plain := asJPEG(t, drawn(64, 48))
	type order interface {
		binary.ByteOrder
		binary.AppendByteOrder
	}
	for _, order := range []order{binary.LittleEndian, binary.BigEndian} {
		for kind := uint16(1); kind <= 4; kind++ {
			block := tiff(order, 0)
			order.PutUint16(block[12:], kind)
			switch kind {
			case 1:
				copy(block[18:], []byte{6, 0, 0, 0})
			case 3:
				order.PutUint16(block[18:], 6)
			case 4:
				order.PutUint32(block[18:], 6)
			}
			if got, turned := decode(t, withEXIF(plain, block)), kind != 2; (got.Width == 48) != turned { // a text is no number
				t.Errorf("type %d, %v: width %d", kind, order, got.Width)
			}
		}
	}
}

func TestInvalidOrientationsAreIgnored(t *testing.T) {
	t.Parallel()
	plain := asJPEG(t, drawn(64, 48))
	want := decode(t, plain)
	whole := tiff(binary.LittleEndian, 6)
	for _, block := range [][]byte{tiff(binary.LittleEndian, 0), tiff(binary.BigEndian, 9), {}, whole[:12], []byte("IIxx")} {
		if got := distance(decode(t, withEXIF(plain, block)), want); got != 0 {
			t.Errorf("EXIF %x changed the picture by %.1f", block, got)
		}
	}
	loop := append([]byte(nil), whole...)
	binary.LittleEndian.PutUint32(loop[22:], 8) // the next directory is the first
	if got := decode(t, withEXIF(plain, loop)); got.Width != 48 {
		t.Errorf("a directory in a circle: width %d, want the turned 48", got.Width)
	}
}

func TestUnusableImagesAreRefused(t *testing.T) {
	t.Parallel()
	picture := enginetest.Photo(t, "scikit-image/coffee.png")
	f := func(name string, data []byte) {
		t.Helper()
		if _, err := imaging.Decode(data); !errors.Is(err, imaging.ErrDecode) {
			t.Errorf("%s: got %v, want ErrDecode", name, err)
		}
	}
	f("nothing", nil)
	f("text", []byte("hello, this is no image at all"))
	f("half a GIF", []byte("GIF89a\x10\x00\x10\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,"))
	f("a small PNG", asPNG(t, drawn(15, 100)))
	f("a small JPEG", asJPEG(t, drawn(100, 15)))
	f("a wide PNG", pngHead(12_001, 20, 100))
	f("many pixels", pngHead(8000, 5001, 100))
	f("no width", pngHead(0, 100, 100))
	f("a width below zero", pngHead(1<<31+5, 100, 100))
	f("pixels that do not unpack", pngHead(100, 100, 100))
	broken := bytes.Clone(picture)
	broken[len(broken)/2] ^= 0x55
	f("a changed byte", broken)
}

// bmp is a black BMP of as many bits a pixel.
func bmp(w, h uint32, bits uint16) []byte {
	o := binary.LittleEndian
	out := append([]byte("BM\x00\x00\x00\x00\x00\x00\x00\x00"), 54, 0, 0, 0, 40, 0, 0, 0)
	out = o.AppendUint32(o.AppendUint32(out, w), h)
	out = append(o.AppendUint16(append(out, 1, 0), bits), make([]byte, 24)...)
	return append(out, make([]byte, (w*uint32(bits)+31)/32*4*h)...)
}

// planes is an RGB TIFF with three strips of separate planes of the content, or black.
func planes(w, h, bits uint32, content []byte) []byte {
	n := w * h * bits / 8
	if content == nil {
		content = make([]byte, 3*n)
	}
	entries := [][2]uint32{{256, w}, {257, h}, {258, bits}, {259, 1}, {262, 2}, {273, 0}, {277, 3}, {278, h}, {279, 0}, {284, 2}}
	tables := uint32(8 + 2 + 12*len(entries) + 4) // offsets, then lengths
	entries[5][1], entries[8][1] = tables, tables+12
	out := tiffOf(entries, nil)
	for _, i := range []int{5, 8} { // three values
		out[10+12*i+4] = 3
	}
	for i := range uint32(3) {
		out = binary.LittleEndian.AppendUint32(out, tables+24+i*n)
	}
	for range 3 {
		out = binary.LittleEndian.AppendUint32(out, n)
	}
	return append(out, content...)
}

// taken returns how many bytes f allocates.
func taken(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

func TestAnnouncedMemoryIsEnough(t *testing.T) {
	const slack = 200 << 10 // tables and buffers
	files := map[string][]byte{
		"JPEG 4:2:0":  asJPEG(t, drawn(1001, 999)),
		"PNG":         asPNG(t, drawn(1001, 999)),
		"PNG 16":      asPNG(t, image.NewNRGBA64(image.Rect(0, 0, 1001, 999))),
		"progressive": progressive(t),
		"photo":       enginetest.Photo(t, "face_recognition/biden.jpg"),
		"BMP":         bmp(1001, 999, 24),
		"BMP 16":      bmp(1001, 999, 16),
		"TIFF planes": planes(1001, 999, 8, nil),
		"planes 16":   planes(1001, 999, 16, nil),
	}
	for _, name := range fixtures(t) {
		if !strings.HasSuffix(name, ".heic") { // whose memory is another process's, and bounded there
			files[name] = fixture(t, name)
		}
	}
	for name, data := range files {
		both(t, data, func(by string, c imaging.Config) {
			var err error
			if got := taken(func() { err = c.DecodeInto(t.Context(), new(imaging.Image), data, imaging.Whole) }); err != nil || got > c.Bytes(imaging.Whole)+slack+int64(len(data)) {
				t.Errorf("%s by %s: took %d bytes, announced %d: %v", name, by, got, c.Bytes(imaging.Whole), err)
			}
		})
	}
}

// progressive is a progressive JPEG of 512 × 512 grey pixels, all of one value:
// a frame of kind 2, and one scan for the first coefficients.
func progressive(t testing.TB) []byte {
	t.Helper()
	base := asJPEG(t, image.NewGray(image.Rect(0, 0, 512, 512)))
	frame := bytes.Index(base, []byte{0xff, 0xc0})
	scan := bytes.Index(base, []byte{0xff, 0xda})
	if frame < 0 || scan < 0 {
		t.Fatal("the encoder's markers are not there")
	}
	out := bytes.Clone(base[:scan])
	out[frame+1] = 0xc2
	// One component, table 0, coefficient 0 alone; code 00 says "no difference"
	// in the encoder's table of differences, two bits for each of 4,096 blocks.
	out = append(out, 0xff, 0xda, 0, 8, 1, 1, 0, 0, 0, 0)
	out = append(out, make([]byte, 4096*2/8)...)
	return append(out, 0xff, 0xd9)
}

func FuzzDecode(f *testing.F) {
	small := drawn(24, 18)
	f.Add(asPNG(f, small))
	f.Add(asJPEG(f, small))
	f.Add(asPNG(f, image.NewGray16(small.Rect)))
	f.Add(withEXIF(asJPEG(f, small), tiff(binary.BigEndian, 6)))
	f.Add(withChunk(asPNG(f, small), chunk("eXIf", tiff(binary.LittleEndian, 8))))
	f.Add(withChunk(asPNG(f, small), chunk("zTXt", []byte("Raw profile type exif\x00\x00x"))))
	f.Add(progressive(f))
	f.Add(pngHead(30_000, 30_000, 10))
	f.Add([]byte("\xff\xd8\xff\xe1\x00\x02"))
	for _, name := range fixtures(f) {
		f.Add(fixture(f, name))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := imaging.DecodeConfig(data)
		if err != nil {
			if !errors.Is(err, imaging.ErrDecode) {
				t.Fatal(err)
			}
			return
		}
		// Large ones are as right as small ones and slow the fuzzer down, and a HEIC
		// takes a process: package heif fuzzes it.
		if c.Width*c.Height > 1<<18 || c.Format == "HEIC" {
			return
		}
		im := new(imaging.Image)
		for _, s := range []imaging.Shrink{imaging.Whole, imaging.Quarter} {
			if err := c.DecodeInto(t.Context(), im, data, s); err != nil {
				if !errors.Is(err, imaging.ErrDecode) {
					t.Fatal(err)
				}
				return
			}
			w, h := (c.Width+int(s)-1)/int(s), (c.Height+int(s)-1)/int(s)
			if im.Width*im.Height != w*h || im.Width != w && im.Width != h || len(im.Pix) != 3*w*h {
				t.Fatalf("%d × %d shrunk by %d: %d × %d with %d bytes", c.Width, c.Height, s, im.Width, im.Height, len(im.Pix))
			}
		}
	})
}
