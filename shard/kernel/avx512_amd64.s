#include "go_asm.h"
#include "textflag.h"
#include "groups_amd64.h"
#include "rows_amd64.h"

// What is the same in all plane kernels. The old sums of a group are at R10, its mask at R8, its
// new sums in Z0; Z1 to Z4 are free.

#define SETUP \
	MOVQ plane_codes(DI), SI              \
	MOVQ plane_masks(DI), R8              \
	MOVQ plane_sums(DI), R10              \
	MOVQ (plane_layout+layout_boundsAt)(DI), R12    \
	MOVQ (plane_layout+layout_blockBytes)(DI), R11  \
	VMOVQ plane_shift(DI), X20            \
	VPBROADCASTD (plane_limit+limit_base)(DI), Z21  \
	MOVWLZX (plane_limit+limit_z)(DI), AX \
	NEGL AX                               \
	SHLL $16, AX                          \
	MOVW (plane_limit+limit_c)(DI), AX    \
	VPBROADCASTD AX, Z22                  \
	VMOVQ (plane_limit+limit_shift)(DI), X23

// SUMS adds the old sums, and BOUND takes slots off the mask.
#define SUMS \
	VMOVDQU32 (R10), Z4       \
	VPSLLD    X20, Z4, Z4     \
	VPADDD    Z4, Z0, Z0      \
	VMOVDQU32 Z0, (R10)

#define BOUND(bounds) \
	VPMOVZXBW bounds, Z1      \
	VPMADDWD  Z22, Z1, Z1     \
	VPADDD    Z21, Z1, Z1     \
	VPSRAD    X23, Z1, Z1     \
	VPCMPD    $5, Z1, Z0, K1  \
	KMOVW     K1, DX          \
	ANDW      DX, (R8)

// LIST begins to walk a list of groups, and NEXT finds the next of them: its codes
// at BX, bounds at R12, mask, sums. The group AHEAD places on is fetched meanwhile; R14 is the
// list, R9 what is left of it, R13 and R15 the masks and sums of the piece.
#define LIST \
	MOVQ plane_list(DI), R14     \
	MOVQ (plane_list+8)(DI), R9  \
	MOVQ R8, R13                 \
	MOVQ R10, R15

#define NEXT \
	GROUP((R14), BX, R12)      \
	MOVWLZX (R14), AX          \
	LEAQ    (R13)(AX*2), R8    \
	SHLQ    $6, AX             \
	LEAQ    (R15)(AX*1), R10

// LINE4 adds four numbers a slot of a group's line to its four accumulators. The
// upper pairs of bits stay in their place, which multiplies them by 4, 16 and 64,
// until the end.
#define LINE4(line, a0, a1, a2, a3) \
	VMOVDQU32 line, Z28     \
	VPANDD Z16, Z28, Z29    \
	VPANDD Z17, Z28, Z30    \
	VPANDD Z18, Z28, Z31    \
	VPANDD Z19, Z28, Z28    \
	VPDPBUSD Z24, Z29, a0   \
	VPDPBUSD Z25, Z30, a1   \
	VPDPBUSD Z26, Z31, a2   \
	VPDPBUSD Z27, Z28, a3

// TOTAL adds four accumulators up in Z0.
#define TOTAL(a0, a1, a2, a3) \
	VPSRAD $2, a1, a1       \
	VPSRAD $4, a2, a2       \
	VPSRAD $6, a3, a3       \
	VPADDD a1, a0, Z0       \
	VPADDD a3, a2, a2       \
	VPADDD a2, Z0, Z0

#define BROADCAST4 \
	VPBROADCASTD (DX), Z24   \
	VPBROADCASTD 4(DX), Z25  \
	VPBROADCASTD 8(DX), Z26  \
	VPBROADCASTD 12(DX), Z27

#define PAIRS \
	MOVL $0x03030303, AX  \
	VPBROADCASTD AX, Z16  \
	VPSLLD $2, Z16, Z17   \
	VPSLLD $4, Z16, Z18   \
	VPSLLD $6, Z16, Z19

