package transport

import (
	"bytes"
	"fmt"

	"github.com/hashicorp/raft"

	"facet/raftfsm/snapshots"
	"facet/shard/segment"
)

// This package sends two questions of its own, as an InstallSnapshot of a version that raft
// does not know. raft never sees them.
//
// offerVersion asks which segments of a snapshot the member has. The stream is the offer
// (snapshots.Snapshot.Offer), and the header's Addr in the answer holds the bits. A member
// that does not answer is sent all segments. For the other question see goneVersion.
const offerVersion = raft.SnapshotVersion(0x4641)

// ask returns the segments of a snapshot that a member has, or nil without an answer.
func (t *Transport) ask(to raft.ServerID, at raft.ServerAddress, s *snapshots.Snapshot) map[segment.Hash]bool {
	offer := s.Offer()
	q := raft.InstallSnapshotRequest{RPCHeader: t.self.header(), SnapshotVersion: offerVersion, Size: int64(len(offer))}
	var a raft.InstallSnapshotResponse
	err := t.NetworkTransport.InstallSnapshot(to, at, &q, &a, bytes.NewReader(offer))
	if err != nil || !a.Success {
		return nil
	}
	return s.Held(a.Addr)
}

// question answers rpc if rpc is a question of this package, and reports whether it is. It
// answers one offer at a time, on a goroutine of its own: the hashes may come slowly, and
// raft's messages must not wait for them.
func (t *Transport) question(rpc raft.RPC) bool {
	q, ok := rpc.Command.(*raft.InstallSnapshotRequest)
	if !ok || q.SnapshotVersion != offerVersion && q.SnapshotVersion != goneVersion {
		return false
	}
	if q.SnapshotVersion == goneVersion {
		t.loss.answerGone(rpc, q)
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
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: t.self.self, Addr: bits}, Success: err == nil,
		}, err)
	})
	return true
}
