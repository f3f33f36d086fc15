// ROWAHEAD is how many rows of a list before its turn a row is fetched, to the second cache.
#define ROWAHEAD 64

// ROWAT gives the address of the first row of a list, of R6 bytes from R1 on.
#define ROWAT(list, to) \
	MOVHU list, to          \
	MADD  R6, R1, to, to

// FETCHROWAT fetches the first R3 bytes of a row, with R9 and R10.
#define FETCHROWAT(list, line) \
	ROWAT(list, R9)        \
	ADD  R3, R9, R10       \
line:                          \
	PRFM (R9), PLDL2KEEP   \
	ADD  $64, R9           \
	CMP  R10, R9           \
	BLT  line
