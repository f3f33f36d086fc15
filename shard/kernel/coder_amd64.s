#include "go_asm.h"
#include "textflag.h"

// Of four lanes each.
#define DOUBLES(name, bits) \
	DATA name<>+0(SB)/8, $bits \
	DATA name<>+8(SB)/8, $bits \
	DATA name<>+16(SB)/8, $bits \
	DATA name<>+24(SB)/8, $bits \
	GLOBL name<>(SB), RODATA|NOPTR, $32

DOUBLES(half, 0x3fe0000000000000)
DOUBLES(quarter, 0x3fd0000000000000)
DOUBLES(two, 0x4000000000000000)
DOUBLES(four, 0x4010000000000000)
DOUBLES(rowMost, 0x405dc00000000000)  // 119
DOUBLES(rowLeast, 0xc05dc00000000000)
DOUBLES(most, 0x401c000000000000)     // 7
DOUBLES(least, 0xc020000000000000)    // −8

DATA rowZeros<>+0(SB)/8, $0x0000008800000088
DATA rowZeros<>+8(SB)/8, $0x0000008800000088
GLOBL rowZeros<>(SB), RODATA|NOPTR, $16

DATA zeros<>+0(SB)/8, $0x0000000800000008
DATA zeros<>+8(SB)/8, $0x0000000800000008
GLOBL zeros<>(SB), RODATA|NOPTR, $16

// bytes takes the lowest bytes of four 32-bit numbers.
DATA bytes<>+0(SB)/8, $0x808080800c080400
DATA bytes<>+8(SB)/8, $0x8080808080808080
GLOBL bytes<>(SB), RODATA|NOPTR, $16

// func squaresAVX2(sums *laneSums, v []float32)
TEXT ·squaresAVX2(SB), NOSPLIT, $0-32
	MOVQ sums+0(FP), DI
	MOVQ v_base+8(FP), SI
	MOVQ v_len+16(FP), CX
	VMOVUPD (DI), Y0

squares:
	SUBQ $16, CX
	JLT  squared
	VCVTPS2PD (SI), Y1
	VCVTPS2PD 16(SI), Y2
	VCVTPS2PD 32(SI), Y3
	VCVTPS2PD 48(SI), Y4
	VMULPD Y1, Y1, Y1
	VMULPD Y2, Y2, Y2
	VMULPD Y3, Y3, Y3
	VMULPD Y4, Y4, Y4
	VADDPD Y1, Y0, Y0
	VADDPD Y2, Y0, Y0
	VADDPD Y3, Y0, Y0
	VADDPD Y4, Y0, Y0
	ADDQ $64, SI
	JMP  squares

squared:
	VMOVUPD Y0, (DI)
	VZEROUPPER
	RET

// func widenAVX2(to []float64, v []float32, signs []float64, scale float64)
TEXT ·widenAVX2(SB), NOSPLIT, $0-80
	MOVQ to_base+0(FP), DI
	MOVQ v_base+24(FP), SI
	MOVQ v_len+32(FP), CX
	MOVQ signs_base+48(FP), DX
	VBROADCASTSD scale+72(FP), Y0

widen:
	SUBQ $16, CX
	JLT  widened
	VCVTPS2PD (SI), Y1
	VCVTPS2PD 16(SI), Y2
	VCVTPS2PD 32(SI), Y3
	VCVTPS2PD 48(SI), Y4
	VMULPD Y0, Y1, Y1
	VMULPD Y0, Y2, Y2
	VMULPD Y0, Y3, Y3
	VMULPD Y0, Y4, Y4
	VMULPD (DX), Y1, Y1
	VMULPD 32(DX), Y2, Y2
	VMULPD 64(DX), Y3, Y3
	VMULPD 96(DX), Y4, Y4
	VMOVUPD Y1, (DI)
	VMOVUPD Y2, 32(DI)
	VMOVUPD Y3, 64(DI)
	VMOVUPD Y4, 96(DI)
	ADDQ $64, SI
	ADDQ $128, DX
	ADDQ $128, DI
	JMP  widen

widened:
	VZEROUPPER
	RET

// func flipAVX2(y, signs []float64)
TEXT ·flipAVX2(SB), NOSPLIT, $0-48
	MOVQ y_base+0(FP), DI
	MOVQ y_len+8(FP), CX
	MOVQ signs_base+24(FP), DX

flip:
	SUBQ $16, CX
	JLT  flipped
	VMOVUPD (DI), Y1
	VMOVUPD 32(DI), Y2
	VMOVUPD 64(DI), Y3
	VMOVUPD 96(DI), Y4
	VMULPD (DX), Y1, Y1
	VMULPD 32(DX), Y2, Y2
	VMULPD 64(DX), Y3, Y3
	VMULPD 96(DX), Y4, Y4
	VMOVUPD Y1, (DI)
	VMOVUPD Y2, 32(DI)
	VMOVUPD Y3, 64(DI)
	VMOVUPD Y4, 96(DI)
	ADDQ $128, DX
	ADDQ $128, DI
	JMP  flip

