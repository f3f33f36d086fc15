package score

// Lanes is the number of partial sums of Dot.
const Lanes = 16

// Dot returns the inner product of a and b; it panics if their lengths differ. For templates of
// unit norm it is the cosine of their angle, the similarity.
//
// The order of the sum is part of every stored score, so it is fixed:
//
//	lane j (0 … 15) starts at 0 and adds the products of the elements
//	j, j+16, j+32, … in this order, then
//	lanes 0…7 add lanes 8…15, lanes 0…3 add 4…7, 0…1 add 2…3, 0 adds 1.
//
// Each product and each sum is rounded to float32; nothing is fused. A length that is no multiple
// of 16 behaves as if zeros followed (x+0 is x, since no lane is ever −0). A kernel with one
// 512-bit, two 256-bit or four 128-bit registers computes the same bits with separate multiply and
// add instructions.
func Dot(a, b []float32) float32 {
	if len(a) != len(b) {
		panic("bug: score: Dot of two lengths")
	}
	var sum [Lanes]float32
	whole := len(a) / Lanes * Lanes
	// Two passes of eight lanes: eight partial sums fit the registers.
	addLanes((*[Lanes / 2]float32)(sum[:Lanes/2]), a[:whole], b[:whole])
	if whole > 0 {
		addLanes((*[Lanes / 2]float32)(sum[Lanes/2:]), a[Lanes/2:whole], b[Lanes/2:whole])
	}
	for i := whole; i < len(a); i++ {
		// The conversion forbids a fused multiply-add, which rounds once less.
		sum[i-whole] += float32(a[i] * b[i])
	}
	for width := Lanes / 2; width > 0; width /= 2 {
		for j := range width {
			sum[j] += sum[j+width]
		}
	}
	return sum[0]
}

// addLanes adds to sum the products of the first eight of every sixteen elements
// of a and b, which have the same length.
func addLanes(sum *[Lanes / 2]float32, a, b []float32) {
	s0, s1, s2, s3 := sum[0], sum[1], sum[2], sum[3]
	s4, s5, s6, s7 := sum[4], sum[5], sum[6], sum[7]
	for len(a) >= Lanes/2 && len(b) >= Lanes/2 {
		x, y := (*[Lanes / 2]float32)(a), (*[Lanes / 2]float32)(b)
		s0 += float32(x[0] * y[0])
		s1 += float32(x[1] * y[1])
		s2 += float32(x[2] * y[2])
		s3 += float32(x[3] * y[3])
		s4 += float32(x[4] * y[4])
		s5 += float32(x[5] * y[5])
		s6 += float32(x[6] * y[6])
		s7 += float32(x[7] * y[7])
		if len(a) < Lanes || len(b) < Lanes {
			break
		}
		a, b = a[Lanes:], b[Lanes:]
	}
	*sum = [Lanes / 2]float32{s0, s1, s2, s3, s4, s5, s6, s7}
}
