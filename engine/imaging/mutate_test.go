package imaging_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"slices"
)

// mutation is a way to spoil a file. Its result shares no memory with data.
type mutation struct {
	name   string
	change func(r *rand.Rand, data, other []byte) []byte
}

const (
	mutationCut   = "cut"
	mutationTrail = "trailing bytes"
)

// mutations are for files of every format; other is another file of the same format.
var mutations = []mutation{
	{mutationCut, func(r *rand.Rand, data, _ []byte) []byte {
		if r.IntN(2) == 0 {
			return bytes.Clone(data[:len(data)-1-r.IntN(min(100, len(data)-1))])
		}
		return bytes.Clone(data[:r.IntN(len(data))])
	}},
	{mutationTrail, func(r *rand.Rand, data, other []byte) []byte {
		return append(bytes.Clone(data), [][]byte{{0}, junk(r, 100), other, make([]byte, 64)}[r.IntN(4)]...)
	}},
	{"flipped bits", func(r *rand.Rand, data, _ []byte) []byte { return flipped(r, data, 0, len(data)) }},
	{"flipped bits of the head", func(r *rand.Rand, data, _ []byte) []byte {
		return flipped(r, data, 0, min(len(data), 32<<r.IntN(6)))
	}},
	{"bytes set", func(r *rand.Rand, data, _ []byte) []byte {
		out := bytes.Clone(data)
		at := r.IntN(len(out))
		for i := at; i < min(at+1+r.IntN(8), len(out)); i++ {
			out[i] = []byte{0, 1, 0x7f, 0x80, 0xff}[r.IntN(5)]
		}
		return out
	}},
	{"splice", func(r *rand.Rand, data, other []byte) []byte {
		at := r.IntN(len(data))
		return slices.Concat(data[:at], other[min(at, len(other)):])
	}},
	{"bytes taken out", func(r *rand.Rand, data, _ []byte) []byte {
		at := r.IntN(len(data))
		return slices.Concat(data[:at], data[min(at+1+r.IntN(20), len(data)):])
	}},
	{"bytes put in", func(r *rand.Rand, data, _ []byte) []byte {
		return inserted(data, r.IntN(len(data)), junk(r, 20))
	}},
}

// oddFiles are changes that keep to a format's structure, where damage at random would be
// noticed at once.
var oddFiles = map[string]func(r *rand.Rand, data, other []byte) []byte{
	"JPEG": oddJPEG,
	"PNG":  oddPNG,
	"GIF":  oddGIF,
	"BMP":  oddBMP,
	"WebP": oddWebP,
	"TIFF": oddTIFF,
	"HEIC": func(r *rand.Rand, data, _ []byte) []byte { return flipped(r, data, 0, min(700, len(data))) },
}

// mutate returns a changed file and how it was changed.
func mutate(r *rand.Rand, format string, data, other []byte) (string, []byte) {
	if r.IntN(2) == 0 {
		return "odd head", oddFiles[format](r, data, other)
	}
	m := mutations[r.IntN(len(mutations))]
	return m.name, m.change(r, data, other)
}

