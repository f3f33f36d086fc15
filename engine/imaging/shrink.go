package imaging

// boxRows returns the rows of the picture that row reads, w × h, shrunk: the pixel
// at (x, y) is, channel by channel, the mean of those pixels of the source whose
// coordinates lie in [s·x, s·x+s) × [s·y, s·y+s), as many as there are (at the
// right and lower border it may be fewer), rounded to the nearest, halves up.
//
// It is what a decoder of JPEG makes when it keeps the first coefficients of a
// block, but for the rounding, and for what lies beyond the border.
func boxRows(row func(y int, row []uint8), w, h int, s Shrink) func(y int, row []uint8) {
	if s == Whole {
		return row
	}
	line := make([]uint8, 3*w)
	sums := make([]uint32, 3*s.side(w))
	return func(y int, out []uint8) {
		clear(sums)
		first := y * int(s)
		last := min(first+int(s), h)
		for from := first; from < last; from++ {
			row(from, line)
			addBoxes(sums, line, 3*int(s))
		}
		width := int(s)
		for x := 0; 3*x < len(sums); x++ {
			if left := w - x*int(s); left < width {
				width = left
			}
			n := uint32(width * (last - first))
			for c := range 3 {
				out[3*x+c] = uint8((sums[3*x+c] + n/2) / n)
			}
		}
	}
}

// addBoxes adds to each three sums the pixels of size bytes of the line.
func addBoxes(sums []uint32, line []uint8, size int) {
	for ; len(sums) >= 3; sums = sums[3:] {
		box := line[:min(size, len(line))]
		line = line[len(box):]
		var r, g, b uint32
		for ; len(box) >= 3; box = box[3:] {
			r += uint32(box[0])
			g += uint32(box[1])
			b += uint32(box[2])
		}
		sums[0] += r
		sums[1] += g
		sums[2] += b
	}
}
