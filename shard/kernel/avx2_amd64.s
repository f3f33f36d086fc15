#include "go_asm.h"
#include "textflag.h"
#include "groups_amd64.h"
#include "rows_amd64.h"

// HALF adds eight slots of a line to acc: the numbers of the probe are in Y4 to Y7.
#define HALF(line, acc) \
	VMOVDQU line, Y2          \
	VPSRLW $4, Y2, Y3         \
	VPAND Y15, Y2, Y8         \
	VPAND Y14, Y2, Y2         \
	VPAND Y15, Y3, Y9         \
	VPAND Y14, Y3, Y3         \
	VPMADDUBSW Y4, Y8, Y8     \
	VPMADDUBSW Y5, Y2, Y2     \
	VPMADDUBSW Y6, Y9, Y9     \
	VPMADDUBSW Y7, Y3, Y3     \
	VPADDW Y9, Y8, Y8         \
	VPADDW Y3, Y2, Y2         \
	VPSLLW $2, Y8, Y8         \
	VPADDW Y2, Y8, Y8         \
	VPMADDWD Y13, Y8, Y8      \
	VPADDD Y8, acc, acc

// HALVES adds a line.
#define HALVES \
	VPBROADCASTD (DX), Y4     \
	VPBROADCASTD 4(DX), Y5    \
	VPBROADCASTD 8(DX), Y6    \
	VPBROADCASTD 12(DX), Y7   \
	HALF((BX), Y0)            \
	HALF(32(BX), Y1)          \
	ADDQ  $const_blockLineBytes, BX \
	ADDQ  $16, DX             \
	DECQ  CX

// HALFBOUND turns the sums of eight slots into bits of the new mask.
#define HALFBOUND(acc, at, bounds, to) \
	VPSRAD $2, acc, acc       \
	VMOVDQU at(R10), Y2       \
	VPSLLD X8, Y2, Y2         \
	VPADDD Y2, acc, acc       \
	VMOVDQU acc, at(R10)      \
	VPMOVZXBW bounds, Y3      \
	VPMADDWD Y11, Y3, Y3      \
	VPADDD Y12, Y3, Y3        \
	VPSRAD X10, Y3, Y3        \
	VPCMPGTD acc, Y3, Y3      \
	VMOVMSKPS Y3, to

// func groupsAVX2(p *plane)
//
// As groupsAVX512, in halves.
TEXT ·groupsAVX2(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), DI
	MOVQ plane_codes(DI), SI
	MOVQ plane_list(DI), R14
	MOVQ (plane_list+8)(DI), R9
	MOVQ plane_masks(DI), R13
	MOVQ plane_sums(DI), R15
	VPBROADCASTD (plane_limit+limit_base)(DI), Y12
	MOVWLZX (plane_limit+limit_z)(DI), AX
	NEGL AX
	SHLL $16, AX
	MOVW (plane_limit+limit_c)(DI), AX
	VMOVD AX, X11
	VPBROADCASTD X11, Y11
	VMOVQ (plane_limit+limit_shift)(DI), X10
	MOVL $0x03030303, AX
	VMOVD AX, X15
	VPBROADCASTD X15, Y15
	VPSLLD $2, Y15, Y14
	MOVL $0x00010001, AX
	VMOVD AX, X13
	VPBROADCASTD X13, Y13

group:
	TESTQ R9, R9
	JZ    done
	CMPQ  R9, $AHEAD
	JLE   here
	FETCHGROUP

here:
	GROUP((R14), BX, R12)
	MOVWLZX (R14), AX
	LEAQ    (R13)(AX*2), R8
	SHLQ    $6, AX
	LEAQ    (R15)(AX*1), R10
	VPXOR   Y0, Y0, Y0
	VPXOR   Y1, Y1, Y1
	MOVQ    plane_coarse(DI), DX
	MOVQ    plane_coarseLines(DI), CX
	TESTQ   CX, CX
	JZ      second

coarse:
	HALVES
	JNZ   coarse

second:
	MOVQ  plane_fine(DI), DX
	MOVQ  plane_fineLines(DI), CX
	TESTQ CX, CX
	JZ    total
	VPSLLD $2, Y0, Y0
	VPSLLD $2, Y1, Y1

fine:
	HALVES
	JNZ   fine

total:
	VMOVQ plane_shift(DI), X8
	HALFBOUND(Y0, 0, (R12), AX)
	HALFBOUND(Y1, 32, 16(R12), CX)
	SHLL  $8, CX
	ORL   CX, AX
	NOTL  AX
	ANDW  AX, (R8)
	ADDQ  $2, R14
	DECQ  R9
	JMP   group

done:
	VZEROUPPER
	RET

