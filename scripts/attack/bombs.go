package main

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/gif"
	"net/http"
	"os"
	"path/filepath"
)

// bombs returns images that need much more memory or time than their bytes, and images
// that lie about their size.
func (a hostile) bombs() (list []body, err error) {
	files := map[string][]byte{}
	for _, size := range [][2]int{{6300, 6300}, {12_000, 3300}, {12_001, 100}, {100_000, 100_000}, {1 << 30, 1}, {1 << 31, 1 << 31}, {0, 5}, {1, 1}} {
		files[fmt.Sprintf("PNG of %d × %d", size[0], size[1])] = pngOf(size[0], size[1], 0)
	}
	files["PNG with 200 MB behind its pixels"] = pngOf(64, 64, 200<<20)
	files["PNG with a text of 300 MB"] = withChunk(pngOf(64, 64, 0), "zTXt", append([]byte("a\x00\x00"), deflated(300<<20)...))
	files["PNG with a profile of 300 MB"] = withChunk(pngOf(64, 64, 0), "iCCP", append([]byte("a\x00\x00"), deflated(300<<20)...))
	files["GIF of 65535 × 65535"] = []byte("GIF89a\xff\xff\xff\xff\x00\x00\x00,\x00\x00\x00\x00\xff\xff\xff\xff\x00\x08\x01\x00\x00;")
	for _, size := range []uint32{40_000, 1 << 30, 1<<31 - 1, 1 << 31} {
		files[fmt.Sprintf("BMP of %d a side", size)] = bmpOf(size)
		files[fmt.Sprintf("TIFF of %d a side", size)] = tiffOf(size, 8)
		files[fmt.Sprintf("TIFF of %d a side in a circle", size)] = tiffOf(size, 0)
	}
	files["JPEG of 65535 × 65535"] = jpegOf(65535, 65535, 0)
	files["JPEG with 2,000 scans"] = jpegOf(4000, 4000, 2000)
	files["WebP of 16384 × 16384"] = []byte("RIFF\x2a\x00\x00\x00WEBPVP8L\x1e\x00\x00\x00\x2f\xff\xff\xff\x0f" + string(make([]byte, 25)))
	files["WebP canvas of 2^24 a side"] = []byte("RIFF\x16\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff")
	if err := a.patched(files); err != nil {
		return nil, err
	}
	const tooLarge = "PNG of 48 million pixels" // and it has them all
	files[tooLarge] = pngOf(12_000, 4000, 0)
	for what, data := range files {
		b := newBody(what, http.MethodPost, "/v1.1/face/search", `{"probe":"`+encoded(data)+`"}`)
		if what == tooLarge {
			b.reason = "UnreadableImage"
		}
		list = append(list, b)
	}
	return list, nil
}

// patched adds sound photos whose stated size is changed, or whose end is missing.
func (a hostile) patched(files map[string][]byte) error {
	dir := filepath.Join(filepath.Dir(a.files.Assets), "engine", "imaging", "testdata")
	for _, name := range []string{"plain.heic", "grid.heic", "lossless.webp", "lossy.webp", "deflate.tif", "animated.gif"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		files[name+" without its end"] = data[:len(data)*2/3]
		if name == "animated.gif" {
			if files["GIF with 3,000 pictures"], err = manyFrames(data, 3000); err != nil {
				return err
			}
		}
		big := bytes.Clone(data)
		if at := bytes.Index(big, []byte("ispe")); at >= 0 { // image spatial extents: version, width, height
			for ; at >= 0 && at+16 <= len(big); at = next(big, "ispe", at) {
				binary.BigEndian.PutUint32(big[at+8:], 60_000)
				binary.BigEndian.PutUint32(big[at+12:], 60_000)
			}
			files[name+" of 60000 a side"] = big
		}
		boxes := bytes.Clone(data)
		if bytes.Contains(boxes, []byte("ftyp")) {
			binary.BigEndian.PutUint32(boxes, 0xffffffff)
			files[name+" with a box of 4 GiB"] = boxes
		}
	}
	return nil
}

// next returns the next place of text in b after at, or -1.
func next(b []byte, text string, at int) int {
	n := bytes.Index(b[at+1:], []byte(text))
	if n < 0 {
		return -1
	}
	return at + 1 + n
}

