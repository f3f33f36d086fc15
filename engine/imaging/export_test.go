package imaging

// Standard returns c with the standard library in place of libjpeg-turbo.
func (c Config) Standard() Config {
	if j, ok := c.source.(*jpegImage); ok {
		other := *j
		other.library = nil
		c.source = &other
		several := j.head.progressive
		c.fixedBytes, c.pixelBytes = other.memory(several), 0
	}
	return c
}

// LeaveBuffer makes pixels of another picture the memory that the next decode may take.
func LeaveBuffer(pix []uint8) { giveBuffer(&pix) }
