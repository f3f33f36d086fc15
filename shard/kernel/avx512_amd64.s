#include "go_asm.h"
#include "textflag.h"

// AHEAD is how many groups of a list before its turn a group is fetched.
#define AHEAD 4

// ROWAHEAD is the same for rows. They are fetched to the second cache: it waits for more lines
// at once than the first, which made rows here and there twice as fast.
#define ROWAHEAD 64

// What is the same in all plane kernels. The line of bounds of a group is at BX, its
// old sums at R10, its mask at R8, its new sums in Z0; Z1 to Z4 are free.

#define SETUP \
	MOVQ plane_codes(DI), SI              \
	MOVQ plane_masks(DI), R8              \
	MOVQ plane_sums(DI), R10              \
	MOVQ plane_probe(DI), R11             \
	MOVQ plane_lines(DI), R12             \
	VMOVQ plane_shift(DI), X20            \
	VBROADCASTSS plane_offset(DI), Z21    \
	VBROADCASTSS (plane_limit+0)(DI), Z22 \
	VBROADCASTSS (plane_limit+4)(DI), Z23

#define BOUND \
	VMOVDQU32 (R10), Z4       \
	VPSLLD    X20, Z4, Z4     \
	VPADDD    Z4, Z0, Z0      \
	VMOVDQU32 Z0, (R10)       \
	VCVTDQ2PS Z0, Z1          \
	VSUBPS    Z21, Z1, Z1     \
	VPMOVZXWD (BX), Z2        \
	VCVTDQ2PS Z2, Z2          \
	VPMOVZXWD 32(BX), Z3      \
	VCVTDQ2PS Z3, Z3          \
	VMULPS    Z2, Z1, Z1      \
	VMULPS    Z23, Z3, Z3     \
	VADDPS    Z3, Z1, Z1      \
	VCMPPS    $0x15, Z22, Z1, K1 \
	KMOVW     K1, DX          \
	ANDW      DX, (R8)

// LIST begins to walk a list of groups, and NEXT finds the next of them: its codes
// at BX, mask, sums. The group four places on is fetched meanwhile; R14 is the list,
// R9 what is left of it, R13 and R15 the masks and sums of the piece.
#define LIST \
	MOVQ plane_list(DI), R14     \
	MOVQ (plane_list+8)(DI), R9  \
	MOVQ R8, R13                 \
	MOVQ R10, R15

#define OFFSET(list, to) \
	MOVWLZX list, AX                         \
	MOVL    AX, to                           \
	ANDL    $3, AX                           \
	SHRL    $2, to                           \
	IMULQ   (plane_layout+0)(DI), AX         \
	IMULQ   (plane_layout+16)(DI), to        \
	ADDQ    AX, to                           \
	ADDQ    SI, to

#define NEXT \
	OFFSET((R14), BX)          \
	MOVWLZX (R14), AX          \
	LEAQ    (R13)(AX*2), R8    \
	SHLQ    $6, AX             \
	LEAQ    (R15)(AX*1), R10   \
	MOVQ    R11, DX            \
	MOVQ    R12, CX

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

// func blocksVNNI(p *plane)
//
// Four groups at a time share the broadcast numbers of the probe. There is no
// branch on data: a mispredicted one costs as much as a group.
TEXT ·blocksVNNI(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), DI
	SETUP
	PAIRS
	MOVQ (plane_masks+8)(DI), R9
	SHRQ $2, R9
	MOVQ (plane_layout+0)(DI), R13
	MOVQ (plane_layout+8)(DI), R15

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
	LEAQ  (SI)(R13*2), R14
	ADDQ  R13, R14
	MOVQ  R11, DX
	MOVQ  R12, CX

line:
	BROADCAST4
	LINE4((BX), Z0, Z1, Z2, Z3)
	LINE4((BX)(R13*1), Z4, Z5, Z6, Z7)
	LINE4((BX)(R13*2), Z8, Z9, Z10, Z11)
	LINE4((R14), Z12, Z13, Z14, Z15)
	ADDQ  R15, BX
	ADDQ  R15, R14
	ADDQ  $16, DX
	DECQ  CX
	JNZ   line

	TOTAL(Z0, Z1, Z2, Z3)
	VMOVDQA64 Z4, Z29
	BOUND
	TOTAL(Z29, Z5, Z6, Z7)
	ADDQ  R13, BX
	ADDQ  $2, R8
	ADDQ  $64, R10
	BOUND
	TOTAL(Z8, Z9, Z10, Z11)
	ADDQ  R13, BX
	ADDQ  $2, R8
	ADDQ  $64, R10
	BOUND
	TOTAL(Z12, Z13, Z14, Z15)
	ADDQ  R13, BX
	ADDQ  $2, R8
	ADDQ  $64, R10
	BOUND
	ADDQ  $2, R8
	ADDQ  $64, R10
	ADDQ  (plane_layout+16)(DI), SI
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
	OFFSET((2*AHEAD)(R14), BX)
	MOVQ  plane_fetch(DI), CX

fetch:
	PREFETCHT0 (BX)
	ADDQ  (plane_layout+8)(DI), BX
	DECQ  CX
	JNZ   fetch

here:
	NEXT
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3

line:
	BROADCAST4
	LINE4((BX), Z0, Z1, Z2, Z3)
	ADDQ  (plane_layout+8)(DI), BX
	ADDQ  $16, DX
	DECQ  CX
	JNZ   line

	TOTAL(Z0, Z1, Z2, Z3)
	BOUND
	ADDQ  $2, R14
	DECQ  R9
	JMP   group

done:
	VZEROUPPER
	RET

// func groupsAVX512(p *plane)
//
// The products of two bytes fit 16 bits: 3·127·2, times 4 for the upper pairs.
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
	OFFSET((2*AHEAD)(R14), BX)
	MOVQ  plane_fetch(DI), CX

fetch:
	PREFETCHT0 (BX)
	ADDQ  (plane_layout+8)(DI), BX
	DECQ  CX
	JNZ   fetch

here:
	NEXT
	VPXORD Z0, Z0, Z0

line:
	BROADCAST4
	VMOVDQU32 (BX), Z4
	VPSRLW $4, Z4, Z5
	VPANDD Z17, Z4, Z6
	VPANDD Z17, Z5, Z7
	VPANDD Z16, Z4, Z4
	VPANDD Z16, Z5, Z5
	VPMADDUBSW Z24, Z4, Z4
	VPMADDUBSW Z25, Z6, Z6
	VPMADDUBSW Z26, Z5, Z5
	VPMADDUBSW Z27, Z7, Z7
	VPADDW Z5, Z4, Z4
	VPADDW Z7, Z6, Z6
	VPSLLW $2, Z4, Z4
	VPADDW Z6, Z4, Z4
	VPMADDWD Z18, Z4, Z4
	VPADDD Z4, Z0, Z0
	ADDQ  (plane_layout+8)(DI), BX
	ADDQ  $16, DX
	DECQ  CX
	JNZ   line

	VPSRAD $2, Z0, Z0
	BOUND
	ADDQ  $2, R14
	DECQ  R9
	JMP   group

done:
	VZEROUPPER
	RET

// func restsVNNI(r *rests)
//
// 32 bytes of low are spread over a register twice, the second time shifted by 4: 64
// numbers in their order. 16 bytes of mid are spread four times.
TEXT ·restsVNNI(SB), NOSPLIT, $0-8
	MOVQ r+0(FP), DI
	MOVQ rests_rows(DI), SI
	MOVQ rests_list(DI), R8
	MOVQ (rests_list+8)(DI), R9
	MOVQ rests_probe(DI), R11
	MOVQ rests_sums(DI), R10
	MOVQ rests_stride(DI), R13
	MOVQ rests_units(DI), R12
	VMOVQ rests_shift(DI), X22
	MOVQ R12, R15
	SHLQ $5, R15 // bytes of low in a row
	MOVL $0x0f0f0f0f, AX
	VPBROADCASTD AX, Z16
	MOVL $0x03030303, AX
	VPBROADCASTD AX, Z18
	VPXORD Z20, Z20, Z20
	MOVL $4, AX
	VPBROADCASTD AX, Z17
	VINSERTI64X4 $0, Y20, Z17, Z17 // shifts 0, 4 of halves
	MOVL $2, AX
	VMOVD AX, X19
	VPBROADCASTD X19, X19
	VINSERTI32X4 $1, X19, Z20, Z20
	VPADDD X19, X19, X21
	VINSERTI32X4 $2, X21, Z20, Z20
	VPADDD X19, X21, X21
	VINSERTI32X4 $3, X21, Z20, Z20 // shifts 0, 2, 4, 6 of quarters

	// Row i + ROWAHEAD is fetched while row i is summed; here the first of them.
	XORQ DX, DX

first:
	CMPQ DX, R9
	JGE  row
	CMPQ DX, $ROWAHEAD
	JGE  row
	MOVWQZX (R8)(DX*2), AX
	IMULQ R13, AX
	ADDQ SI, AX
	PREFETCHT1 (AX)
	PREFETCHT1 64(AX)
	PREFETCHT1 -1(AX)(R13*1)
	INCQ DX
	JMP  first

row:
	TESTQ R9, R9
	JZ    done
	CMPQ R9, $ROWAHEAD
	JLE  here
	MOVWQZX (2*ROWAHEAD)(R8), AX
	IMULQ R13, AX
	ADDQ SI, AX
	LEAQ (AX)(R13*1), BX

