// AHEAD is how many groups of a list before its turn a group is fetched.
#define AHEAD 4

// GROUP finds a group of a list: its first line and its bounds, in the blocks from SI on.
#define GROUP(list, line, bounds) \
	MOVWLZX list, AX                                    \
	MOVL    AX, line                                    \
	SHRL    $2, line                                    \
	ANDL    $3, AX                                      \
	IMULQ   (plane_layout+layout_blockBytes)(DI), line  \
	SHLL    $5, AX                                      \
	ADDQ    SI, line                                    \
	LEAQ    (line)(AX*1), bounds                        \
	ADDQ    (plane_layout+layout_boundsAt)(DI), bounds  \
	LEAQ    (line)(AX*2), line

// FETCHGROUP fetches the group that is AHEAD places on in the list at R14.
#define FETCHGROUP \
	GROUP((2*AHEAD)(R14), BX, R12)      \
	PREFETCHT0 (R12)                    \
	MOVQ  plane_coarseLines(DI), CX     \
	ADDQ  plane_fineLines(DI), CX       \
	JZ    here                          \
fetch:                                  \
	PREFETCHT0 (BX)                     \
	ADDQ  $const_blockLineBytes, BX     \
	DECQ  CX                            \
	JNZ   fetch
