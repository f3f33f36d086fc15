package transport

import (
	"errors"

	"github.com/hashicorp/raft"
)

// RequestVote asks for a vote.
func (t *Transport) RequestVote(to raft.ServerID, at raft.ServerAddress,
	q *raft.RequestVoteRequest, a *raft.RequestVoteResponse,
) error {
	if err := t.mayLead(); err != nil {
		return err
	}
	before, err := t.known(to)
	if err != nil {
		return err
	}
	err = retryBroken(func() error {
		*a = raft.RequestVoteResponse{}
		return t.NetworkTransport.RequestVote(to, at, q, a)
	})
	err = errors.Join(err, t.answersFor(to, a.RPCHeader))
	if err == nil && a.Granted {
		t.add(to, before, q.Term, 0)
	}
	return err
}

// RequestPreVote asks whether a vote would be given.
func (t *Transport) RequestPreVote(to raft.ServerID, at raft.ServerAddress,
	q *raft.RequestPreVoteRequest, a *raft.RequestPreVoteResponse,
) error {
	if err := t.mayLead(); err != nil {
		return err
	}
	err := retryBroken(func() error {
		*a = raft.RequestPreVoteResponse{}
		return t.NetworkTransport.RequestPreVote(to, at, q, a)
	})
	return errors.Join(err, t.answersFor(to, a.RPCHeader))
}

// errResigned rejects a TimeoutNow: this member is stopping and takes no leadership.
var errResigned = errors.New("raftfsm: the member is stopping and takes no leadership")

// mayLead returns the reason why this member must not become the leader, or nil.
func (t *Transport) mayLead() error {
	if t.resigned.Load() {
		return errResigned
	}
	if !t.Gate.Admitted() {
		return errNotAdmitted
	}
	if err := t.health.Failed(); err != nil {
		return err
	}
	return t.self.mayAct()
}

// refused rejects votes before Admit, and an offer of the leadership if this member has
// resigned. It reports whether it answered rpc.
func (t *Transport) refused(rpc raft.RPC) bool {
	if isVote(rpc.Command) && !t.Gate.Admitted() {
		rpc.Respond(nil, errNotAdmitted)
		return true
	}
	if _, offer := rpc.Command.(*raft.TimeoutNowRequest); !offer || !t.resigned.Load() {
		return false
	}
	rpc.Respond(nil, errResigned)
	return true
}
