#include "go_asm.h"
#include "textflag.h"
#include "neon_arm64.h"

// WIDEN4 makes float64 of four float32.
#define WIDEN4(low, high, from) \
	WIDEN(low, from)   \
	WIDEN2(high, from)

// SQUARES adds the squares of four numbers to V0 and V1.
#define SQUARES(from) \
	WIDEN4(2, 3, from) \
	VFMULD(2, 2, 2)    \
	VFMULD(3, 3, 3)    \
	VFADDD(0, 0, 2)    \
	VFADDD(1, 1, 3)

// func squaresNEON(sums *laneSums, v []float32)
TEXT ·squaresNEON(SB), NOSPLIT, $0-32
	MOVD sums+0(FP), R0
	MOVD v_base+8(FP), R1
	MOVD v_len+16(FP), R2
	VLD1 (R0), [V0.D2, V1.D2]

squares:
	SUBS $16, R2
	BLT  squared
	VLD1.P 64(R1), [V4.S4, V5.S4, V6.S4, V7.S4]
	SQUARES(4)
	SQUARES(5)
	SQUARES(6)
	SQUARES(7)
	B    squares

squared:
	VST1 [V0.D2, V1.D2], (R0)
	RET

// SCALE4 multiplies four numbers of V4 to V7 by V31 and by their signs.
#define SCALE4(from, low, high) \
	WIDEN4(2, 3, from)     \
	VFMULD(2, 2, 31)       \
	VFMULD(3, 3, 31)       \
	VFMULD(low, 2, low)    \
	VFMULD(high, 3, high)

// func widenNEON(to []float64, v []float32, signs []float64, scale float64)
TEXT ·widenNEON(SB), NOSPLIT, $0-80
	MOVD to_base+0(FP), R0
	MOVD v_base+24(FP), R1
	MOVD v_len+32(FP), R2
	MOVD signs_base+48(FP), R3
	MOVD scale+72(FP), R4
	VDUP R4, V31.D2

widen:
	SUBS $16, R2
	BLT  widened
	VLD1.P 64(R1), [V4.S4, V5.S4, V6.S4, V7.S4]
	VLD1.P 64(R3), [V16.D2, V17.D2, V18.D2, V19.D2]
	VLD1.P 64(R3), [V20.D2, V21.D2, V22.D2, V23.D2]
	SCALE4(4, 16, 17)
	SCALE4(5, 18, 19)
	SCALE4(6, 20, 21)
	SCALE4(7, 22, 23)
	VST1.P [V16.D2, V17.D2, V18.D2, V19.D2], 64(R0)
	VST1.P [V20.D2, V21.D2, V22.D2, V23.D2], 64(R0)
	B    widen

widened:
	RET

// func flipNEON(y, signs []float64)
TEXT ·flipNEON(SB), NOSPLIT, $0-48
	MOVD y_base+0(FP), R0
	MOVD y_len+8(FP), R2
	MOVD signs_base+24(FP), R3

flip:
	SUBS $8, R2
	BLT  flipped
	VLD1   (R0), [V0.D2, V1.D2, V2.D2, V3.D2]
	VLD1.P 64(R3), [V4.D2, V5.D2, V6.D2, V7.D2]
	VFMULD(0, 0, 4)
	VFMULD(1, 1, 5)
	VFMULD(2, 2, 6)
	VFMULD(3, 3, 7)
	VST1.P [V0.D2, V1.D2, V2.D2, V3.D2], 64(R0)
	B    flip

flipped:
	RET

// WITHIN does the two steps within four numbers: a, b and their registers' numbers.
#define WITHIN(a, b, na, nb) \
	VZIP1 b.D2, a.D2, V16.D2    \
	VZIP2 b.D2, a.D2, V17.D2    \
	VFADDD(18, 16, 17)          \
	VFSUBD(19, 16, 17)          \
	VZIP1 V19.D2, V18.D2, V16.D2 \
	VZIP2 V19.D2, V18.D2, V17.D2 \
	VFADDD(na, 16, 17)          \
	VFSUBD(nb, 16, 17)

// ACROSS does two steps of four registers and multiplies them by V31.
#define ACROSS(a, b, c, d) \
	VFADDD(16, a, b)   \
	VFSUBD(17, a, b)   \
	VFADDD(18, c, d)   \
	VFSUBD(19, c, d)   \
	VFADDD(a, 16, 18)  \
	VFADDD(b, 17, 19)  \
	VFSUBD(c, 16, 18)  \
	VFSUBD(d, 17, 19)  \
	VFMULD(a, a, 31)   \
	VFMULD(b, b, 31)   \
	VFMULD(c, c, 31)   \
	VFMULD(d, d, 31)

// SCALE makes V31 the scale after the last steps, whose numbers are apart so far, and
// else 1: that rounds nothing.
#define SCALE(apart) \
	CMP  apart, R2         \
	CSEL EQ, R4, R3, R6    \
	VDUP R6, V31.D2

