// Package load generates load for benchmarks. In a closed loop each worker waits for
// its answer. In an open loop requests are sent when they are due. It imports https and
// machine.
package load