// PIECE adds eight slots of a line: the even numbers of each byte to a0, four times the odd ones to a1.
#define PIECE(line, a0, a1) \
	VMOVDQU line, Y14         \
	VPAND Y12, Y14, Y15       \
	VPMADDUBSW Y8, Y15, Y15   \
	VPADDW Y15, a0, a0        \
	VPAND Y13, Y14, Y15       \
	VPMADDUBSW Y9, Y15, Y15   \
	VPADDW Y15, a1, a1        \
	VPSRLW $4, Y14, Y14       \
	VPAND Y12, Y14, Y15       \
	VPMADDUBSW Y10, Y15, Y15  \
	VPADDW Y15, a0, a0        \
	VPAND Y13, Y14, Y14       \
	VPMADDUBSW Y11, Y14, Y14  \
	VPADDW Y14, a1, a1

// WIDEN adds the sums of a run, 16 bits each, to those at SP, 32 bits each, and clears them.
#define WIDEN(a0, a1, at) \
	VPSRAW $2, a1, a1         \
	VPADDW a1, a0, a0         \
	VPMADDWD Y15, a0, a0      \
	VPADDD at(SP), a0, a0     \
	VMOVDQU a0, at(SP)        \
	VPXOR a0, a0, a0          \
	VPXOR a1, a1, a1

// RUNS adds the CX lines at BX, in runs of at most R9 lines. The numbers of the probe are at DX.
#define RUNS(run, line) \
run:                                 \
	MOVQ  R9, AX                 \
	CMPQ  CX, AX                 \
	CMOVQLT CX, AX               \
	SUBQ  AX, CX                 \
line:                                \
	VPBROADCASTD (DX), Y8        \
	VPBROADCASTD 4(DX), Y9       \
	VPBROADCASTD 8(DX), Y10      \
	VPBROADCASTD 12(DX), Y11     \
	PREFETCHT0 2560(BX) \
	PREFETCHT0 2624(BX) \
	PIECE((BX), Y0, Y1)          \
	PIECE(32(BX), Y2, Y3)        \
	PIECE(64(BX), Y4, Y5)        \
	PIECE(96(BX), Y6, Y7)        \
	ADDQ  $const_blockLineBytes, BX \
	ADDQ  $16, DX                \
	DECQ  AX                     \
	JNZ   line                   \
	VPBROADCASTD ones<>(SB), Y15 \
	WIDEN(Y0, Y1, 0)             \
	WIDEN(Y2, Y3, 32)            \
	WIDEN(Y4, Y5, 64)            \
	WIDEN(Y6, Y7, 96)            \
	TESTQ CX, CX                 \
	JNZ   run

// KEEP adds the old sums of eight slots to acc and writes the new ones, if the scan keeps sums.
#define KEEP(acc, at) \
	VMOVDQU at(R10), Y8       \
	VPSLLD X15, Y8, Y8        \
	VPADDD Y8, acc, acc       \
	VMOVDQU acc, at(R10)

// EIGHT turns the sums of eight slots into bits.
#define EIGHT(acc, bounds, to) \
	VPMOVZXBW bounds, Y8      \
	VPMADDWD Y9, Y8, Y8       \
	VPADDD Y10, Y8, Y8        \
	VPSRAD X11, Y8, Y8        \
	VPCMPGTD acc, Y8, Y8      \
	VMOVMSKPS Y8, to

DATA ones<>+0(SB)/4, $0x00010001
GLOBL ones<>(SB), RODATA|NOPTR, $4
DATA pairs0<>+0(SB)/4, $0x03030303
GLOBL pairs0<>(SB), RODATA|NOPTR, $4
DATA pairs1<>+0(SB)/4, $0x0c0c0c0c
GLOBL pairs1<>(SB), RODATA|NOPTR, $4

// func blocksAVX2(p *plane)
//
// It takes half of a block at a time, whose sums fit the registers if they have 16 bits.
TEXT ·blocksAVX2(SB), NOSPLIT, $128-8
	MOVQ p+0(FP), DI
	MOVQ plane_codes(DI), SI
	MOVQ plane_masks(DI), R8
	MOVQ (plane_masks+8)(DI), R13
	MOVQ plane_sums(DI), R10
	MOVQ plane_run(DI), R9
	MOVQ (plane_layout+layout_blockBytes)(DI), R11
	MOVQ (plane_layout+layout_boundsAt)(DI), R12
	ADDQ SI, R12
	MOVWLZX (plane_limit+limit_z)(DI), R14
	NEGL R14
	SHLL $16, R14
	MOVW (plane_limit+limit_c)(DI), R14
	ADDQ R13, R13
	XORL R15, R15 // 128 in the second half of a block
	VPBROADCASTD pairs0<>(SB), Y12
	VPBROADCASTD pairs1<>(SB), Y13
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5
	VPXOR Y6, Y6, Y6
	VPXOR Y7, Y7, Y7

