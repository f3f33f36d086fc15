package replicas

import (
	"errors"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/router"
)

var (
	// ErrStateLost is returned when a replica has less than it had acknowledged: its files
	// were rolled back.
	ErrStateLost = errors.New("node: the replica has lost state that it had acknowledged")
	// ErrNodeStateLost ends a node that has lost state of meta, or all of its state.
	ErrNodeStateLost = errors.New("node: the data directory or the machine was rolled back to an older state; " + rejoin)
)

// rejoin says what an operator does with a node that can't go on under its old name.
const rejoin = "this node can't go on under its old name; " +
	"empty its data directory, so that it joins as a new one, and remove the old one (facet node remove)"

// Again reports whether the caller may send an idempotent request again after err.
func Again(err error) bool {
	if _, notLeader := errors.AsType[*raftfsm.NotLeaderError](err); notLeader {
		return true
	}
	return errors.Is(err, raftfsm.ErrOutcomeUnknown) || errors.Is(err, raftfsm.ErrBusy) || router.KindOf(err) == router.Unavailable
}

// NotHere returns the error that sends the caller to another node.
func NotHere(number id.Shard) error {
	return router.Errorf(router.Unavailable, "", "this node does not lead group %d", number)
}

// Heal turns a temporary error into NotHere, so that the peer tries again. It returns any
// other error as it is.
func Heal(number id.Shard, err error) error {
	if err != nil && (Again(err) || errors.Is(err, raftfsm.ErrClosed)) {
		return NotHere(number)
	}
	return err
}
