#include "go_asm.h"
#include "textflag.h"
#include "neon_arm64.h"

// START makes a lane's sums what its codes lack, times the probe.
#define START(bias, i, low, high) \
	VDUP bias.S[i], low.S4  \
	VDUP bias.S[i], high.S4

// LANE multiplies four numbers of eight slots, in V16 and V17, by those of one probe of four.
#define LANE(low, high, probes, i) \
	SDOTLANE(low, 16, probes, i)  \
	SDOTLANE(high, 17, probes, i)

// MASK compares the sums of a lane with its limit, and writes the bits of eight slots.
#define MASK(limits, i, low, high) \
	VDUP  limits.S[i], V22.S4        \
	CMGE(16, low, 22)                \
	CMGE(17, high, 22)               \
	VUZP1 V17.H8, V16.H8, V16.H8     \
	VAND  V23.B16, V16.B16, V16.B16  \
	VADDV V16.H8, V16                \
	VMOV  V16.H[0], R12              \
	MOVB  R12, (R11)                 \
	ADD   R6, R11

// func lanesDot(l *lanes)
//
// The sums of sixteen slots and probes would take 64 registers: a pass has half of both. The dot
// product takes signed numbers, so 128 is taken off the codes, and its products with the numbers of
// the probes, in V24 to V27, are what the sums start with.
TEXT ·lanesDot(SB), NOSPLIT, $0-8
	MOVD l+0(FP), R0
	MOVD lanes_turned(R0), R1
	MOVD lanes_groups(R0), R2
	MOVD lanes_lines(R0), R3
	MOVD lanes_masks(R0), R5
	MOVD lanes_maskStride(R0), R6
	MOVD lanes_ahead(R0), R8
	MOVD $64, R7
	MOVD $0x0008000400020001, R12
	VMOV R12, V23.D[0]
	MOVD $0x0080004000200010, R12
	VMOV R12, V23.D[1]

	VMOVI $0x80, V28.B16
	VMOVI $1, V29.B16
	VEOR V24.B16, V24.B16, V24.B16
	VEOR V25.B16, V25.B16, V25.B16
	VEOR V26.B16, V26.B16, V26.B16
	VEOR V27.B16, V27.B16, V27.B16
	MOVD lanes_probes(R0), R10
	MOVD R3, R4

bias:
	VLD1.P 64(R10), [V16.B16, V17.B16, V18.B16, V19.B16]
	SDOT(24, 16, 29)
	SDOT(25, 17, 29)
	SDOT(26, 18, 29)
	SDOT(27, 19, 29)
	SUB  $1, R4
	CBNZ R4, bias
	VSHL $7, V24.S4, V24.S4
	VSHL $7, V25.S4, V25.S4
	VSHL $7, V26.S4, V26.S4
	VSHL $7, V27.S4, V27.S4

group:
	CBZ  R2, done
	MOVD $0, R13 // pass: slots' half, then probes'

pass:
	AND  $1, R13, R12
	ADD  R12<<5, R1, R9
	MOVD lanes_probes(R0), R10
	AND  $2, R13, R12
	ADD  R12<<4, R10, R10
	MOVD R3, R4
	VMOV V24.B16, V30.B16
	VMOV V25.B16, V31.B16
	CBZ  R12, start
	VMOV V26.B16, V30.B16
	VMOV V27.B16, V31.B16

start:
	START(V30, 0, V0, V1)
	START(V30, 1, V2, V3)
	START(V30, 2, V4, V5)
	START(V30, 3, V6, V7)
	START(V31, 0, V8, V9)
	START(V31, 1, V10, V11)
	START(V31, 2, V12, V13)
	START(V31, 3, V14, V15)

