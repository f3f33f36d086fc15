#include "go_asm.h"
#include "textflag.h"
#include "neon_arm64.h"
#include "rows_arm64.h"

// func dotsNEON(d *dots)
//
// V0 to V3 are the sixteen lanes of score.Dot.
TEXT ·dotsNEON(SB), NOSPLIT, $0-8
	MOVD d+0(FP), R0
	MOVD dots_rows(R0), R1
	MOVD dots_list(R0), R4
	MOVD (dots_list+8)(R0), R5
	MOVD dots_probe(R0), R7
	MOVD (dots_probe+8)(R0), R6
	LSL  $2, R6
	MOVD dots_dots(R0), R8

row:
	CBZ  R5, done
	ROWAT((R4), R9)
	MOVD R9, R12
	CMP  $4, R5
	BLE  here
	ROWAT(8(R4), R12) // fetched while this row is multiplied

here:
	ADD  R6, R9, R10
	MOVD R7, R11
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16

part:
	VLD1.P 64(R9), [V4.S4, V5.S4, V6.S4, V7.S4]
	VLD1.P 64(R11), [V16.S4, V17.S4, V18.S4, V19.S4]
	PRFM (R12), PLDL1KEEP
	ADD  $64, R12
	VFMULS(4, 4, 16)
	VFMULS(5, 5, 17)
	VFMULS(6, 6, 18)
	VFMULS(7, 7, 19)
	VFADDS(0, 0, 4)
	VFADDS(1, 1, 5)
	VFADDS(2, 2, 6)
	VFADDS(3, 3, 7)
	CMP R10, R9
	BLT part

	VFADDS(0, 0, 2)
	VFADDS(1, 1, 3)
	VFADDS(0, 0, 1)
	VEXT $8, V0.B16, V0.B16, V1.B16
	VFADDS(0, 0, 1)
	VFADDPS(0, 0)
	FMOVS.P F0, 4(R8)
	ADD $2, R4
	SUB $1, R5
	B   row

done:
	RET
