// Package transport carries the messages of one Raft group between its members. It
// wraps raft.Transport (Transport) over raft.NetworkTransport, and raft.StreamLayer
// over StreamLayer, and closes these issues of hashicorp/raft:
//
//	#695  A heartbeat changes raft's state on the goroutine that received it, while the
//	      main goroutine writes: logs diverge.
//	      TestStockAcknowledgesAppendOfLeftTerm, TestHeartbeatNeverOvertakesAppend.
//	#503, #614, #666  A leader whose disk hangs goes on leading.
//	      TestStockLeaderKeepsLeadingDuringStall, TestStalledLeaderIsReplaced.
//	#612  The pipeline wedges after the disk of a follower stalled. There is none.
//	      TestStalledFollowerCatchesUp.
//	      A member that returns gets no entries for up to 10 s (retry.go).
//	      TestStockStarvesReturnedMember, TestReturnedMemberCatchesUpAtOnce.
//	      A member of another node, or of the same node before it lost its disk, answers
//	      in the name of one that is gone. TestDialRefusesOtherNodeAtAddress,
//	      TestWipedNodeIsNotItsFormerMember.
//	      raft panics on some messages. TestHarmfulMessagesAreRefused.
//
// The end of a leader's process is seen by its streams, so what followers do about it
// is here too (leaderloss.go):
// TestFollowersReplaceExitedLeaderEarly.
//
// The tests that need a whole group are raftfsm's. Those that begin with TestStock show
// hashicorp/raft without the cure.
//
// The package may import internal/id, shard/segment, raftfsm/health, raftfsm/snapshots,
// hashicorp/raft and go-hclog.
package transport
