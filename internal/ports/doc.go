// Package ports gives the processes of tests and tools TCP and UDP ports of loopback that
// stay theirs: no two processes that ask here are given the same one, nor one process the
// same one twice, whether anybody listens at it or not. A node that is down for a while
// finds its ports free again.
//
// The package may import no other package of this module.
package ports
