// ROWAHEAD is how many rows of a list before its turn a row is fetched, to the second cache:
// it waits for more lines at once than the first, which made rows here and there twice as fast.
#define ROWAHEAD 64

// FIRSTROWS begins to fetch the first R14 bytes of the first rows of a list at R8, of R9 rows of
// R13 bytes from SI on.
#define FIRSTROWS \
	XORQ DX, DX              \
firstRow:                    \
	CMPQ DX, R9              \
	JGE  firstDone           \
	CMPQ DX, $ROWAHEAD       \
	JGE  firstDone           \
	MOVWQZX (R8)(DX*2), AX   \
	IMULQ R13, AX            \
	ADDQ SI, AX              \
	LEAQ (AX)(R14*1), BX     \
firstLine:                   \
	PREFETCHT1 (AX)          \
	ADDQ $64, AX             \
	CMPQ AX, BX              \
	JLT  firstLine           \
	INCQ DX                  \
	JMP  firstRow            \
firstDone:

// FETCHROW fetches those of the row that is ROWAHEAD rows on.
#define FETCHROW \
	CMPQ R9, $ROWAHEAD       \
	JLE  fetchDone           \
	MOVWQZX (2*ROWAHEAD)(R8), AX \
	IMULQ R13, AX            \
	ADDQ SI, AX              \
	LEAQ (AX)(R14*1), BX     \
fetchLine:                   \
	PREFETCHT1 (AX)          \
	ADDQ $64, AX             \
	CMPQ AX, BX              \
	JLT  fetchLine           \
fetchDone:
