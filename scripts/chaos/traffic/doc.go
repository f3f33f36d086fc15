// Package traffic is the clients of attacks on clusters, and the judge of what they
// saw: concurrent clients register, update, remove, verify and search faces, with
// tags, and each subject's history must then be linearizable (porcupine). It serves
// clusters of real processes and those of virtual time alike: a Sender brings the
// requests to the nodes.
//
// The package may import internal/id.
package traffic
