#include "go_asm.h"
#include "textflag.h"
#include "neon_arm64.h"

// AHEAD is how many groups of a list before its turn a group is fetched.
#define AHEAD 4

// What is the same in both plane kernels. R1 are the codes, R2 the masks and R3 the sums of the
// piece, R4 the list, R5 what is left of it, R9 the line of the group, R13 its bounds, R10 the probe.
#define SETUP \
	MOVD plane_codes(R0), R1                            \
	MOVD plane_masks(R0), R2                            \
	MOVD plane_sums(R0), R3                             \
	MOVD plane_list(R0), R4                             \
	MOVD (plane_list+8)(R0), R5                         \
	MOVD (plane_layout+layout_boundsAt)(R0), R6         \
	MOVD $const_blockLineBytes, R7                      \
	MOVD (plane_layout+layout_blockBytes)(R0), R8       \
	MOVH (plane_limit+limit_c)(R0), R11                 \
	VDUP R11, V24.H8                                    \
	MOVH (plane_limit+limit_z)(R0), R11                 \
	VDUP R11, V25.H8                                    \
	MOVD (plane_limit+limit_shift)(R0), R11             \
	NEG  R11, R11                                       \
	VDUP R11, V26.S4                                    \
	MOVW (plane_limit+limit_base)(R0), R11              \
	VDUP R11, V27.S4                                    \
	MOVD plane_shift(R0), R11                           \
	VDUP R11, V28.S4                                    \
	MOVD $0x8040201008040201, R11                       \
	VDUP R11, V29.D2

// GROUP finds a group of a list: its first line at R9 and its bounds at R13.
#define GROUP(list) \
	MOVHU list, R11        \
	LSR   $2, R11, R12     \
	AND   $3, R11, R11     \
	MADD  R8, R1, R12, R12 \
	ADD   R11<<6, R12, R9  \
	ADD   R6, R12, R13     \
	ADD   R11<<5, R13, R13

// FETCHGROUP fetches the group that is AHEAD places on.
#define FETCHGROUP \
	CMP  $AHEAD, R5                    \
	BLE  here                          \
	GROUP((2*AHEAD)(R4))               \
	PRFM (R13), PLDL1KEEP              \
	MOVD plane_coarseLines(R0), R12    \
	MOVD plane_fineLines(R0), R11      \
	ADDS R11, R12                      \
	BEQ  here                          \
fetch:                                     \
	PRFM (R9), PLDL1KEEP               \
	ADD  R7, R9                        \
	SUB  $1, R12                       \
	CBNZ R12, fetch                    \
here:

#define CLEAR4(a, b, c, d) \
	VEOR a.B16, a.B16, a.B16 \
	VEOR b.B16, b.B16, b.B16 \
	VEOR c.B16, c.B16, c.B16 \
	VEOR d.B16, d.B16, d.B16

// SUMS adds the new sums, V0 to V3, to the old ones, and finds the group's mask at R11. V4 to V20
// are free.
#define SUMS \
	MOVHU  (R4), R11               \
	ADD    R11<<6, R3, R10         \
	VLD1   (R10), [V4.S4, V5.S4, V6.S4, V7.S4] \
	SSHL(4, 4, 28)                 \
	SSHL(5, 5, 28)                 \
	SSHL(6, 6, 28)                 \
	SSHL(7, 7, 28)                 \
	VADD   V4.S4, V0.S4, V0.S4     \
	VADD   V5.S4, V1.S4, V1.S4     \
	VADD   V6.S4, V2.S4, V2.S4     \
	VADD   V7.S4, V3.S4, V3.S4     \
	VST1   [V0.S4, V1.S4, V2.S4, V3.S4], (R10) \
	ADD    R11<<1, R2, R11

// BOUND takes the bits of the slots that are out off the mask at R11.
#define BOUND \
	VLD2   (R13), [V4.B16, V5.B16] \
	VUXTL  V4.B8, V6.H8            \
	VUXTL2 V4.B16, V7.H8           \
	VUXTL  V5.B8, V8.H8            \
	VUXTL2 V5.B16, V9.H8           \
	VMOV   V27.B16, V10.B16        \
	VMOV   V27.B16, V11.B16        \
	VMOV   V27.B16, V12.B16        \
	VMOV   V27.B16, V13.B16        \
	SMLALH(10, 6, 24)              \
	SMLALH2(11, 6, 24)             \
	SMLALH(12, 7, 24)              \
	SMLALH2(13, 7, 24)             \
	SMLSLH(10, 8, 25)              \
	SMLSLH2(11, 8, 25)             \
	SMLSLH(12, 9, 25)              \
	SMLSLH2(13, 9, 25)             \
	SSHL(10, 10, 26)               \
	SSHL(11, 11, 26)               \
	SSHL(12, 12, 26)               \
	SSHL(13, 13, 26)               \
	CMGE(0, 0, 10)                 \
	CMGE(1, 1, 11)                 \
	CMGE(2, 2, 12)                 \
	CMGE(3, 3, 13)                 \
	VUZP1  V1.H8, V0.H8, V0.H8     \
	VUZP1  V3.H8, V2.H8, V2.H8     \
	VUZP1  V2.B16, V0.B16, V0.B16  \
	VAND   V29.B16, V0.B16, V0.B16 \
	VADDP  V0.B16, V0.B16, V0.B16  \
	VADDP  V0.B16, V0.B16, V0.B16  \
	VADDP  V0.B16, V0.B16, V0.B16  \
	VMOV   V0.H[0], R12            \
	MOVHU  (R11), R10              \
	AND    R12, R10, R10           \
	MOVH   R10, (R11)

