// Package auditing takes a tenant's audit log out of a cluster, and checks it without one.
//
// The log is a Merkle log in the form of C2SP's tlog-tiles (internal/tiles). A Source reads its
// files: from a cluster, from a web server, or from a folder. Export writes a folder, and Verify
// reads one again: every entry, every tile, the root and the signature, and whether the log still
// contains the tree that a witness has cosigned. Proofs are of the forms tlog-proof and, for two
// sizes of a log, tlog-witness.
//
// The package holds at most some bundles of entries at a time.
package auditing