flipped:
	VZEROUPPER
	RET

// WITHIN does the two steps within four numbers.
#define WITHIN(x, t) \
	VPERMILPD $5, x, t     \
	VXORPD Y14, x, x       \
	VADDPD t, x, x         \
	VPERM2F128 $1, x, x, t \
	VXORPD Y13, x, x       \
	VADDPD t, x, x

// ACROSS does two steps of Y0 to Y3 and multiplies them by Y15.
#define ACROSS \
	VADDPD Y1, Y0, Y4   \
	VSUBPD Y1, Y0, Y5   \
	VADDPD Y3, Y2, Y6   \
	VSUBPD Y3, Y2, Y7   \
	VADDPD Y6, Y4, Y0   \
	VADDPD Y7, Y5, Y1   \
	VSUBPD Y6, Y4, Y2   \
	VSUBPD Y7, Y5, Y3   \
	VMULPD Y15, Y0, Y0  \
	VMULPD Y15, Y1, Y1  \
	VMULPD Y15, Y2, Y2  \
	VMULPD Y15, Y3, Y3

// SCALE makes Y15 the scale after the last steps, whose numbers are apart so far, and
// else 1: that rounds nothing.
#define SCALE(apart) \
	VMOVAPD Y12, Y15  \
	CMPQ apart, CX    \
	JNE  2(PC)        \
	VMOVAPD Y11, Y15

// func hadamardAVX2(y []float64, scale float64)
//
// Sixteen numbers at a time, then steps by two, and one at the end if it is left.
TEXT ·hadamardAVX2(SB), NOSPLIT, $0-32
	MOVQ y_base+0(FP), DI
	MOVQ y_len+8(FP), CX
	VBROADCASTSD scale+24(FP), Y11
	MOVQ $0x3ff0000000000000, AX
	VMOVQ AX, X12
	VBROADCASTSD X12, Y12
	VPCMPEQQ Y10, Y10, Y10
	VPSLLQ $63, Y10, Y10
	VXORPD Y9, Y9, Y9
	VBLENDPD $10, Y10, Y9, Y14
	VBLENDPD $12, Y10, Y9, Y13
	SHLQ $3, CX         // bytes
	LEAQ (DI)(CX*1), R8 // end
	MOVQ DI, SI
	MOVQ $128, R9
	SCALE(R9)

sixteen:
	VMOVUPD (SI), Y0
	VMOVUPD 32(SI), Y1
	VMOVUPD 64(SI), Y2
	VMOVUPD 96(SI), Y3
	WITHIN(Y0, Y4)
	WITHIN(Y1, Y5)
	WITHIN(Y2, Y6)
	WITHIN(Y3, Y7)
	ACROSS
	VMOVUPD Y0, (SI)
	VMOVUPD Y1, 32(SI)
	VMOVUPD Y2, 64(SI)
	VMOVUPD Y3, 96(SI)
	ADDQ $128, SI
	CMPQ SI, R8
	JLT  sixteen

	// R9 is how many bytes are apart.
two:
	LEAQ (R9)(R9*1), R10
	CMPQ R10, CX
	JGT  done
	JEQ  one
	LEAQ (R10)(R10*1), R11
	SCALE(R11)
	LEAQ (R10)(R9*1), R12
	MOVQ DI, SI

from:
	MOVQ R9, DX

four:
	VMOVUPD (SI), Y0
	VMOVUPD (SI)(R9*1), Y1
	VMOVUPD (SI)(R10*1), Y2
	VMOVUPD (SI)(R12*1), Y3
	ACROSS
	VMOVUPD Y0, (SI)
	VMOVUPD Y1, (SI)(R9*1)
	VMOVUPD Y2, (SI)(R10*1)
	VMOVUPD Y3, (SI)(R12*1)
	ADDQ $32, SI
	SUBQ $32, DX
	JNZ  four
	ADDQ R12, SI
	CMPQ SI, R8
	JLT  from
	MOVQ R11, R9
	JMP  two

one:
	VMOVUPD (DI), Y0
	VMOVUPD (DI)(R9*1), Y1
	VADDPD Y1, Y0, Y2
	VSUBPD Y1, Y0, Y3
	VMULPD Y11, Y2, Y2
	VMULPD Y11, Y3, Y3
	VMOVUPD Y2, (DI)
	VMOVUPD Y3, (DI)(R9*1)
	ADDQ $32, DI
	SUBQ $32, CX
	CMPQ CX, R9
	JGT  one

done:
	VZEROUPPER
	RET

// ROW codes the four numbers of Y0 for the row.
#define ROW \
	VMULPD Y13, Y0, Y1             \
	VADDPD half<>(SB), Y1, Y2      \
	VROUNDPD $9, Y2, Y2            \
	VMAXPD rowLeast<>(SB), Y2, Y2  \
	VMINPD rowMost<>(SB), Y2, Y2   \
	VSUBPD Y2, Y1, Y1              \
	VMULPD Y1, Y1, Y1              \
	VADDPD Y1, Y5, Y5              \
	VMULPD Y0, Y0, Y3              \
	VADDPD Y3, Y6, Y6              \
	VCVTTPD2DQY Y2, X2             \
	VPADDD rowZeros<>(SB), X2, X2  \
	VPSHUFB X14, X2, X2            \
	VMOVD X2, (R8)                 \
	ADDQ $4, R8

