// Package table prints measurements with their goals as Markdown tables, and writes the
// tables of a run into a file of docs/benchmarks. It imports machine.
package table
