// Package kernel searches the templates of a slice exactly, at the speed of memory.
//
// # Idea
//
// A matrix keeps every template three times: as the enrolled float32 numbers, as 8-bit codes
// of its rotated numbers, and as 4-bit codes that are cut into two planes. A search goes through
// four steps, each of which excludes rows that can't reach the threshold, or the score of the
// worst hit that the search keeps:
//
//   - It reads the first plane of all rows, about 2 bits a number. This gives each row a
//     certified upper bound of its similarity.
//   - If many rows are left, it reads the second plane, which gives them a sharper bound.
//   - It reads the 8-bit codes of the rows that are left.
//   - It compares the last few rows in a million in the fixed summation order of score.Dot.
//
// The bounds hold for every input, so the answer equals that of scan.TopK bit for bit.
//
// The model pack says how much of a template's norm each number has, and this decides which bits
// the first plane keeps (spectrum.go, coding.go). Enrolled templates have no part in it. It
// changes the speed, no answer.
//
// # Bound of a plane
//
// Let c be a row's code vector, φ the angle between the template x and c, θ the angle
// between the probe q and c. Angles obey the triangle inequality, so the angle
// of q and x is at least θ − φ, and q·x ≥ cos τ needs θ ≤ τ + φ, which is
//
//	cos θ / cos φ ≥ cos τ − sin τ · tan φ
//
// This is sharper than the Cauchy-Schwarz inequality with the norm of the residual. The planes may
// leave out numbers that a basis has put last because they weigh next to nothing. Let u and w be
// the norms of these numbers of x and of q, and x', q' the others: |x'|² = 1 − u², |q'|² = 1 − w².
// Then x' and q' have to make up for cos τ − u·w, and the same steps lead to
//
//	|x'| · cos θ / cos φ ≥ cos τ / |q'| − sin τ · tan φ − u · w/|q'|
//
// for |x'| times the sine of the angle that is needed is at most sin τ, whatever u is. The probe
// is rounded to int8, which turns q' by a known angle ψ: cos τ/|q'| becomes
// cos τ · cos ψ/|q'| − sin τ · sin ψ, and sin τ becomes sin τ · cos ψ + cos τ · sin ψ/|q'|. The
// two last terms are one inner product, at most √(tan² φ + u²) times the norm of the other side.
//
// Then cos θ · |c| is an exact sum of integers. With a = |c| · cos φ/|x'| and
// t = a · √(tan² φ + u²), the search compares that sum with a·C − t·Z, where C and Z belong to the
// probe. A row stores a and t in 8 bits each, on a scale of the plane and the coding. a is rounded
// down and t up, and a negative C excludes nothing, so rounding only weakens the bound. The
// offsets of scales and codes add up to one number of the probe. So the comparison is one of
// integers, the same on every processor (limit, in probe.go).
//
// # Bound of a row
//
// The 8-bit codes of all rows have the same step, and rounding moves no bounded row farther than
// rowError steps. So a row is out if its sum is below one integer, which belongs to the probe. Some
// rows have no bound: their norm is not 1, no step suits their numbers, or they are beyond the
// scales. They are marked irregular, and every search compares them.
//
// A code has two halves, the upper four bits of all numbers and the lower four bits. The lower
// bits less their mean are a vector, and no bounded row has one longer than lowError. Its product
// with the rounded probe is at most lowError times the probe's norm. So the upper half, in half of
// the cache lines, bounds the rows that the first plane has left, and excludes nearly all of them.
// The search reads the lower half of the others only. Zero is in the middle of the numbers that
// share upper bits, so numbers that weigh next to nothing lose little. The upper half excludes
// hardly any row that both planes have left; then the search fetches both halves at once.
//
// # Layout
//
// A Matrix is a list of chunks of slots in an Arena outside the Go heap. A chunk never moves.
// Chunks have 8, 8, 16, 32, 64, 128, … 8192, 8192, … slots, so a small gallery takes little
// memory. The first five are flat: they have vectors only. The others have four pieces of
// memory. Each lies behind the same piece of the chunk before, so a search reads a plane in long runs:
//
//	first   blocks of 64 slots: for each line of the coding four lines of 64 bytes, then two
//	        lines of bounds
//	second  the same
//	rows    codes, a row a slot: dim bytes, padded with zeros to 64 bytes, in halves
//	exact   vec, a row a slot: dim float32, padded with zeros to 64 bytes
//
//	byte 32i+j of a half  numbers 64i + j and, in the upper bits, 64i + 32 + j (j = 0 … 31)
//
//	line 4i+g of a block  slot 16g   16g+1   …   16g+15    32 bits each:
//	bits 8b+2k, 8b+2k+1 of a slot: number 16i + 4k + b     (b, k = 0 … 3)
//	bounds of a block     a, t of slot 0, a, t of slot 1, …                8 bits each
//
// One AND prepares 16 slots × 4 numbers for VPDPBUSD, with the same 4 bytes of the probe for all
// slots. So plane scans need no tables.
//
// # Order of work
//
// A search that has as many hits as it wants gets stricter as it goes. So it defers rows that
// their bounds can't exclude but that look worse than its worst hit: first by the planes, then by
// the 8-bit codes. By the end, the stricter limit excludes most of them unread (later.go).
//
// Waiting searches go together, sixteen to a register, over the 8-bit codes of all rows
// (batch.go, queue.go). They share the memory's bandwidth. The planes would save them nothing,
// because codes of 4 bits take the same arithmetic.
//
// AVX2 has no dot product of bytes with sums of 32 bits. Its kernel adds up the lines of a plane in 16 bits,
// as many as fit whatever the codes are. The probe says how many (runOf). In batches it multiplies by the
// upper six bits of the codes, whose products fit 16 bits for some lines of numbers. Which ones, the
// probes say (run). The two other bits of a row add at most three times the positive numbers of the
// probe (laneLimit). The rows that are left, about a thousand of a million, go through their whole codes.
//
// # Cold chunks
//
// Searches read the exact rows of a few templates only, but these take most of the memory. Chill
// releases those of a chunk, which is cold then, and Thaw brings them back. A search fetches the
// exact rows that it needs of cold chunks from the Source of the matrix (wave.go), and finds the
// same hits.
//
// It first goes through all chunks. The code of a row bounds its similarity from above and from
// below, both certified. A row that the upper bound leaves is wanted. Its lower bound counts like a
// hit (floor, in top.go): once as many rows, or subjects, as the search wants are certified to reach
// some score, no row below that score gets in. So the limit rises before anything is fetched, and
// excludes most wanted rows. Then the search fetches the others in waves, best first, and the limit
// rises after each wave. The searches of a pass share waves.
//
// A certified row may be erased before it is fetched. Then the rows that the search has found are
// worse than those that it counted on, and it goes through all chunks again without lower bounds.
// A search that finds too many wanted rows to note fetches some of them on its way.
//
// The searches of one query in several matrices may share a limit (scan.Floor). Each tells the scores
// that it has kept or certified, before each piece and each wave, and takes the limit of all of them
// over. What was certified may be erased in another matrix, too. So whoever joins the hits looks whether
// enough of them reach the limit.
//
// Pages of subjects by their ids have no rising limit. They fetch rows in the order of these ids,
// and stop at the last subject of the page. Rows without bounds are always fetched.
//
// # Concurrency
//
// There is one writer at a time and any number of readers beside it, without locks. A row exists
// while its live bit is set: Add sets it last, Erase clears it first. A reader loads the number
// of a row's owner before and after the exact comparison. If both are the same, the vector was
// whole: while a search runs, no other row gets the number.
//
// Chill takes the exact rows away from the chunk, and releases their memory when the passes have
// ended that may read it (passes.go). These still see rows that Add puts into the cold chunk, but
// not in that memory. So a reader that has loaded owners looks whether the chunk still has the
// memory. If not, it treats the rows as cold.
//
// The package may import engine/score, shard/scan and internal/id.
package kernel
