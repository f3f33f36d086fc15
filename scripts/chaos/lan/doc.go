// Package lan creates a network of hosts on one machine, for attacks on clusters.
// Each host is a network namespace with one interface. The switch between the hosts
// is this process. It cuts, delays and loses frames as configured, separately for
// each direction.
//
// It needs Linux and the right to create namespaces (root). When the process ends,
// nothing of the network remains.
//
// The package may import no other package of this module.
package lan
