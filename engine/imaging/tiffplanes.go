package imaging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"slices"

	"golang.org/x/image/tiff"
)

const (
	tiffPlanesMax = 4
	tiffLong      = 4   // kind of an entry: 32 bits
	tiffDirectory = 256 // bytes, more than directory makes
)

// tiffPlanes is the source of a TIFF whose channels are separate, each in strips or tiles of its
// own. The library does not read these. So each plane becomes a grey picture, with a directory of
// its own after the same data.
type tiffPlanes struct {
	*tiffHead
	n     int // planes: red, green, blue, and transparency if there are four
	extra int64
}

// planes checks that the channels are red, green and blue.
func (h *tiffHead) planes() (*tiffPlanes, error) {
	p := &tiffPlanes{tiffHead: h, n: int(min(h.first[tagSamples], tiffPlanesMax+1)), extra: h.first[tagExtra]}
	known := p.n == 3 || p.n == 4 && (p.extra == tiffPremixed || p.extra == tiffUnmixed)
	if h.first[tagColours] != tiffRGB || !known || h.fax() {
		return nil, errors.New("its channels lie apart and are not red, green, blue and transparency: save it as RGB")
	}
	for _, tag := range p.tables() {
		e := h.entries[tag]
		if e == nil || int64(h.order.Uint32(e[4:]))%int64(p.n) != 0 {
			return nil, fmt.Errorf("it has not as many parts of each of its %d channels", p.n)
		}
	}
	return p, nil
}

// tables returns the tags that have a value for each strip or tile.
func (p *tiffPlanes) tables() []uint16 {
	if p.first[tagTileWidth] != 0 {
		return []uint16{tagTileOffsets, tagTileCounts}
	}
	return []uint16{tagStripOffsets, tagStripCounts}
}

// directory returns the directory of a TIFF of the i-th plane alone.
func (p *tiffPlanes) directory(i int) []byte {
	var n uint16
	var entries []byte
	add := func(e []byte) {
		n++
		entries = append(entries, e...)
	}
	number := func(tag uint16, v int64) {
		e := p.order.AppendUint16(nil, tag)
		e = p.order.AppendUint32(p.order.AppendUint16(e, tiffLong), 1)
		add(p.order.AppendUint32(e, uint32(v)))
	}
	for _, tag := range []uint16{
		tagWidth, tagHeight, tagBits, tagCompression, tagColours, tagFillOrder, tagStripOffsets, tagSamples, tagRowsPerStrip,
		tagStripCounts, tagPredictor, tagTileWidth, tagTileHeight, tagTileOffsets, tagTileCounts, tagFormat,
	} {
		switch {
		case tag == tagColours:
			number(tag, tiffZeroDark)
		case tag == tagSamples:
			number(tag, 1)
		case slices.Contains(p.tables(), tag):
			add(p.part(p.entries[tag], i))
		case p.entries[tag] != nil:
			number(tag, p.first[tag])
		}
	}
	return p.order.AppendUint32(append(p.order.AppendUint16(nil, n), entries...), 0)
}

// part returns an entry with the i-th plane's part of the values of e.
func (p *tiffPlanes) part(e []byte, i int) []byte {
	size := uint32(p.size(e))
	all := p.order.Uint32(e[4:])
	n := all / uint32(p.n)
	skip := size * n * uint32(i)
	out := p.order.AppendUint32(bytes.Clone(e[:4]), n)
	from := e[8:]
	if size*all > 4 {
		at := p.order.Uint32(e[8:]) + skip
		if size*n > 4 {
			return p.order.AppendUint32(out, at)
		}
		from, skip = p.data[at:], 0
	}
	values := make([]byte, 4)
	copy(values, from[skip:][:size*n])
	return append(out, values...)
}

func (p *tiffPlanes) decode(ctx context.Context, im *Image, c *Config, s Shrink, _ []byte) error {
	var planes [tiffPlanesMax]samples
	file := append(make([]byte, 0, len(p.data)+tiffDirectory), p.data...)
	defer clear(file)
	p.order.PutUint32(file[4:], uint32(len(p.data)))
	for i := range p.n {
		if err := ctx.Err(); err != nil {
			return err
		}
		plane, err := tiff.Decode(bytes.NewReader(append(file, p.directory(i)...)))
		if err != nil {
			return err
		}
		defer wipe(plane)
		switch m := plane.(type) {
		case *image.Gray:
			planes[i] = samples{m.Pix, m.Stride, 1}
		case *image.Gray16: // the first byte is read
			planes[i] = samples{m.Pix, m.Stride, 2}
		}
	}
	row := func(y int, row []uint8) {
		for x := range c.Width {
			px := row[3*x:][:3]
			for i := range px {
				px[i] = planes[i].at(x, y)
			}
			if p.n == tiffPlanesMax {
				p.layOnWhite(px, planes[3].at(x, y))
			}
		}
	}
	turn(im, boxRows(row, c.Width, c.Height, s), s.side(c.Width), s.side(c.Height), c.orientation)
	return nil
}

func (p *tiffPlanes) layOnWhite(px []uint8, alpha uint8) {
	for i, v := range px {
		if p.extra == tiffPremixed {
			px[i] = min(v, alpha) + 255 - alpha
		} else {
			px[i] = onWhite(v, alpha)
		}
	}
}

// samples are the samples of one plane, step bytes apart.
type samples struct {
	pix          []uint8
	stride, step int
}

func (s samples) at(x, y int) uint8 { return s.pix[y*s.stride+x*s.step] }