// FOUR multiplies four accumulators by 4.
#define FOUR(a0, a1, a2, a3) \
	VPSLLD $2, a0, a0       \
	VPSLLD $2, a1, a1       \
	VPSLLD $2, a2, a2       \
	VPSLLD $2, a3, a3

// GROUPLINE adds a line of a group, and BLOCKLINE of four groups, which share the broadcast
// numbers of the probe.
#define GROUPLINE \
	BROADCAST4                   \
	LINE4((BX), Z0, Z1, Z2, Z3)  \
	ADDQ  $const_blockLineBytes, BX \
	ADDQ  $16, DX                \
	DECQ  CX

#define BLOCKLINE \
	BROADCAST4                           \
	LINE4((BX), Z0, Z1, Z2, Z3)          \
	LINE4(64(BX), Z4, Z5, Z6, Z7)        \
	LINE4(128(BX), Z8, Z9, Z10, Z11)     \
	LINE4(192(BX), Z12, Z13, Z14, Z15)   \
	ADDQ  $const_blockLineBytes, BX      \
	ADDQ  $16, DX                        \
	DECQ  CX

// func blocksVNNI(p *plane)
//
// There is no branch on data: a mispredicted one costs as much as a group.
TEXT ·blocksVNNI(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), DI
	SETUP
	PAIRS
	MOVQ (plane_masks+8)(DI), R9

block:
	TESTQ R9, R9
	JZ    done
	DECQ  R9
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	VPXORD Z4, Z4, Z4
	VPXORD Z5, Z5, Z5
	VPXORD Z6, Z6, Z6
	VPXORD Z7, Z7, Z7
	VPXORD Z8, Z8, Z8
	VPXORD Z9, Z9, Z9
	VPXORD Z10, Z10, Z10
	VPXORD Z11, Z11, Z11
	VPXORD Z12, Z12, Z12
	VPXORD Z13, Z13, Z13
	VPXORD Z14, Z14, Z14
	VPXORD Z15, Z15, Z15
	MOVQ  SI, BX
	MOVQ  plane_coarse(DI), DX
	MOVQ  plane_coarseLines(DI), CX
	TESTQ CX, CX
	JZ    second

coarse:
	BLOCKLINE
	JNZ   coarse

second:
	MOVQ  plane_fine(DI), DX
	MOVQ  plane_fineLines(DI), CX
	TESTQ CX, CX
	JZ    total
	FOUR(Z0, Z1, Z2, Z3)
	FOUR(Z4, Z5, Z6, Z7)
	FOUR(Z8, Z9, Z10, Z11)
	FOUR(Z12, Z13, Z14, Z15)

fine:
	BLOCKLINE
	JNZ   fine

total:
	VMOVDQA64 Z4, Z29
	TESTQ R10, R10
	JZ    bare
	TOTAL(Z0, Z1, Z2, Z3)
	SUMS
	BOUND((BX))
	TOTAL(Z29, Z5, Z6, Z7)
	ADDQ  $2, R8
	ADDQ  $64, R10
	SUMS
	BOUND(32(BX))
	TOTAL(Z8, Z9, Z10, Z11)
	ADDQ  $2, R8
	ADDQ  $64, R10
	SUMS
	BOUND(64(BX))
	TOTAL(Z12, Z13, Z14, Z15)
	ADDQ  $2, R8
	ADDQ  $64, R10
	SUMS
	BOUND(96(BX))
	ADDQ  $2, R8
	ADDQ  $64, R10
	ADDQ  R11, SI
	JMP   block

bare:
	TOTAL(Z0, Z1, Z2, Z3)
	BOUND((BX))
	TOTAL(Z29, Z5, Z6, Z7)
	ADDQ  $2, R8
	BOUND(32(BX))
	TOTAL(Z8, Z9, Z10, Z11)
	ADDQ  $2, R8
	BOUND(64(BX))
	TOTAL(Z12, Z13, Z14, Z15)
	ADDQ  $2, R8
	BOUND(96(BX))
	ADDQ  $2, R8
	ADDQ  R11, SI
	JMP   block

