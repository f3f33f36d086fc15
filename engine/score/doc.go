// Package score compares templates and turns similarities into scores.
//
// Dot fixes the order in which the numbers of two templates are multiplied and added, so every
// node, whatever its processor, computes the same similarity bit for bit. Table turns a similarity
// into the score 0…9999 of the interface. The package imports nothing of facet and allocates
// nothing after NewTable.
package score