func junk(r *rand.Rand, most int) []byte {
	out := make([]byte, 1+r.IntN(most))
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

func inserted(data []byte, at int, what []byte) []byte {
	return slices.Concat(data[:at], what, data[at:])
}

// flipped returns data with up to four bits changed between two offsets.
func flipped(r *rand.Rand, data []byte, from, to int) []byte {
	out := bytes.Clone(data)
	if from >= to {
		return out
	}
	for range 1 + r.IntN(4) {
		out[from+r.IntN(to-from)] ^= 1 << r.IntN(8)
	}
	return out
}

// rearranged doubles, drops or swaps parts of a file; the first one stays where it is.
func rearranged(r *rand.Rand, parts [][]byte) [][]byte {
	if len(parts) < 3 {
		return parts
	}
	i, j := 1+r.IntN(len(parts)-1), 1+r.IntN(len(parts)-1)
	switch r.IntN(3) {
	case 0:
		return slices.Insert(slices.Clone(parts), i, parts[j])
	case 1:
		return slices.Delete(slices.Clone(parts), i, i+1)
	}
	parts = slices.Clone(parts)
	parts[i], parts[j] = parts[j], parts[i]
	return parts
}

// segments splits a JPEG: its start, each segment before the first scan, and the rest.
func segments(data []byte) [][]byte {
	parts := [][]byte{data[:2]}
	at := 2
	for at+4 <= len(data) && data[at+1] != 0xda {
		end := min(at+2+int(binary.BigEndian.Uint16(data[at+2:])), len(data))
		parts = append(parts, data[at:end])
		at = end
	}
	return append(parts, data[at:])
}

func oddJPEG(r *rand.Rand, data, other []byte) []byte {
	parts := segments(bytes.Clone(data))
	rest := len(parts) - 1
	at := 1 + r.IntN(rest)
	switch r.IntN(9) {
	case 0:
		parts = rearranged(r, parts)
	case 1: // of the other file
		from := segments(other)
		parts = slices.Insert(parts, at, from[1+r.IntN(len(from)-1)])
	case 2:
		parts = slices.Insert(parts, at, [][]byte{{0}, {0, 0}, {0xff}, {0xff, 0xff}, {0x55}, junk(r, 4), {0xff, 0xd8}, {0xff, 0xd0}, {0xff, 0}}[r.IntN(9)])
	case 3: // JFIF of another version, of which readers say that they do not know it
		head := append([]byte("\xff\xe0\x00\x10JFIF\x00"), byte(r.Uint32()), byte(r.Uint32()), 0, 0, 1, 0, 1, 0, 0)
		parts = slices.Insert(parts, at, head)
	case 4: // Adobe's segment with another transform
		head := append([]byte("\xff\xee\x00\x0eAdobe\x00d\x00\x00\x00\x00"), byte(r.IntN(8)))
		parts = slices.Insert(parts, at, head)
	case 5: // a restart interval
		parts = slices.Insert(parts, at, []byte{0xff, 0xdd, 0, 4, 0, byte(r.IntN(9))})
	case 6: // a length
		if len(parts[at]) > 4 {
			parts[at][3] += byte(1 + r.IntN(3))
		}
	case 7: // a restart, an end or a start within the pixels
		mark := []byte{0xff, []byte{0xd0, 0xd1, 0xd7, 0xd9, 0xd8, 0x01, 0xff}[r.IntN(7)]}
		parts[rest] = inserted(parts[rest], r.IntN(len(parts[rest])+1), mark)
	default:
		parts[at] = flipped(r, parts[at], 2, min(len(parts[at]), 20))
	}
	return slices.Concat(parts...)
}

// chunks splits a PNG: its signature, each chunk, and what is behind.
func chunks(data []byte) [][]byte {
	parts := [][]byte{data[:8]}
	rest := data[8:]
	for len(rest) >= 12 {
		n := min(12+int(binary.BigEndian.Uint32(rest)), len(rest))
		parts = append(parts, rest[:n])
		rest = rest[n:]
	}
	return append(parts, rest)
}

func oddPNG(r *rand.Rand, data, other []byte) []byte {
	parts := chunks(data)
	if len(parts) < 4 {
		return bytes.Clone(data)
	}
	at := 1 + r.IntN(len(parts)-2)
	body := bytes.Clone(parts[at][8 : len(parts[at])-4])
	switch kind := string(parts[at][4:8]); r.IntN(6) {
	case 0:
		parts = rearranged(r, parts)
	case 1: // of the other file
		from := chunks(other)
		parts = slices.Insert(parts, at, from[1+r.IntN(len(from)-2)])
	case 2: // one that readers do not know, or must not
		kinds := []string{"tEXt", "abCd", "ABCD", "tRNS", "gAMA", "sBIT", "bKGD", "eXIf", "IDAT", "IEND", "acTL", "cICP"}
		parts = slices.Insert(parts, at, chunk(kinds[r.IntN(len(kinds))], junk(r, 20)))
	case 3: // other scanlines
		parts = scanlines(r, parts)
	default: // a change that the checksum covers
		parts[at] = chunk(kind, flipped(r, body, 0, len(body)))
	}
	return slices.Concat(parts...)
}

// scanlines flips bits of a PNG's unpacked scanlines.
func scanlines(r *rand.Rand, parts [][]byte) [][]byte {
	var packed []byte
	var others [][]byte
	first := 0
	for i, p := range parts {
		if len(p) >= 12 && string(p[4:8]) == "IDAT" {
			packed = append(packed, p[8:len(p)-4]...)
			if first == 0 {
				first = i
			}
			continue
		}
		others = append(others, p)
	}
	in, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return parts
	}
	raw, err := io.ReadAll(in)
	if err != nil {
		return parts
	}
	raw = flipped(r, raw, 0, len(raw))
	switch r.IntN(4) {
	case 0:
		raw = append(raw, junk(r, 50)...)
	case 1:
		raw = raw[:r.IntN(len(raw))]
	}
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	if _, err := w.Write(raw); err != nil || w.Close() != nil {
		return parts
	}
	return slices.Insert(others, first, chunk("IDAT", out.Bytes()))
}

// Lengths of the fixed parts of a GIF.
const (
	gifScreen = 13
	gifFrame  = 10
)

