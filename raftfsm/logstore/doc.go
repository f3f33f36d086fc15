// Package logstore keeps the log, the term and the vote of one member on disk. It wraps
// raft.LogStore (Log) and raft.StableStore (Stable) over a store of raft-boltdb, and
// closes these issues of hashicorp/raft and bbolt:
//
//	#661  A crash between the two writes of a vote leaves the new term with the old
//	      candidate. Stable writes both as one value.
//	      TestPowerCutNeverTearsVote tears the vote of the bare store.
//	#697  Compaction may cut the entry that the next append is compared with. Log.Pin
//	      keeps it; raftfsm/snapshots has the rest of the fix and names the tests.
//	      TestReconcileMakesLogAgree (there) fails without the pin.
//	bbolt has no checksums. Log seals every entry with a CRC-32C and checks it on every read. TestFlippedBitsNeverGiveWrongEntry flips bits
//	      of the file, TestSealDetectsAnyChange parts of an entry.
//	bbolt keeps the contents of removed entries in free pages. Log.Renew replaces the
//	      file by a copy. TestRenewedLogDropsFreedPages finds them
//	      in the file before the copy.
//
// Two things keep a member from losing what it acknowledged without a word:
//
//   - Each write contains a record of what was flushed (Record), as an entry behind all others.
//     A member whose files hold less does not open. TestMissingPartIsNoticed takes parts away.
//   - The log refuses to remove committed entries when a leader has other ones
//     (commit.go). TestCommittedEntryIsNeverCut removes some.
//
// A write that fails takes the member out of service (raftfsm/health): after a failed
// fsync nobody knows what the file holds.
//
// The package may import raftfsm/health, hashicorp/raft, raft-boltdb, bbolt and cbor.
package logstore
