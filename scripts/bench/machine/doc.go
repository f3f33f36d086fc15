// Package machine reads from Linux's /proc how much time and memory processes and
// processors take, and keeps processes on one core. On other systems it only compiles.
package machine
