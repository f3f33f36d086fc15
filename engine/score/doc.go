// Package score compares templates and says what a similarity is worth.
//
// It owns the one order in which the numbers of two templates are multiplied and
// added (Dot), so that every node, whatever its processor, gives a pair the same
// similarity bit for bit, and the table that turns a similarity into the score
// 0…9999 of the interface (Table). It imports nothing of facet and allocates
// nothing after NewTable.
package score
