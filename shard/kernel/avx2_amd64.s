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
