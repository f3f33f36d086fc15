// Package lan makes a network of hosts on one machine, for attacks on clusters: each
// host is a network namespace with one interface, and the switch between them is
// this process, which cuts, delays and loses frames as it is told, each direction by
// itself.
//
// It needs Linux and the right to make namespaces (root). Nothing of it is left when
// the process ends.
//
// The package may import no other package of this module.
package lan
