package imaging

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// A BMP is a file header of 14 bytes, an information header that begins with its own length, masks
// or a palette, and rows of whole 32-bit words. The lowest row comes first or, with a negative
// height, the highest.
const (
	bmpFileHead = 14
	bmpMasks    = bmpFileHead + 40 // offset of the masks, within the header or after it

	// Lengths of the information header: of OS/2 1.x and 2.x, and of Windows.
	bmpOS2      = 12
	bmpOS2Short = 16
	bmpOS2Long  = 64
	bmpWindows  = 40
	bmpMasked   = 52 // from here on the header contains the masks
	bmpAlpha    = 56 // from here on also that of transparency
	bmpV4       = 108
	bmpV5       = 124

	bmpColoursMax = 256

	// Kinds of compression. OS/2 has others from 3 on.
	bmpPlain      = 0
	bmpRunLength4 = 2
	bmpBitFields  = 3
	bmpAlphaField = 6
)

// bmpImage is a source. It has the layout of the rows from a BMP's head, and reads the
// rows from the file one by one.
type bmpImage struct {
	width, height int
	topDown       bool
	bits          int // of a pixel
	at, rowBytes  int // of the rows in the file
	colours       int // of the palette
	palette       [bmpColoursMax][3]uint8
	masks         [4]uint32 // of red, green, blue and alpha, for 16 and 32 bits
}

func configBMP(c *Config, data []byte) error {
	if len(data) < bmpFileHead+bmpOS2 {
		return errTruncated
	}
	size := int64(binary.LittleEndian.Uint32(data[bmpFileHead:]))
	switch size {
	case bmpOS2, bmpOS2Short, bmpWindows, bmpMasked, bmpAlpha, bmpOS2Long, bmpV4, bmpV5:
	default:
		return fmt.Errorf("its header of %d bytes is not read", size)
	}
	if int64(len(data)) < bmpFileHead+size {
		return errTruncated
	}
	b, err := readBMP(data, int(size))
	if err != nil {
		return err
	}
	c.Width, c.Height = b.width, b.height
	if err := checkSize(c.Width, c.Height); err != nil {
		return err
	}
	b.rowBytes = (b.width*b.bits + 31) / 32 * 4
	if b.at > len(data) || b.rowBytes*b.height > len(data)-b.at {
		return errTruncated
	}
	c.fixedBytes = bmpTables + rowTables*int64(c.Width)
	c.source = b
	return nil
}

const (
	bmpTables = 16 << 10
	rowTables = 24 // of a pixel of the width, for turning and shrinking rows
)

// readBMP reads the head; size is the length of its information header.
func readBMP(data []byte, size int) (*bmpImage, error) {
	o := binary.LittleEndian
	head := data[bmpFileHead:]
	b := &bmpImage{at: int(o.Uint32(data[10:]))}
	compression, colours := uint32(bmpPlain), 0
	if size == bmpOS2 {
		b.width, b.height = int(o.Uint16(head[4:])), int(o.Uint16(head[6:]))
		b.bits = int(o.Uint16(head[10:]))
	} else {
		b.width, b.height = int(int32(o.Uint32(head[4:]))), int(int32(o.Uint32(head[8:])))
		b.bits = int(o.Uint16(head[14:]))
	}
	if b.height < 0 {
		b.height, b.topDown = -b.height, true
	}
	if size >= bmpWindows {
		compression, colours = o.Uint32(head[16:]), int(o.Uint32(head[32:]))
	}
	fields := compression == bmpBitFields || compression == bmpAlphaField
	switch {
	case compression > bmpPlain && compression <= bmpRunLength4, size == bmpOS2Long && compression != bmpPlain:
		return nil, errors.New("it is compressed: save it without compression, or as PNG")
	case compression != bmpPlain && !fields:
		return nil, fmt.Errorf("its kind %d is not read: save it without compression, or as PNG", compression)
	}
	if planes := o.Uint16(head[planesAt(size):]); planes != 1 {
		return nil, fmt.Errorf("it has %d planes, not one", planes)
	}
	switch b.bits {
	case 1, 2, 4, 8:
		if fields {
			return nil, errors.New("it has masks and a palette")
		}
		return b, b.readPalette(data, size, colours)
	case 16, 32:
		return b, b.readMasks(data, size, compression, colours)
	case 24:
		if fields {
			return nil, errors.New("it has masks for 24 bits")
		}
		return b, b.checkStart(bmpFileHead+size, colours, 4)
	}
	return nil, fmt.Errorf("%d bits a pixel are not read, but 1, 2, 4, 8, 16, 24 and 32", b.bits)
}

var errBMPHead = errors.New("its rows begin in its header, or not behind it and its colours")

// planesAt returns the offset of the number of planes in a header.
func planesAt(size int) int {
	if size == bmpOS2 {
		return 8
	}
	return 12
}

// checkStart refuses rows that do not start directly after the head and its colours. If the head's
// length is damaged, other bytes would be taken for the palette.
func (b *bmpImage) checkStart(head, colours, entry int) error {
	if colours < 0 || colours > bmpColoursMax || b.at != head+entry*colours {
		return errBMPHead
	}
	return nil
}

