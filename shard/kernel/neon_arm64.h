// Instructions that Go's assembler has no names for, of whole 128-bit registers. The operands
// are the numbers of registers, in the order of the manual: the result comes first.

// Floats; a product and a sum are apart, for a fused one rounds once less.
#define FMULS(d, n, m) WORD $(0x6e20dc00 | (m)<<16 | (n)<<5 | (d)) // fmul d.4s, n.4s, m.4s
#define FADDS(d, n, m) WORD $(0x4e20d400 | (m)<<16 | (n)<<5 | (d)) // fadd d.4s, n.4s, m.4s
#define FADDPAIR(d, n) WORD $(0x7e30d800 | (n)<<5 | (d))          // faddp d, n.2s
