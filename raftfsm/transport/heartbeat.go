package transport

import "github.com/hashicorp/raft"

// SetHeartbeatHandler makes the Transport handle heartbeats. raft's handler is not used.
func (t *Transport) SetHeartbeatHandler(func(raft.RPC)) {
	t.NetworkTransport.SetHeartbeatHandler(t.heartbeat)
}

// heartbeat answers a heartbeat at once, or hands it to raft's main goroutine.
func (t *Transport) heartbeat(rpc raft.RPC) {
	if !t.Gate.awaitReceive(t.done) {
		return
	}
	q, ok := rpc.Command.(*raft.AppendEntriesRequest)
	if err := t.self.admitRPC(rpc.Command); err != nil {
		rpc.Respond(nil, err)
		return
	}
	last, follows := uint64(0), false
	if ok {
		last, follows = t.follows(q)
	}
	if !follows {
		t.deliver(rpc)
		return
	}
	rpc.Respond(&raft.AppendEntriesResponse{
		RPCHeader: t.self.header(), Term: q.Term, LastLog: last, Success: true,
	}, nil)
	t.copyBeat(q)
}

// beat takes a heartbeat that came with those of other groups. It returns the last index of
// the log, and reports whether the member has seen the heartbeat. It does not wait.
func (t *Transport) beat(q *raft.AppendEntriesRequest) (last uint64, seen bool) {
	if !t.Gate.receives() || t.self.admit(&q.RPCHeader) != nil {
		return 0, false
	}
	if last, seen = t.follows(q); seen {
		t.copyBeat(q)
	}
	return last, seen
}

// follows reports whether this member follows in the term of q, so that a heartbeat needs no
// answer of raft's main goroutine. It returns the last index of the log.
func (t *Transport) follows(q *raft.AppendEntriesRequest) (last uint64, ok bool) {
	r := t.raft.Load()
	if r == nil {
		return 0, false
	}
	last = r.LastIndex() // before the term: a leader of a later term may cut the log
	// After the term: raft takes one that is not on the disk only after Fail.
	return last, q.ProtocolVersion == raft.ProtocolVersionMax && q.Term == r.CurrentTerm() && r.State() == raft.Follower && t.health.Failed() == nil
}

// leads reports whether this member leads term.
func (t *Transport) leads(term uint64) bool {
	r := t.raft.Load()
	return r != nil && r.State() == raft.Leader && r.CurrentTerm() == term
}

// copyBeat hands the main goroutine a copy of an answered heartbeat. The copy resets raft's
// election timer and names the leader. Its answer is dropped. It goes through pump only if the
// main goroutine is busy.
func (t *Transport) copyBeat(q *raft.AppendEntriesRequest) {
	rpc := raft.RPC{Command: q, RespChan: make(chan raft.RPCResponse, 1)}
	select {
	case t.out <- rpc:
		return
	default:
	}
	select {
	case t.beats <- rpc:
	default:
	}
}

// sendBeat sends a heartbeat. Appends that are held for the member need not be any longer.
func (t *Transport) sendBeat(to raft.ServerID, at raft.ServerAddress,
	q *raft.AppendEntriesRequest, a *raft.AppendEntriesResponse, by carrier,
) error {
	err := t.append(to, at, q, a, by)
	if err == nil {
		t.held.reached(to)
	}
	return err
}

// together is the carrier of raft's heartbeats: with those of other groups, if that works.
func (t *Transport) together(to raft.ServerID, at raft.ServerAddress, q *raft.AppendEntriesRequest, a *raft.AppendEntriesResponse) error {
	if t.shared != nil && t.shared.send(t, to, q, a) {
		return nil
	}
	if err := t.mute(); err != nil {
		return err
	}
	return t.NetworkTransport.AppendEntries(to, at, q, a)
}
