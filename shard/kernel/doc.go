// Package kernel searches the templates of a slice exactly, at the speed of memory.
//
// # Idea
//
// Every template is kept twice: as the float32 numbers that were enrolled, and as
// an 8-bit code of its rotated numbers, cut into planes. A search reads the first
// plane of all rows (2 bits a number), which gives each row a certified upper bound
// of its similarity; rows that can't reach the threshold (or the score of the
// worst hit that is kept) are done with. What is left is bounded again with two
// more bits, then with all eight, and what is left then, a few rows in a million,
// is compared with the fixed summation order of score.Dot. The bounds hold
// for every input, so the answer equals that of scan.TopK bit for bit.
//
// # Bound
//
// Let c be a row's code vector, φ the angle between the template x and c, θ the angle
// between the probe q and c. Angles obey the triangle inequality, so the angle
// of q and x is at least θ − φ, and q·x ≥ cos τ needs θ ≤ τ + φ, which is
//
//	cos θ / cos φ ≥ cos τ − sin τ · tan φ
//
// The probe is rounded to int8, which turns it by a known angle ψ: τ + ψ stands
// for τ. Then cos θ is an exact sum of integers, on every processor the same,
// times 1/|c|: a row stores α = 1/(|c|·cos φ) and tan φ, 16 bits each, a plane.
// This is sharper than Cauchy and Schwarz with the norm of the residual.
//
// # Layout
//
// A Matrix is a list of chunks of slots in an Arena outside the Go heap. A chunk
// never moves. Chunks have 8, 8, 16, 32, 64, 128, … 8192, 8192, … slots, so a
// small gallery is small; the first five are flat: vectors only. The others have three
// pieces of memory, each beside that of the chunk before, so that a plane is read in long runs:
//
//	hi    blocks of 64 slots: ⌈dim/16⌉ times four lines of 64 bytes, four lines of bounds
//	mid   the same
//	rows  rest, a row a slot: low (⌈dim/64⌉ · 32 bytes), mid once more (half of that), a bound;
//	      then vec, a row a slot: dim float32, padded with zeros to 64 bytes
//
//	line 4i+g of a block  slot 16g   16g+1   …   16g+15    32 bits each:
//	bits 8b+2k, 8b+2k+1 of a slot: number 16i + 4k + b     (b, k = 0 … 3)
//	line of bounds        α of 16 slots, tan φ of 16 slots (uint16)
//	byte i of 32 in low   number 64j + i below, 64j + 32 + i above
//	byte i of 16 in mid   numbers 64j + i, 64j + 16 + i, 64j + 32 + i, 64j + 48 + i
//
// mid is there twice: if many rows are left after hi, reading the plane in order is
// faster, if few are, reading their rows is.
//
// One AND makes four numbers a slot ready for VPDPBUSD: 16 slots × 4 numbers, with
// 4 bytes of the probe for all slots. So plane scans need no tables, and several
// probes share what was loaded.
//
// # Order of work
//
// A search that has as many hits as it wants gets stricter as it goes. So it puts off the
// rows that their bounds can't exclude but that look worse than its worst hit: at the end
// most of them are out without a look (later.go). Searches that wait are bounded
// sixteen at a time by hi and mid together (batch.go, queue.go).
//
// # Concurrency
//
// One writer at a time; any number of readers beside it, without locks. A row is
// there when its live bit is set, which is the last step of Add and undone by the
// first of Erase. A reader looks up a row's Owner before and after the exact
// comparison: if it is the same, the vector was whole.
//
// The package may import engine/score, shard/scan and internal/id.
package kernel