done:
	VZEROUPPER
	RET

// func groupsVNNI(p *plane)
TEXT ·groupsVNNI(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), DI
	SETUP
	PAIRS
	LIST

group:
	TESTQ R9, R9
	JZ    done
	CMPQ  R9, $AHEAD
	JLE   here
	FETCHGROUP

here:
	NEXT
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	MOVQ  plane_coarse(DI), DX
	MOVQ  plane_coarseLines(DI), CX
	TESTQ CX, CX
	JZ    second

coarse:
	GROUPLINE
	JNZ   coarse

second:
	MOVQ  plane_fine(DI), DX
	MOVQ  plane_fineLines(DI), CX
	TESTQ CX, CX
	JZ    total
	FOUR(Z0, Z1, Z2, Z3)

fine:
	GROUPLINE
	JNZ   fine

total:
	TOTAL(Z0, Z1, Z2, Z3)
	SUMS
	BOUND((R12))
	ADDQ  $2, R14
	DECQ  R9
	JMP   group

done:
	VZEROUPPER
	RET

// WORDLINE adds a line of a group without VNNI. The products of two bytes fit 16 bits:
// 3·127·2, times 4 for the upper pairs.
#define WORDLINE \
	BROADCAST4                \
	VMOVDQU32 (BX), Z4        \
	VPSRLW $4, Z4, Z5         \
	VPANDD Z17, Z4, Z6        \
	VPANDD Z17, Z5, Z7        \
	VPANDD Z16, Z4, Z4        \
	VPANDD Z16, Z5, Z5        \
	VPMADDUBSW Z24, Z4, Z4    \
	VPMADDUBSW Z25, Z6, Z6    \
	VPMADDUBSW Z26, Z5, Z5    \
	VPMADDUBSW Z27, Z7, Z7    \
	VPADDW Z5, Z4, Z4         \
	VPADDW Z7, Z6, Z6         \
	VPSLLW $2, Z4, Z4         \
	VPADDW Z6, Z4, Z4         \
	VPMADDWD Z18, Z4, Z4      \
	VPADDD Z4, Z0, Z0         \
	ADDQ  $const_blockLineBytes, BX \
	ADDQ  $16, DX             \
	DECQ  CX

// func groupsAVX512(p *plane)
TEXT ·groupsAVX512(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), DI
	SETUP
	LIST
	MOVL $0x03030303, AX
	VPBROADCASTD AX, Z16
	VPSLLD $2, Z16, Z17
	MOVL $0x00010001, AX
	VPBROADCASTD AX, Z18

group:
	TESTQ R9, R9
	JZ    done
	CMPQ  R9, $AHEAD
	JLE   here
	FETCHGROUP

here:
	NEXT
	VPXORD Z0, Z0, Z0
	MOVQ  plane_coarse(DI), DX
	MOVQ  plane_coarseLines(DI), CX
	TESTQ CX, CX
	JZ    second

coarse:
	WORDLINE
	JNZ   coarse

second:
	MOVQ  plane_fine(DI), DX
	MOVQ  plane_fineLines(DI), CX
	TESTQ CX, CX
	JZ    total
	VPSLLD $2, Z0, Z0

fine:
	WORDLINE
	JNZ   fine

total:
	VPSRAD $2, Z0, Z0
	SUMS
	BOUND((R12))
	ADDQ  $2, R14
	DECQ  R9
	JMP   group

done:
	VZEROUPPER
	RET

// SHIFTS makes Z24 the shift of each word that takes a unit's numbers, four bits each, apart, for both
// halves of a register that have the same 32 bytes: the first half gets a shift of 0. Z25 gets
// the bits of a number in each byte.
#define SHIFTS \
	VPXORD Z24, Z24, Z24           \
	MOVL $4, AX                    \
	VPBROADCASTD AX, Y25           \
	VINSERTI64X4 $1, Y25, Z24, Z24 \
	MOVL $0x0f0f0f0f, AX           \
	VPBROADCASTD AX, Z25

