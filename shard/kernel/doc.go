// Package kernel searches the templates of a slice exactly, at the speed of memory.
//
// # Idea
//
// Every template is kept three times: as the float32 numbers that were enrolled, as
// 8-bit codes of its rotated numbers, and as 4-bit codes that are cut into two planes.
// A search reads the first plane of all rows (about 2 bits a number), which gives each row a
// certified upper bound of its similarity; rows that can't reach the threshold (or the score
// of the worst hit that is kept) are done with. If many are left, the second plane bounds
// them again; then their 8-bit codes do, and what is left then, a few rows in a million,
// is compared with the fixed summation order of score.Dot. The bounds hold
// for every input, so the answer equals that of scan.TopK bit for bit.
//
// If an operator wants so, the planes' bounds hold with a stated probability instead, for each
// row that should be found (Arena.Probable); the rest stays as it is.
//
// Which bits the first plane has follows from what the model pack says its numbers weigh
// (spectrum.go, coding.go), never from what is enrolled. It changes the speed, no answer.
//
// # Bound of a plane
//
// Let c be a row's code vector, φ the angle between the template x and c, θ the angle
// between the probe q and c. Angles obey the triangle inequality, so the angle
// of q and x is at least θ − φ, and q·x ≥ cos τ needs θ ≤ τ + φ, which is
//
//	cos θ / cos φ ≥ cos τ − sin τ · tan φ
//
// This is sharper than Cauchy and Schwarz with the norm of the residual. If the planes leave
// numbers out, which a basis has put last because they weigh next to nothing, let u and w be the
// norms of these numbers of x and of q, and x', q' the others: |x'|² = 1 − u², |q'|² = 1 − w². Then
// x' and q' have to make up for cos τ − u·w, and the same steps lead to
//
//	|x'| · cos θ / cos φ ≥ cos τ / |q'| − sin τ · tan φ − u · w/|q'|
//
// for |x'| times the sine of the angle that is needed is at most sin τ, whatever u is. The probe
// is rounded to int8, which turns q' by a known angle ψ: cos τ/|q'| becomes
// cos τ · cos ψ/|q'| − sin τ · sin ψ, and sin τ becomes sin τ · cos ψ + cos τ · sin ψ/|q'|. The
// two last terms are one inner product, at most √(tan² φ + u²) times the norm of the other side.
//
// Then cos θ · |c| is an exact sum of integers, and with a = |c| · cos φ/|x'| and
// t = a · √(tan² φ + u²) all that is left is to compare that sum with a·C − t·Z, where C and Z
// belong to the probe. A row has 8 bits each of a and t, on a scale of the plane and the coding:
// a is rounded down and t up, and no limit is stated if C is negative, so the bound only gets
// weaker. What the scales' beginnings add, and what the codes' middle does, is one number of the
// probe, so the comparison is one of integers, on every processor the same (limit, in probe.go).
//
// # Probable bound
//
// With Arena.Probable, the rotation is one of all orthogonal maps, drawn as if all were equally
// probable (haar.go), and a secret of the arena. Then the direction in which the code lies beside
// the template has nothing to do with that in which the probe does. Let τ' be the angle of
// q and x, and κ what planes get that are certified 1. But for a small probability, the tail of a sphere,
//
//	cos θ = cos φ · cos τ' + sin φ · sin τ' · g,  g ≥ −κ
//
// where g is the inner product of two unit vectors that are orthogonal to x, one of them of random
// direction: one of its coordinates. So x is within the threshold only if cos θ / cos φ ≥ f(τ),
// f(τ) = cos τ − sin τ · tan φ · κ, for f falls as long as τ + atan(κ · tan φ) < π, and τ' ≤ τ.
// A rounded probe is an angle of at most ψ farther from the code than its θ, which takes away at most
// sin ψ · √(1 + tan² φ − f²) ≤ sin ψ · (sin τ + tan φ · √(1 − κ² · sin² τ)) and a factor cos ψ. All
// this is linear in tan φ, as before.
//
// A row that should be found is lost if g < −κ, whatever the threshold: κ makes that as
// improbable as half of what was asked for, for each of the two planes. There is no sum over the
// rows that should not be found. Templates of many numbers have their signs for a first plane then
// (signs.go). What is taken for granted: templates and probes don't depend on
// the rotation. It is drawn from the system's randomness when an arena is made, is never stored,
// and neither hits nor scores depend on it unless one is lost.
//
// # Bound of a row
//
// The 8-bit code of a row has the same step in all rows, and rounding moves no bounded row
// farther than rowError steps. So a row is out if its sum is below one integer, which belongs
// to the probe. Rows for which a bound can't be stated (of another norm than 1, with numbers
// that no step suits, or beyond the scales) are marked irregular and compared in every search.
//
// A code lies in two halves, the upper four bits of all numbers and the lower ones. These, less
// their mean, are a vector that in no bounded row is longer than lowError, so its product with the
// rounded probe is at most that times the probe's norm. Rows that the first plane has left are bounded by
// their upper half, in half of the cache lines, and nearly all of them are out: only the others'
// lower half is read. Zero is in the middle of the numbers that share upper bits, so those
// that weigh next to nothing lose little. What both planes have left, of four bits a number too,
// the upper half would hardly exclude: then both halves are fetched at once.
//
// # Layout
//
// A Matrix is a list of chunks of slots in an Arena outside the Go heap. A chunk
// never moves. Chunks have 8, 8, 16, 32, 64, 128, … 8192, 8192, … slots, so a
// small gallery is small; the first five are flat: vectors only. The others have three
// pieces of memory, each beside that of the chunk before, so that a plane is read in long runs:
//
//	first   blocks of 64 slots: for each line of the coding four lines of 64 bytes, then two
//	        lines of bounds
//	second  the same
//	rows    codes, a row a slot: dim bytes, padded with zeros to 64 bytes, in halves;
//	        then vec, a row a slot: dim float32, padded with zeros to 64 bytes
//
//	byte 32i+j of a half  numbers 64i + j and, in the upper bits, 64i + 32 + j (j = 0 … 31)
//
//	line 4i+g of a block  slot 16g   16g+1   …   16g+15    32 bits each:
//	bits 8b+2k, 8b+2k+1 of a slot: number 16i + 4k + b     (b, k = 0 … 3)
//	bounds of a block     a, t of slot 0, a, t of slot 1, …                8 bits each
//
// One AND makes four numbers a slot ready for VPDPBUSD: 16 slots × 4 numbers, with
// 4 bytes of the probe for all slots. So plane scans need no tables.
//
// # Order of work
//
// A search that has as many hits as it wants gets stricter as it goes. So it puts off the
// rows that their bounds can't exclude but that look worse than its worst hit, by the planes
// and again by the 8-bit codes: at the end most of them are out without a look (later.go).
// Searches that wait are bounded
// by the 8-bit codes of all rows at once, sixteen searches to a register (batch.go, queue.go):
// they share the memory's bandwidth, and the arithmetic is the same for codes of 4 bits.
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
