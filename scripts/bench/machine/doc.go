// Package machine reads from Linux' /proc what processes and processors take, and keeps
// processes on one core. Other systems have it so that the programs compile.
package machine
