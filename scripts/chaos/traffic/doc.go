// Package traffic runs the clients of an attack on a cluster, and judges what they saw.
// Concurrent clients register, update, remove, verify and search faces, with tags. The
// history of each subject must then be linearizable (porcupine). The package serves
// clusters of real processes and clusters in virtual time: a Sender brings the requests
// to the nodes.
//
// The package may import internal/id.
package traffic
