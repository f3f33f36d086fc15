// Package goals prints what a benchmark program measured beside the goals that it
// stands against. It imports the standard library only.
package goals
