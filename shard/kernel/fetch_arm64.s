#include "textflag.h"
#include "rows_arm64.h"

// func fetchRows(rows []byte, list []uint16, stride, bytes int)
//
// The lines of the first bytes of each row, to the second cache.
TEXT ·fetchRows(SB), NOSPLIT, $0-64
	MOVD rows_base+0(FP), R1
	MOVD list_base+24(FP), R4
	MOVD list_len+32(FP), R5
	MOVD stride+48(FP), R6
	MOVD bytes+56(FP), R3

row:
	CBZ R5, done
	FETCHROWAT((R4), line)
	ADD $2, R4
	SUB $1, R5
	B   row

done:
	RET
