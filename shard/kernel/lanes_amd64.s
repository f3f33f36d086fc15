#include "go_asm.h"
#include "textflag.h"

// SIX makes bytes of the upper six bits of 32 numbers from their upper halves at AX and lower halves
// at BX, and goes on to the next row. Y14 has the four upper bits of the six set, Y15 the others. The
// upper halves are shifted by 2 in one direction, the lower ones by so many bits to the right:
//
//	VPSLLW, 2   the numbers in the lower bits of the bytes
//	VPSRLW, 6   those in the upper bits
#define SIX(shift, lower, to) \
	VMOVDQU (AX), to       \
	VMOVDQU (BX), Y9       \
	shift   $2, to, to     \
	VPSRLW  $lower, Y9, Y9 \
	VPAND   Y14, to, to    \
	VPAND   Y15, Y9, Y9    \
	VPOR    Y9, to, to     \
	ADDQ    R13, AX        \
	ADDQ    R13, BX

// EIGHT makes these bytes of eight rows, from DX on, and writes their columns.
#define EIGHT(shift, lower, at) \
	MOVQ DX, AX            \
	LEAQ (AX)(R11*1), BX   \
	SIX(shift, lower, Y0)  \
	SIX(shift, lower, Y1)  \
	SIX(shift, lower, Y2)  \
	SIX(shift, lower, Y3)  \
	SIX(shift, lower, Y4)  \
	SIX(shift, lower, Y5)  \
	SIX(shift, lower, Y6)  \
	SIX(shift, lower, Y7)  \
	COLUMNS(at)

// HALVES writes two lines of eight slots, i and i+4, from words of the first four slots and of the
// others.
#define HALVES(first, second, free, at) \
	VPERM2I128 $0x31, second, first, free   \
	VPERM2I128 $0x20, second, first, first  \
	VMOVDQU    first, at(R10)               \
	VMOVDQU    free, (at+256)(R10)

// COLUMNS writes eight lines of eight slots from the rows in Y0 to Y7: it changes rows and columns of
// 8 × 8 words of four numbers.
#define COLUMNS(at) \
	VPUNPCKHDQ  Y1, Y0, Y8 \
	VPUNPCKLDQ  Y1, Y0, Y0 \
	VPUNPCKHDQ  Y3, Y2, Y1 \
	VPUNPCKLDQ  Y3, Y2, Y2 \
	VPUNPCKHDQ  Y5, Y4, Y3 \
	VPUNPCKLDQ  Y5, Y4, Y4 \
	VPUNPCKHDQ  Y7, Y6, Y5 \
	VPUNPCKLDQ  Y7, Y6, Y6 \
	VPUNPCKHQDQ Y2, Y0, Y7 \
	VPUNPCKLQDQ Y2, Y0, Y0 \
	VPUNPCKHQDQ Y1, Y8, Y2 \
	VPUNPCKLQDQ Y1, Y8, Y8 \
	VPUNPCKHQDQ Y6, Y4, Y1 \
	VPUNPCKLQDQ Y6, Y4, Y4 \
	VPUNPCKHQDQ Y5, Y3, Y6 \
	VPUNPCKLQDQ Y5, Y3, Y3 \
	HALVES(Y0, Y4, Y5, at)       \
	HALVES(Y7, Y1, Y4, at+64)    \
	HALVES(Y8, Y3, Y1, at+128)   \
	HALVES(Y2, Y6, Y3, at+192)

// func turnAVX2(t *turn)
//
// A unit is 64 numbers of eight slots. A line has four numbers of sixteen slots, so the lines of a unit
// of the first eight slots are halves, beside those of the others.
TEXT ·turnAVX2(SB), NOSPLIT, $0-8
	MOVQ t+0(FP), DI
	MOVQ turn_rows(DI), SI
	MOVQ turn_to(DI), R8
	MOVQ turn_groups(DI), R9
	MOVQ turn_stride(DI), R13
	MOVQ R13, R11
	SHRQ $1, R11 // half a row
	MOVL $0x3c3c3c3c, AX
	VMOVD AX, X14
	VPBROADCASTD X14, Y14
	MOVL $0x03030303, AX
	VMOVD AX, X15
	VPBROADCASTD X15, Y15

group:
	TESTQ R9, R9
	JZ    done
	XORQ  R12, R12 // 0, then 32 for the other eight slots

eight:
	LEAQ (R8)(R12*1), R10
	MOVQ SI, DX
	MOVQ R13, CX
	SHRQ $6, CX

