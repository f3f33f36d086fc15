#include "textflag.h"

// func fetchRows(rows []byte, list []uint16, stride, bytes int)
//
// The lines of the first bytes of each row, to the second cache.
TEXT ·fetchRows(SB), NOSPLIT, $0-64
	MOVQ rows_base+0(FP), SI
	MOVQ list_base+24(FP), R8
	MOVQ list_len+32(FP), R9
	MOVQ stride+48(FP), R13
	MOVQ bytes+56(FP), R14

row:
	TESTQ R9, R9
	JZ    done
	MOVWQZX (R8), AX
	IMULQ R13, AX
	ADDQ  SI, AX
	LEAQ  (AX)(R14*1), BX

line:
	PREFETCHT1 (AX)
	ADDQ  $64, AX
	CMPQ  AX, BX
	JLT   line
	ADDQ  $2, R8
	DECQ  R9
	JMP   row

done:
	RET
