#include "go_asm.h"
#include "textflag.h"

// APPEND writes the slots, bounds and sums, Z3, Z1 and Z0, that a mask tells to the lists that
// begin at R11, R12 and R13, of which CX are written; of the sixteen after these, room tells those
// that may be overwritten. Z4 is free.
#define APPEND(mask, room) \
	VPCOMPRESSD Z3, mask, Z4          \
	VPMOVDW     Z4, Y4                \
	VMOVDQU16   Y4, room, (R11)(CX*2) \
	VPCOMPRESSD Z1, mask, Z4          \
	VPMOVDW     Z4, Y4                \
	VMOVDQU16   Y4, room, (R12)(CX*2) \
	VPCOMPRESSD Z0, mask, Z4          \
	VMOVDQU32   Z4, room, (R13)(CX*4) \
	KMOVW       mask, DX        \
	POPCNTL     DX, DX          \
	ADDQ        DX, CX

#define LISTS(list) \
	MOVQ later_at(list), R11     \
	MOVQ later_bounds(list), R12 \
	MOVQ later_sums(list), R13   \
	MOVQ later_n(list), CX

#define LIMIT(limit) \
	MOVWLZX (limit+limit_z)(DI), AX \
	NEGL AX                         \
	SHLL $16, AX                    \
	MOVW (limit+limit_c)(DI), AX    \
	VPBROADCASTD AX, Z22            \
	VPBROADCASTD (limit+limit_base)(DI), Z21 \
	VMOVQ (limit+limit_shift)(DI), X23

// LEAST gives the least sums, in Z2, of slots that aren't out by their bounds, which Z1 gets.
#define LEAST(bounds) \
	VPMOVZXWD bounds, Z1          \
	VPMOVZXBW bounds, Z2          \
	VPMADDWD  Z22, Z2, Z2         \
	VPADDD    Z21, Z2, Z2         \
	VPSRAD    X23, Z2, Z2

DATA ordinals<>+0(SB)/8, $0x0000000100000000
DATA ordinals<>+8(SB)/8, $0x0000000300000002
DATA ordinals<>+16(SB)/8, $0x0000000500000004
DATA ordinals<>+24(SB)/8, $0x0000000700000006
DATA ordinals<>+32(SB)/8, $0x0000000900000008
DATA ordinals<>+40(SB)/8, $0x0000000b0000000a
DATA ordinals<>+48(SB)/8, $0x0000000d0000000c
DATA ordinals<>+56(SB)/8, $0x0000000f0000000e
GLOBL ordinals<>(SB), RODATA|NOPTR, $64

// func putAVX512(p *put)
//
// R8 walks the masks of blocks, SI the bounds, R10 the sums, Z3 has the slots of the group.
TEXT ·putAVX512(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), DI
	LIMIT(put_limit)
	MOVQ put_masks(DI), R8
	MOVQ (put_masks+8)(DI), R9
	MOVQ put_sums(DI), R10
	MOVQ put_plane(DI), SI
	ADDQ (put_layout+layout_boundsAt)(DI), SI
	VPBROADCASTD put_first(DI), Z3
	VPADDD ordinals<>(SB), Z3, Z3
	MOVL $16, AX
	VPBROADCASTD AX, Z20
	KXNORW K3, K3, K3
	MOVQ put_late(DI), BX
	LISTS(BX)
	SHLQ $2, R9
	XORQ R14, R14 // group of the block

group:
	TESTQ R9, R9
	JZ    done
	MOVWLZX (R8), AX
	TESTL AX, AX
	JZ    next
	KMOVW AX, K1
	LEAST((SI))
	VMOVDQU32 (R10), Z0
	VPCMPD    $5, Z2, Z0, K1, K2
	KORTESTW  K2, K2
	JNZ   soon

late:
	APPEND(K1, K3)

next:
	VPADDD Z20, Z3, Z3
	ADDQ  $2, R8
	ADDQ  $64, R10
	ADDQ  $const_groupBoundBytes, SI
	INCQ  R14
	CMPQ  R14, $const_blockGroups
	JLT   same
	XORQ  R14, R14
	SUBQ  $(const_blockGroups*const_groupBoundBytes), SI
	ADDQ  (put_layout+layout_blockBytes)(DI), SI

same:
	DECQ  R9
	JMP   group

soon:
	MOVQ  CX, later_n(BX)
	KANDNW K1, K2, K1
	MOVQ  put_soon(DI), BX
	LISTS(BX)
	APPEND(K2, K3)
	MOVQ  CX, later_n(BX)
	MOVQ  put_late(DI), BX
	LISTS(BX)
	JMP   late

done:
	MOVQ  CX, later_n(BX)
	VZEROUPPER
	RET

// func siftAVX512(s *sift)
//
// What is written lies before what is read.
TEXT ·siftAVX512(SB), NOSPLIT, $0-8
	MOVQ s+0(FP), DI
	LIMIT(sift_limit)
	MOVQ sift_list(DI), BX
	LISTS(BX)
	MOVQ sift_from(DI), CX
	MOVQ CX, R8
	MOVQ sift_rows(DI), R9

rows:
	TESTQ R9, R9
	JLE   done
	MOVL  $0xffff, AX
	CMPQ  R9, $16
	JGE   whole
	MOVQ  CX, R10
	MOVQ  R9, CX
	MOVL  $1, AX
	SHLL  CX, AX
	DECL  AX
	MOVQ  R10, CX

whole:
	KMOVW AX, K1
	VPMOVZXWD (R11)(R8*2), Z3
	LEAST((R12)(R8*2))
	VMOVDQU32 (R13)(R8*4), Z0
	VPCMPD    $5, Z2, Z0, K1, K2
	APPEND(K2, K1)
	ADDQ  $16, R8
	SUBQ  $16, R9
	JMP   rows

done:
	SUBQ  sift_from(DI), CX
	MOVQ  CX, sift_left(DI)
	VZEROUPPER
	RET
