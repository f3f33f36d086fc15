package replicas

import (
	"errors"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/router"
)

// Again reports whether a request may be tried again: what is asked for may come twice.
func Again(err error) bool {
	if _, notLeader := errors.AsType[*raftfsm.NotLeaderError](err); notLeader {
		return true
	}
	return errors.Is(err, raftfsm.ErrOutcomeUnknown) || errors.Is(err, raftfsm.ErrBusy) || router.KindOf(err) == router.Unavailable
}

// NotHere returns the error of a node that does not lead a group.
func NotHere(number id.Shard) error {
	return router.Errorf(router.Unavailable, "", "this node does not lead group %d", number)
}

// Heal returns NotHere for an error that another try may heal, so that a peer tries again,
// and any other error as it is.
func Heal(number id.Shard, err error) error {
	if err != nil && (Again(err) || errors.Is(err, raftfsm.ErrClosed)) {
		return NotHere(number)
	}
	return err
}