// deflated returns n zeros as a zlib stream.
func deflated(n int) []byte {
	var out bytes.Buffer
	w, _ := zlib.NewWriterLevel(&out, zlib.BestCompression) // the level exists
	piece := make([]byte, 1<<20)
	for n > 0 {
		m := min(n, len(piece))
		_, _ = w.Write(piece[:m]) // into memory
		n -= m
	}
	_ = w.Close()
	return out.Bytes()
}

// chunk returns a PNG chunk.
func chunk(kind string, data []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	out = append(append(out, kind...), data...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

// pngOf returns a black PNG that states a size. It has the pixels only if they are not
// many more than a node reads, and more zeros behind them.
func pngOf(width, height, more int) []byte {
	head := binary.BigEndian.AppendUint32(nil, uint32(width))
	head = append(binary.BigEndian.AppendUint32(head, uint32(height)), 8, 2, 0, 0, 0)
	pixels := 1000
	if width*height <= 48_000_000 && width <= 12_000 {
		pixels = height * (1 + 3*width)
	}
	out := append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", head)...)
	return append(append(out, chunk("IDAT", deflated(pixels+more))...), chunk("IEND", nil)...)
}

// withChunk puts a chunk behind a PNG's head.
func withChunk(png []byte, kind string, data []byte) []byte {
	const head = 8 + 25
	return append(append(bytes.Clone(png[:head]), chunk(kind, data)...), png[head:]...)
}

// manyFrames returns an animated GIF of 4,000 pixels a side that shows the pictures of
// another one again and again.
func manyFrames(of []byte, n int) ([]byte, error) {
	g, err := gif.DecodeAll(bytes.NewReader(of))
	if err != nil {
		return nil, err
	}
	few := g.Image
	*g = gif.GIF{Config: image.Config{Width: 4000, Height: 4000}}
	for i := range n {
		g.Image, g.Delay = append(g.Image, few[i%len(few)]), append(g.Delay, 0)
	}
	var out bytes.Buffer
	err = gif.EncodeAll(&out, g)
	return out.Bytes(), err
}

// bmpOf returns a BMP that states a size and has no pixels.
func bmpOf(side uint32) []byte {
	out := append([]byte("BM"), make([]byte, 8)...)
	out = binary.LittleEndian.AppendUint32(out, 54)
	for _, v := range []uint32{40, side, side} {
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	return append(append(out, 1, 0, 24, 0), make([]byte, 24+64)...)
}

// tiffOf returns a TIFF that states a size. The second directory follows at next.
func tiffOf(side, next uint32) []byte {
	out := []byte("II*\x00\x08\x00\x00\x00")
	tags := [][3]uint32{{256, 4, side}, {257, 4, side}, {258, 3, 8}, {259, 3, 1}, {262, 3, 1}, {273, 4, 8}, {277, 3, 1}, {278, 4, side}, {279, 4, 0xffffffff}}
	out = binary.LittleEndian.AppendUint16(out, uint16(len(tags)))
	for _, t := range tags {
		out = binary.LittleEndian.AppendUint16(out, uint16(t[0]))
		out = binary.LittleEndian.AppendUint16(out, uint16(t[1]))
		out = binary.LittleEndian.AppendUint32(out, 1)
		out = binary.LittleEndian.AppendUint32(out, t[2])
	}
	return append(binary.LittleEndian.AppendUint32(out, next), make([]byte, 256)...)
}

// jpegOf returns a progressive JPEG that states a size, with empty scans.
func jpegOf(width, height uint16, scans int) []byte {
	out := []byte("\xff\xd8\xff\xdb\x00\x43\x00" + string(bytes.Repeat([]byte{1}, 64)))
	out = append(out, "\xff\xc2\x00\x0b\x08"...)
	out = binary.BigEndian.AppendUint16(out, height)
	out = binary.BigEndian.AppendUint16(out, width)
	out = append(out, "\x01\x01\x11\x00"...)
	out = append(out, "\xff\xc4\x00\x14\x00\x01"+string(make([]byte, 16))...)
	for range max(1, scans) {
		out = append(out, "\xff\xda\x00\x08\x01\x01\x00\x00\x00\x00\x00"...)
	}
	return append(out, "\xff\xd9"...)
}
