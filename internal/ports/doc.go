// Package ports gives TCP and UDP ports of loopback to the processes of tests and
// tools. A port belongs to one process: no other process that uses this package
// gets it, and no process gets it twice, in use or not. A node that was down for a
// while finds its ports still free.
//
// The package may import no other package of this module.
package ports
