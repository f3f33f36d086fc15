// Package load makes load for programs that measure: closed loops, in which each worker
// waits for its answer, and open ones, in which requests are sent when they are due. It
// imports https and machine.
package load
