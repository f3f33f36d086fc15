// Package table prints the measurements of a benchmark program next to their goals.
// It imports the standard library only.
package table