// func hadamardNEON(y []float64, scale float64)
//
// Sixteen numbers at a time, then steps by two, and one at the end if it is left.
TEXT ·hadamardNEON(SB), NOSPLIT, $0-32
	MOVD y_base+0(FP), R0
	MOVD y_len+8(FP), R2
	MOVD $0x3ff0000000000000, R3
	MOVD scale+24(FP), R4
	LSL  $3, R2     // bytes
	ADD  R2, R0, R5 // end
	MOVD R0, R1
	MOVD $128, R9
	SCALE(R9)

sixteen:
	ADD  $64, R1, R7
	VLD1 (R1), [V0.D2, V1.D2, V2.D2, V3.D2]
	VLD1 (R7), [V4.D2, V5.D2, V6.D2, V7.D2]
	WITHIN(V0, V1, 0, 1)
	WITHIN(V2, V3, 2, 3)
	WITHIN(V4, V5, 4, 5)
	WITHIN(V6, V7, 6, 7)
	ACROSS(0, 2, 4, 6)
	ACROSS(1, 3, 5, 7)
	VST1.P [V0.D2, V1.D2, V2.D2, V3.D2], 64(R1)
	VST1.P [V4.D2, V5.D2, V6.D2, V7.D2], 64(R1)
	CMP  R5, R1
	BLT  sixteen

	// R9 is how many bytes are apart.
two:
	LSL  $1, R9, R10
	CMP  R2, R10
	BGT  done
	BEQ  one
	LSL  $2, R9, R11
	SCALE(R11)
	MOVD R0, R1

from:
	ADD  R9, R1, R8 // end of the first quarter

four:
	ADD  R9, R1, R12
	ADD  R10, R1, R13
	ADD  R10, R12, R14
	VLD1 (R1), [V0.D2, V1.D2]
	VLD1 (R12), [V2.D2, V3.D2]
	VLD1 (R13), [V4.D2, V5.D2]
	VLD1 (R14), [V6.D2, V7.D2]
	ACROSS(0, 2, 4, 6)
	ACROSS(1, 3, 5, 7)
	VST1 [V2.D2, V3.D2], (R12)
	VST1 [V4.D2, V5.D2], (R13)
	VST1 [V6.D2, V7.D2], (R14)
	VST1.P [V0.D2, V1.D2], 32(R1)
	CMP  R8, R1
	BLT  four
	ADD  R9, R10, R12
	ADD  R12, R1
	CMP  R5, R1
	BLT  from
	MOVD R11, R9
	B    two

one:
	VDUP R4, V31.D2
	ADD  R9, R0, R8

last:
	ADD  R9, R0, R12
	VLD1 (R0), [V0.D2, V1.D2]
	VLD1 (R12), [V2.D2, V3.D2]
	VFADDD(4, 0, 2)
	VFADDD(5, 1, 3)
	VFSUBD(6, 0, 2)
	VFSUBD(7, 1, 3)
	VFMULD(4, 4, 31)
	VFMULD(5, 5, 31)
	VFMULD(6, 6, 31)
	VFMULD(7, 7, 31)
	VST1 [V6.D2, V7.D2], (R12)
	VST1.P [V4.D2, V5.D2], 32(R0)
	CMP  R8, R0
	BLT  last

done:
	RET

// ROWPAIR codes two numbers, y, for the row.
#define ROWPAIR(y, code, off, norm) \
	VFMULD(4, y, 20)       \
	VFADDD(code, 4, 24)    \
	FLOOR(code, code)      \
	VFMAXD(code, code, 25) \
	VFMIND(code, code, 26) \
	VFSUBD(4, 4, code)     \
	VFMULD(4, 4, 4)        \
	VFADDD(off, off, 4)    \
	VFMULD(4, y, y)        \
	VFADDD(norm, norm, 4)

// PLANEPAIR codes them for the planes.
#define PLANEPAIR(y, code, dots, squares) \
	VFMULD(code, y, 21)    \
	FLOOR(code, code)      \
	VFMAXD(code, code, 27) \
	VFMIND(code, code, 28) \
	VFADDD(4, code, 24)    \
	VFMULD(4, 4, 22)       \
	PRODUCTS(y, dots, squares)

// FIRSTPAIR takes the upper half of such codes: (⌊code/4⌋ + ½) · 4 · width.
#define FIRSTPAIR(y, code, dots, squares) \
	VFMULD(4, code, 29)    \
	FLOOR(4, 4)            \
	VFADDD(4, 4, 24)       \
	VFMULD(4, 4, 23)       \
	PRODUCTS(y, dots, squares)

// PRODUCTS adds those of V4 with y and with itself.
#define PRODUCTS(y, dots, squares) \
	VFMULD(7, y, 4)              \
	VFADDD(dots, dots, 7)        \
	VFMULD(4, 4, 4)              \
	VFADDD(squares, squares, 4)