// func rowsVNNI(r *rows)
TEXT ·rowsVNNI(SB), NOSPLIT, $0-8
	MOVQ r+0(FP), DI
	MOVQ rows_rows(DI), SI
	MOVQ rows_list(DI), R8
	MOVQ (rows_list+8)(DI), R9
	MOVQ rows_probe(DI), R11
	MOVQ rows_sums(DI), R10
	MOVQ rows_stride(DI), R13
	MOVQ rows_fetch(DI), R14
	MOVQ R13, R15
	SHRQ $1, R15
	SHIFTS
	FIRSTROWS

row:
	TESTQ R9, R9
	JZ    done
	FETCHROW
	MOVWQZX (R8), AX
	IMULQ R13, AX
	ADDQ SI, AX
	LEAQ (AX)(R15*1), BX
	MOVQ R11, DX
	VPXORD Z0, Z0, Z0

unit:
	VBROADCASTI64X4 (AX), Z2
	VPSRLVD Z24, Z2, Z2
	VPANDD Z25, Z2, Z2
	VPDPBUSD (DX), Z2, Z0
	ADDQ $32, AX
	ADDQ $64, DX
	CMPQ AX, BX
	JLT  unit

	VEXTRACTI64X4 $1, Z0, Y1
	VPADDD Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDD X1, X0, X0
	VPSHUFD $0x4e, X0, X1
	VPADDD X1, X0, X0
	VPSHUFD $0xb1, X0, X1
	VPADDD X1, X0, X0
	VMOVD X0, (R10)
	ADDQ $2, R8
	ADDQ $4, R10
	DECQ R9
	JMP  row

done:
	VZEROUPPER
	RET

// func dotsAVX512(d *dots)
//
// One register is the sixteen lanes of score.Dot. Multiply and add are separate
// instructions: a fused one would round once less.
TEXT ·dotsAVX512(SB), NOSPLIT, $0-8
	MOVQ d+0(FP), DI
	MOVQ dots_rows(DI), SI
	MOVQ dots_list(DI), R8
	MOVQ (dots_list+8)(DI), R9
	MOVQ dots_probe(DI), R11
	MOVQ (dots_probe+8)(DI), R13
	SHLQ $2, R13
	MOVQ dots_dots(DI), R10

row:
	TESTQ R9, R9
	JZ    done
	MOVWQZX (R8), AX
	IMULQ R13, AX
	ADDQ SI, AX
	MOVQ AX, CX
	CMPQ R9, $4
	JLE  here
	MOVWQZX 8(R8), CX // fetched while this row is multiplied
	IMULQ R13, CX
	ADDQ SI, CX

here:
	LEAQ (R11)(R13*1), BX
	MOVQ R11, DX
	VPXORD Z0, Z0, Z0

part:
	VMOVUPS (AX), Z1
	PREFETCHT0 (CX)
	VMULPS (DX), Z1, Z1
	VADDPS Z1, Z0, Z0
	ADDQ $64, AX
	ADDQ $64, CX
	ADDQ $64, DX
	CMPQ DX, BX
	JLT  part

	VEXTRACTF64X4 $1, Z0, Y1
	VADDPS Y1, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS X1, X0, X0
	VMOVHLPS X0, X0, X1
	VADDPS X1, X0, X0
	VMOVSHDUP X0, X1
	VADDSS X1, X0, X0
	VMOVSS X0, (R10)
	ADDQ $2, R8
	ADDQ $4, R10
	DECQ R9
	JMP  row

done:
	VZEROUPPER
	RET

// HALVES reads both halves of a unit.
#define HALVES(upper, lower, all, to) \
	VMOVDQU32 upper, to       \
	VINSERTI64X4 $1, lower, all, all

