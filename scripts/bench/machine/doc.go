// Package machine reads what processes and processors take, from Linux' /proc, for
// programs that measure. It imports the standard library only.
package machine
