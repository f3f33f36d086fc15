// Package idle measures the processor time that three nodes without requests take. It
// compares it with round trips over TLS between two processes on the same machine.
package idle