func (b *bmpImage) readPalette(data []byte, size, colours int) error {
	entry := 4
	if size == bmpOS2 {
		entry = 3
	}
	if colours == 0 {
		colours = 1 << b.bits
	}
	at := bmpFileHead + size
	if err := b.checkStart(at, colours, entry); err != nil || colours > 1<<b.bits {
		return errBMPHead
	}
	if b.at > len(data) {
		return errTruncated
	}
	b.colours = colours
	for i := range colours {
		px := data[at+entry*i:]
		b.palette[i] = [3]uint8{px[2], px[1], px[0]}
	}
	return nil
}

func (b *bmpImage) readMasks(data []byte, size int, compression uint32, colours int) error {
	start := bmpFileHead + size
	switch {
	case compression != bmpPlain:
		n := 3
		if size >= bmpAlpha || compression == bmpAlphaField {
			n = 4
		}
		if len(data) < bmpMasks+4*n {
			return errTruncated
		}
		for i := range n {
			b.masks[i] = binary.LittleEndian.Uint32(data[bmpMasks+4*i:])
		}
		start = max(start, bmpMasks+4*n)
	case b.bits == 16:
		b.masks = [4]uint32{0x7c00, 0x3e0, 0x1f, 0}
	default:
		b.masks = [4]uint32{0xff0000, 0xff00, 0xff, 0}
	}
	if !b.channelsApart() {
		return errors.New("its masks are damaged, or of a kind that is not read")
	}
	return b.checkStart(start, colours, 4)
}

// channelsApart reports whether the masks are separate channels of 8 bits each, or of 4 to 6 bits
// in a pixel of 16. Transparency may be missing.
func (b *bmpImage) channelsApart() bool {
	var all uint32
	for i, m := range b.masks {
		if i == 3 && m == 0 {
			continue
		}
		n := bits.OnesCount32(m)
		wide := n == 8
		if b.bits == 16 {
			wide = n >= 4 && n <= 6 || i == 3 && n == 1
		}
		if !wide || all&m != 0 || bits.Len32(m)-bits.TrailingZeros32(m) != n || bits.Len32(m) > b.bits {
			return false
		}
		all |= m
	}
	return true
}

// checkIndices refuses a pixel whose colour is not in the palette.
func (b *bmpImage) checkIndices(data []byte) error {
	if b.colours == 0 || b.colours == 1<<b.bits {
		return nil
	}
	each, mask := 8/b.bits, byte(1<<b.bits-1)
	for y := range b.height {
		stored := data[b.at+y*b.rowBytes:][:b.rowBytes]
		for x := range b.width {
			if int(stored[x/each]>>(8-b.bits*(x%each+1))&mask) >= b.colours {
				return errors.New("a pixel has a colour that its palette does not have")
			}
		}
	}
	return nil
}

func (b *bmpImage) decode(_ context.Context, im *Image, c *Config, s Shrink, data []byte) error {
	if err := b.checkIndices(data); err != nil {
		return err
	}
	write := b.writer()
	row := func(y int, row []uint8) {
		if !b.topDown {
			y = b.height - 1 - y
		}
		write(row, data[b.at+y*b.rowBytes:][:b.rowBytes])
	}
	turn(im, boxRows(row, b.width, b.height, s), s.side(b.width), s.side(b.height), c.orientation)
	return nil
}

func (b *bmpImage) writer() func(row, stored []uint8) {
	switch b.bits {
	case 16, 32:
		return b.maskedWriter()
	case 24:
		return func(row, stored []uint8) {
			for i := 0; i+3 <= len(row); i += 3 {
				row[i], row[i+1], row[i+2] = stored[i+2], stored[i+1], stored[i]
			}
		}
	}
	each, mask := 8/b.bits, byte(1<<b.bits-1)
	return func(row, stored []uint8) {
		for x := range b.width {
			shift := 8 - b.bits*(x%each+1)
			copy(row[3*x:3*x+3], b.palette[stored[x/each]>>shift&mask][:])
		}
	}
}

func (b *bmpImage) maskedWriter() func(row, stored []uint8) {
	var channels [4]bmpChannel
	for i, m := range b.masks {
		channels[i] = newBMPChannel(m)
	}
	opaque := b.masks[3] == 0
	return func(row, stored []uint8) {
		for x := range b.width {
			var v uint32
			if b.bits == 16 {
				v = uint32(binary.LittleEndian.Uint16(stored[2*x:]))
			} else {
				v = binary.LittleEndian.Uint32(stored[4*x:])
			}
			for c := range 3 {
				row[3*x+c] = channels[c].of(v)
				if !opaque {
					row[3*x+c] = onWhite(row[3*x+c], channels[3].of(v))
				}
			}
		}
	}
}

// bmpChannel extracts the bits of a mask, the highest eight if there are more.
type bmpChannel struct {
	shift int
	mask  uint32
	scale [256]uint8 // to eight bits
}

func newBMPChannel(mask uint32) bmpChannel {
	if mask == 0 {
		return bmpChannel{}
	}
	c := bmpChannel{shift: max(bits.TrailingZeros32(mask), bits.Len32(mask)-8)}
	c.mask = mask >> c.shift
	for v := range c.mask + 1 {
		c.scale[v] = uint8((v*255 + c.mask/2) / c.mask)
	}
	return c
}

func (c *bmpChannel) of(v uint32) uint8 { return c.scale[v>>c.shift&c.mask] }