// BYTES writes four codes, moved by zero.
#define BYTES(a, b, na, nb, zero, fa, to) \
	INTEGER(na, na)             \
	INTEGER(nb, nb)             \
	VUZP1 b.S4, a.S4, a.S4      \
	VUZP1 a.H8, a.H8, a.H8      \
	VUZP1 a.B16, a.B16, a.B16   \
	VADD  zero.B16, a.B16, a.B16 \
	FMOVS.P fa, 4(to)

#define ROW \
	VLD1.P 32(R1), [V0.D2, V1.D2]       \
	ROWPAIR(0, 2, 8, 10)                \
	ROWPAIR(1, 3, 9, 11)                \
	BYTES(V2, V3, 2, 3, V30, F2, R3)

#define PLANE \
	PLANEPAIR(0, 5, 14, 18)   \
	PLANEPAIR(1, 6, 15, 19)

#define CODES BYTES(V5, V6, 5, 6, V31, F5, R4)

#define DOUBLES(number, to) \
	FMOVD $number, F0       \
	VDUP  V0.D[0], to.D2

// func codeNEON(c *cells)
//
// V8 and V9 are the sums off, V10 and V11 norm, V12 to V15 dots and V16 to V19 squares.
TEXT ·codeNEON(SB), NOSPLIT, $0-8
	MOVD c+0(FP), R0
	MOVD cells_y(R0), R1
	MOVD (cells_y+8)(R0), R2
	MOVD cells_row(R0), R3
	MOVD cells_codes(R0), R4
	CBZ  R2, done
	MOVD cells_grain(R0), R5
	VDUP R5, V20.D2
	MOVD cells_gain(R0), R5
	VDUP R5, V21.D2
	MOVD cells_width(R0), R5
	VDUP R5, V22.D2
	DOUBLES(4.0, V23)
	VFMULD(23, 22, 23)
	DOUBLES(0.5, V24)
	DOUBLES(-119.0, V25)
	DOUBLES(119.0, V26)
	DOUBLES(-8.0, V27)
	DOUBLES(7.0, V28)
	DOUBLES(0.25, V29)
	VMOVI $const_rowZero, V30.B16
	VMOVI $8, V31.B16
	ADD  $cells_off, R0, R6
	ADD  $cells_norm, R0, R7
	ADD  $cells_dots, R0, R8
	ADD  $cells_squares, R0, R9
	VLD1 (R6), [V8.D2, V9.D2]
	VLD1 (R7), [V10.D2, V11.D2]
	VLD1 (R8), [V12.D2, V13.D2, V14.D2, V15.D2]
	VLD1 (R9), [V16.D2, V17.D2, V18.D2, V19.D2]
	MOVD cells_kind(R0), R5
	CMP  $const_noPlane, R5
	BEQ  none
	CMP  $const_firstPlane, R5
	BEQ  first

both:
	ROW
	PLANE
	FIRSTPAIR(0, 5, 12, 16)
	FIRSTPAIR(1, 6, 13, 17)
	CODES
	SUB  $4, R2
	CBNZ R2, both
	B    coded

first:
	ROW
	PLANE
	CODES
	SUB  $4, R2
	CBNZ R2, first
	B    coded

none:
	ROW
	SUB  $4, R2
	CBNZ R2, none

coded:
	VST1 [V8.D2, V9.D2], (R6)
	VST1 [V10.D2, V11.D2], (R7)
	VST1 [V12.D2, V13.D2, V14.D2, V15.D2], (R8)
	VST1 [V16.D2, V17.D2, V18.D2, V19.D2], (R9)

done:
	RET

// func spreadNEON(row []uint8) int
//
// V5 has l · (15 − l) of each l; four of them fit 8 bits.
TEXT ·spreadNEON(SB), NOSPLIT, $0-32
	MOVD row_base+0(FP), R0
	MOVD row_len+8(FP), R2
	MOVD $0, R3
	VMOVI $15, V4.B16
	MOVD $0x3836322c241a0e00, R4
	VMOV R4, V5.D[0]
	MOVD $0x000e1a242c323638, R4
	VMOV R4, V5.D[1]

spread:
	SUBS $64, R2
	BLT  spreaded
	VLD1.P 64(R0), [V0.B16, V1.B16, V2.B16, V3.B16]
	VAND V4.B16, V0.B16, V0.B16
	VAND V4.B16, V1.B16, V1.B16
	VAND V4.B16, V2.B16, V2.B16
	VAND V4.B16, V3.B16, V3.B16
	VTBL V0.B16, [V5.B16], V0.B16
	VTBL V1.B16, [V5.B16], V1.B16
	VTBL V2.B16, [V5.B16], V2.B16
	VTBL V3.B16, [V5.B16], V3.B16
	VADD V1.B16, V0.B16, V0.B16
	VADD V3.B16, V2.B16, V2.B16
	VADD V2.B16, V0.B16, V0.B16
	VUADDLV V0.B16, V0
	VMOV V0.H[0], R4
	ADD  R4, R3
	B    spread

spreaded:
	MOVD R3, ret+24(FP)
	RET
