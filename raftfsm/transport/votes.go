package transport

import (
	"errors"
	"strings"

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

// Errors that reject a TimeoutNow.
var (
	// errResigned: this member is stopping and takes no leadership.
	errResigned = errors.New("raftfsm: the member is stopping and takes no leadership")
	// errCandidate: a candidate that TimeoutNow started stays one until its election ends,
	// even when another member of its term leads. raft would forget the offer, and the
	// leader would write nothing until Timing.Election has passed.
	errCandidate = errors.New("raftfsm: the member stands for election already")
)

// Resigned reports whether err is that of a transfer to a member that has resigned. The
// member's answer comes as text.
func Resigned(err error) bool {
	return err != nil && strings.Contains(err.Error(), errResigned.Error())
}

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

// refused rejects votes before Admit, and an offer of the leadership if this member can't
// take it. It reports whether it answered rpc.
func (t *Transport) refused(rpc raft.RPC) bool {
	if isVote(rpc.Command) && !t.Gate.Admitted() {
		rpc.Respond(nil, errNotAdmitted)
		return true
	}
	if _, offer := rpc.Command.(*raft.TimeoutNowRequest); !offer {
		return false
	}
	r := t.raft.Load()
	switch {
	case t.resigned.Load():
		rpc.Respond(nil, errResigned)
	case r != nil && r.State() == raft.Candidate:
		rpc.Respond(nil, errCandidate)
	default:
		return false
	}
	return true
}
