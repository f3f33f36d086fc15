#include "go_asm.h"
#include "textflag.h"

#define AHEAD 4
#define ROWAHEAD 64

#define OFFSET(list, to) \
	MOVWLZX list, AX                         \
	MOVL    AX, to                           \
	ANDL    $3, AX                           \
	SHRL    $2, to                           \
	IMULQ   (plane_layout+0)(DI), AX         \
	IMULQ   (plane_layout+16)(DI), to        \
	ADDQ    AX, to                           \
	ADDQ    SI, to

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

// HALFBOUND turns the sums of eight slots into bits of the new mask.
#define HALFBOUND(acc, sums, alphas, tans, to) \
	VPSRAD $2, acc, acc       \
	VMOVDQU sums(R10), Y2     \
	VPSLLD X8, Y2, Y2         \
	VPADDD Y2, acc, acc       \
	VMOVDQU acc, sums(R10) \
	VCVTDQ2PS acc, acc        \
	VSUBPS Y12, acc, acc      \
	VPMOVZXWD alphas(BX), Y3  \
	VCVTDQ2PS Y3, Y3          \
	VMULPS Y3, acc, acc       \
	VPMOVZXWD tans(BX), Y4    \
	VCVTDQ2PS Y4, Y4          \
	VMULPS Y10, Y4, Y4        \
	VADDPS Y4, acc, acc       \
	VCMPPS $0x15, Y11, acc, acc \
	VMOVMSKPS acc, to

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
	MOVQ plane_probe(DI), R11
	MOVQ plane_lines(DI), R12
	VBROADCASTSS plane_offset(DI), Y12
	VBROADCASTSS (plane_limit+0)(DI), Y11
	VBROADCASTSS (plane_limit+4)(DI), Y10
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
	OFFSET((2*AHEAD)(R14), BX)
	MOVQ  plane_fetch(DI), CX

fetch:
	PREFETCHT0 (BX)
	ADDQ  (plane_layout+8)(DI), BX
	DECQ  CX
	JNZ   fetch

here:
	OFFSET((R14), BX)
	MOVWLZX (R14), AX
	LEAQ    (R13)(AX*2), R8
	SHLQ    $6, AX
	LEAQ    (R15)(AX*1), R10
	MOVQ    R11, DX
	MOVQ    R12, CX
	VPXOR   Y0, Y0, Y0
	VPXOR   Y1, Y1, Y1

line:
	VPBROADCASTD (DX), Y4
	VPBROADCASTD 4(DX), Y5
	VPBROADCASTD 8(DX), Y6
	VPBROADCASTD 12(DX), Y7
	HALF((BX), Y0)
	HALF(32(BX), Y1)
	ADDQ  (plane_layout+8)(DI), BX
	ADDQ  $16, DX
	DECQ  CX
	JNZ   line

	VMOVQ plane_shift(DI), X8
	HALFBOUND(Y0, 0, 0, 32, AX)
	HALFBOUND(Y1, 32, 16, 48, CX)
	SHLL  $8, CX
	ORL   CX, AX
	ANDW  AX, (R8)
	ADDQ  $2, R14
	DECQ  R9
	JMP   group

done:
	VZEROUPPER
	RET

// UNIT adds the products of 32 numbers in Y2 to acc.
#define UNIT(probe, acc) \
	VPMADDUBSW probe, Y2, Y2 \
	VPMADDWD Y13, Y2, Y2     \
	VPADDD Y2, acc, acc

// func restsAVX2(r *rests)
TEXT ·restsAVX2(SB), NOSPLIT, $0-8
	MOVQ r+0(FP), DI
	MOVQ rests_rows(DI), SI
	MOVQ rests_list(DI), R8
	MOVQ (rests_list+8)(DI), R9
	MOVQ rests_probe(DI), R11
	MOVQ rests_sums(DI), R10
	MOVQ rests_stride(DI), R13
	MOVQ rests_units(DI), R12
	MOVQ R12, R15
	SHLQ $5, R15
	VMOVQ rests_shift(DI), X8
	MOVL $0x0f0f0f0f, AX
	VMOVD AX, X15
	VPBROADCASTD X15, Y15
	MOVL $0x03030303, AX
	VMOVD AX, X14
	VPBROADCASTD X14, Y14
	MOVL $0x00010001, AX
	VMOVD AX, X13
	VPBROADCASTD X13, Y13
	MOVL $2, AX
	VMOVD AX, X2
	VPBROADCASTD X2, X2
	VPXOR Y12, Y12, Y12
	VINSERTI128 $1, X2, Y12, Y12 // shifts 0, 2 of halves
	MOVL $4, AX
	VMOVD AX, X2
	VPBROADCASTD X2, Y2
	VPADDD Y2, Y12, Y11          // shifts 4, 6

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
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1

unit:
	VMOVDQU (AX), Y3
	VPAND Y15, Y3, Y2
	UNIT((DX), Y0)
	VPSRLW $4, Y3, Y2
	VPAND Y15, Y2, Y2
	UNIT(32(DX), Y0)
	VBROADCASTI128 (BX), Y3
	VPSRLVD Y12, Y3, Y2
	VPAND Y14, Y2, Y2
	UNIT((DX), Y1)
	VPSRLVD Y11, Y3, Y2
	VPAND Y14, Y2, Y2
	UNIT(32(DX), Y1)
	ADDQ $32, AX
	ADDQ $16, BX
	ADDQ $64, DX
	DECQ CX
	JNZ  unit

	VPSLLD X8, Y1, Y1
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
