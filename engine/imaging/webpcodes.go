package imaging

import (
	"cmp"
	"errors"
	"slices"
)

// Lossless WebP (RFC 9649, 3.4 to 3.7).
const (
	losslessHead = 5 // signature, size, transparency and version

	transformPredictor = 0
	transformColour    = 1
	transformIndexing  = 3
	transforms         = 4

	prefixCodes      = 5 // a group's: green and lengths, red, blue, alpha, distance
	literals         = 256
	lengthPrefixes   = 24
	distancePrefixes = 40
	cacheBitsMax     = 11
	cacheMultiplier  = 0x1e35a7bd
	codeLengthMax    = 15
	firstLength      = 8 // that a code repeats before it has named one
)

var (
	// codeLengthOrder is the order in which the lengths of the code for code lengths
	// are written.
	codeLengthOrder = [...]uint8{17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	// nearPixels are the pixels that the first distances name, (x, y) to the left and
	// above.
	nearPixels = nearestPixels()

	errCodes = errors.New("its codes are broken")
	// golang.org/x/image exchanges the two symbols of such a code (golang/go#81660).
	errCodeOrder = errors.New("a code of two symbols names the greater one first")
)

// nearestPixels returns the pixels above and to the left within 8 columns and 7 rows,
// nearest first.
func nearestPixels() [][2]int {
	var near [][2]int
	for y := range 8 {
		for x := -7; x <= 8; x++ {
			if y > 0 || x > 0 {
				near = append(near, [2]int{x, y})
			}
		}
	}
	slices.SortFunc(near, func(a, b [2]int) int {
		return cmp.Or(
			cmp.Compare(a[0]*a[0]+a[1]*a[1], b[0]*b[0]+b[1]*b[1]),
			cmp.Compare(max(a[0], -a[0]), max(b[0], -b[0])),
			cmp.Compare(b[0], a[0]),
		)
	})
	return near
}

// losslessReader reads a lossless picture up to its own pixels.
type losslessReader struct {
	data  []byte
	at    int // in bits
	short bool
}

// checkCodes returns an error unless all prefix codes of a lossless picture of w × h
// pixels are valid, and the decoder reads them rightly. data starts at the first
// transform.
func checkCodes(data []byte, w, h int) error {
	r := &losslessReader{data: data}
	err := r.head(w, h)
	if r.short {
		return errTruncated
	}
	return err
}

// read returns the next n bits, at most 18. Behind the end it returns 0 and sets short.
func (r *losslessReader) read(n int) int {
	if r.at+n > 8*len(r.data) {
		r.short = true
		return 0
	}
	v, from := 0, r.at%8
	for i := range (from + n + 7) / 8 {
		v |= int(r.data[r.at/8+i]) << (8 * i)
	}
	r.at += n
	return v >> from & (1<<n - 1)
}

// head reads the transforms and the prefix codes of the picture.
func (r *losslessReader) head(w, h int) error {
	var seen [transforms]bool
	for r.read(1) == 1 {
		kind := r.read(2)
		if seen[kind] {
			return errCodes
		}
		seen[kind] = true
		switch kind {
		case transformPredictor, transformColour:
			if _, err := r.tiles(w, h); err != nil {
				return err
			}
		case transformIndexing:
			colours := r.read(8) + 1
			if _, err := r.pixels(colours, 1); err != nil {
				return err
			}
			for _, most := range []int{2, 4, 16} { // of which several pixels share one
				if colours <= most {
					w = (w + 1) / 2
				}
			}
		}
	}
	cache, err := r.cacheBits()
	if err != nil {
		return err
	}
	groups := 1
	if r.read(1) == 1 {
		of, err := r.tiles(w, h)
		if err != nil {
			return err
		}
		for _, p := range of {
			groups = max(groups, int(p>>8&0xffff)+1)
		}
	}
	for range groups {
		if _, err := r.group(cache); err != nil {
			return err
		}
	}
	return nil
}

// tiles reads the side of a tile and an image with one pixel for each tile.
func (r *losslessReader) tiles(w, h int) ([]uint32, error) {
	side := 1 << (r.read(3) + 2)
	return r.pixels((w+side-1)/side, (h+side-1)/side)
}

// cacheBits returns the base-2 logarithm of the colour cache's size, -1 for none.
func (r *losslessReader) cacheBits() (int, error) {
	if r.read(1) == 0 {
		return -1, nil
	}
	n := r.read(4)
	if n == 0 || n > cacheBitsMax {
		return 0, errCodes
	}
	return n, nil
}

// pixels reads a small image, whose pixels are alpha, red, green and blue.
func (r *losslessReader) pixels(w, h int) ([]uint32, error) {
	bits, err := r.cacheBits()
	if err != nil {
		return nil, err
	}
	codes, err := r.group(bits)
	if err != nil {
		return nil, err
	}
	cache := make([]uint32, 1<<max(bits, 0))
	out := make([]uint32, 0, w*h)
	add := func(p uint32) {
		out = append(out, p)
		if bits > 0 {
			cache[p*cacheMultiplier>>(32-bits)] = p
		}
	}
	for len(out) < w*h {
		if r.short {
			return nil, errTruncated
		}
		switch green := codes[0].next(r); {
		case green < literals:
			red, blue, alpha := codes[1].next(r), codes[2].next(r), codes[3].next(r)
			add(uint32(alpha<<24 | red<<16 | green<<8 | blue))
		case green < literals+lengthPrefixes:
			n := r.prefixed(green - literals)
			from := len(out) - r.distance(codes[4].next(r), w)
			if from < 0 || n > w*h-len(out) {
				return nil, errCodes
			}
			for ; n > 0; n, from = n-1, from+1 {
				add(out[from])
			}
		default:
			add(cache[green-literals-lengthPrefixes])
		}
	}
	return out, nil
}

// prefixed returns a length or a distance code, of which the prefix is known.
func (r *losslessReader) prefixed(prefix int) int {
	if prefix < 4 {
		return prefix + 1
	}
	extra := (prefix - 2) / 2
	return (2+prefix%2)<<extra + r.read(extra) + 1
}

// distance returns how many pixels back a copy starts in an image of w columns.
func (r *losslessReader) distance(prefix, w int) int {
	n := r.prefixed(prefix)
	if n > len(nearPixels) {
		return n - len(nearPixels)
	}
	near := nearPixels[n-1]
	return max(1, near[0]+near[1]*w)
}

// group reads the five codes of a group.
func (r *losslessReader) group(cacheBits int) (codes [prefixCodes]prefixCode, err error) {
	symbols := [prefixCodes]int{literals + lengthPrefixes, literals, literals, literals, distancePrefixes}
	if cacheBits > 0 {
		symbols[0] += 1 << cacheBits
	}
	for i, n := range symbols {
		if r.short {
			return codes, errTruncated
		}
		if codes[i], err = r.code(n); err != nil {
			return codes, err
		}
	}
	return codes, nil
}

// code reads the code of an alphabet.
func (r *losslessReader) code(symbols int) (prefixCode, error) {
	if r.read(1) == 0 {
		lengths := make([]uint8, symbols)
		if err := r.codeLengths(lengths); err != nil {
			return prefixCode{}, err
		}
		return newPrefixCode(lengths)
	}
	two, eight := r.read(1) == 1, r.read(1)
	named := []uint16{uint16(r.read(1 + 7*eight))}
	if two {
		named = append(named, uint16(r.read(8)))
		if named[1] <= named[0] {
			return prefixCode{}, errCodeOrder
		}
	}
	if int(named[len(named)-1]) >= symbols {
		return prefixCode{}, errCodes
	}
	return prefixCode{counts: [codeLengthMax + 1]int{1: len(named)}, symbols: named}, nil
}

// codeLengths reads the length of each symbol's code.
func (r *losslessReader) codeLengths(lengths []uint8) error {
	var own [len(codeLengthOrder)]uint8
	for _, symbol := range codeLengthOrder[:min(4+r.read(4), len(codeLengthOrder))] {
		own[symbol] = uint8(r.read(3))
	}
	code, err := newPrefixCode(own[:])
	if err != nil {
		return err
	}
	reads := len(lengths)
	if r.read(1) == 1 {
		if reads = 2 + r.read(2+2*r.read(3)); reads > len(lengths) {
			return errCodes
		}
	}
	last := uint8(firstLength)
	for at := 0; at < len(lengths) && reads > 0 && !r.short; reads-- {
		n, repeated := 1, uint8(0)
		switch symbol := code.next(r); symbol {
		case 16:
			n, repeated = 3+r.read(2), last
		case 17:
			n = 3 + r.read(3)
		case 18:
			n = 11 + r.read(7)
		default:
			if repeated = uint8(symbol); symbol > 0 {
				last = repeated
			}
		}
		if n > len(lengths)-at {
			return errCodes
		}
		for range n {
			lengths[at] = repeated
			at++
		}
	}
	return nil
}

// prefixCode is a canonical prefix code. A code with one symbol takes no bits.
type prefixCode struct {
	counts  [codeLengthMax + 1]int // of symbols by the length of their code
	symbols []uint16               // by length, then by value
}

// newPrefixCode returns the code with these lengths. The length 0 means that a symbol
// has no code. It returns an error unless each sequence of bits starts with exactly one
// symbol's code.
func newPrefixCode(lengths []uint8) (prefixCode, error) {
	var c prefixCode
	for _, length := range lengths {
		c.counts[length]++
	}
	c.counts[0] = 0
	var next [codeLengthMax + 2]int // where the next symbol of a length goes
	for length, n := range c.counts {
		next[length+1] = next[length] + n
	}
	c.symbols = make([]uint16, next[codeLengthMax+1])
	for symbol, length := range lengths {
		if length > 0 {
			c.symbols[next[length]] = uint16(symbol)
			next[length]++
		}
	}
	if len(c.symbols) == 1 {
		return c, nil
	}
	open := 1
	for _, n := range c.counts[1:] {
		open = 2*open - n
		if open < 0 {
			return c, errCodes
		}
	}
	if open > 0 {
		return c, errCodes
	}
	return c, nil
}

// next reads a symbol.
func (c *prefixCode) next(r *losslessReader) int {
	if len(c.symbols) == 1 {
		return int(c.symbols[0])
	}
	code, first, before := 0, 0, 0
	for _, n := range c.counts[1:] {
		code |= r.read(1)
		if code-first < n {
			return int(c.symbols[before+code-first])
		}
		before += n
		first = (first + n) << 1
		code <<= 1
	}
	panic("bug: a prefix code has an open end")
}