// QUARTER adds four slots of a line to three sums each: of the two outer pairs of bits, of the
// second, times 4, and of the third, times 16. V20 is the probe's line.
#define QUARTER(line, n, a, b, c) \
	VAND  V21.B16, line.B16, V16.B16  \
	VAND  V22.B16, line.B16, V17.B16  \
	VAND  V23.B16, line.B16, V18.B16  \
	VUSHR $6, line.B16, line.B16      \
	SDOTLANE(a, 16, 20, 0)            \
	SDOTLANE(b, 17, 20, 1)            \
	SDOTLANE(c, 18, 20, 2)            \
	SDOTLANE(a, n, 20, 3)

// DOTLINE adds a line of sixteen slots.
#define DOTLINE \
	VLD1.P (R9)(R7), [V12.B16, V13.B16, V14.B16, V15.B16] \
	VLD1.P 16(R10), [V20.B16]  \
	QUARTER(V12, 12, 0, 4, 8)  \
	QUARTER(V13, 13, 1, 5, 9)  \
	QUARTER(V14, 14, 2, 6, 10) \
	QUARTER(V15, 15, 3, 7, 11) \
	SUB  $1, R12

// TOTAL adds the sums up in V0 to V3.
#define TOTAL \
	SSRA(0, 4, 2)  \
	SSRA(1, 5, 2)  \
	SSRA(2, 6, 2)  \
	SSRA(3, 7, 2)  \
	SSRA(0, 8, 4)  \
	SSRA(1, 9, 4)  \
	SSRA(2, 10, 4) \
	SSRA(3, 11, 4)

// FOUR multiplies four sums by 4.
#define FOUR(a, b, c, d) \
	VSHL $2, a.S4, a.S4 \
	VSHL $2, b.S4, b.S4 \
	VSHL $2, c.S4, c.S4 \
	VSHL $2, d.S4, d.S4

// func groupsDot(p *plane)
TEXT ·groupsDot(SB), NOSPLIT, $0-8
	MOVD p+0(FP), R0
	SETUP
	VMOVI $0x03, V21.B16
	VMOVI $0x0c, V22.B16
	VMOVI $0x30, V23.B16

group:
	CBZ  R5, done
	FETCHGROUP
	GROUP((R4))
	CLEAR4(V0, V1, V2, V3)
	CLEAR4(V4, V5, V6, V7)
	CLEAR4(V8, V9, V10, V11)
	MOVD plane_coarse(R0), R10
	MOVD plane_coarseLines(R0), R12
	CBZ  R12, second

coarse:
	DOTLINE
	CBNZ R12, coarse

second:
	MOVD plane_fine(R0), R10
	MOVD plane_fineLines(R0), R12
	CBZ  R12, total
	FOUR(V0, V1, V2, V3)
	FOUR(V4, V5, V6, V7)
	FOUR(V8, V9, V10, V11)

fine:
	DOTLINE
	CBNZ R12, fine

total:
	TOTAL
	SUMS
	BOUND
	ADD $2, R4
	SUB $1, R5
	B   group

done:
	RET

// WORDQUARTER adds four slots of a line to their sums without the dot product: four products of 2 by
// 8 bits, and two such sums, fit 16 bits. V4 to V7 are the probe's numbers.
#define WORDQUARTER(line, sum) \
	VUSHR $2, line.B16, V17.B16      \
	VUSHR $4, line.B16, V18.B16      \
	VUSHR $6, line.B16, V19.B16      \
	VAND  V21.B16, line.B16, V16.B16 \
	VAND  V21.B16, V17.B16, V17.B16  \
	VAND  V21.B16, V18.B16, V18.B16  \
	SMULLB(8, 16, 4)                 \
	SMULLB2(9, 16, 4)                \
	SMLALB(8, 17, 5)                 \
	SMLALB2(9, 17, 5)                \
	SMLALB(8, 18, 6)                 \
	SMLALB2(9, 18, 6)                \
	SMLALB(8, 19, 7)                 \
	SMLALB2(9, 19, 7)                \
	VADDP V9.H8, V8.H8, V8.H8        \
	SADALP(sum, 8)

#define WORDLINE \
	VLD1.P (R9)(R7), [V12.B16, V13.B16, V14.B16, V15.B16] \
	VLD4R.P 16(R10), [V4.S4, V5.S4, V6.S4, V7.S4] \
	WORDQUARTER(V12, 0) \
	WORDQUARTER(V13, 1) \
	WORDQUARTER(V14, 2) \
	WORDQUARTER(V15, 3) \
	SUB  $1, R12

// func groupsNEON(p *plane)
TEXT ·groupsNEON(SB), NOSPLIT, $0-8
	MOVD p+0(FP), R0
	SETUP
	VMOVI $0x03, V21.B16

group:
	CBZ  R5, done
	FETCHGROUP
	GROUP((R4))
	CLEAR4(V0, V1, V2, V3)
	MOVD plane_coarse(R0), R10
	MOVD plane_coarseLines(R0), R12
	CBZ  R12, second

coarse:
	WORDLINE
	CBNZ R12, coarse

second:
	MOVD plane_fine(R0), R10
	MOVD plane_fineLines(R0), R12
	CBZ  R12, total
	FOUR(V0, V1, V2, V3)

fine:
	WORDLINE
	CBNZ R12, fine

total:
	SUMS
	BOUND
	ADD $2, R4
	SUB $1, R5
	B   group

done:
	RET
