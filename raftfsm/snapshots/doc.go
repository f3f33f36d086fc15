// Package snapshots keeps the newest snapshot of one member on disk, and the segments
// (shard/segment) that it names. It wraps raft.SnapshotStore (Store, Sink, Snapshot)
// over raft.FileSnapshotStore, and closes these issues of hashicorp/raft:
//
//	#697  raft keeps a log that contradicts an installed snapshot, and the leader
//	      installs the snapshot again for ever. Sink.Close makes the log agree
//	      (reconcile.go). TestStockReinstallsSnapshotForever (raftfsm) shows the
//	      bug. TestInstalledSnapshotReplacesLog and TestReconcileMakesLogAgree
//	      show the fix.
//	#522  A leader that can't read its snapshot keeps leading, and can't help members
//	      that need the snapshot. Store.Open takes the member out of service.
//	      TestSnapshotLackingSegmentsIsRefused.
//	      raft silently uses an older snapshot in place of one that it can't read.
//	      Store keeps one, and List fails. TestFlippedBitIsFoundAtOpen
//	      (raftfsm).
//
// A leader sends a snapshot with only the segments that the receiver lacks
// (segmentoffer.go, install.go).
//
// The package may import internal/id, shard/segment, raftfsm/health, hashicorp/raft,
// go-hclog and klauspost/compress.
package snapshots
