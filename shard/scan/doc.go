// Package scan finds the rows of a slice that are most similar to a probe.
//
// TopK is the plain definition: it compares every row in the fixed order of score.Dot, and keeps
// the best rows at or above the threshold in a bounded heap. A faster kernel must return the same
// list. The package may import engine/score and internal packages.
package scan
