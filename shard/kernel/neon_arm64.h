// Instructions that Go's assembler has no names for, of whole 128-bit registers. The operands
// are the numbers of registers, in the order of the manual: the result comes first.

// SDOT adds the products of four signed bytes to each 32-bit number of d. SDOTLANE multiplies by
// four bytes of m, the same for all.
#define SDOT(d, n, m) WORD $(0x4e809400 | (m)<<16 | (n)<<5 | (d)) // sdot d.4s, n.16b, m.16b
#define SDOTLANE(d, n, m, i) WORD $(0x4f80e000 | ((i)&1)<<21 | (m)<<16 | ((i)>>1)<<11 | (n)<<5 | (d)) // sdot d.4s, n.16b, m.4b[i]

// Products of signed numbers, twice as long as these: of the lower halves, or of the upper.
#define SMULLB(d, n, m) WORD $(0x0e20c000 | (m)<<16 | (n)<<5 | (d))  // smull d.8h, n.8b, m.8b
#define SMULLB2(d, n, m) WORD $(0x4e20c000 | (m)<<16 | (n)<<5 | (d)) // smull2 d.8h, n.16b, m.16b
#define SMLALB(d, n, m) WORD $(0x0e208000 | (m)<<16 | (n)<<5 | (d))  // smlal d.8h, n.8b, m.8b
#define SMLALB2(d, n, m) WORD $(0x4e208000 | (m)<<16 | (n)<<5 | (d)) // smlal2 d.8h, n.16b, m.16b
#define SMLALH(d, n, m) WORD $(0x0e608000 | (m)<<16 | (n)<<5 | (d))  // smlal d.4s, n.4h, m.4h
#define SMLALH2(d, n, m) WORD $(0x4e608000 | (m)<<16 | (n)<<5 | (d)) // smlal2 d.4s, n.8h, m.8h
#define SMLSLH(d, n, m) WORD $(0x0e60a000 | (m)<<16 | (n)<<5 | (d))  // smlsl d.4s, n.4h, m.4h
#define SMLSLH2(d, n, m) WORD $(0x4e60a000 | (m)<<16 | (n)<<5 | (d)) // smlsl2 d.4s, n.8h, m.8h

// SADALP adds two 16-bit numbers of n to each of d, SSHL shifts to the left by m, to the right if
// that is negative, and CMGE makes all bits of a number 1 if n is at least m.
#define SADALP(d, n) WORD $(0x4e606800 | (n)<<5 | (d))           // sadalp d.4s, n.8h
#define SSHL(d, n, m) WORD $(0x4ea04400 | (m)<<16 | (n)<<5 | (d)) // sshl d.4s, n.4s, m.4s
#define CMGE(d, n, m) WORD $(0x4ea03c00 | (m)<<16 | (n)<<5 | (d)) // cmge d.4s, n.4s, m.4s

// Sums of two unsigned numbers each, which are twice as long: UADALP adds them to d.
#define UADALP(d, n) WORD $(0x6e206800 | (n)<<5 | (d)) // uadalp d.8h, n.16b

// SSRA shifts to the right, with the sign, and adds to d.
#define SSRA(d, n, by) WORD $(0x4f001400 | (64-(by))<<16 | (n)<<5 | (d)) // ssra d.4s, n.4s, #by

// Floats; a product and a sum are apart, for a fused one rounds once less.
#define VFMULS(d, n, m) WORD $(0x6e20dc00 | (m)<<16 | (n)<<5 | (d)) // fmul d.4s, n.4s, m.4s
#define VFADDS(d, n, m) WORD $(0x4e20d400 | (m)<<16 | (n)<<5 | (d)) // fadd d.4s, n.4s, m.4s
#define VFADDPS(d, n) WORD $(0x7e30d800 | (n)<<5 | (d))          // faddp d, n.2s

// The same of two 64-bit numbers. FLOOR rounds down, WIDEN and WIDEN2 make float64 of the lower or
// the upper two float32, INTEGER makes 64-bit integers of whole numbers.
#define VFMULD(d, n, m) WORD $(0x6e60dc00 | (m)<<16 | (n)<<5 | (d)) // fmul d.2d, n.2d, m.2d
#define VFADDD(d, n, m) WORD $(0x4e60d400 | (m)<<16 | (n)<<5 | (d)) // fadd d.2d, n.2d, m.2d
#define VFSUBD(d, n, m) WORD $(0x4ee0d400 | (m)<<16 | (n)<<5 | (d)) // fsub d.2d, n.2d, m.2d
#define VFMAXD(d, n, m) WORD $(0x4e60f400 | (m)<<16 | (n)<<5 | (d)) // fmax d.2d, n.2d, m.2d
#define VFMIND(d, n, m) WORD $(0x4ee0f400 | (m)<<16 | (n)<<5 | (d)) // fmin d.2d, n.2d, m.2d
#define FLOOR(d, n) WORD $(0x4e619800 | (n)<<5 | (d))              // frintm d.2d, n.2d
#define WIDEN(d, n) WORD $(0x0e617800 | (n)<<5 | (d))              // fcvtl d.2d, n.2s
#define WIDEN2(d, n) WORD $(0x4e617800 | (n)<<5 | (d))             // fcvtl2 d.2d, n.4s
#define INTEGER(d, n) WORD $(0x4ee1b800 | (n)<<5 | (d))            // fcvtzs d.2d, n.2d