fetch:
	PREFETCHT1 (AX)
	ADDQ $64, AX
	CMPQ AX, BX
	JLT  fetch
	PREFETCHT1 -1(BX)

here:
	MOVWQZX (R8), AX
	IMULQ R13, AX
	ADDQ SI, AX
	LEAQ (AX)(R15*1), BX
	MOVQ R11, DX
	MOVQ R12, CX
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1

unit:
	VMOVDQU32 (DX), Z4
	VBROADCASTI64X4 (AX), Z2
	VBROADCASTI32X4 (BX), Z3
	VPSRLVD Z17, Z2, Z2
	VPSRLVD Z20, Z3, Z3
	VPANDD Z16, Z2, Z2
	VPANDD Z18, Z3, Z3
	VPDPBUSD Z4, Z2, Z0
	VPDPBUSD Z4, Z3, Z1
	ADDQ $32, AX
	ADDQ $16, BX
	ADDQ $64, DX
	DECQ CX
	JNZ  unit

	VPSLLD X22, Z1, Z1
	VPADDD Z1, Z0, Z0
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

// LANE bounds the rows for the probe of a lane: α in Z22, tan φ in Z23.
#define LANE(sum, lane) \
	VMOVDQU32 sum, (R10)(R14*1) \
	ADDQ R15, R10               \
	VCVTDQ2PS sum, Z24          \
	VSUBPS.BCST (lanes_offset+4*lane)(DI), Z24, Z24 \
	VMULPS Z22, Z24, Z24        \
	VMULPS.BCST (lanes_z+4*lane)(DI), Z23, Z25 \
	VADDPS Z25, Z24, Z24        \
	VCMPPS.BCST $0x15, (lanes_c+4*lane)(DI), Z24, K1 \
	KMOVW K1, (R8)              \
	ADDQ R13, R8

// func lanesVNNI(l *lanes)
//
// hi and mid are put together to 4 bits once for sixteen probes.
TEXT ·lanesVNNI(SB), NOSPLIT, $0-8
	MOVQ l+0(FP), DI
	MOVQ lanes_hi(DI), SI
	MOVQ lanes_mid(DI), R11
	MOVQ lanes_groups(DI), R9
	MOVL $0x03030303, AX
	VPBROADCASTD AX, Z16
	VPSLLD $2, Z16, Z17
	XORQ R12, R12 // group
	XORQ R14, R14 // its sums

group:
	CMPQ R12, R9
	JGE  done
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
	MOVQ SI, AX
	MOVQ R11, BX
	MOVQ lanes_probes(DI), DX
	MOVQ lanes_lines(DI), CX
	LEAQ 1(CX), R15
	SHLQ $8, R15 // bytes of a block

line:
	PREFETCHT0 (AX)(R15*1) // the same line of the next block
	PREFETCHT0 (BX)(R15*1)
	VMOVDQU32 (AX), Z18
	VMOVDQU32 (BX), Z19
	VPSLLD $2, Z18, Z20
	VPANDD Z17, Z20, Z20
	VPTERNLOGD $0xf8, Z16, Z19, Z20
	LANES
	VPANDD Z17, Z18, Z20
	VPSRLD $2, Z19, Z21
	VPTERNLOGD $0xf8, Z16, Z21, Z20
	LANES
	VPSRLD $2, Z18, Z20
	VPANDD Z17, Z20, Z20
	VPSRLD $4, Z19, Z21
	VPTERNLOGD $0xf8, Z16, Z21, Z20
	LANES
	VPSRLD $4, Z18, Z20
	VPANDD Z17, Z20, Z20
	VPSRLD $6, Z19, Z21
	VPTERNLOGD $0xf8, Z16, Z21, Z20
	LANES
	ADDQ $256, AX
	ADDQ $256, BX
	DECQ CX
	JNZ  line

	VPMOVZXWD (BX), Z22
	VCVTDQ2PS Z22, Z22
	VPMOVZXWD 32(BX), Z23
	VCVTDQ2PS Z23, Z23
	MOVQ lanes_masks(DI), R8
	LEAQ (R8)(R12*2), R8
	MOVQ lanes_maskStride(DI), R13
	MOVQ lanes_sums(DI), R10
	MOVQ lanes_sumStride(DI), R15
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

	ADDQ $64, R14
	INCQ R12
	ADDQ $64, SI
	ADDQ $64, R11
	TESTQ $3, R12
	JNZ  group
	// The next block: past the other lines of this one.
	MOVQ lanes_lines(DI), AX
	SHLQ $8, AX
	ADDQ AX, SI
	ADDQ AX, R11
	JMP  group

done:
	VZEROUPPER
	RET
