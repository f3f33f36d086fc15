package raftfsm

import (
	"errors"

	"facet/internal/id"
	"facet/raftfsm/health"
	"facet/raftfsm/logstore"
)

var (
	// ErrOutcomeUnknown is returned when the leader changed, or the caller's time ran
	// out, after a command was handed to the log. The command may be applied, now or
	// later. The error wraps the reason.
	ErrOutcomeUnknown = errors.New("raftfsm: the outcome of the command is unknown")

	// ErrClosed is returned when the group was closed, or took itself out (Config.Fatal).
	ErrClosed = health.ErrClosed

	// ErrBusy is returned when proposalsMax commands already wait for their answer. The
	// command was not proposed.
	ErrBusy = errors.New("raftfsm: too many commands in progress")

	// ErrTooLarge is returned when a command is larger than CommandBytesMax. The
	// command was not proposed.
	ErrTooLarge = errors.New("raftfsm: command is too large")

	// ErrCorrupt is returned when bytes read from disk or received from a member do not
	// have the checksum they were written with.
	ErrCorrupt = health.ErrCorrupt

	// ErrGone is returned when a member that was prepared (Prepare) has no log, or when its
	// files hold less than it has flushed. It has forgotten votes or acknowledgements, so it
	// must not return under its old name.
	ErrGone = logstore.ErrGone

	// ErrNotMember is returned when the named member is not part of the group.
	ErrNotMember = errors.New("raftfsm: not a member of the group")

	// ErrConfigurationChanged is returned when the group's members are no longer those of
	// the given configuration index. Nothing was changed.
	ErrConfigurationChanged = errors.New("raftfsm: the group's configuration has changed")
)

// RewriteError is the reason of Config.Fatal when other members send entries in place of
// entries that this member knows to be committed.
type RewriteError = health.RewriteError

// NotLeaderError is returned when this member does not lead the group. Nothing was
// proposed or read. Leader is empty when no leader is known, or while the leadership
// is handed over.
type NotLeaderError struct{ Leader id.Member }

// Error returns a message that names the leader when it is known.
func (e *NotLeaderError) Error() string {
	if e.Leader == "" {
		return "raftfsm: not the leader, and no leader is known"
	}
	return "raftfsm: not the leader, which is " + string(e.Leader)
}
