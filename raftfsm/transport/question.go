package transport

import (
	"bytes"
	"fmt"

	"github.com/hashicorp/raft"

	"facet/raftfsm/snapshots"
	"facet/shard/segment"
)

// A question of ours is an InstallSnapshot of a version that raft does not know. Only
// this package sees them; a member that knows no such question refuses it. That of
// offerVersion has an offer of segments as its stream (snapshots.Snapshot.Offer), and
// the answer in the header's Addr. Who gives no answer is sent everything.
const offerVersion = raft.SnapshotVersion(0x4641)

// ask gives the segments of a snapshot that a member has; without an answer there are
// none.
func (t *Transport) ask(to raft.ServerID, at raft.ServerAddress, s *snapshots.Snapshot) map[segment.Hash]bool {
	offer := s.Offer()
	q := raft.InstallSnapshotRequest{RPCHeader: t.header, SnapshotVersion: offerVersion, Size: int64(len(offer))}
	var a raft.InstallSnapshotResponse
	err := t.NetworkTransport.InstallSnapshot(to, at, &q, &a, bytes.NewReader(offer))
	if err != nil || !a.Success {
		return nil
	}
	return s.Held(a.Addr)
}

// question answers rpc if it is a question of ours: for segments, one at a time, for
// the hashes may come slowly, and raft's messages don't wait for them; or after the
// leader.
func (t *Transport) question(rpc raft.RPC) bool {
	q, ok := rpc.Command.(*raft.InstallSnapshotRequest)
	if !ok || q.SnapshotVersion != offerVersion && q.SnapshotVersion != goneVersion {
		return false
	}
	if q.SnapshotVersion == goneVersion {
		t.answerGone(rpc, raft.ServerID(q.Leader))
		return true
	}
	if t.segments == nil || t.health.Failed() != nil || !t.asked.CompareAndSwap(false, true) {
		rpc.Respond(nil, fmt.Errorf("%w: no segments", errMalformed))
		return true
	}
	t.wg.Go(func() { // ends with its stream
		defer t.asked.Store(false)
		bits, err := snapshots.AnswerOffer(rpc.Reader, q.Size, t.segments)
		rpc.Respond(&raft.InstallSnapshotResponse{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: t.header.ID, Addr: bits}, Success: err == nil,
		}, err)
	})
	return true
}