// QUAD reads a unit of four rows, which has word j of these in its register j % 4 at j / 4
// then, and goes on to the next four. The lower half is at DX.
#define QUAD(a, b, c, d) \
	HALVES((BX), (DX), Z16, Y16)                \
	HALVES((BX)(R13*1), (DX)(R13*1), Z17, Y17)  \
	HALVES((BX)(R13*2), (DX)(R13*2), Z18, Y18)  \
	HALVES((BX)(R14*1), (DX)(R14*1), Z19, Y19)  \
	LEAQ (BX)(R13*4), BX        \
	LEAQ (DX)(R13*4), DX        \
	VPUNPCKLDQ Z17, Z16, Z20    \
	VPUNPCKHDQ Z17, Z16, Z21    \
	VPUNPCKLDQ Z19, Z18, Z22    \
	VPUNPCKHDQ Z19, Z18, Z23    \
	VPUNPCKLQDQ Z22, Z20, a     \
	VPUNPCKHQDQ Z22, Z20, b     \
	VPUNPCKLQDQ Z23, Z21, c     \
	VPUNPCKHQDQ Z23, Z21, d

// WHOLE writes two lines, of a word of the upper halves and one of the lower ones: the numbers
// in the lower bits of their bytes, and eight lines on those in the upper ones. Z25 has the lower
// bits set. To multiply words by Z26 or Z27 shifts them by 4 to the left or right, where another
// unit of the processor is idle.
#define WHOLE(upper, lower, free, at) \
	VPMULLW Z26, upper, free            \
	VPTERNLOGD $0xd8, Z25, lower, free  \
	VPMULHUW Z27, lower, lower          \
	VPTERNLOGD $0xd8, Z25, lower, upper \
	VMOVDQU32 free, at(R10)             \
	VMOVDQU32 upper, (at+512)(R10)

// COLUMNS writes four lines, words i, i+4, i+8 and i+12 of all rows, from those of four quads.
// The first two are of upper halves, the others of lower ones.
#define COLUMNS(a, b, c, d, at) \
	VSHUFI32X4 $0x88, b, a, Z16   \
	VSHUFI32X4 $0xdd, b, a, Z17   \
	VSHUFI32X4 $0x88, d, c, Z18   \
	VSHUFI32X4 $0xdd, d, c, Z19   \
	VSHUFI32X4 $0x88, Z18, Z16, Z20 \
	VSHUFI32X4 $0x88, Z19, Z17, Z21 \
	VSHUFI32X4 $0xdd, Z18, Z16, Z22 \
	VSHUFI32X4 $0xdd, Z19, Z17, Z23 \
	WHOLE(Z20, Z22, Z16, at)      \
	WHOLE(Z21, Z23, Z17, at+256)

// func turnAVX512(t *turn)
//
// A unit is 64 numbers of sixteen slots: a matrix of 16 × 16 words of eight half numbers that
// changes rows and columns.
TEXT ·turnAVX512(SB), NOSPLIT, $0-8
	MOVQ t+0(FP), DI
	MOVQ turn_rows(DI), SI
	MOVQ turn_to(DI), R10
	MOVQ turn_groups(DI), R9
	MOVQ turn_stride(DI), R13
	LEAQ (R13)(R13*2), R14 // 3 rows
	MOVQ R13, R15
	SHLQ $4, R15           // 16 rows
	MOVQ R13, R11
	SHRQ $1, R11           // half a row
	MOVL $0x0f0f0f0f, AX
	VPBROADCASTD AX, Z25
	MOVL $0x00100010, AX
	VPBROADCASTD AX, Z26
	MOVL $0x10001000, AX
	VPBROADCASTD AX, Z27

group:
	TESTQ R9, R9
	JZ    done
	MOVQ  SI, AX
	MOVQ  R13, CX
	SHRQ  $6, CX

