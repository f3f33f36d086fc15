package imaging

// Upright returns the size of the whole upright image.
func (c Config) Upright() (width, height int) {
	if c.orientation >= 5 {
		return c.Height, c.Width
	}
	return c.Width, c.Height
}

// Shrunk returns the map from the upright whole image to the result of DecodeInto. If the image was
// turned, it also shifts: the rounding of the stored size then lies before the first pixel.
func (c Config) Shrunk(s Shrink) Affine {
	m := Affine{A: 1 / float64(s), E: 1 / float64(s)}
	w, h := c.Upright()
	switch c.orientation {
	case 2, 3, 6, 7:
		m.C = float64(s.side(w)) - float64(w)*m.A
	}
	switch c.orientation {
	case 3, 4, 7, 8:
		m.F = float64(s.side(h)) - float64(h)*m.E
	}
	return m
}

// Scales reports whether a shrunk image costs less to decode than a whole one.
func (c Config) Scales() bool {
	j, ok := c.source.(*jpegImage)
	return ok && j.library != nil
}

// LeavesGarbage reports whether the decoder leaves parts of the image as garbage in this process.
// Those written in Go for other programs do. A HEIC is decoded in a child.
func (c Config) LeavesGarbage() bool {
	switch c.source.(type) {
	case heicImage, *bmpImage:
		return false
	}
	return !c.Scales()
}

// After returns the map that applies first, and then m.
func (m Affine) After(first Affine) Affine {
	return Affine{
		A: float64(m.A*first.A) + float64(m.B*first.D), B: float64(m.A*first.B) + float64(m.B*first.E),
		C: float64(m.A*first.C) + float64(m.B*first.F) + m.C,
		D: float64(m.D*first.A) + float64(m.E*first.D), E: float64(m.D*first.B) + float64(m.E*first.E),
		F: float64(m.D*first.C) + float64(m.E*first.F) + m.F,
	}
}
