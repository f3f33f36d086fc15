package raftfsm

import (
	"errors"

	"facet/internal/id"
	"facet/raftfsm/health"
	"facet/raftfsm/logstore"
)

var (
	// ErrOutcomeUnknown says that a command may or may not be applied, now or
	// later: the leader changed or the caller's time ran out after it was handed
	// to the log. It comes wrapped with the reason.
	ErrOutcomeUnknown = errors.New("raftfsm: the outcome of the command is unknown")

	// ErrClosed says that the group was closed, or took itself out (Config.Fatal).
	ErrClosed = health.ErrClosed

	// ErrBusy says that as many commands wait for their answer as may (proposalsMax). It
	// was not proposed.
	ErrBusy = errors.New("raftfsm: too many commands in progress")

	// ErrTooLarge says that a command is larger than CommandBytesMax. It was not proposed.
	ErrTooLarge = errors.New("raftfsm: command is too large")

	// ErrCorrupt says that bytes read from disk or received from a member do not
	// have the checksum they were written with.
	ErrCorrupt = health.ErrCorrupt

	// ErrGone says that a member that was prepared (Prepare) has no log: what it voted
	// and acknowledged is forgotten, so it must not come back under its old name.
	ErrGone = logstore.ErrGone

	// ErrNotMember says that the named member is not part of the group.
	ErrNotMember = errors.New("raftfsm: not a member of the group")

	// ErrConfigurationChanged says that the group's members are no longer those of
	// the given configuration index. Nothing was changed.
	ErrConfigurationChanged = errors.New("raftfsm: the group's configuration has changed")
)

// NotLeaderError says that this member does not lead the group, so that nothing
// was proposed or read. Leader is empty when no leader is known, or when the
// leadership is being handed over.
type NotLeaderError struct{ Leader id.Member }

// Error names the leader when it is known.
func (e *NotLeaderError) Error() string {
	if e.Leader == "" {
		return "raftfsm: not the leader, and no leader is known"
	}
	return "raftfsm: not the leader, which is " + string(e.Leader)
}