unit:
	MOVQ AX, BX
	LEAQ (AX)(R11*1), DX
	QUAD(Z0, Z1, Z2, Z3)
	QUAD(Z4, Z5, Z6, Z7)
	QUAD(Z8, Z9, Z10, Z11)
	QUAD(Z12, Z13, Z14, Z15)
	COLUMNS(Z0, Z4, Z8, Z12, 0)
	COLUMNS(Z1, Z5, Z9, Z13, 64)
	COLUMNS(Z2, Z6, Z10, Z14, 128)
	COLUMNS(Z3, Z7, Z11, Z15, 192)
	ADDQ $1024, R10
	ADDQ $32, AX
	DECQ CX
	JNZ  unit

	ADDQ R15, SI
	DECQ R9
	JMP  group

done:
	VZEROUPPER
	RET

// LANES multiplies four numbers of 16 slots, in Z20, by those of sixteen probes.
#define LANES \
	VPDPBUSD.BCST 0(DX), Z20, Z0 \
	VPDPBUSD.BCST 4(DX), Z20, Z1 \
	VPDPBUSD.BCST 8(DX), Z20, Z2 \
	VPDPBUSD.BCST 12(DX), Z20, Z3 \
	VPDPBUSD.BCST 16(DX), Z20, Z4 \
	VPDPBUSD.BCST 20(DX), Z20, Z5 \
	VPDPBUSD.BCST 24(DX), Z20, Z6 \
	VPDPBUSD.BCST 28(DX), Z20, Z7 \
	VPDPBUSD.BCST 32(DX), Z20, Z8 \
	VPDPBUSD.BCST 36(DX), Z20, Z9 \
	VPDPBUSD.BCST 40(DX), Z20, Z10 \
	VPDPBUSD.BCST 44(DX), Z20, Z11 \
	VPDPBUSD.BCST 48(DX), Z20, Z12 \
	VPDPBUSD.BCST 52(DX), Z20, Z13 \
	VPDPBUSD.BCST 56(DX), Z20, Z14 \
	VPDPBUSD.BCST 60(DX), Z20, Z15 \
	ADDQ $64, DX

// LANE compares the sums of a lane with its limit.
#define LANE(sum, lane) \
	VPCMPD.BCST $5, (lanes_limits+4*lane)(DI), sum, K1 \
	KMOVW K1, (R8)              \
	ADDQ R13, R8

// func lanesVNNI(l *lanes)
TEXT ·lanesVNNI(SB), NOSPLIT, $0-8
	MOVQ l+0(FP), DI
	MOVQ lanes_turned(DI), SI
	MOVQ lanes_groups(DI), R9
	MOVQ lanes_maskStride(DI), R13
	MOVQ lanes_masks(DI), R10
	MOVQ lanes_ahead(DI), R11

group:
	TESTQ R9, R9
	JZ    done
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	VPXORD Z4, Z4, Z4
	VPXORD Z5, Z5, Z5
	VPXORD Z6, Z6, Z6
	VPXORD Z7, Z7, Z7
	VPXORD Z8, Z8, Z8
	VPXORD Z9, Z9, Z9
	VPXORD Z10, Z10, Z10
	VPXORD Z11, Z11, Z11
	VPXORD Z12, Z12, Z12
	VPXORD Z13, Z13, Z13
	VPXORD Z14, Z14, Z14
	VPXORD Z15, Z15, Z15
	MOVQ lanes_probes(DI), DX
	MOVQ lanes_lines(DI), CX

line:
	VMOVDQU32 (SI), Z20
	PREFETCHT0 (R11) // as many lines as are read
	LANES
	ADDQ $64, SI
	ADDQ $64, R11
	DECQ CX
	JNZ  line

	MOVQ R10, R8
	LANE(Z0, 0)
	LANE(Z1, 1)
	LANE(Z2, 2)
	LANE(Z3, 3)
	LANE(Z4, 4)
	LANE(Z5, 5)
	LANE(Z6, 6)
	LANE(Z7, 7)
	LANE(Z8, 8)
	LANE(Z9, 9)
	LANE(Z10, 10)
	LANE(Z11, 11)
	LANE(Z12, 12)
	LANE(Z13, 13)
	LANE(Z14, 14)
	LANE(Z15, 15)
	ADDQ $2, R10
	DECQ R9
	JMP  group

done:
	VZEROUPPER
	RET
