// Package codec writes and reads the messages of the replicated state machines:
// commands, answers and the records of snapshots.
//
// A message is one byte of code, one byte of version and a body in CBOR (RFC 8949,
// core deterministic encoding, small integers as keys of maps). Codes are given
// out once and never reused; bit 7 of a command's code says that an older binary,
// which does not know it, may skip it. A body with a field that the version does
// not have is refused: a new field is a new version, because replicas that ignore
// what others obey would diverge. Ids are byte strings of 16.
//
// A stream of records (a snapshot) is
//
//	magic 8 | format 2 | index 8                      big-endian, as all below
//	length 4 (2 … 1 MiB) | code 1 | version 1 | CBOR  once per record
//	0 4 | number of records 8 | SHA-256 of all before 32
//
// Everything read is bounded before memory is taken. The package imports nothing
// of facet.
package codec