// PLANE codes them for the planes, and leaves the codes in Y4.
#define PLANE \
	VMULPD Y12, Y0, Y4          \
	VROUNDPD $9, Y4, Y4         \
	VMAXPD least<>(SB), Y4, Y4  \
	VMINPD most<>(SB), Y4, Y4   \
	VADDPD half<>(SB), Y4, Y1   \
	VMULPD Y11, Y1, Y1          \
	VMULPD Y1, Y0, Y2           \
	VADDPD Y2, Y8, Y8           \
	VMULPD Y1, Y1, Y1           \
	VADDPD Y1, Y10, Y10         \
	VCVTTPD2DQY Y4, X2          \
	VPADDD zeros<>(SB), X2, X2  \
	VPSHUFB X14, X2, X2         \
	VMOVD X2, (R9)              \
	ADDQ $4, R9

// func codeAVX2(c *cells)
TEXT ·codeAVX2(SB), NOSPLIT, $0-8
	MOVQ c+0(FP), DI
	MOVQ cells_y(DI), SI
	MOVQ (cells_y+8)(DI), CX
	MOVQ cells_row(DI), R8
	MOVQ cells_codes(DI), R9
	VBROADCASTSD cells_grain(DI), Y13
	VBROADCASTSD cells_gain(DI), Y12
	VBROADCASTSD cells_width(DI), Y11
	VMOVDQU bytes<>(SB), X14
	VMOVUPD cells_off(DI), Y5
	VMOVUPD cells_norm(DI), Y6
	VMOVUPD cells_dots(DI), Y7
	VMOVUPD (cells_dots+32)(DI), Y8
	VMOVUPD cells_squares(DI), Y9
	VMOVUPD (cells_squares+32)(DI), Y10
	MOVQ cells_kind(DI), AX
	TESTQ CX, CX
	JZ   coded
	CMPQ AX, $const_noPlane
	JEQ  none
	CMPQ AX, $const_firstPlane
	JEQ  first

both:
	VMOVUPD (SI), Y0
	ROW
	PLANE
	VMULPD quarter<>(SB), Y4, Y4
	VROUNDPD $9, Y4, Y4
	VMULPD four<>(SB), Y4, Y4
	VADDPD two<>(SB), Y4, Y4
	VMULPD Y11, Y4, Y4
	VMULPD Y4, Y0, Y2
	VADDPD Y2, Y7, Y7
	VMULPD Y4, Y4, Y4
	VADDPD Y4, Y9, Y9
	ADDQ $32, SI
	SUBQ $4, CX
	JNZ  both
	JMP  coded

first:
	VMOVUPD (SI), Y0
	ROW
	PLANE
	ADDQ $32, SI
	SUBQ $4, CX
	JNZ  first
	JMP  coded

none:
	VMOVUPD (SI), Y0
	ROW
	ADDQ $32, SI
	SUBQ $4, CX
	JNZ  none

coded:
	VMOVUPD Y5, cells_off(DI)
	VMOVUPD Y6, cells_norm(DI)
	VMOVUPD Y7, cells_dots(DI)
	VMOVUPD Y8, (cells_dots+32)(DI)
	VMOVUPD Y9, cells_squares(DI)
	VMOVUPD Y10, (cells_squares+32)(DI)
	VZEROUPPER
	RET

// func spreadAVX2(row []uint8) int
TEXT ·spreadAVX2(SB), NOSPLIT, $0-32
	MOVQ row_base+0(FP), SI
	MOVQ row_len+8(FP), CX
	MOVL $0x0f0f0f0f, AX
	VMOVD AX, X4
	VPBROADCASTD X4, Y4
	MOVL $0x00010001, AX
	VMOVD AX, X5
	VPBROADCASTD X5, Y5
	VPXOR Y0, Y0, Y0

spread:
	SUBQ $64, CX
	JLT  spreaded
	VPAND (SI), Y4, Y1
	VPAND 32(SI), Y4, Y2
	VPXOR Y4, Y1, Y3 // 15 − l
	VPMADDUBSW Y3, Y1, Y1
	VPXOR Y4, Y2, Y3
	VPMADDUBSW Y3, Y2, Y2
	VPADDW Y2, Y1, Y1
	VPMADDWD Y5, Y1, Y1
	VPADDD Y1, Y0, Y0
	ADDQ $64, SI
	JMP  spread

spreaded:
	VEXTRACTI128 $1, Y0, X1
	VPADDD X1, X0, X0
	VPSHUFD $0x4e, X0, X1
	VPADDD X1, X0, X0
	VPSHUFD $0xb1, X0, X1
	VPADDD X1, X0, X0
	VMOVD X0, AX
	MOVQ AX, ret+24(FP)
	VZEROUPPER
	RET
