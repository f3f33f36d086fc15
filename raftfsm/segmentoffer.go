package raftfsm

import (
	"bytes"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"facet/shard/segment"
)

// Before a leader sends a snapshot it asks the member which of its segments are
// there: from an earlier snapshot, or from one that broke off. The question is an
// InstallSnapshot of the version offerVersion, whose stream is the hashes; the answer
// has a bit for each of them, the first one lowest, in the header's Addr. Only this
// package sees them. A member that knows no such question refuses it, and is sent
// everything.
const offerVersion = raft.SnapshotVersion(0x4641)

// ask gives the segments that a member has; without an answer there are none.
func (t *transport) ask(to raft.ServerID, at raft.ServerAddress, refs []segment.Ref) map[segment.Hash]bool {
	var hashes []byte
	for _, r := range refs {
		hashes = append(hashes, r.Hash[:]...)
	}
	q := raft.InstallSnapshotRequest{RPCHeader: t.header, SnapshotVersion: offerVersion, Size: int64(len(hashes))}
	var a raft.InstallSnapshotResponse
	err := t.NetworkTransport.InstallSnapshot(to, at, &q, &a, bytes.NewReader(hashes))
	bits := a.Addr
	if err != nil || !a.Success || len(bits) != (len(refs)+7)/8 {
		return nil
	}
	have := make(map[segment.Hash]bool)
	for i, r := range refs {
		if bits[i/8]>>(i%8)&1 == 1 {
			have[r.Hash] = true
		}
	}
	return have
}

// question answers rpc if it is a question of ours: for segments, one at a time, for
// the hashes may come slowly, and raft's messages don't wait for them; or after the
// leader.
func (t *transport) question(rpc raft.RPC) bool {
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
		bits, err := t.have(rpc.Reader, q.Size)
		rpc.Respond(&raft.InstallSnapshotResponse{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: t.header.ID, Addr: bits}, Success: err == nil,
		}, err)
	})
	return true
}

// have reads the hashes, of size bytes, and gives the bits.
func (t *transport) have(r io.Reader, size int64) ([]byte, error) {
	const hashBytes = int64(len(segment.Hash{}))
	n := size / hashBytes
	if size%hashBytes != 0 || n < 1 || n > segmentsMax {
		return nil, fmt.Errorf("%w: %d bytes of hashes", errMalformed, size)
	}
	bits := make([]byte, (n+7)/8)
	for i := range n {
		var h segment.Hash
		if _, err := io.ReadFull(r, h[:]); err != nil {
			return nil, fmt.Errorf("read hashes of segments: %w", err)
		}
		if t.segments.Has(h) {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	return bits, nil
}
