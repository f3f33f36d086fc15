// Rows of a list are fetched before their turn: those of one line NEARAHEAD rows before, to the first
// cache, those of more lines ROWAHEAD rows before, to the second one. On Zen 4 the second cache is no help
// for a line by itself, which takes twice as long then, but for lines beside each other it is, for it waits for
// more of them at once.
#define NEARAHEAD 16
#define ROWAHEAD 64

// LINES fetches the first R14 bytes of the row that at names, of those of R13 bytes from SI on.
#define LINES(at, line) \
	MOVWQZX at, AX           \
	IMULQ R13, AX            \
	ADDQ SI, AX              \
	LEAQ (AX)(R14*1), BX     \
line:                        \
	PREFETCHT1 (AX)          \
	ADDQ $64, AX             \
	CMPQ AX, BX              \
	JLT  line

// NEARLINE fetches the only line of one.
#define NEARLINE(at) \
	MOVWQZX at, AX           \
	IMULQ R13, AX            \
	PREFETCHT0 (SI)(AX*1)

// FIRSTROWS begins to fetch the first rows of a list at R8, of R9 rows.
#define FIRSTROWS \
	XORQ DX, DX              \
	CMPQ R14, $64            \
	JLE  firstNear           \
firstRow:                    \
	CMPQ DX, R9              \
	JGE  firstDone           \
	CMPQ DX, $ROWAHEAD       \
	JGE  firstDone           \
	LINES((R8)(DX*2), firstLine) \
	INCQ DX                  \
	JMP  firstRow            \
firstNear:                   \
	CMPQ DX, R9              \
	JGE  firstDone           \
	CMPQ DX, $NEARAHEAD      \
	JGE  firstDone           \
	NEARLINE((R8)(DX*2))     \
	INCQ DX                  \
	JMP  firstNear           \
firstDone:

// FETCHROW fetches the row that is so many rows on.
#define FETCHROW \
	CMPQ R14, $64            \
	JLE  nearRow             \
	CMPQ R9, $ROWAHEAD       \
	JLE  fetchDone           \
	LINES((2*ROWAHEAD)(R8), fetchLine) \
	JMP  fetchDone           \
nearRow:                     \
	CMPQ R9, $NEARAHEAD      \
	JLE  fetchDone           \
	NEARLINE((2*NEARAHEAD)(R8)) \
fetchDone:
