package imaging

// boxRows returns a reader of the shrunk rows of the w × h picture that row reads. The pixel at
// (x, y) is, channel by channel, the mean of the source pixels in [s·x, s·x+s) × [s·y, s·y+s),
// rounded to the nearest, halves up. At the right and lower border there may be fewer of them.
//
// A JPEG decoder that keeps the first coefficients of a block has the same result, except for
// rounding and beyond the border.
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

// addBoxes adds pixels of the line to the sums: each three sums get the next size bytes.
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
