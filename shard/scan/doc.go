// Package scan finds the rows of a slice that are most similar to a probe.
//
// TopK is the plain reference: every row is compared in the one fixed order of
// score.Dot, every row at or above the threshold is considered, the best are kept
// in a bounded heap. A faster kernel has to return the same list. The package may
// import engine/score and internal packages.
package scan