unit:
	EIGHT(VPSLLW, 2, 0)
	EIGHT(VPSRLW, 6, 512)
	ADDQ $1024, R10
	ADDQ $32, DX
	DECQ CX
	JNZ  unit

	LEAQ (SI)(R13*8), SI
	ADDQ $32, R12
	CMPQ R12, $64
	JLT  eight

	MOVQ R13, AX
	SHLQ $4, AX
	ADDQ AX, R8
	DECQ R9
	JMP  group

done:
	VZEROUPPER
	RET

// PROBE multiplies a line, in Y12 and Y13, by four numbers of a probe.
#define PROBE(at, low, high) \
	VPBROADCASTD at(DX), Y14      \
	VPMADDUBSW   Y14, Y12, Y8     \
	VPMADDUBSW   Y14, Y13, Y9     \
	VPADDW       Y8, low, low     \
	VPADDW       Y9, high, high

// WIDEN adds the sums of a run to those of all runs before.
#define WIDEN(sums, at) \
	VPMADDWD Y15, sums, sums      \
	VPADDD   at(SP), sums, sums   \
	VMOVDQU  sums, at(SP)

// LANE compares the sums of a lane with its limit.
#define LANE(lane) \
	VPBROADCASTD (4*lane)(BX), Y14        \
	VPCMPGTD     (64*lane)(SP), Y14, Y8   \
	VPCMPGTD     (64*lane+32)(SP), Y14, Y9 \
	VMOVMSKPS    Y8, CX                   \
	VMOVMSKPS    Y9, DX                   \
	SHLL         $8, DX                   \
	ORL          DX, CX                   \
	NOTL         CX                       \
	MOVW         CX, (R8)                 \
	ADDQ         R13, R8

// func lanesAVX2(l *lanes)
//
// Four lanes have their sums of 16 bits, two a slot, in Y0 to Y7, and those of 32 bits on the stack.
TEXT ·lanesAVX2(SB), NOSPLIT, $256-8
	MOVQ l+0(FP), DI
	MOVQ lanes_turned(DI), SI
	MOVQ lanes_groups(DI), R9
	MOVQ lanes_masks(DI), R10
	MOVQ lanes_maskStride(DI), R13
	MOVQ lanes_ahead(DI), R11
	MOVL $0x00010001, AX
	VMOVD AX, X15
	VPBROADCASTD X15, Y15

group:
	TESTQ R9, R9
	JZ    done
	MOVQ  R10, R8
	XORQ  R12, R12 // 16 bytes a quad of lanes

quad:
	MOVQ SI, AX
	MOVQ lanes_probes(DI), DX
	ADDQ R12, DX
	MOVQ lanes_runs(DI), R14
	MOVQ (lanes_runs+8)(DI), R15
	VPXOR Y0, Y0, Y0
	VMOVDQU Y0, 0(SP)
	VMOVDQU Y0, 32(SP)
	VMOVDQU Y0, 64(SP)
	VMOVDQU Y0, 96(SP)
	VMOVDQU Y0, 128(SP)
	VMOVDQU Y0, 160(SP)
	VMOVDQU Y0, 192(SP)
	VMOVDQU Y0, 224(SP)

run:
	MOVBQZX (R14), CX
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5
	VPXOR Y6, Y6, Y6
	VPXOR Y7, Y7, Y7

line:
	VMOVDQU (AX), Y12
	VMOVDQU 32(AX), Y13
	PREFETCHT0 (R11) // four quads come by a line
	PROBE(0, Y0, Y1)
	PROBE(4, Y2, Y3)
	PROBE(8, Y4, Y5)
	PROBE(12, Y6, Y7)
	ADDQ $16, R11
	ADDQ $64, AX
	ADDQ $64, DX
	DECQ CX
	JNZ  line

	WIDEN(Y0, 0)
	WIDEN(Y1, 32)
	WIDEN(Y2, 64)
	WIDEN(Y3, 96)
	WIDEN(Y4, 128)
	WIDEN(Y5, 160)
	WIDEN(Y6, 192)
	WIDEN(Y7, 224)
	INCQ R14
	DECQ R15
	JNZ  run

	LEAQ lanes_limits(DI), BX
	ADDQ R12, BX
	LANE(0)
	LANE(1)
	LANE(2)
	LANE(3)
	ADDQ $16, R12
	CMPQ R12, $64
	JLT  quad

	MOVQ AX, SI
	ADDQ $2, R10
	DECQ R9
	JMP  group

done:
	VZEROUPPER
	RET
