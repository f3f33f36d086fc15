#include "go_asm.h"
#include "textflag.h"
#include "neon_arm64.h"
#include "rows_arm64.h"

// ROWS begins with a list at R4, of R5 rows: it fetches the first of them.
#define ROWS \
	MOVD rows_rows(R0), R1             \
	MOVD rows_fetch(R0), R3            \
	MOVD rows_list(R0), R4             \
	MOVD (rows_list+8)(R0), R5         \
	MOVD rows_stride(R0), R6           \
	MOVD rows_probe(R0), R7            \
	MOVD rows_sums(R0), R8             \
	VMOVI $15, V24.B16                 \
	MOVD $0, R12                       \
first:                                     \
	CMP  R5, R12                       \
	BGE  row                           \
	CMP  $ROWAHEAD, R12                \
	BGE  row                           \
	ADD  R12<<1, R4, R11               \
	FETCHROWAT((R11), firstLine)       \
	ADD  $1, R12                       \
	B    first

// ROW finds the next row, its end at R10, and fetches the one that is ROWAHEAD rows on. R11
// walks the probe, V0 to V3 get sums.
#define ROW \
	CMP  $ROWAHEAD, R5                  \
	BLE  here                           \
	FETCHROWAT((2*ROWAHEAD)(R4), line)  \
here:                                       \
	ROWAT((R4), R9)                     \
	ADD  R6>>1, R9, R10                 \
	MOVD R7, R11                        \
	VEOR V0.B16, V0.B16, V0.B16         \
	VEOR V1.B16, V1.B16, V1.B16         \
	VEOR V2.B16, V2.B16, V2.B16         \
	VEOR V3.B16, V3.B16, V3.B16

// UNIT reads 64 numbers of a row, to V4 to V7 in the probe's order, which is in V16 to V19.
#define UNIT \
	VLD1.P 32(R9), [V6.B16, V7.B16] \
	VLD1.P 64(R11), [V16.B16, V17.B16, V18.B16, V19.B16] \
	VAND   V24.B16, V6.B16, V4.B16  \
	VAND   V24.B16, V7.B16, V5.B16  \
	VUSHR  $4, V6.B16, V6.B16       \
	VUSHR  $4, V7.B16, V7.B16

// ENDROW writes a sum, which is in the numbers of V0, and goes on to the next row.
#define ENDROW \
	VADDV   V0.S4, V0   \
	FMOVS.P F0, 4(R8)   \
	ADD     $2, R4      \
	SUB     $1, R5      \
	B       row

// func rowsDot(r *rows)
TEXT ·rowsDot(SB), NOSPLIT, $0-8
	MOVD r+0(FP), R0
	ROWS

row:
	CBZ R5, done
	ROW

unit:
	UNIT
	SDOT(0, 4, 16)
	SDOT(1, 5, 17)
	SDOT(2, 6, 18)
	SDOT(3, 7, 19)
	CMP R10, R9
	BLT unit

	VADD V1.S4, V0.S4, V0.S4
	VADD V3.S4, V2.S4, V2.S4
	VADD V2.S4, V0.S4, V0.S4
	ENDROW

done:
	RET

// func rowsNEON(r *rows)
//
// Four products of 4 by 8 bits fit 16.
TEXT ·rowsNEON(SB), NOSPLIT, $0-8
	MOVD r+0(FP), R0
	ROWS

row:
	CBZ R5, done
	ROW

unit:
	UNIT
	SMULLB(20, 4, 16)
	SMULLB2(21, 4, 16)
	SMULLB(22, 5, 17)
	SMULLB2(23, 5, 17)
	SMLALB(20, 6, 18)
	SMLALB2(21, 6, 18)
	SMLALB(22, 7, 19)
	SMLALB2(23, 7, 19)
	VADD V22.H8, V20.H8, V20.H8
	VADD V23.H8, V21.H8, V21.H8
	SADALP(0, 20)
	SADALP(1, 21)
	CMP R10, R9
	BLT unit

	VADD V1.S4, V0.S4, V0.S4
	ENDROW

done:
	RET
