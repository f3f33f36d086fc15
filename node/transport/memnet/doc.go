// Package memnet is a network in memory for tests: named hosts, streams with
// buffers and deadlines, packets that get lost, and links that can be cut, slowed
// and made lossy in each direction. It waits on channels and timers only, so that
// it runs in the virtual time of testing/synctest.
//
// A Host is a transport.Network. The package may import the standard library.
package memnet
