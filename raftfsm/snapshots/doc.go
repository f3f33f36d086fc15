// Package snapshots keeps the newest snapshot of one member on disk, and the segments
// (shard/segment) that it names. It wraps raft.SnapshotStore (Store, Sink, Snapshot)
// over raft.FileSnapshotStore, and closes these issues of hashicorp/raft:
//
//	#697  A log that contradicts an installed snapshot is left alone, and the leader
//	      installs the snapshot again for ever. Sink.Close makes the log agree
//	      (reconcile.go). TestStockReinstallsSnapshotForever (raftfsm)
//	      shows it, TestInstalledSnapshotReplacesLog and
//	      TestReconcileMakesLogAgree the cure.
//	#522  A leader that can't read its snapshot goes on leading, and can't help those
//	      that need it. Store.Open takes the member out.
//	      TestSnapshotLackingSegmentsIsRefused.
//	      A snapshot that can't be read is passed over for an older one, without a word.
//	      Store keeps one, and List fails. TestFlippedBitIsFoundAtOpen
//	      (raftfsm).
//
// A snapshot is sent with those of its segments that the receiver lacks
// (segmentoffer.go, install.go).
//
// The package may import internal/id, shard/segment, raftfsm/health, hashicorp/raft,
// go-hclog and klauspost/compress.
package snapshots