func oddGIF(r *rand.Rand, data, _ []byte) []byte {
	out := bytes.Clone(data)
	frame := bytes.IndexByte(out[gifScreen:], ',') // or a byte of the palette
	if n := 3 << (1 + out[10]&7); out[10]&0x80 != 0 && gifScreen+n < len(out) {
		frame = n + bytes.IndexByte(out[gifScreen+n:], ',')
	}
	frame += gifScreen
	if frame < gifScreen || frame+gifFrame > len(out) {
		return out
	}
	switch r.IntN(6) {
	case 0: // the screen grows or shrinks
		out[6+2*r.IntN(2)] += byte(r.IntN(40) - 20)
	case 1: // the frame lies elsewhere
		out[frame+1+2*r.IntN(2)] = byte(r.IntN(30))
	case 2:
		out[frame+5+2*r.IntN(2)] += byte(r.IntN(20) - 10)
	case 3:
		out[frame+9] ^= 1 << r.IntN(8)
	case 4:
		what := [][]byte{[]byte("!\xfe\x02hi\x00"), []byte("!\xf9\x04\x01\x00\x00\x02\x00"), []byte("!\xf9\x04\x0d\x00\x00\xff\x00"), {0}, []byte("!\x01\x03abc\x00")}
		return inserted(out, frame, what[r.IntN(5)])
	default:
		return flipped(r, out, 6, min(frame+gifFrame+6, len(out)))
	}
	return out
}

func oddBMP(r *rand.Rand, data, _ []byte) []byte {
	out := bytes.Clone(data)
	o := binary.LittleEndian
	switch r.IntN(7) {
	case 0: // where the pixels lie
		o.PutUint32(out[10:], o.Uint32(out[10:])+uint32(r.IntN(16))-4)
	case 1: // length of the header
		o.PutUint32(out[14:], []uint32{12, 16, 40, 52, 56, 64, 108, 124}[r.IntN(8)])
	case 2: // size, or the other way up
		at := 18 + 4*r.IntN(2)
		o.PutUint32(out[at:], []uint32{-o.Uint32(out[at:]), o.Uint32(out[at:]) - 1, o.Uint32(out[at:]) + 1}[r.IntN(3)])
	case 3: // planes, bits, compression
		out[[]int{26, 28, 30}[r.IntN(3)]] = []byte{0, 1, 2, 3, 4, 6, 8, 16, 24, 32}[r.IntN(10)]
	case 4: // colours
		o.PutUint32(out[46+4*r.IntN(2):], uint32([]int{0, 1, 2, 16, 255, 256, 257, -1}[r.IntN(8)]))
	default:
		return flipped(r, out, 2, min(len(out), 138))
	}
	return out
}

func oddTIFF(r *rand.Rand, data, _ []byte) []byte {
	out := bytes.Clone(data)
	var o binary.ByteOrder = binary.LittleEndian
	if out[0] == 'M' {
		o = binary.BigEndian
	}
	directory := int(o.Uint32(out[4:]))
	if directory+2 > len(out) {
		return out
	}
	entry := directory + 2 + 12*r.IntN(max(1, int(o.Uint16(out[directory:]))))
	if entry+12 > len(out) {
		return out
	}
	switch r.IntN(6) {
	case 0: // another tag: sample format, fill order, planes, white point, extra samples, predictor …
		o.PutUint16(out[entry:], []uint16{254, 258, 266, 277, 284, 292, 317, 318, 338, 339, 274, 330}[r.IntN(12)])
	case 1:
		o.PutUint16(out[entry+2:], uint16(r.IntN(14)))
	case 2:
		o.PutUint32(out[entry+4:], uint32(r.IntN(6)))
	case 3:
		o.PutUint16(out[entry+8:], uint16(r.IntN(10)))
	default:
		return flipped(r, out, entry, entry+12)
	}
	return out
}

// riffChunks splits a WebP: its head, each chunk, and what is behind.
func riffChunks(data []byte) [][]byte {
	parts := [][]byte{data[:12]}
	rest := data[12:]
	for len(rest) >= 8 {
		n := int(binary.LittleEndian.Uint32(rest[4:]))
		n = min(8+n+n&1, len(rest))
		parts = append(parts, rest[:n])
		rest = rest[n:]
	}
	return append(parts, rest)
}

func oddWebP(r *rand.Rand, data, other []byte) []byte {
	parts := riffChunks(bytes.Clone(data))
	at := 1 + r.IntN(len(parts)-1)
	switch r.IntN(6) {
	case 0:
		parts = rearranged(r, parts)
	case 1:
		from := riffChunks(other)
		parts = slices.Insert(parts, at, from[1+r.IntN(len(from)-1)])
	case 2:
		kinds := []string{"EXIF", "XMP ", "ICCP", "ALPH", "VP8 ", "VP8L", "abcd", "ANIM"}
		body := junk(r, 10)
		head := binary.LittleEndian.AppendUint32([]byte(kinds[r.IntN(len(kinds))]), uint32(len(body)))
		parts = slices.Insert(parts, at, append(append(head, body...), make([]byte, len(body)%2)...))
	case 3: // the announced length alone
		out := slices.Concat(parts...)
		binary.LittleEndian.PutUint32(out[4:], binary.LittleEndian.Uint32(out[4:])+uint32(r.IntN(9))-4)
		return out
	default:
		parts[at] = flipped(r, parts[at], 0, min(len(parts[at]), 40))
	}
	out := slices.Concat(parts...)
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-8))
	return out
}
