// Package record keeps the records of a slice's events outside the Go heap, without pointers, so
// that the garbage collector never walks them.
//
//	Table   records by row: ids, times, tags; the first row of each subject
//	Order   rows in the order of their sequences; a copy of it is a view
//
// A record takes 72 bytes, its place in the order 4, and its subject's place in the index 6 to 12.
//
// A record does not change, but for Next and Place, and never moves. A row that was removed is used
// again when nobody can read it any more: a reader that does not hold the shard's lock pins the
// table, and a removed row waits for the pins that were there.
//
//	Add → in use → Remove → waits for the pins → free → Add
//
// The package may import shard/kernel and internal/id.
package record