half:
	TESTQ R13, R13
	JZ    done
	DECQ  R13
	VMOVDQU Y0, 0(SP)
	VMOVDQU Y0, 32(SP)
	VMOVDQU Y0, 64(SP)
	VMOVDQU Y0, 96(SP)
	LEAQ  (SI)(R15*1), BX
	MOVQ  plane_coarse(DI), DX
	MOVQ  plane_coarseLines(DI), CX
	TESTQ CX, CX
	JZ    second
	RUNS(coarse, coarseLine)

second:
	MOVQ  plane_fine(DI), DX
	MOVQ  plane_fineLines(DI), CX
	TESTQ CX, CX
	JZ    total
	VMOVDQU 0(SP), Y8
	VMOVDQU 32(SP), Y9
	VMOVDQU 64(SP), Y10
	VMOVDQU 96(SP), Y11
	VPSLLD $2, Y8, Y8
	VPSLLD $2, Y9, Y9
	VPSLLD $2, Y10, Y10
	VPSLLD $2, Y11, Y11
	VMOVDQU Y8, 0(SP)
	VMOVDQU Y9, 32(SP)
	VMOVDQU Y10, 64(SP)
	VMOVDQU Y11, 96(SP)
	RUNS(fine, fineLine)

total:
	VMOVDQU 0(SP), Y4
	VMOVDQU 32(SP), Y5
	VMOVDQU 64(SP), Y6
	VMOVDQU 96(SP), Y7
	TESTQ R10, R10
	JZ    bare
	VMOVQ plane_shift(DI), X15
	KEEP(Y4, 0)
	KEEP(Y5, 32)
	KEEP(Y6, 64)
	KEEP(Y7, 96)
	ADDQ  $128, R10

bare:
	VMOVD R14, X9
	VPBROADCASTD X9, Y9
	VPBROADCASTD (plane_limit+limit_base)(DI), Y10
	VMOVQ (plane_limit+limit_shift)(DI), X11
	EIGHT(Y4, (R12), AX)
	EIGHT(Y5, 16(R12), CX)
	SHLL  $8, CX
	ORL   CX, AX
	EIGHT(Y6, 32(R12), CX)
	SHLL  $16, CX
	ORL   CX, AX
	EIGHT(Y7, 48(R12), CX)
	SHLL  $24, CX
	ORL   CX, AX
	NOTL  AX
	ANDL  AX, (R8)
	ADDQ  $4, R8
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5
	VPXOR Y6, Y6, Y6
	VPXOR Y7, Y7, Y7
	ADDQ  $64, R12
	XORL  $128, R15
	JNZ   half
	ADDQ  R11, SI
	LEAQ  -128(R12)(R11*1), R12
	JMP   half

done:
	VZEROUPPER
	RET

// func rowsAVX2(r *rows)
TEXT ·rowsAVX2(SB), NOSPLIT, $0-8
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
	MOVL $0x00010001, AX
	VMOVD AX, X13
	VPBROADCASTD X13, Y13
	MOVL $0x0f0f0f0f, AX
	VMOVD AX, X14
	VPBROADCASTD X14, Y14
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
	VPXOR Y0, Y0, Y0

unit: // products of 4 by 8 bits: four fit 16
	VMOVDQU (AX), Y2
	VPSRLW $4, Y2, Y3
	VPAND Y14, Y2, Y2
	VPAND Y14, Y3, Y3
	VPMADDUBSW (DX), Y2, Y2
	VPMADDUBSW 32(DX), Y3, Y3
	VPADDW Y3, Y2, Y2
	VPMADDWD Y13, Y2, Y2
	VPADDD Y2, Y0, Y0
	ADDQ $32, AX
	ADDQ $64, DX
	CMPQ AX, BX
	JLT  unit

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

// func dotsAVX2(d *dots)
TEXT ·dotsAVX2(SB), NOSPLIT, $0-8
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
	MOVWQZX 8(R8), CX
	IMULQ R13, CX
	ADDQ SI, CX

here:
	LEAQ (R11)(R13*1), BX
	MOVQ R11, DX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1

part:
	VMOVUPS (AX), Y2
	VMOVUPS 32(AX), Y3
	PREFETCHT0 (CX)
	VMULPS (DX), Y2, Y2
	VMULPS 32(DX), Y3, Y3
	VADDPS Y2, Y0, Y0
	VADDPS Y3, Y1, Y1
	ADDQ $64, AX
	ADDQ $64, CX
	ADDQ $64, DX
	CMPQ DX, BX
	JLT  part

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
