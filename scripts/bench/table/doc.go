// Package table prints measurements as Markdown tables, with their goals, and writes a
// run into a file of docs/benchmarks. It imports machine.
package table
