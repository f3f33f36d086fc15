// Package transport carries the messages of one Raft group between its members. It
// wraps raft.Transport (Transport) over raft.NetworkTransport, and raft.StreamLayer
// over StreamLayer, and closes these issues of hashicorp/raft:
//
//	#695  A heartbeat changes raft's state on the goroutine that received it, while the
//	      main goroutine writes: logs diverge.
//	      TestStockAcknowledgesAppendOfLeftTerm, TestHeartbeatNeverOvertakesAppend.
//	#503, #614, #666  A leader whose disk hangs goes on leading.
//	      TestStockLeaderKeepsLeadingDuringStall, TestStalledLeaderIsReplaced.
//	#612  The pipeline wedges after the disk of a follower stalled. Transport has none.
//	      TestStalledFollowerCatchesUp.
//	      A member that returns gets no entries for up to 10 s (retry.go).
//	      TestStockStarvesReturnedMember, TestReturnedMemberCatchesUpAtOnce.
//	      A node answers in the name of a member that is gone: another node at the
//	      member's address, or the member's node after it lost its disk.
//	      TestDialRefusesOtherNodeAtAddress, TestWipedNodeIsNotItsFormerMember.
//	      A copy of a member's data directory votes a second time (holder.go).
//	      TestRefusedProcessIsNotHeard.
//	      raft panics on some messages. TestHarmfulMessagesAreRefused.
//
// When a leader's process ends, its streams end. When its machine is gone, it falls silent.
// The package notices both, and starts an election early (leaderloss.go):
// TestFollowersReplaceExitedLeaderEarly, and TestSilentLeadersAreReplacedSoon in scripts/sim.
//
// The heartbeats of a node's groups travel together (beats.go). A follower learns of a commit
// from an append of its own (announce.go).
//
// Tests that need a whole group are in raftfsm. Tests whose names begin with TestStock
// show the bugs of hashicorp/raft without this package.
//
// The package may import internal/id, shard/segment, raftfsm/health, raftfsm/snapshots,
// hashicorp/raft and go-hclog.
package transport
