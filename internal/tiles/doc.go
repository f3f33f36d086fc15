// Package tiles names and reads the files of a transparency log: its signed checkpoint, its tiles
// of hashes and its bundles of entries (C2SP's tlog-checkpoint and tlog-tiles).
//
// Hashes are those of RFC 6962, and golang.org/x/mod/sumdb/tlog computes them. A tile is 256 hashes
// wide. The package does no I/O.
package tiles