line:
	VLD1.P (R9)(R7), [V16.B16, V17.B16]
	VLD1.P (R10)(R7), [V18.B16, V19.B16]
	VEOR V28.B16, V16.B16, V16.B16
	VEOR V28.B16, V17.B16, V17.B16
	LANE(0, 1, 18, 0)
	LANE(2, 3, 18, 1)
	LANE(4, 5, 18, 2)
	LANE(6, 7, 18, 3)
	LANE(8, 9, 19, 0)
	LANE(10, 11, 19, 1)
	LANE(12, 13, 19, 2)
	LANE(14, 15, 19, 3)
	SUB  $1, R4
	CBNZ R4, line

	AND  $2, R13, R12 // lanes 8 to 15: behind eight limits and masks
	ADD  $lanes_limits, R0, R11
	ADD  R12<<4, R11, R11
	VLD1 (R11), [V20.S4, V21.S4]
	LSL  $2, R12
	MADD R6, R5, R12, R11
	AND  $1, R13, R12
	ADD  R12, R11
	MASK(V20, 0, 0, 1)
	MASK(V20, 1, 2, 3)
	MASK(V20, 2, 4, 5)
	MASK(V20, 3, 6, 7)
	MASK(V21, 0, 8, 9)
	MASK(V21, 1, 10, 11)
	MASK(V21, 2, 12, 13)
	MASK(V21, 3, 14, 15)
	ADD  $1, R13
	CMP  $4, R13
	BLT  pass

	MOVD R3, R4 // as many lines as were read

ahead:
	PRFM (R8), PLDL2KEEP
	ADD  $64, R8
	SUB  $1, R4
	CBNZ R4, ahead
	ADD  R3<<6, R1, R1
	ADD  $2, R5
	SUB  $1, R2
	B    group

done:
	RET

// WORDS writes four lines of four slots, words of four numbers: rows and columns are exchanged.
#define WORDS(a, b, c, d, to) \
	VTRN1  b.S4, a.S4, V12.S4      \
	VTRN2  b.S4, a.S4, V13.S4      \
	VTRN1  d.S4, c.S4, V14.S4      \
	VTRN2  d.S4, c.S4, V15.S4      \
	VZIP1  V14.D2, V12.D2, V16.D2  \
	VZIP1  V15.D2, V13.D2, V17.D2  \
	VZIP2  V14.D2, V12.D2, V18.D2  \
	VZIP2  V15.D2, V13.D2, V19.D2  \
	FMOVQ  F16, (to+0)(R11)        \
	FMOVQ  F17, (to+64)(R11)       \
	FMOVQ  F18, (to+128)(R11)      \
	FMOVQ  F19, (to+192)(R11)

// QUAD reads sixteen bytes of both halves of four rows, from R9 and R10 on, and writes the codes.
#define QUAD(to) \
	MOVD   R9, R12                 \
	VLD1.P (R12)(R6), [V0.B16]     \
	VLD1.P (R12)(R6), [V1.B16]     \
	VLD1.P (R12)(R6), [V2.B16]     \
	VLD1   (R12), [V3.B16]         \
	MOVD   R10, R12                \
	VLD1.P (R12)(R6), [V4.B16]     \
	VLD1.P (R12)(R6), [V5.B16]     \
	VLD1.P (R12)(R6), [V6.B16]     \
	VLD1   (R12), [V7.B16]         \
	VMOV   V4.B16, V8.B16          \
	VMOV   V5.B16, V9.B16          \
	VMOV   V6.B16, V10.B16         \
	VMOV   V7.B16, V11.B16         \
	VSLI   $4, V0.B16, V8.B16      \
	VSLI   $4, V1.B16, V9.B16      \
	VSLI   $4, V2.B16, V10.B16     \
	VSLI   $4, V3.B16, V11.B16     \
	VSRI   $4, V4.B16, V0.B16      \
	VSRI   $4, V5.B16, V1.B16      \
	VSRI   $4, V6.B16, V2.B16      \
	VSRI   $4, V7.B16, V3.B16      \
	WORDS(V8, V9, V10, V11, to)    \
	WORDS(V0, V1, V2, V3, to+512)  \
	ADD    $16, R9                 \
	ADD    $16, R10

// func turnNEON(t *turn)
//
// A unit is 64 numbers of four slots: sixteen lines.
TEXT ·turnNEON(SB), NOSPLIT, $0-8
	MOVD t+0(FP), R0
	MOVD turn_rows(R0), R1
	MOVD turn_to(R0), R2
	MOVD turn_groups(R0), R5
	MOVD turn_stride(R0), R6

group:
	CBZ  R5, done
	MOVD $0, R8 // quad of the group

quad:
	MOVD R1, R9
	ADD  R6>>1, R1, R10
	MOVD R10, R13
	ADD  R8<<4, R2, R11

unit:
	QUAD(0)
	QUAD(256)
	ADD $1024, R11
	CMP R13, R9
	BLT unit

	ADD R6<<2, R1, R1
	ADD $1, R8
	CMP $4, R8
	BLT quad

	ADD R6<<4, R2, R2
	SUB $1, R5
	B   group

done:
	RET
